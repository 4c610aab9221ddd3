"""`crowdveil crosstab`: how the answers to two questions go together, from reports about both."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from crowdveil.cli._common import (
    Force,
    Json,
    Options,
    ScaleFlag,
    check_output,
    list_guarantees,
    parse_domain,
    show,
    whole_file,
)
from crowdveil.cli._progress import working
from crowdveil.errors import InputError
from crowdveil.files import read_reports
from crowdveil.files.write import is_parquet, write_table
from crowdveil.inference.crosstab import Crosstab, Interval, crosstab


def command(
    reports: Annotated[Path, typer.Argument(help="CSV or Parquet: worker, question, and report or answer.")],
    rows: Annotated[str, typer.Option("--rows", help="The question whose options are the rows (the groups).")],
    columns: Annotated[str, typer.Option("--columns", help="The question whose options are the columns.")],
    column_reports: Annotated[
        Path | None, typer.Option("--column-reports", help="Reports of the column question, if it has other options.")
    ] = None,
    compare: Annotated[str | None, typer.Option("--compare", help="Two groups, A,B: their shares' difference.")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Where the cells go: .csv or .parquet.")] = None,
    options: Options = None,
    scale: ScaleFlag = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Joint distribution of two questions of the same workers, with intervals, conditional shares and differences.

    Example: crowdveil crosstab reports.csv --rows department --columns satisfied --compare sales,research
    """
    if output is not None:
        is_parquet(output)
        check_output(output, reports, column_reports, force=force)
    groups = _groups(compare)
    with working("reading", quiet=as_json):
        table = read_reports(reports, parse_domain(options, scale))
        other = None if column_reports is None else read_reports(column_reports)
    with working("estimating", quiet=as_json):
        result = crosstab(table, rows, columns, column_reports=other)
        difference = None if groups is None else result.difference(*groups)
    cells = _cells(result)
    if output is not None:
        with whole_file(output, force=force) as temporary:
            write_table(temporary, {name: [cell[name] for cell in cells] for name in cells[0]})
    channels = (*table.channels, *(other.channels if other is not None else ()))
    document = {
        "rows": rows,
        "columns": columns,
        "n_workers": result.n_workers,
        "level": result.level,
        "cells": cells,
        "row_shares": _named(result.row_options, result.row_shares),
        "column_shares": _named(result.column_options, result.column_shares),
        "compared": None if groups is None else list(groups),
        "differences": None if difference is None else _named(result.column_options, difference),
        "warnings": list(result.warnings),
        "guarantees": list_guarantees(channels),
    }
    show(document, as_json=as_json, human=lambda: _print(result, document))


def _groups(compare: str | None) -> tuple[str, str] | None:
    if compare is None:
        return None
    names = [name.strip() for name in compare.split(",")]
    if len(names) != 2 or not all(names):
        raise InputError(f"--compare must be two groups, A,B; got {compare!r}")
    return names[0], names[1]


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _cells(result: Crosstab) -> list[dict[str, Any]]:
    intervals = {"": result.cells, "inversion": result.inversion, "conditional": result.conditional}
    cells: list[dict[str, Any]] = []
    for row, row_option in enumerate(result.row_options):
        for column, column_option in enumerate(result.column_options):
            cell: dict[str, Any] = {"row": row_option, "column": column_option}
            for name, interval in intervals.items():
                low, high = (f"{name}_low", f"{name}_high") if name else ("low", "high")
                cell[name or "share"] = _number(interval.estimate[row, column])
                cell |= {low: float(interval.low[row, column]), high: float(interval.high[row, column])}
            cells.append(cell | {"sparse": bool(result.sparse[row, column])})
    return cells


def _named(options: tuple[str, ...], interval: Interval) -> list[dict[str, Any]]:
    values = zip(options, interval.estimate, interval.low, interval.high, strict=True)
    return [
        {"option": option, "estimate": _number(estimate), "low": float(low), "high": float(high)}
        for option, estimate, low, high in values
    ]


def _percent(estimate: float | None, low: float, high: float) -> str:
    shown = "  ?" if estimate is None else f"{100 * estimate:3.0f}"
    return f"{shown} % ({100 * low:.0f} to {100 * high:.0f})"


def _print(result: Crosstab, document: dict[str, Any]) -> None:
    typer.echo(f"{result.rows} × {result.columns}: {result.n_workers} workers have a report about both")
    for promise in document["guarantees"]:
        typer.echo(promise["words"])
    wide = max(20, *(len(option) + 2 for option in result.column_options))
    first = max(12, *(len(option) + 2 for option in result.row_options))
    _print_table("share of all, 95 % interval", result, "", wide, first, document)
    _print_table(f"share within each option of {result.rows}", result, "conditional", wide, first, document)
    if document["differences"] is not None:
        typer.echo(f"{document['compared'][0]} minus {document['compared'][1]}, in percentage points")
        for line in document["differences"]:
            shown = _percent(line["estimate"], line["low"], line["high"]).replace(" %", "")
            typer.echo(f"  {line['option']:<{first}}{shown}")
    for warning in result.warnings:
        typer.echo(warning)


def _print_table(title: str, result: Crosstab, name: str, wide: int, first: int, document: dict[str, Any]) -> None:
    typer.echo(title)
    typer.echo(" " * (first + 2) + "".join(f"{option:<{wide}}" for option in result.column_options).rstrip())
    low, high = (f"{name}_low", f"{name}_high") if name else ("low", "high")
    for option in result.row_options:
        cells = [cell for cell in document["cells"] if cell["row"] == option]
        shown = [_percent(cell[name or "share"], cell[low], cell[high]) for cell in cells]
        typer.echo(f"  {option:<{first}}" + "".join(f"{each:<{wide}}" for each in shown).rstrip())
