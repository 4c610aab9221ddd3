"""`crowdveil select`: choose workers for the next question within a budget of money and of privacy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from crowdveil.cli._common import Json, Normalize, Options, ScaleFlag, Seed, parse_domain, show
from crowdveil.cli._progress import working
from crowdveil.domain import Choices
from crowdveil.errors import InputError
from crowdveil.files import read_reports
from crowdveil.files.table import TextTable, read_table
from crowdveil.selection import BudgetedGreedy, Candidates, Estimator, Greedy, History, Selection, selector
from crowdveil.selection.candidates import UNPROTECTED

_PLAIN = (
    "a broker, and infer --method population-mean, weigh ratings by inverse variance where levels differ and mostly "
    "err less, so that noisy workers left out here could still have helped"
)
_FREQUENCY = "a broker, and infer --method frequency, count every worker once, too"
_USED = {
    Estimator.INVERSE_VARIANCE: "it is what a broker, and infer --method population-mean, compute where levels of "
    "privacy think alike; where they do not, they take the plain mean, which errs more",
    Estimator.FREQUENCY: "it is what a broker, and infer --method frequency, compute",
}


def command(
    history: Annotated[Path, typer.Argument(help="Reports of past questions: worker, question, report, channel.")],
    workers: Annotated[Path, typer.Option("--workers", help="worker, level, pay, epsilon, remaining.")],
    budget: Annotated[float, typer.Option("--budget", help="What may be spent on pay.")],
    fairness: Annotated[
        float, typer.Option(help="Of both greedy policies: 0: money is the cost; 1: the share of privacy used up is.")
    ] = 0.0,
    exploration: Annotated[
        float, typer.Option(help="Of budgeted-greedy: 0 or more, how much to try workers of whom little is known.")
    ] = 0.0,
    policy: Annotated[
        str, typer.Option(help="budgeted-greedy, greedy, random, best-predictors or cheapest.")
    ] = BudgetedGreedy.name,
    paper_mode: Annotated[
        bool, typer.Option("--paper-mode", help="Greedy as printed: spend on, even where it harms.")
    ] = False,
    options: Options = None,
    scale: ScaleFlag = None,
    normalize: Normalize = False,
    seed: Seed = None,
    as_json: Json = False,
) -> None:
    """Choose workers whose reports will stand for the crowd's, at the lowest cost.

    Example: crowdveil select past.csv --workers workers.csv --budget 20 --fairness 0.5
    """
    chooser = selector(policy, fairness=fairness, exploration=exploration, paper_mode=paper_mode, seed=seed)
    for flag, used, kinds in (
        ("--paper-mode", paper_mode, (Greedy,)),
        ("--fairness", fairness != 0, (BudgetedGreedy, Greedy)),
        ("--exploration", exploration != 0, (BudgetedGreedy,)),
    ):
        if used and not isinstance(chooser, kinds):
            names = " or ".join(kind.name for kind in kinds)
            fix = f"leave it out or choose --policy {names}"
            raise InputError(f"{flag} is a setting of the policy {names}; got --policy {policy}", fix=fix)
    with working("choosing workers", quiet=as_json):
        reports = read_reports(history, parse_domain(options, scale), normalize=normalize)
        selection = chooser.select(History.from_reports(reports), read_candidates(workers), budget)
    unused = _FREQUENCY if isinstance(reports.domain, Choices) else _PLAIN
    note = _USED.get(selection.estimator, unused)
    show({**selection.to_json(), "note": note}, as_json=as_json, human=lambda: _print(selection, note))


def read_candidates(path: Path) -> Candidates:
    """The workers file; a row at level "none" needs neither ε nor a remaining budget."""
    table = read_table(path, ["worker", "level", "pay", "epsilon", "remaining"])
    codes, ids = table.ids("worker")
    if len(ids) != len(codes):
        first = np.unique(codes, return_index=True)[1]
        row = int(np.setdiff1d(np.arange(len(codes)), first)[0])
        raise table.wrong("a worker must have one row; this one repeats an earlier worker", row, "worker", "remove it")
    levels = table.columns["level"].to_pylist()
    free = [(level or "").strip() == UNPROTECTED for level in levels]
    columns = {name: _numbers(table, name, free) for name in ("pay", "epsilon", "remaining")}
    return Candidates(ids[codes], np.array([(level or "").strip() for level in levels], dtype=object), **columns)


def _numbers(table: TextTable, name: str, free: list[bool]) -> NDArray[np.float64]:
    texts = table.columns[name].to_pylist()
    return np.array([_number(table, name, row, text, free[row]) for row, text in enumerate(texts)])


def _number(table: TextTable, name: str, row: int, text: str | None, free: bool) -> float:
    spelled = (text or "").strip()
    if not spelled and free and name != "pay":
        return float("inf") if name == "epsilon" else 0.0
    try:
        number = float(spelled.replace("∞", "inf"))
    except ValueError:
        number = float("nan")
    if np.isnan(number) or number < 0 or (np.isinf(number) and name == "pay"):
        raise table.wrong(f"{name} must be a number from 0 up; got {spelled!r}", row, name, "correct it")
    return number


def _print(selection: Selection, note: str) -> None:
    shown = ", ".join(str(worker) for worker in selection.chosen[:20])
    more = f", … ({len(selection.chosen)} in all)" if len(selection.chosen) > 20 else ""
    typer.echo(f"chosen ({selection.policy}): {shown or 'nobody'}{more}")
    if selection.chosen:
        error = selection.expected_rmse
        typer.echo(f"cost {selection.cost:g}; expected error of the crowd's average ±{error:.3g} (RMSE)")
        if selection.rmse_without_exploration is not None:
            typer.echo(f"without exploration ±{selection.rmse_without_exploration:.3g}")
        typer.echo(f"that is the error of the {selection.estimator} of their reports; {note}")
    typer.echo(f"stopped because {selection.stopped_because}")
