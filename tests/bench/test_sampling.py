"""The sampling bench measures what it says, with the rows that `crowdveil bench` prints."""

from __future__ import annotations

import numpy as np

from crowdveil.bench import sampling
from crowdveil.mechanisms import OptimalScale, RandomizedResponse


def test_rows_have_the_promised_fields_and_both_peers() -> None:
    rows = sampling.cases(quick=True)
    assert all(set(row) == {"case", "n", "ours", "peer", "peer_name", "ratio"} for row in rows)
    assert {row["peer_name"] for row in rows} == {"numpy.random.Generator", "opendp", "promised limit"}
    assert all(row["ours"] > 0 and row["peer"] > 0 for row in rows)
    memory = rows[-1]
    assert memory["ours"] <= 16
    assert memory["ratio"] >= 1


def test_the_plain_versions_draw_from_the_same_distribution() -> None:
    """A race against something that draws other reports would be won by cheating."""
    answers = np.ones(100_000, dtype=np.int32)
    for channel, peer in (
        ((response := RandomizedResponse(epsilon=1).channel(sampling._OPTIONS)), sampling._numpy_response(response)),
        ((table := OptimalScale(epsilon=1).channel(sampling._STARS)), sampling._numpy_table(table)),
    ):
        share = np.bincount(peer(answers, np.random.default_rng(1)), minlength=len(channel.outputs)) / len(answers)
        assert np.abs(share - channel.table[1]).max() < 5 * np.sqrt(0.25 / len(answers))
