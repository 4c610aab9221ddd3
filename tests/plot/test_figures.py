"""Figures: they say what they show, save as SVG and PNG, and the same data give the same bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from crowdveil import Choices, Estimate, InputError, Scale
from crowdveil.accounting import Budget, Ledger, Spend
from crowdveil.channel import identity
from crowdveil.mechanisms import mechanism
from crowdveil.plot import Curve, audit_figure, forest, ledger_timeline, privacy_utility, save

DOMAIN = Choices(("no", "yes"))


def caption(figure: Figure) -> str:
    return str(figure.get_supxlabel())


def curves() -> Figure:
    return privacy_utility(
        [Curve("channel-bp", [0.5, 1, 2], [0.3, 0.2, 0.1], [0.2, 0.1, 0.0], [0.4, 0.3, 0.2])],
        measure="error rate",
        unit="value",
        n_workers=70,
        n_questions=30,
        baselines={"majority without privacy": 0.05, "always the same option": 0.5},
        floor=Curve("below this nobody can be", [0.5, 1, 2], [0.1, 0.05, 0.0]),
    )


def timeline() -> Figure:
    ledger = Ledger(Budget(4.0))
    channel = mechanism("randomized-response", epsilon=0.5).channel(DOMAIN)
    for number in range(5):
        ledger.charge("ada", Spend.through(channel, name=f"study {number}"), key=str(number))
    ledger.charge("ada", Spend.through(identity(DOMAIN), name="open poll"), key="open")
    return ledger_timeline(ledger, "ada")


def audit() -> Figure:
    row = {"mechanism": "laplace", "unit": "cell", "claimed": 1.0, "research_only": True}
    return audit_figure(
        [
            row | {"exact": None, "lower_bound": 2.5, "verdict": "exceeds"},
            row | {"mechanism": "none", "claimed": "inf", "exact": "inf", "lower_bound": None, "verdict": "holds"},
            row | {"exact": None, "lower_bound": None, "verdict": "unknown"},
        ]
    )


def estimates() -> Figure:
    value = np.linspace(0, 9, 60)
    estimate = Estimate("channel-em", Scale(0, 9), np.arange(60), value, np.ones(60), value - 1, value + 1)
    return forest(estimate, epsilon=3, unit="cell", n_reports=1200, truth=value)


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (curves, ["n = 70 workers", "30 questions", "ε per value", "channel-bp"]),
        (timeline, ["n = 6 releases", "budget ε 4", "open poll"]),
        (audit, ["n = 3 mechanisms", "ε per cell", "research only", "exact"]),
        (estimates, ["n = 1200 reports", "ε 3 per cell", "method channel-em", "40 of 60 questions"]),
    ],
)
def test_a_figure_says_what_it_shows_and_is_saved_twice_alike(draw: object, said: list[str], tmp_path: Path) -> None:
    figure = draw()
    assert all(words in caption(figure) for words in said), caption(figure)
    svg, png = save(figure, tmp_path / "figure.png")
    again, _ = save(draw(), tmp_path / "again")
    assert svg.suffix == ".svg"
    assert png.read_bytes().startswith(b"\x89PNG")
    assert svg.read_bytes() == again.read_bytes()
    assert said[0] in svg.read_text()


def test_estimates_of_choices_are_shown_by_their_confidence() -> None:
    half = np.full(3, 0.5)
    estimate = Estimate(
        "majority", DOMAIN, np.array(["a", "b", "c"]), np.array([0, 1, -1]), half, half - 0.1, half + 0.1
    )
    labels = [
        label.get_text() for label in forest(estimate, epsilon=1, unit="value", n_reports=9).axes[0].get_yticklabels()
    ]
    assert labels == ["a: no", "b: yes"]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: privacy_utility([], measure="", unit="", n_workers=1, n_questions=1),
        lambda: Curve("short", [1, 2], [0.1]),
        lambda: audit_figure([]),
        lambda: ledger_timeline(Ledger(Budget(1.0)), "nobody"),
    ],
)
def test_nothing_to_show_is_refused(wrong: object) -> None:
    with pytest.raises(InputError):
        wrong()
