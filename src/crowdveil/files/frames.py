"""Tables in memory: pandas, polars and Arrow tables become reports or answers; ids keep their type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from crowdveil.answers import Answers
from crowdveil.domain import Domain
from crowdveil.errors import FileError
from crowdveil.files.answers import answers_in
from crowdveil.files.reports import reports_in
from crowdveil.files.table import TextTable, as_text, decoded, find_columns
from crowdveil.reports import AnyChannel, Reports


def answers_from(frame: Any, domain: Domain | None = None) -> Answers:
    """Answers from a frame with the columns worker, question (or task) and answer (or label)."""
    return _answers(_arrow(frame), domain)


def reports_from(frame: Any, channels: tuple[AnyChannel, ...] | None = None, domain: Domain | None = None) -> Reports:
    """Reports from a frame: its column `report` needs the channels, a column `answer` is read as unprotected.

    >>> import pyarrow as pa
    >>> frame = pa.table({"worker": [7, 8], "task": ["a", "a"], "label": ["yes", "no"]})
    >>> reports_from(frame).workers
    array([7, 8])
    """
    table = _arrow(frame)
    found = find_columns(table.column_names, ["worker", "question", ("report", "answer")], ["channel"], "the frame")
    if "report" not in found:
        return Reports.unprotected(_answers(table, domain))
    if channels is None or domain is None:
        raise FileError("a frame of reports needs its channels and its domain", fix="pass channels=… and domain=…")
    return reports_in(_texts(table, found), channels, domain)


def _answers(table: Any, domain: Domain | None) -> Answers:
    found = find_columns(table.column_names, ["worker", "question", "answer"], [], "the frame")
    return answers_in(_texts(table, found), domain)


def _arrow(frame: Any) -> Any:
    if isinstance(frame, pa.Table):
        return frame
    if not hasattr(frame, "__arrow_c_stream__"):
        raise FileError(f"a frame must be of pandas, polars or Arrow; got {type(frame).__name__}")
    return pa.table(frame)


def _native(column: Any, name: str) -> tuple[NDArray[np.int32], NDArray[Any]]:
    # A frame's own codes are not taken over: two of them may stand for the same id.
    try:
        encoded = pc.dictionary_encode(decoded(column)).combine_chunks()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        problem = f"an id must be a text or a number; the column has the type {column.type}"
        raise FileError(problem, fix="make it text", field=name, source="the frame") from None
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.unify_dictionaries().combine_chunks()
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32, copy=False)
    return codes, encoded.dictionary.to_numpy(zero_copy_only=False)


class _Frame(TextTable):
    """A text table whose ids keep the type they have in the frame."""

    __slots__ = ()

    def ids(self, name: str) -> tuple[NDArray[np.int32], NDArray[Any]]:
        if decoded(self.columns[name]).null_count:
            return TextTable.ids(self, name)
        codes, ids = _native(self.columns[name], name)
        # An empty text names nobody either, and is refused as in a file.
        return TextTable.ids(self, name) if ids.dtype == object and "" in ids.tolist() else (codes, ids)


def _texts(table: Any, found: dict[str, str]) -> TextTable:
    if len(table) == 0:
        raise FileError("the frame has no rows", fix="give at least one row")
    columns = {
        ours: table[name] if ours in ("worker", "question") else as_text(table[name], name, "the frame")
        for ours, name in found.items()
    }
    return _Frame(columns, "the frame", 1, {})
