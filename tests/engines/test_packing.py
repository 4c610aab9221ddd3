"""Blocks as bytes: nothing is lost, and no array is copied where it can be looked at in place."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from crowdveil.engines.packing import from_bytes, to_bytes

ARRAYS = {"odd": np.arange(7, dtype=np.uint16), "none": np.zeros((0, 3)), "wide": np.arange(6.0).reshape(2, 3)}


@pytest.mark.parametrize("room", [bytes, bytearray, pa.py_buffer, lambda data: memoryview(bytearray(b"x" + data))[1:]])
def test_what_was_packed_comes_back_aligned_and_can_be_written(room: type) -> None:
    found = from_bytes(room(to_bytes((ARRAYS, "name", None))))
    assert found[1:] == ("name", None)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(found[0][name], array)
        assert found[0][name].dtype == array.dtype
        assert found[0][name].flags.aligned
        assert found[0][name].flags.writeable


def test_arrays_are_views_of_what_was_read() -> None:
    data = bytearray(to_bytes(ARRAYS))
    assert len(data) % 64 == 0, "the next block in the same column would not be aligned"
    found = from_bytes(data)
    assert all(np.shares_memory(array, np.frombuffer(data, np.uint8)) for array in found.values() if array.size)
