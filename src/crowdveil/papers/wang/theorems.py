"""Private Dawid–Skene against the bounds on its labels and abilities (Wang & Xu, Theorems 2 and 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdveil.bounds.wang import ability_error, label_error
from crowdveil.domain import Choices
from crowdveil.entropy import Keystream
from crowdveil.estimate import Estimate
from crowdveil.inference import Majority, PrivateDawidSkene
from crowdveil.mechanisms import RandomizedResponse
from crowdveil.papers.core.datasets import constant_error
from crowdveil.papers.core.reproduction import (
    Claim,
    Reproduction,
    Row,
    Settings,
    add_columns,
    column,
    mean_column,
    said_trials,
    select,
)
from crowdveil.papers.wang.trial import PAPER, UNIT, wrong
from crowdveil.plot import Panel, Series, panels
from crowdveil.reports import Reports
from crowdveil.simulate import ChoiceCrowd, Crowd


@dataclass(frozen=True, kw_only=True)
class Theorem2(Reproduction):
    """Label errors over ε for a crowd of mixed abilities."""

    id = "wang-theorem2"
    title = "label errors and the bound of Theorem 2"
    paper = PAPER
    interpretation = (
        "every worker answers every question, abilities even on .3 to .9, λ = `margin`, started from the shares of the "
        f"votes, until nothing changes. {UNIT}"
    )
    epsilons: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0)
    margin: float = 0.01

    def crowd(self, n_workers: int, n_questions: int, seed: int) -> Crowd:
        recipe = ChoiceCrowd(
            n_workers=n_workers, n_questions=n_questions, domain=Choices(("0", "1")), ability=(0.3, 0.9), share=1.0
        )
        return recipe.draw(seed)

    def rows(self, settings: Settings) -> list[Row]:
        n_workers, n_questions = (100, 1000) if settings.quick else (200, 4000)
        rows: list[Row] = []
        for seed in settings.seeds():
            crowd = self.crowd(n_workers, n_questions, seed)
            plain = wrong(Majority().fit(Reports.unprotected(crowd.answers)), crowd)
            for epsilon in self.epsilons:
                rows.append(
                    self._row(crowd, epsilon, seed) | {"no_privacy": plain, "constant": constant_error(crowd.truth)}
                )
        return add_columns(rows, n_workers=n_workers, n_questions=n_questions)

    def _row(self, crowd: Crowd, epsilon: float, seed: int) -> Row:
        mechanism = RandomizedResponse(epsilon=epsilon)
        reports = mechanism.randomize(crowd.answers, Keystream(f"{seed}:{epsilon}"))
        estimate = PrivateDawidSkene(margin=self.margin).fit(reports)
        accuracies, m = crowd.skill.tolist(), len(crowd.truth)
        start = float(np.mean(np.abs(_shares(reports) - crowd.truth)))
        bound = label_error(accuracies, m, epsilon, projection=self.margin, start_error=start)
        abilities = ability_error(accuracies, m, epsilon, projection=self.margin, start_error=start)
        return {
            "epsilon": epsilon,
            "exact_epsilon": mechanism.channel(crowd.answers.domain).epsilon,
            "error": wrong(estimate, crowd),
            "majority": wrong(Majority().fit(reports), crowd),
            "bound": bound.value,
            "applies": str(bound.applies),
            "failed": "; ".join(premise.statement for premise in bound.premises if not premise.holds),
            "ability_error": ability_gap(estimate, crowd),
            "ability_bound": abilities.value,
            "trial": float(seed),
        }

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        claims = [
            Claim(
                f"Theorem 2: the share of wrong labels is at most 2·exp(−n·v̂/2) (ε = {epsilon:g} per value)",
                f"at most {mean_column(rows, 'bound', epsilon=epsilon):.2g}",
                f"measured {mean_column(rows, 'error', epsilon=epsilon):.4f} (private majority "
                f"{mean_column(rows, 'majority', epsilon=epsilon):.4f})",
                "holds"
                if mean_column(rows, "error", epsilon=epsilon) <= mean_column(rows, "bound", epsilon=epsilon)
                else "fails",
            )
            for epsilon in self.epsilons
        ]
        return [*claims, _premises(rows)]

    def draw(self, rows: Sequence[Row]) -> Any:
        exact = [column(select(rows, epsilon=epsilon), "exact_epsilon")[0] for epsilon in self.epsilons]
        series = [
            Series(name, exact, [max(mean_column(rows, key, epsilon=epsilon), 1e-6) for epsilon in self.epsilons])
            for name, key in (("private Dawid–Skene", "error"), ("private majority", "majority"), ("bound", "bound"))
        ]
        lines = {
            "no privacy, majority": max(mean_column(rows, "no_privacy"), 1e-6),
            "best constant": mean_column(rows, "constant"),
            "coin": 0.5,
        }
        panel = Panel(
            "wrong labels",
            "exact ε per value, as claimed",
            "share of wrong labels",
            series,
            lines,
            log_x=True,
            log_y=True,
        )
        return panels([panel], caption=_size(rows) + " Shares below 10⁻⁶, 0 included, are drawn there.")


@dataclass(frozen=True, kw_only=True)
class Theorem3(Theorem2):
    """The largest error of an ability, over m."""

    id = "wang-theorem3"
    title = "ability errors and the bound of Theorem 3"
    sizes: tuple[int, ...] = (250, 1000, 4000)
    epsilons: tuple[float, ...] = (0.5, 1.0)

    def rows(self, settings: Settings) -> list[Row]:
        rows: list[Row] = []
        sizes = self.sizes[:2] if settings.quick else self.sizes
        for seed in settings.seeds():
            for n_questions in sizes:
                crowd = self.crowd(100, n_questions, seed)
                plain = PrivateDawidSkene(margin=self.margin).fit(Reports.unprotected(crowd.answers))
                shared: Row = {"n_questions": n_questions, "no_privacy": ability_gap(plain, crowd)}
                shared["constant"] = float(np.abs(crowd.skill - np.median(crowd.skill)).max())
                for epsilon in self.epsilons:
                    rows.append(self._row(crowd, epsilon, seed) | shared)
        return add_columns(rows, n_workers=100)

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        claims = []
        for epsilon in self.epsilons:
            for m in sorted(set(column(rows, "n_questions"))):
                where: dict[str, Any] = {"epsilon": epsilon, "n_questions": m}
                ours, bound = mean_column(rows, "ability_error", **where), mean_column(rows, "ability_bound", **where)
                claims.append(
                    Claim(
                        f"Theorem 3: no ability is off by more than 6·√(log m/(m·ε²)) (m = {m:g}, ε = {epsilon:g})",
                        f"at most {bound:.3f}",
                        f"largest error {ours:.3f}; "
                        f"always saying the median {mean_column(rows, 'constant', **where):.3f}, "
                        f"no privacy {mean_column(rows, 'no_privacy', **where):.3f}",
                        "holds" if ours <= bound else "fails",
                    )
                )
        return [*claims, _premises(rows)]

    def draw(self, rows: Sequence[Row]) -> Any:
        sizes = sorted(set(column(rows, "n_questions")))
        drawn = []
        for epsilon in self.epsilons:
            series = [
                Series(name, sizes, [mean_column(rows, key, epsilon=epsilon, n_questions=m) for m in sizes])
                for name, key in (
                    ("largest error of an ability", "ability_error"),
                    ("bound", "ability_bound"),
                    ("always the median", "constant"),
                    ("no privacy", "no_privacy"),
                )
            ]
            drawn.append(Panel(f"ε = {epsilon:g} per value", "questions", "error of ability", series, log_x=True))
        return panels(
            drawn,
            caption=f"{column(rows, 'n_workers')[0]:g} workers, all answer; abilities even on .3 to .9; private "
            f"Dawid–Skene on randomised response, exact ε per value as claimed; {said_trials(rows)}.",
        )


def ability_gap(estimate: Estimate, crowd: Crowd) -> float:
    """The largest error of an ability."""
    assert estimate.skills is not None
    return float(np.abs(estimate.skills.skill - crowd.skill).max())


def _shares(reports: Reports) -> Any:
    """The share of ones among a question's reports: the start of Algorithm 1."""
    ones = np.bincount(reports.question, reports.report, minlength=reports.n_questions)
    return ones / np.maximum(np.bincount(reports.question, minlength=reports.n_questions), 1)


def _premises(rows: Sequence[Row]) -> Claim:
    applies = sum(row["applies"] == "True" for row in rows)
    failed = next((str(row["failed"]) for row in rows if row.get("failed")), "none")
    return Claim(
        "the premises of Theorem 2 hold for crowds of this size",
        "n and m sufficiently large",
        f"in {applies} of {len(rows)} runs; not met: {failed}",
        "holds" if applies == len(rows) else "fails",
    )


def _size(rows: Sequence[Row]) -> str:
    size = f"{column(rows, 'n_workers')[0]:g} workers × {column(rows, 'n_questions')[0]:g} questions, all answer"
    return f"{size}; randomised response; {said_trials(rows)}."
