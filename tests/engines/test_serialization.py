"""Blocks as bytes: nothing is lost, and no array is copied where it can be looked at in place."""

from __future__ import annotations

import hashlib
from dataclasses import fields, is_dataclass

import numpy as np
import pyarrow as pa
import pytest

from crowdveil import Answers, Choices, Reports, Scale
from crowdveil.engines.serialization import FORM, from_bytes, to_bytes
from crowdveil.inference import METHODS
from crowdveil.inference.base import IterativeMethod
from crowdveil.inference.engine.blocks import split_blocks, table_context

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


def shape_of(value: object) -> object:
    """Names and kinds, without what is in them."""
    if is_dataclass(value):
        return type(value).__name__, [(each.name, shape_of(getattr(value, each.name))) for each in fields(value)]
    if isinstance(value, tuple):
        return [shape_of(each) for each in value]
    return str(value.dtype) if isinstance(value, np.ndarray) else type(value).__name__


def test_what_is_packed_changes_only_with_its_form() -> None:
    """Else `--resume` reads what another version left, and ends in a traceback: raise FORM, and copy the hash."""
    column = np.zeros(1, dtype=np.int64)
    kept = []
    for name, kind in sorted(METHODS.items()):
        if issubclass(kind, IterativeMethod):
            domain = Scale(0, 1) if kind.numeric else Choices(("a", "b"))
            reports = Reports.unprotected(Answers(column, column, column, column, column, domain))
            (block,) = split_blocks(reports, 1)
            kept.append((name, shape_of(block), shape_of(kind().model(table_context(reports)).begin(block))))
    assert (FORM, hashlib.sha256(repr(kept).encode()).hexdigest()[:12]) == (6, "0e643d0dbc59")
