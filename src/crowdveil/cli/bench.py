"""`crowdveil bench`: speed and memory on this machine, beside the peers that are installed."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from crowdveil.bench import rows, topics
from crowdveil.cli._common import Json, show


def command(
    topic: Annotated[list[str] | None, typer.Argument(help="What to measure; without one, everything.")] = None,
    only: Annotated[list[str] | None, typer.Option("--only", help="A part of the topic; can be repeated.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes: seconds, to see that it runs.")] = False,
    as_json: Json = False,
) -> None:
    """Measure speed and memory on this machine, in one run with the installed peers.

    Example: crowdveil bench inference --quick
    """
    measured = []
    for row in rows(topic, quick=quick, only=only):
        measured.append(row)
        if not as_json:
            _tell(row)
    show({"rows": [_finite(row) for row in measured]}, as_json=as_json, human=lambda: _closing(quick))


def _finite(row: dict[str, Any]) -> dict[str, Any]:
    """JSON has no NaN: what was not measured is null."""
    return {name: None if value != value else value for name, value in row.items()}


def _tell(row: dict[str, Any]) -> None:
    peer = "" if row["peer"] is None else f"{row['peer']:>12,.4g}"
    ratio = "" if row["ratio"] is None else f"{row['ratio']:>9.3g}×"
    rounds = f" ({', '.join(f'{each:.3g}×' for each in row['rounds'])} in turn)" if row.get("rounds") else ""
    figures = f"{row['n']:>11,} {row['ours']:>12,.4g} {peer:>12} {ratio:>10}"
    typer.echo(f"{row['case']:<58} {figures}  {row['peer_name']}{rounds}")


def _closing(quick: bool) -> None:
    typer.echo("columns: case, n, ours, peer, ratio, peer's name")
    if quick:
        typer.echo(f"quick sizes say little about speed; run crowdveil bench without --quick ({', '.join(topics())})")
