"""What is wrong with a CSV file, and in which row: Arrow reads good files fast, and says little about the others."""

from __future__ import annotations

import csv
import re
from typing import Any, TextIO

from crowdveil.errors import FileError
from crowdveil.files.problems import no_rows
from crowdveil.files.sources import Source, read_first_bytes

# Python's reader refuses longer cells; Arrow, which reads good files, does not.
_LONGEST_CELL = 2**31 - 1
_NAMES = {",": "comma", ";": "semicolon", "\t": "tab"}


def count_quotes(path: Source) -> int:
    """How many there are: only with some may a cell hold a line break, and must Arrow read the file in one piece."""
    with path.open("rb") as stream:
        return sum(chunk.count(b'"') for chunk in iter(lambda: stream.read(1 << 24), b""))


def find_separator(path: Source) -> str:
    """The comma, unless the header has more semicolons or tabs; what stands in quotes does not count."""
    with path.open("rb") as stream:
        bare = re.sub(rb'"[^"]*"', b"", stream.readline(1 << 16))
    return max(",;\t", key=lambda mark: bare.count(mark.encode()))


def header_of(path: Source, separator: str = ",") -> list[str]:
    """The names of the columns; what is no CSV at all is refused here."""
    start = read_first_bytes(path)
    if start.startswith(b"PAR1"):
        raise FileError("this is a Parquet file", fix="name it .parquet", source=path.name)
    if b"\0" in start.partition(b"\n")[0]:
        raise FileError("the text is not UTF-8, perhaps UTF-16", fix="save the file as UTF-8", row=1, source=path.name)
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            names: list[str] = next(_cells(stream, separator), [])
    except UnicodeDecodeError:
        raise csv_fault(path, 0, "", separator) from None
    if len(set(names)) != len(names):
        raise FileError("two columns have the same name", fix="rename one", row=1, source=path.name)
    return names


def _cells(stream: TextIO, separator: str) -> Any:
    """Python's reader, for as long cells as Arrow takes."""
    csv.field_size_limit(_LONGEST_CELL)
    return csv.reader(stream, strict=False, delimiter=separator)


def refuse_open_quote(path: Source, separator: str = ",") -> None:
    """A quote that never closes swallows the rest of the file; one in the middle of a cell is a letter."""
    number = 1
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as stream:
        csv.field_size_limit(_LONGEST_CELL)
        reader = csv.reader(stream, strict=True, delimiter=separator)
        try:
            for _ in reader:
                number = reader.line_num + 1
        except csv.Error as error:
            if "unexpected end" in str(error):
                problem = "a quote opens in this row and never closes"
                raise FileError(problem, fix="close it, or write it twice", row=number, source=path.name) from None


def line_of(path: Source, index: int) -> int:
    """The line on which row `index` of the data begins, as an editor counts: some rows take several, some are blank."""
    before, rows, separator = 1, -1, find_separator(path)
    with path.open(encoding="utf-8-sig", newline="") as stream:
        reader = _cells(stream, separator)
        for cells in reader:
            rows += bool(cells)
            if rows > index:
                break
            before = reader.line_num + 1
    return before


def csv_fault(path: Source, n_columns: int, said: str, separator: str = ",") -> FileError:
    """Find the row that Arrow stumbled over; slow, but only bad files pay for it."""
    with path.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                problem = f"the text is not UTF-8: byte {line[error.start]:#04x} cannot be read"
                return FileError(problem, fix="save the file as UTF-8", row=number, source=path.name)
    if "Empty CSV" in said:
        return FileError(no_rows(path).sentence, fix=no_rows(path).fix)
    number = 1
    with path.open(encoding="utf-8-sig", newline="") as stream:
        reader = _cells(stream, separator)
        for cells in reader:
            if cells and len(cells) != n_columns:
                problem = f"the row has {len(cells)} cells but the header has {n_columns}"
                fix = f'quote cells that hold a {_NAMES[separator]}: "a{separator}b"'
                return FileError(problem, fix=fix, row=number, source=path.name)
            number = reader.line_num + 1
    return FileError(f"not a CSV file: {said}", fix="save the file as CSV or Parquet", source=path.name)
