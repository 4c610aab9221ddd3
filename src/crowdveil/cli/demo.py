"""`crowdveil demo`: the whole story in the terminal, with a crowd that is made up on the spot."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer

from crowdveil.answers import Answers
from crowdveil.cli._common import Json, Seed, show
from crowdveil.domain import Choices
from crowdveil.entropy import Entropy, entropy_from, uniforms
from crowdveil.mechanisms import RandomizedResponse

_SHARES = {"never": 0.62, "once": 0.27, "often": 0.11}


def command(
    workers: Annotated[int, typer.Option(help="How many people answer.")] = 5000,
    epsilon: Annotated[float, typer.Option(help="The privacy loss of one report.")] = 1.0,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Ask a made-up crowd a sensitive question, see only noise, and learn the shares all the same.

    Example: crowdveil demo --workers 5000 --epsilon 1
    """
    entropy = entropy_from(seed)
    answers = _crowd(workers, entropy)
    reports = RandomizedResponse(epsilon=epsilon).randomize(answers, entropy)
    channel = reports.channels[0]
    votes = channel.votes[reports.report]  # type: ignore[union-attr]
    shares, errors = votes.mean(axis=0), 1.96 * votes.std(axis=0) / np.sqrt(len(votes))
    told = np.bincount(answers.answer, minlength=3) / len(answers)
    raw = np.bincount(reports.report, minlength=3) / len(reports)
    rows = [
        {
            "option": option,
            "truth": float(told[code]),
            "reported": float(raw[code]),
            "estimate": float(shares[code]),
            "margin": float(errors[code]),
        }
        for code, option in enumerate(answers.domain.symbols)
    ]
    changed = float((answers.answer != reports.report).mean())
    result = {"workers": workers, "guarantee": channel.guarantee.to_json(), "changed": changed, "rows": rows}
    show(result, as_json=json, human=lambda: _tell(result, str(channel.guarantee)))


def _crowd(n_workers: int, entropy: Entropy) -> Answers:
    codes = np.searchsorted(np.cumsum(list(_SHARES.values())), uniforms(entropy, n_workers)).clip(0, 2)
    options = tuple(_SHARES)
    return Answers.from_rows(((worker, "q1", options[code]) for worker, code in enumerate(codes)), Choices(options))


def _tell(result: dict[str, object], guarantee: str) -> None:
    typer.echo("Question: have you ever lied about your income to get a loan?")
    typer.echo(f"{result['workers']} people answer; each device randomises before anything leaves it.")
    typer.echo(f"Privacy of each report: {guarantee}.")
    typer.echo(f"{result['changed']:.0%} of the reports differ from the answer behind them.\n")
    typer.echo(f"{'':8} {'answers':>8} {'reports':>8} {'estimate':>9}   95 % interval")
    for row in result["rows"]:  # type: ignore[attr-defined]
        low, high = row["estimate"] - row["margin"], row["estimate"] + row["margin"]
        bar = "█" * round(40 * max(row["estimate"], 0))
        typer.echo(
            f"{row['option']:8} {row['truth']:8.1%} {row['reported']:8.1%} {row['estimate']:9.1%}"
            f"   {low:5.1%} – {high:5.1%}  {bar}"
        )
