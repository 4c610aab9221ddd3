"""Loki's worked examples: what the levels of privacy are, cost, and really guarantee (Kandappu et al. 2015, §4.5.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, log
from typing import Any

from crowdveil.accounting.gaussian import kandappu_2015_formula_4_2, kandappu_2015_formula_4_3
from crowdveil.domain import Choices, Scale
from crowdveil.mechanisms import Gaussian, OneLayer
from crowdveil.papers.core.reproduction import Claim, Reproduction, Row, Settings, near, select
from crowdveil.plot import Panel, Series, panels

PAPER = "Kandappu, Friedman, Sivaraman, Boreli: Privacy in crowdsourced platforms (2015)"
LEVELS = ("none", "low", "medium", "high")
SHARES = (0.138, 0.244, 0.389, 0.229)
GAMMAS = (0.0, 3.0, 6.0, 12.0)
FLIPS = (0.0, 0.1, 0.3, 0.4)
PAYS = (0.8, 0.4, 0.2, 0.1)
PRINTED_RATINGS = (inf, 3.42, 0.85, 0.21)
PRINTED_CHOICES = (inf, 3.57, 2.22, 1.77)


@dataclass(frozen=True, kw_only=True)
class Examples(Reproduction):
    """Examples 1 to 4. `delta` is the paper's choice for one answer."""

    id = "loki-examples"
    title = "the privacy of Loki's levels, claimed and exact"
    paper = PAPER
    interpretation = (
        "a five-point scale from 1 to 5 and five options, δ = .01 for each answer. The exact ε of Gaussian noise is "
        "that of the analytic Gaussian mechanism in real arithmetic; the exact ε of a choice is computed from the "
        "channel's integers, at δ = 0 and at δ = .01. Both are per value: that a question was answered is visible. "
        "Level none has ε = ∞; where §4.5.2.2 sets it to 0 we do not follow."
    )
    delta: float = 0.01

    def rows(self, settings: Settings) -> list[Row]:
        rows: list[Row] = []
        for kind, epsilons, parameters, published in (
            ("rating", rating_epsilons, GAMMAS, PRINTED_RATINGS),
            ("choice", choice_epsilons, FLIPS, PRINTED_CHOICES),
        ):
            for level, parameter, pay, printed in zip(LEVELS, parameters, PAYS, published, strict=True):
                row: Row = {
                    "kind": kind,
                    "level": level,
                    "parameter": parameter,
                    "pay": pay,
                    "printed_epsilon": printed,
                }
                rows.append(row | epsilons(parameter, self.delta))
        return rows

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        ratings, choices = select(rows, kind="rating"), select(rows, kind="choice")
        return [
            *(
                _claim("Example 2, Gaussian noise: (4.2) gives the printed ε", "formula_epsilon", row)
                for row in ratings[1:]
            ),
            *(_claim("Example 2: noise of that size is (ε, .01)-private", "exact_epsilon", row) for row in ratings[1:]),
            *(
                _claim("Example 3, multiple choice: (4.3) gives the printed ε", "formula_epsilon", row)
                for row in choices[1:]
            ),
            *(_claim("Example 3: that flip is (ε, .01)-private", "exact_epsilon", row) for row in choices[1:]),
            Claim(
                "Examples 1 and 4: more privacy, lower pay",
                ", ".join(f"{row['level']} ${row['pay']:g}" for row in ratings),
                "exact ε per value (δ = .01) for that pay: "
                + ", ".join(f"{row['level']} {_text(row['exact_epsilon'])}" for row in ratings),
                "holds",
            ),
        ]

    def draw(self, rows: Sequence[Row]) -> Any:
        drawn = []
        for kind, title in (("rating", "ratings, Gaussian noise"), ("choice", "five options, randomised response")):
            part = [row for row in select(rows, kind=kind) if row["level"] != "none"]
            places = [float(index) for index in range(len(part))]
            columns = (
                ("printed ε", "printed_epsilon"),
                ("ε of the formula", "formula_epsilon"),
                ("exact ε", "exact_epsilon"),
            )
            series = [Series(name, places, [float(row[key]) for row in part], kind="bars") for name, key in columns]
            drawn.append(
                Panel(title, "level", "ε per value at δ = .01", series, categories=[str(row["level"]) for row in part])
            )
        return panels(drawn, caption="Level none is not shown: its ε is ∞. Lower is more private.")


def rating_epsilons(gamma: float, delta: float) -> Row:
    """ε of formula (4.2) and of the noise itself, for answers from 1 to 5."""
    if gamma == 0:
        return {"formula_epsilon": inf, "exact_epsilon": inf, "pure_epsilon": inf}
    exact = Gaussian(sigma=gamma, delta=delta).guarantee(Scale(1, 5)).epsilon
    printed = kandappu_2015_formula_4_2(4, gamma, delta).epsilon
    return {"formula_epsilon": printed, "exact_epsilon": exact, "pure_epsilon": inf}


def choice_epsilons(flip: float, delta: float) -> Row:
    """ε of formula (4.3) and of the channel, for five options."""
    if flip == 0:
        return {"formula_epsilon": inf, "exact_epsilon": inf, "pure_epsilon": inf}
    channel = OneLayer(flip=flip).channel(Choices(("a", "b", "c", "d", "e")))
    keep, lie = channel.table[0, 0], channel.table[0, 1]
    # The only output that tells for the answer is the answer itself: keep − e^ε·lie ≤ δ.
    return {
        "formula_epsilon": kandappu_2015_formula_4_3(5, flip, delta),
        "exact_epsilon": log((keep - delta) / lie),
        "pure_epsilon": channel.epsilon,
    }


def _claim(claim: str, key: str, row: Row) -> Claim:
    ours, printed = float(row[key]), float(row["printed_epsilon"])
    verdict = near(ours, printed, 0.006)
    if key == "exact_epsilon" and verdict != "holds":
        verdict = "fails" if ours > printed else "holds"
    return Claim(f"{claim} ({row['level']})", f"ε {printed:g}", f"ε {ours:.3f} per value, δ = .01", verdict)


def _text(value: object) -> str:
    return "∞" if value == inf else f"{float(str(value)):.2f}"
