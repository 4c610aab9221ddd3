"""`crowdveil audit`: check a privacy claim without trusting whoever made it."""

from __future__ import annotations

import math
import secrets
from typing import Annotated

import typer

from crowdveil.audit import Row, audit_callable, audit_mechanism, audit_registry
from crowdveil.audit.registry import described
from crowdveil.cli._common import (
    Epsilon,
    Json,
    Options,
    Parameters,
    Participation,
    ScaleFlag,
    domain_of,
    needed_domain,
    parameters_of,
    show,
    tracked,
)
from crowdveil.domain import Scale
from crowdveil.entropy import Keystream
from crowdveil.errors import CheckError, InputError
from crowdveil.guarantee import round_up
from crowdveil.mechanisms import MECHANISMS


def command(
    subject: Annotated[str | None, typer.Argument(help="A mechanism, or module:callable.")] = None,
    all_: Annotated[
        bool, typer.Option("--all", help="Every mechanism; research ones are shown but do not fail.")
    ] = False,
    epsilon: Epsilon = None,
    options: Options = None,
    scale: ScaleFlag = None,
    param: Parameters = None,
    protect_participation: Participation = False,
    delta: Annotated[float, typer.Option("--delta", help="The δ of a callable's claim.")] = 0.0,
    samples: Annotated[int | None, typer.Option("--samples", help="Samples per input of a black-box audit.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Repeat an audit exactly.")] = None,
    json: Json = False,
) -> None:
    """Exact where there is a table, a certified lower bound elsewhere. Exit code 1 when a claim is exceeded.

    Example: crowdveil audit --all --epsilon 1 --scale 1:5
    """
    if all_ == (subject is not None):
        raise InputError("name one mechanism or module:callable, or give --all")
    entropy = Keystream(secrets.token_hex(16) if seed is None else seed)
    domain = domain_of(options, scale) or Scale(1, 5)
    claimed = epsilon if epsilon is not None or param else 1.0
    if subject is None:
        if param:
            raise InputError("--param belongs to one mechanism; with --all there are many")
        rows = audit_registry(
            domain,
            epsilon=claimed or 1.0,
            participation=protect_participation,
            entropy=entropy,
            samples=samples,
            names=tracked(list(MECHANISMS), "auditing"),
        )
    elif ":" in subject:
        if epsilon is None:
            raise InputError("the claim to check is missing", fix="give --epsilon")
        domain = needed_domain(options, scale)
        participation = protect_participation
        rows = [
            audit_callable(subject, domain, claimed=epsilon, participation=participation, delta=delta, samples=samples)
        ]
    else:
        parameters = parameters_of(param) | ({} if claimed is None else {"epsilon": claimed})
        chosen = described(subject, parameters, participation=protect_participation)
        rows = [
            audit_mechanism(
                chosen,
                domain,
                claimed=None if subject == "none" else claimed,
                participation=protect_participation,
                entropy=entropy,
                samples=samples,
            )
        ]
    show({"rows": [row.to_json() for row in rows]}, as_json=json, human=lambda: _table(rows))
    _fail_on_excess(rows, forgive_research=all_)


def _fail_on_excess(rows: list[Row], *, forgive_research: bool) -> None:
    failed = [row for row in rows if row.verdict == "exceeds" and not (forgive_research and row.research_only)]
    if failed:
        raise CheckError("; ".join(_accusation(row) for row in failed))


def _accusation(row: Row) -> str:
    if "exceeds" in (row.checks.get("python"), row.checks.get("javascript")):
        return f"{row.mechanism} does not draw what its table says"
    found = f"ε {_number(row.exact)}" if row.exact is not None else f"at least ε {_down(row.lower_bound)}"
    return f"{row.mechanism} claims ε {_number(row.claimed)} per {row.unit} but has {found}"


def _table(rows: list[Row]) -> None:
    head = ("mechanism", "unit", "claimed", "exact", "at least", "verdict", "also checked")
    lines = [head, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    for line in lines:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    for row in rows:
        if row.note:
            typer.echo(f"{row.mechanism}: {row.note}")


def _cells(row: Row) -> tuple[str, ...]:
    checks = ", ".join(f"{name} {found}" for name, found in row.checks.items())
    name = row.mechanism + (" (research)" if row.research_only else "")
    return name, row.unit, _number(row.claimed), _number(row.exact), _down(row.lower_bound), row.verdict, checks


def _number(value: float | None) -> str:
    return "" if value is None else round_up(value)


def _down(value: float | None) -> str:
    """A lower bound is rounded down: the accusation is never exaggerated."""
    return "" if value is None else f"{math.floor(value * 1e4) / 1e4:g}"
