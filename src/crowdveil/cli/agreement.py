"""`crowdveil agreement`: how well workers agree, from answers or debiased from private reports."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from crowdveil.cli._common import Json, Options, ScaleFlag, list_guarantees, parse_domain, show
from crowdveil.cli._progress import working
from crowdveil.domain import Scale
from crowdveil.errors import InputError
from crowdveil.files import read_reports
from crowdveil.inference.agreement import Agreement, cohen_kappa, fleiss_kappa, krippendorff_alpha
from crowdveil.reports import Reports


def command(
    reports: Annotated[Path, typer.Argument(help="CSV or Parquet: worker, question, and report or answer.")],
    workers: Annotated[str | None, typer.Option("--workers", help="Two workers, A,B, for Cohen's κ.")] = None,
    options: Options = None,
    scale: ScaleFlag = None,
    as_json: Json = False,
) -> None:
    """Fleiss' κ and Krippendorff's α of all workers, Cohen's κ of two, each with its interval.

    Example: crowdveil agreement reports.csv --workers ada,bob
    """
    pair = None if workers is None else [name.strip() for name in workers.split(",")]
    if pair is not None and len(pair) != 2:
        raise InputError(f"--workers must be two workers, A,B; got {workers!r}")
    with working("reading", quiet=as_json):
        table = read_reports(reports, parse_domain(options, scale))
    with working("comparing", quiet=as_json):
        coefficients = _coefficients(table, pair)
    document = {
        "n_workers": table.n_workers,
        "coefficients": [
            {
                "coefficient": each.coefficient,
                "estimate": None if math.isnan(each.estimate) else each.estimate,
                "low": each.low,
                "high": each.high,
                "n_questions": each.n_questions,
            }
            for each in coefficients
        ],
        "level": coefficients[0].level,
        "guarantees": list_guarantees(table.channels),
    }
    show(document, as_json=as_json, human=lambda: _print(document))


def _coefficients(table: Reports, pair: list[str] | None) -> list[Agreement]:
    coefficients = [fleiss_kappa(table), krippendorff_alpha(table)]
    if isinstance(table.domain, Scale):
        coefficients += [krippendorff_alpha(table, metric="ordinal"), krippendorff_alpha(table, metric="interval")]
    if pair is not None:
        coefficients.append(cohen_kappa(table, pair[0], pair[1]))
    return coefficients


def _print(document: dict[str, Any]) -> None:
    for promise in document["guarantees"]:
        typer.echo(promise["words"])
    for each in document["coefficients"]:
        estimate = "undefined: all answers seem to be equal" if each["estimate"] is None else f"{each['estimate']:.3f}"
        interval = f"({each['low']:.3f} to {each['high']:.3f})"
        typer.echo(f"{each['coefficient']:<26} {estimate} {interval}, {each['n_questions']} questions")
