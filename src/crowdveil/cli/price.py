"""`crowdveil price`: what to pay for privacy, by auction, by offers or by level."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from crowdveil.cli._common import Json, show
from crowdveil.cli._controls import echo
from crowdveil.errors import InputError
from crowdveil.files.table import TextTable, read_table
from crowdveil.pricing import (
    Bid,
    FairQuery,
    FixedAccuracy,
    Purchase,
    SingleMinded,
    TakeItOrLeaveIt,
    offer_per_level,
    parse_amount,
)

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="What to pay for privacy.\n\nExample: crowdveil price fair-query bids.csv --budget 20",
)
Bids = Annotated[Path, typer.Argument(help="CSV or Parquet: worker, bid (what a unit of ε costs them).")]
Budget = Annotated[str, typer.Option("--budget", help="What may be spent in all.")]
_MAY_TELL = "a bid may itself tell something: whoever has more to hide may ask for more; no ε covers that"


@app.command("fair-query")
def fair_query(bids: Bids, budget: Budget, as_json: Json = False) -> None:
    """The most accurate count that a budget buys at one price for all (Ghosh & Roth 2011).

    Example: crowdveil price fair-query bids.csv --budget 20
    """
    _show(FairQuery(budget).run(_read_bids(bids, personal=False)), as_json=as_json)


@app.command("fixed-accuracy")
def fixed_accuracy(
    bids: Bids,
    error: Annotated[float, typer.Option("--error", help="By how many workers a count may be off, 2 times in 3.")],
    as_json: Json = False,
) -> None:
    """The cheapest count with a wanted accuracy, at the lowest losing bid for all (Ghosh & Roth 2011).

    Example: crowdveil price fixed-accuracy bids.csv --error 10
    """
    _show(FixedAccuracy(error).run(_read_bids(bids, personal=False)), as_json=as_json)


@app.command("single-minded")
def single_minded(
    bids: Annotated[
        Path, typer.Argument(help="CSV or Parquet: worker, epsilon, bid (for a report at that ε, in cents).")
    ],
    budget: Budget,
    as_json: Json = False,
) -> None:
    """The most ε that a budget buys from workers with an ε of their own (Chen, Gravin & Lu 2011).

    Example: crowdveil price single-minded bids.csv --budget 20
    """
    _show(SingleMinded(budget).run(_read_bids(bids, personal=True)), as_json=as_json)


@app.command("take-it-or-leave-it")
def take_it_or_leave_it(
    error: Annotated[float, typer.Option("--error", help="By how much a share may be off.")],
    epsilon: Annotated[float, typer.Option("--epsilon", help="The ε of everybody who accepts.")],
    first_price: Annotated[float, typer.Option("--first-price", help="The first offer.")],
    highest_price: Annotated[float, typer.Option("--highest-price", help="The highest offer ever made.")],
    growth: Annotated[float, typer.Option("--growth", help="The factor from one offer to the next.")] = 2.0,
    failure: Annotated[float, typer.Option("--failure", help="The probability of a larger error.")] = 0.05,
    as_json: Json = False,
) -> None:
    """Offers to fresh people at rising prices until enough accept (Ligett & Roth 2012).

    Example: crowdveil price take-it-or-leave-it --error 0.1 --epsilon 0.5 --first-price 0.1 --highest-price 5
    """
    offers = TakeItOrLeaveIt(
        error=error,
        epsilon=epsilon,
        first_price=first_price,
        highest_price=highest_price,
        growth=growth,
        failure=failure,
    )
    rounds = [
        {"price": round(price, 9), "most_paid": round(offers.most_paid(number + 1), 9)}
        for number, price in enumerate(offers.prices)
    ]
    result = {
        "mechanism": offers.name,
        "n_asked": offers.n_asked,
        "noise_scale": offers.noise_scale,
        "enough": offers.enough,
        "rounds": rounds,
    }

    def human() -> None:
        echo(f"ask {offers.n_asked} people in each round who were not asked before, one price for all")
        echo(f"add Laplace noise of scale {offers.noise_scale:g} to the number who accept")
        echo(f"stop at {offers.enough:g} or more")
        for number, row in enumerate(rounds, start=1):
            echo(f"  round {number}: offer {row['price']:g}; at most {row['most_paid']:g} paid so far")

    show(result, as_json=as_json, human=human)


@app.command("levels")
def levels(
    table: Annotated[Path, typer.Argument(help="CSV or Parquet: level, noise (variance of a report), share.")],
    budget: Annotated[float, typer.Option("--budget", help="What may be spent in all, on average.")],
    opinion_variance: Annotated[float, typer.Option("--opinion-variance", help="The variance of answers.")],
    target_error: Annotated[float | None, typer.Option("--target-error", help="The wanted error of the mean.")] = None,
    n_workers: Annotated[int | None, typer.Option("--n-workers", help="Instead: how many will answer.")] = None,
    as_json: Json = False,
) -> None:
    """What to offer at each level for a wanted error or a number of workers: pay by information.

    Example: crowdveil price levels levels.csv --budget 50 --opinion-variance 1 --target-error 0.2
    """
    rows = read_table(table, ["level", "noise", "share"])
    names = [_text(text) for text in rows.columns["level"].to_pylist()]
    if len(set(names)) != len(names):
        raise InputError("every level must have one row; got one twice", fix="remove one of them", field="level")
    noise, shares = (dict(zip(names, _amounts(rows, column), strict=True)) for column in ("noise", "share"))
    offers = offer_per_level(
        noise, shares, opinion_variance=opinion_variance, budget=budget, target_error=target_error, n_workers=n_workers
    )
    result = {
        "pay": offers.pay,
        "n_workers": offers.n_workers,
        "expected_error": offers.expected_error,
        "expected_cost": offers.expected_cost,
    }

    def human() -> None:
        for level, pay in offers.pay.items():
            echo(f"{level}: offer {pay:.4g}")
        echo(
            f"{offers.n_workers} workers; expected error ±{offers.expected_error:.3g}, cost {offers.expected_cost:.4g}"
        )

    show(result, as_json=as_json, human=human)


def _read_bids(path: Path, *, personal: bool) -> list[Bid]:
    table = read_table(path, ["worker", "epsilon", "bid"] if personal else ["worker", "bid"])
    workers = [_text(text) for text in table.columns["worker"].to_pylist()]
    bids = [_amount(table, "bid", row) for row in range(len(workers))]
    epsilon = [_amount(table, "epsilon", row) if personal else None for row in range(len(workers))]
    return [Bid(worker, bid, each) for worker, bid, each in zip(workers, bids, epsilon, strict=True)]


def _amount(table: TextTable, name: str, row: int) -> Fraction:
    text = _text(table.columns[name][row].as_py())
    try:
        return parse_amount(text, name)
    except InputError:
        raise table.wrong(f"{name} must be a number from 0 up; got {text!r}", row, name, "correct it") from None


def _amounts(table: TextTable, name: str) -> list[float]:
    return [float(_amount(table, name, row)) for row in range(len(table))]


def _text(text: str | None) -> str:
    return (text or "").strip()


def _show(purchase: Purchase, *, as_json: bool) -> None:
    def human() -> None:
        for worker, epsilon, payment in zip(purchase.winners, purchase.epsilon, purchase.payments, strict=True):
            echo(f"{worker}: ε {float(epsilon):.4g}, paid {float(payment):.4g}")
        if not purchase.winners:
            echo("nobody sells at this budget or accuracy")
        echo(f"total {float(purchase.total):.4g}")
        if purchase.error is not None:
            echo(f"the count is off by at most {purchase.error:.3g} workers with probability 2/3")
        echo(_MAY_TELL)

    show({**purchase.to_json(), "note": _MAY_TELL}, as_json=as_json, human=human)
