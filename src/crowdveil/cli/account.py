"""`crowdveil account`: what each worker has spent in all, by unit and by composition rule."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Annotated

import typer

from crowdveil.accounting import DEFAULT_DELTA, SpendsByQuestion, Totals, worker_totals
from crowdveil.accounting.composition import RULES
from crowdveil.accounting.conversion import check_delta
from crowdveil.cli._common import Json, show
from crowdveil.cli._progress import working
from crowdveil.cli._spends import read_spends
from crowdveil.exact import json_number
from crowdveil.guarantee import round_up
from crowdveil.progress import counted

_MEANING = {
    "value": "one answer, if every release was about it",
    "cell": "one question, answered or not",
    "vector": "all answers together, the questions answered being known",
}


def command(
    spends: Annotated[
        Path, typer.Argument(help="CSV or Parquet: worker, study, mechanism, parameters (JSON), count [, question].")
    ],
    delta: Annotated[float, typer.Option("--delta", help="The δ at which the rules are read.")] = DEFAULT_DELTA,
    as_json: Json = False,
) -> None:
    """Total loss per worker, unit and composition rule; unprotected answers are listed and never summed.

    Example: crowdveil account spends.csv --delta 1e-6 --json
    """
    check_delta(delta)
    with working("accounting", quiet=as_json):
        by_worker = read_spends(spends)
        each = counted(list(by_worker.items()), "workers added up")
        found = {worker: worker_totals(rows, delta) for worker, rows in each}
    unprotected = {worker: open_ for worker, rows in by_worker.items() if (open_ := _unprotected(rows))}
    result = {
        "delta": delta,
        "workers": {
            worker: {
                unit: {
                    rule: {"epsilon": json_number(cost.epsilon), "delta": cost.delta} for rule, cost in rules.items()
                }
                for unit, rules in units.items()
            }
            for worker, units in found.items()
        },
        "unprotected": unprotected,
    }
    only_unprotected = {
        worker
        for worker, rows in by_worker.items()
        if not any(spend.protected for spends in rows.values() for spend in spends)
    }
    show(result, as_json=as_json, human=lambda: _print(found, unprotected, only_unprotected, delta))


def _unprotected(rows: SpendsByQuestion) -> dict[str, int]:
    open_: dict[str, int] = defaultdict(int)
    for spend in (spend for spends in rows.values() for spend in spends if not spend.protected):
        open_[spend.name] += spend.count
    return dict(open_)


def _print(
    found: dict[str, Totals], unprotected: dict[str, dict[str, int]], only_unprotected: set[str], delta: float
) -> None:
    typer.echo(f"{'worker':<16} {'unit':<8} " + " ".join(f"{rule:>10}" for rule in RULES))
    for worker, units in found.items():
        # A row of zeros would read as a promise about a worker who only sent answers as they are.
        for unit, rules in units.items() if worker not in only_unprotected else ():
            costs = " ".join(f"{round_up(rules[rule].epsilon):>10}" for rule in RULES)
            typer.echo(f"{worker:<16} {unit:<8} {costs}")
        for name, count in unprotected.get(worker, {}).items():
            beside = "" if worker in only_unprotected else ", and not in these numbers"
            typer.echo(f"{worker:<16} not protected{beside}: {name} ({count})")
    if only_unprotected == set(found):
        return
    typer.echo(f"ε at δ = {delta:g} (basic: δ = 0 unless a Gaussian is among them); the smallest of a line holds")
    typer.echo("renyi and pld hold for questions fixed beforehand, not for questions that depend on earlier reports")
    for name, meaning in _MEANING.items():
        typer.echo(f"{name}: {meaning}")
