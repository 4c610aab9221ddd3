"""`crowdveil account`: what each worker has spent in all, by unit and by composition rule."""

from __future__ import annotations

import json as json_
import math
from collections import defaultdict
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from crowdveil.accounting import DEFAULT_DELTA, Cost, JointLaw, Law, PureLaw, Spend, TwoLayerLaw, totals
from crowdveil.accounting.composition import RULES, Rule
from crowdveil.accounting.conversion import check_delta
from crowdveil.audit.spends import spend_of
from crowdveil.cli._common import Json, show, tracked
from crowdveil.domain import Choices, Domain, Scale, parse_options, parse_scale
from crowdveil.errors import InputError
from crowdveil.exact import json_number
from crowdveil.files.table import TextTable, read_table
from crowdveil.guarantee import Unit, positive_epsilon, round_up
from crowdveil.mechanisms import MECHANISMS, mechanism

COLUMNS = ("worker", "study", "mechanism", "parameters")
_MOST_DIGITS = 15
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
    json: Json = False,
) -> None:
    """Total loss per worker, unit and composition rule; unprotected answers are listed and never summed.

    Example: crowdveil account spends.csv --delta 1e-6 --json
    """
    check_delta(delta)
    by_worker = _read(spends)
    found = {worker: _worker_totals(rows, delta) for worker, rows in tracked(list(by_worker.items()), "accounting")}
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
    show(result, as_json=json, human=lambda: _print(found, unprotected, delta))


Totals: TypeAlias = dict[Unit, dict[Rule, Cost]]
Rows: TypeAlias = dict[str | None, list[Spend]]
"""A worker's spends by question; None where the file does not name it."""


def _read(path: Path) -> dict[str, Rows]:
    table = read_table(path, COLUMNS, optional=["count", "question"])
    workers: dict[str, Rows] = defaultdict(lambda: defaultdict(list))
    columns = {name: table.columns[name].to_pylist() for name in (*COLUMNS, "count", "question") if name in table}
    for index in range(len(table)):
        cells = {name: column[index] or "" for name, column in columns.items()}
        if not cells["worker"]:
            raise table.wrong("every row must name its worker; got an empty cell", index, "worker", "fill it in")
        workers[cells["worker"]][cells.get("question") or None].append(_spend(table, index, cells))
    return workers


def _spend(table: TextTable, index: int, cells: dict[str, str]) -> Spend:
    name = f"{cells['study']}: {cells['mechanism']}" if cells["study"] else cells["mechanism"]
    count = _count(table, index, cells.get("count", "1"))
    try:
        return Spend(_law(cells["mechanism"], cells["parameters"]), name, count)
    except InputError as error:
        field = "mechanism" if cells["mechanism"] not in MECHANISMS else "parameters"
        raise table.wrong(error.problem, index, field, error.fix or "see docs/reference/commands/account.md") from None


def _count(table: TextTable, index: int, text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > _MOST_DIGITS or int(text) < 1:
        shown = text if len(text) < 40 else f"{text[:20]}…"
        raise table.wrong(
            f"count must be a whole number of reports, 1 or more; got {shown!r}", index, "count", "fix it"
        )
    return int(text)


@lru_cache(maxsize=4096)
def _law(name: str, text: str) -> Law:
    """The law of one report by the mechanism of that name with these parameters."""
    if name not in MECHANISMS:
        raise InputError(f"mechanism must be one of {', '.join(MECHANISMS)}; got {name!r}")
    parameters = _parameters(text)
    domain = _domain(parameters)
    if domain is None and name in ("none", "gaussian") and "sigma" not in parameters:
        # Neither depends on what may be answered: Loki's levels grow with the range.
        domain = Scale(1, 5)
    if domain is not None and domain.size < 2 and name != "none":
        # One option costs nothing, so a slip in spelling the options would hide a loss.
        raise InputError(
            f"a question must have two options or more; got only {domain.symbols[0]!r}",
            fix='write "options": 3, "options": ["a", "b", "c"] or "options": "a,b,c"',
        )
    if domain is not None:
        return spend_of(mechanism(name, **parameters), domain, name=name).law
    if MECHANISMS[name].research_only or set(parameters) - {"epsilon", "protect_participation"}:
        raise InputError(
            "parameters must say what may be answered", fix='add "options": ["no", "yes"] or "scale": "1:5"'
        )
    return _bare(parameters)


def _bare(parameters: dict[str, Any]) -> Law:
    """Only ε is known: the worst mechanism of that ε is assumed."""
    if "epsilon" not in parameters:
        raise InputError("parameters must hold epsilon", fix='for example {"epsilon": 1, "scale": "1:5"}')
    protects = parameters.get("protect_participation") is True
    return PureLaw(positive_epsilon(_float(parameters["epsilon"])), "cell" if protects else "value", protects)


def _float(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"epsilon must be a number; got {value!r}")
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _parameters(text: str) -> dict[str, Any]:
    try:
        parameters = json_.loads(text or "{}", object_pairs_hook=_once)
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        problem = f"parameters must be JSON; {getattr(error, 'msg', 'got something too deep or too long')}"
        raise InputError(problem, fix='write {"epsilon": 1, "scale": "1:5"}') from None
    if not isinstance(parameters, dict):
        raise InputError(f"parameters must be a JSON object; got {text}", fix='write {"epsilon": 1, "scale": "1:5"}')
    return parameters


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose names are all different: of two values for ε, nobody could tell which was spent."""
    fields = {name.replace("-", "_"): value for name, value in pairs}
    if len(fields) < len(pairs):
        raise InputError("parameters must name everything once; got a name twice", fix="remove one of them")
    return fields


def _domain(parameters: dict[str, Any]) -> Domain | None:
    """Take `options` (a list, a text a,b,c or their number) or `scale` (LOW:HIGH[:STEP]) out of the parameters."""
    options, scale = parameters.pop("options", None), parameters.pop("scale", None)
    if options is not None and scale is not None:
        raise InputError("parameters must hold options or scale; got both")
    if scale is not None:
        return parse_scale(":".join(map(str, scale)) if isinstance(scale, list) else str(scale))
    if isinstance(options, int) and not isinstance(options, bool) and options <= Scale.MAX_LEVELS:
        return Choices(tuple(str(number + 1) for number in range(options)))
    if isinstance(options, list):
        return Choices(tuple(str(option) for option in options))
    if options is None or isinstance(options, str):
        return None if options is None else parse_options(options)
    raise InputError(f"options must be a list, a text or their number, up to {Scale.MAX_LEVELS}; got {options!r}")


def _worker_totals(rows: Rows, delta: float) -> Totals:
    """The vector unit takes all releases; value and cell the worst question, each with the unnamed ones added."""
    together = totals(_merged([spend for spends in rows.values() for spend in spends]), delta)
    named = [question for question in rows if question is not None]
    each = [totals(_merged(_about(rows, question)), delta) for question in named]
    units: tuple[Unit, ...] = ("value", "cell")
    for unit in units if named else ():
        for rule in together[unit]:
            together[unit][rule] = max((one[unit][rule] for one in each), key=lambda cost: cost.epsilon)
    return together


def _about(rows: Rows, question: str) -> list[Spend]:
    """What tells about one question: its own rows, those without a name, and whatever answers to others give away.

    A release about all answers at once is about this one too. Where answers share a secret, each report tells about the
    secret, and so about every other answer.
    """
    everything = [spend for spends in rows.values() for spend in spends]
    own, unnamed = rows[question], rows.get(None, [])
    shared: list[Spend] = []
    for law in dict.fromkeys(spend.law for spend in [*own, *unnamed]):
        if isinstance(law, TwoLayerLaw):
            changed = sum(spend.count for spend in own if spend.law == law) + any(each.law == law for each in unnamed)
            total = sum(spend.count for spend in everything if spend.law == law)
            shared.append(Spend(law.of_some(changed, total), law.kind))
    joint = [spend for spend in everything if isinstance(spend.law, JointLaw)]
    alone = [spend for spend in [*own, *unnamed] if not isinstance(spend.law, JointLaw | TwoLayerLaw)]
    return [*alone, *shared, *joint]


def _merged(spends: list[Spend]) -> list[Spend]:
    """Reports under one law counted together: faster, and a secret that answers share is shared across studies.

    A release about all answers at once stays by itself, because two of them are two.
    """
    counts: dict[Law, int] = defaultdict(int)
    for spend in spends:
        if not isinstance(spend.law, JointLaw):
            counts[spend.law] += spend.count
    alone = [spend for spend in spends if isinstance(spend.law, JointLaw)]
    return [*(Spend(law, law.kind, count) for law, count in counts.items()), *alone]


def _unprotected(rows: Rows) -> dict[str, int]:
    open_: dict[str, int] = defaultdict(int)
    for spend in (spend for spends in rows.values() for spend in spends if not spend.protected):
        open_[spend.name] += spend.count
    return dict(open_)


def _print(found: dict[str, Totals], unprotected: dict[str, dict[str, int]], delta: float) -> None:
    typer.echo(f"{'worker':<16} {'unit':<8} " + " ".join(f"{rule:>10}" for rule in RULES))
    for worker, units in found.items():
        for unit, rules in units.items():
            costs = " ".join(f"{round_up(rules[rule].epsilon):>10}" for rule in RULES)
            typer.echo(f"{worker:<16} {unit:<8} {costs}")
        for name, count in unprotected.get(worker, {}).items():
            typer.echo(f"{worker:<16} not protected, and not in these numbers: {name} ({count})")
    typer.echo(f"ε at δ = {delta:g} (basic: δ = 0 unless a Gaussian is among them); the smallest of a line holds")
    typer.echo("renyi and pld hold for questions fixed beforehand, not for questions that depend on earlier reports")
    for name, meaning in _MEANING.items():
        typer.echo(f"{name}: {meaning}")
