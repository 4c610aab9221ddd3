"""Tables in memory become reports or answers; ids and labels keep their type, categories are the domain.

Taken are frames of pandas and polars (lazy ones too), Arrow tables, batches and readers, relations of DuckDB, datasets
of Hugging Face, lists of records and dictionaries of lists; long, with a row per answer, or wide, with a column per
question or per worker. None of these libraries is needed: a frame is known by what it can do.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from crowdveil.answers import Answers
from crowdveil.domain import Domain, Label, is_missing, plain_label
from crowdveil.errors import FileError, InputError
from crowdveil.files.answers import answers_in
from crowdveil.files.problems import empty_id
from crowdveil.files.reports import reports_in
from crowdveil.files.table import TextTable, decoded, find_columns, typed_table
from crowdveil.reports import AnyChannel, Reports

Names: TypeAlias = Hashable | Sequence[Hashable] | None
_SOURCE = "the frame"
_KINDS = "a frame of pandas or polars, an Arrow table, a dictionary of lists, or Reports"


def answers_from(
    frame: Any,
    domain: Domain | None = None,
    *,
    worker: Names = None,
    question: Names = None,
    answer: Hashable | None = None,
    normalize: bool = False,
) -> Answers:
    """Answers from a frame with the columns worker, question (or task) and answer (or label).

    Columns of other names are named by `worker`, `question` and `answer`. A wide frame has a column per question, all
    listed in `question`, or a column per worker, all listed in `worker`. `normalize` joins spellings of an option that
    differ only in white space, case or Unicode form; otherwise these are refused.

    >>> wide = {"user": ["ada", "bob"], "q1": ["yes", "no"], "q2": ["no", None]}
    >>> answers_from(wide, worker="user", question=["q1", "q2"]).grid().tolist()
    [[1, 0], [0, -1]]
    """
    table = _read_frame(frame, worker, question, answer, ("answer",))
    return answers_in(table, domain, normalize=normalize)


def reports_from(
    frame: Any,
    channels: Sequence[AnyChannel] | None = None,
    domain: Domain | None = None,
    *,
    worker: Names = None,
    question: Names = None,
    answer: Hashable | None = None,
    normalize: bool = False,
) -> Reports:
    """Reports from a frame: its column `report` needs the channels, a column `answer` is read as unprotected.

    >>> reports = reports_from({"worker": [7, 8], "task": ["a", "a"], "label": [True, False]})
    >>> reports.workers, reports.domain
    (array([7, 8]), Choices([False, True]))
    """
    table = _read_frame(frame, worker, question, answer, ("report", "answer"))
    if "report" not in table:
        return Reports.unprotected(answers_in(table, domain, normalize=normalize))
    if channels is None or domain is None:
        raise FileError("a frame of reports needs its channels and its domain", fix="pass channels=… and domain=…")
    return reports_in(table, tuple(channels), domain)


def _read_frame(
    frame: Any, worker: Names, question: Names, answer: Hashable | None, alternatives: tuple[str, ...]
) -> TextTable:
    frame = _as_columns(frame)
    names = _column_names(frame)
    if _is_list(worker) and _is_list(question):
        raise FileError("either the workers or the questions are columns; got lists of both", fix="name one column")
    if _is_list(question) or _is_list(worker):
        return _read_wide(frame, names, worker, question)
    mapping = {
        ours: _named(names, name)
        for ours, name in (("worker", worker), ("question", question), ("answer", answer))
        if name is not None
    }
    try:
        wanted = find_columns(list(names), ["worker", "question", alternatives], ["channel"], _SOURCE, mapping)
    except FileError as error:
        # Of a wide table the questions, or the workers, are columns.
        hint = "; pass worker=…, question=… and answer=…, or question=[…] for a table with a column per question"
        fix = error.fix + hint if error.fix == "rename or add it" else error.fix
        raise FileError(error.problem, fix=fix, source=_SOURCE) from None
    columns = {ours: _arrow_column(frame, names[name]) for ours, name in wanted.items()}
    label = wanted.get("answer")
    categories = () if label is None else _categories(frame, names[label])
    return _long_table(columns, categories, wanted)


def _long_table(columns: dict[str, Any], categories: tuple[Label, ...], own_names: Mapping[str, str]) -> _Frame:
    """Columns under our names as a table that keeps the ids as they are; errors name the columns as the frame does."""
    if not len(next(iter(columns.values()))):
        raise FileError("the frame has no rows", fix="give at least one row")
    ids = {name: columns[name] for name in ("worker", "question")}
    others = {name: own_names.get(name, name) for name in columns if name not in ids}
    cells = {own: columns[name] for name, own in others.items()}
    texts = typed_table(cells, others, _SOURCE, {}, categories)
    return _Frame(
        ids | texts.columns, _SOURCE, 1, {}, None, texts.label_type, texts.categories, own_names=dict(own_names)
    )


def _read_wide(frame: Any, names: Mapping[str, Hashable], worker: Names, question: Names) -> TextTable:
    """A column per question (or worker) becomes a row per answer."""
    across, down = ("question", "worker") if _is_list(question) else ("worker", "question")
    listed: Any = question if across == "question" else worker
    other = worker if down == "worker" else question
    cells = [names[_named(names, name)] for name in listed]
    if not cells:
        raise FileError(f"the list of {across} columns is empty", fix="name the columns")
    if other is None:
        other = next((name for name in names if name.strip().lower() == down), None)
    if other is None:
        raise FileError(f"a wide frame needs the column of its {down}s", fix=f"pass {down}=…", source=_SOURCE)
    ids = _arrow_column(frame, names[_named(names, other)])
    n_rows = len(ids)
    answers = _one_type([_arrow_column(frame, name) for name in cells])
    listed_categories = [_categories(frame, name) for name in cells]
    categories = listed_categories[0] if len(set(listed_categories)) == 1 else ()
    heads = pa.array([plain_label(name) for name in cells])
    columns = {
        down: pa.chunked_array([chunk for _ in cells for chunk in ids.chunks], ids.type),
        across: pa.chunked_array([heads.take(pa.array(np.repeat(np.arange(len(cells)), n_rows)))]),
        "answer": answers,
    }
    table = _long_table(columns, categories, {down: str(other)})
    return replace(table, heads=tuple(map(str, cells)), n_rows=n_rows)


def _one_type(columns: list[Any]) -> Any:
    """Columns below each other; whole numbers and those that a missing cell made floats go together."""
    try:
        tables = [pa.table({"answer": decoded(column)}) for column in columns]
        return pa.concat_tables(tables, promote_options="permissive")["answer"]
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        kinds = ", ".join(dict.fromkeys(str(column.type) for column in columns))
        raise FileError(f"the columns of a wide frame must have one type; got {kinds}", fix="make them text") from None


def _is_list(name: Names) -> bool:
    """Several columns; a tuple names one, as pandas does where columns have several levels."""
    return isinstance(name, list | range) or (hasattr(name, "tolist") and getattr(name, "ndim", 0) == 1)


def _named(names: Mapping[str, Hashable], name: Any) -> str:
    if str(name) not in names:
        shown = ", ".join(list(names)[:20])
        raise FileError(f"there is no column {str(name)!r}; got {shown}", fix="check the name", source=_SOURCE)
    return str(name)


def _as_columns(frame: Any) -> Any:
    """Something whose columns can be taken one by one: pandas as it is, everything else as an Arrow table."""
    if isinstance(frame, Answers | Reports):
        raise InputError(f"this is no frame but {type(frame).__name__} already", fix="use it as it is")
    if hasattr(frame, "reset_index") and getattr(frame, "ndim", 0) == 2:
        return _with_index(frame)
    if isinstance(frame, Mapping):
        return dict(frame)
    if isinstance(frame, Sequence) and frame and all(isinstance(row, Mapping) for row in frame):
        return {name: [row.get(name) for row in frame] for name in dict.fromkeys(key for row in frame for key in row)}
    return _as_arrow(frame)


def _as_arrow(frame: Any) -> Any:
    """A frame of polars as it is, because it knows its categories; everything else as an Arrow table."""
    if hasattr(frame, "collect_schema") and hasattr(frame, "lazy"):
        return frame.collect() if hasattr(frame, "collect") else frame
    for convert in ("fetch_arrow_table", "to_arrow_table"):
        if hasattr(frame, convert):
            return getattr(frame, convert)()
    if hasattr(frame, "__arrow_c_stream__"):
        return pa.table(frame)
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    if hasattr(frame, "with_format"):
        return frame.with_format("arrow")[:]
    fix = "read a file with read_reports(path)" if isinstance(frame, str | PathLike) else ""
    raise FileError(f"data must be {_KINDS}; got {type(frame).__name__}", fix=fix)


def _with_index(frame: Any) -> Any:
    """A frame of pandas with the levels of its index as columns, where they have names that are not taken."""
    names = [name for name in frame.index.names if name is not None]
    return frame.reset_index() if names and not set(names) & set(frame.columns) else frame


def _column_names(frame: Any) -> dict[str, Hashable]:
    """The names as texts, and as the frame has them."""
    listed = list(frame) if isinstance(frame, dict) else list(getattr(frame, "column_names", frame.columns))
    names: dict[str, Hashable] = {}
    for name in listed:
        if str(name) in names:
            raise FileError(f"two columns have the name {str(name)!r}", fix="rename one", source=_SOURCE)
        names[str(name)] = name
    return names


def _arrow_column(frame: Any, name: Any) -> Any:
    """One column as Arrow; a column of mixed types is refused at the row where the type changes."""
    column = frame[name]
    if isinstance(column, pa.ChunkedArray):
        return column
    if getattr(column, "ndim", 1) != 1:
        raise FileError("a column must have one value in each row", field=str(name), source=_SOURCE)
    try:
        if hasattr(column, "to_arrow"):
            return pa.chunked_array([column.to_arrow()])
        made = pa.array(column, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        raise _unreadable(column, str(name)) from None
    except TypeError:
        problem = f"a column must be a list of values; got {type(column).__name__}"
        raise FileError(problem, fix="make it a list", field=str(name), source=_SOURCE) from None
    return made if isinstance(made, pa.ChunkedArray) else pa.chunked_array([made])


def _unreadable(column: Any, name: str) -> FileError:
    """Where a column stops being one of texts or of numbers."""
    first: type | None = None
    for row, value in enumerate(column, start=1):
        if is_missing(value):
            continue
        kind = type(plain_label(value)) if not isinstance(value, list | tuple | dict | set | bytes) else type(value)
        if kind not in (str, int, float, bool) or type(value).__name__ == "UUID":
            problem, fix = f"a cell must be a text or a number; got {type(value).__name__}", "make it text"
            return FileError(problem, fix=fix, row=row, field=name, source=_SOURCE)
        first = first or kind
        if kind is not first:
            problem = f"a column must have one type; {value!r} is {kind.__name__}, the cells above {first.__name__}"
            return FileError(problem, fix="make all of them text", row=row, field=name, source=_SOURCE)
        if kind is int and not -(2**63) <= value < 2**64:
            problem = "a whole number must fit into 64 bits"
            return FileError(problem, fix="make it text", row=row, field=name, source=_SOURCE)
    return FileError("the column cannot be read", fix="make it text", field=name, source=_SOURCE)


def _categories(frame: Any, name: Any) -> tuple[Label, ...]:
    """What pandas, or an Enum of polars, lists for a column: all that may be answered, in its order."""
    if isinstance(frame, pa.Table):
        return ()
    kind = getattr(frame[name], "dtype", None)
    listed = getattr(kind, "categories", None)
    if listed is None or type(kind).__name__ not in ("CategoricalDtype", "Enum"):
        return ()
    return tuple(plain_label(category) for category in listed)


def _native(column: Any, name: str) -> tuple[NDArray[np.int32], NDArray[Any]]:
    # A frame's own codes are not taken over: two of them may stand for the same id.
    try:
        encoded = pc.dictionary_encode(decoded(column)).combine_chunks()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        problem = f"an id must be a text or a number; the column has the type {column.type}"
        raise FileError(problem, fix="make it text", field=name, source=_SOURCE) from None
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.unify_dictionaries().combine_chunks()
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32, copy=False)
    return codes, encoded.dictionary.to_numpy(zero_copy_only=False)


@dataclass(frozen=True, slots=True)
class _Frame(TextTable):
    """A text table whose ids keep the type they have in the frame, and whose errors name the frame's own columns."""

    own_names: Mapping[str, str] | None = None
    heads: tuple[str, ...] = ()
    n_rows: int = 0

    def ids(self, name: str) -> tuple[NDArray[np.int32], NDArray[Any]]:
        column = decoded(self.columns[name])
        if column.null_count:
            raise self.refuse(empty_id(name), int(np.argmax(column.is_null().to_numpy())))
        codes, ids = _native(column, (self.own_names or {}).get(name, name))
        if ids.dtype == object or ids.dtype.kind == "f":
            for code, entry in enumerate(ids.tolist()):
                if _names_nobody(entry):
                    raise self.refuse(empty_id(name), int(np.argmax(codes == code)))
        return codes, ids

    def wrong(self, problem: str, index: int, field: str, fix: str) -> FileError:
        field = (self.own_names or {}).get(field, field)
        if not self.heads:
            return FileError(problem, fix=fix, row=index + 1, field=field, source=_SOURCE)
        if field == "answer":
            field = self.heads[index // self.n_rows]
        return FileError(problem, fix=fix, row=index % self.n_rows + 1, field=field, source=_SOURCE)


def _names_nobody(entry: Any) -> bool:
    return is_missing(entry) or (isinstance(entry, str) and (not entry.strip() or entry.strip().lower() == "nan"))
