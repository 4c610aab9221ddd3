"""A file of spends: who released what, by which mechanism, how often and about which question."""

from __future__ import annotations

import json
from collections import defaultdict
from functools import lru_cache
from pathlib import Path
from typing import Any

from crowdveil.accounting import Law, PureLaw, Spend, SpendsByQuestion
from crowdveil.audit.costs import mechanism_spend
from crowdveil.domain import Choices, Domain, Scale, parse_options, parse_scale
from crowdveil.errors import InputError
from crowdveil.files.table import TextTable, read_table
from crowdveil.guarantee import positive_epsilon
from crowdveil.mechanisms import MECHANISMS, mechanism
from crowdveil.progress import counted

COLUMNS = ("worker", "study", "mechanism", "parameters")
_MOST_DIGITS = 15


def read_spends(path: Path) -> dict[str, SpendsByQuestion]:
    """Every worker's spends; None stands for the question where a row does not name it."""
    table = read_table(path, COLUMNS, optional=["count", "question"])
    workers: dict[str, SpendsByQuestion] = defaultdict(lambda: defaultdict(list))
    columns = {name: table.columns[name].to_pylist() for name in (*COLUMNS, "count", "question") if name in table}
    for index in counted(range(len(table)), "spends read"):
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
        return mechanism_spend(mechanism(name, **parameters), domain, name=name).law
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
    return PureLaw(positive_epsilon(parameters["epsilon"]), "cell" if protects else "value", protects)


def _parameters(text: str) -> dict[str, Any]:
    try:
        parameters = json.loads(text or "{}", object_pairs_hook=_once)
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
