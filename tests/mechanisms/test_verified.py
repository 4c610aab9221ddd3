"""The last check before a table leaves a mechanism: its exact ε against the request."""

from __future__ import annotations

import math

import pytest

from crowdveil import Channel
from crowdveil.channel.encoding import Rotate
from crowdveil.errors import UnservableError
from crowdveil.mechanisms._integer_rounding import verify_epsilon

CHANNEL = Channel(("no", "yes"), ("no", "yes"), 32, "rotate", Rotate(3 * 2**30, 2**30))


def test_a_table_above_the_request_is_refused_by_the_smallest_margin() -> None:
    assert verify_epsilon(CHANNEL, CHANNEL.epsilon, name="test") is CHANNEL
    with pytest.raises(UnservableError, match=r"cannot keep ε 1\.09861 with 2 inputs.*use randomized-response"):
        verify_epsilon(CHANNEL, math.nextafter(CHANNEL.epsilon, 0), name="test")
