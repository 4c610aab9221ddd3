"""Private Dawid–Skene against its theorems and against private majority voting (Wang & Xu, Theorems 2 to 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from crowdveil.bounds.wang import ability_error, label_error, majority_error, majority_error_floor
from crowdveil.domain import Choices
from crowdveil.entropy import Keystream
from crowdveil.estimate import Estimate
from crowdveil.inference import METHODS, Majority, OneCoin, PrivateDawidSkene
from crowdveil.mechanisms import RandomizedResponse
from crowdveil.papers.reproduction import (
    Claim,
    Reproduction,
    Row,
    Settings,
    column,
    labelled,
    mean_of,
    said_trials,
    select,
)
from crowdveil.plot import Panel, Series, panels
from crowdveil.reports import Reports
from crowdveil.simulate import ChoiceCrowd, Crowd, preset

PAPER = "Wang, Xu: Private Dawid–Skene estimation for crowdsourced truth inference"
_UNIT = "ε is per value (the paper's LADP, exact from the channel's integers); a whole answer vector costs m·ε."


@dataclass(frozen=True, kw_only=True)
class Theorem2(Reproduction):
    """Label errors over ε for a crowd of mixed abilities."""

    id = "wang-theorem2"
    title = "label errors and the bound of Theorem 2"
    paper = PAPER
    interpretation = (
        "every worker answers every question, abilities even on .3 to .9, λ = `margin`, started from the shares of the "
        f"votes, until nothing changes. {_UNIT}"
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
                rows.append(self._row(crowd, epsilon, seed) | {"no_privacy": plain, "constant": constant_error(crowd)})
        return labelled(rows, n_workers=n_workers, n_questions=n_questions)

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
                f"at most {mean_of(rows, 'bound', epsilon=epsilon):.2g}",
                f"measured {mean_of(rows, 'error', epsilon=epsilon):.4f} (private majority "
                f"{mean_of(rows, 'majority', epsilon=epsilon):.4f})",
                "holds"
                if mean_of(rows, "error", epsilon=epsilon) <= mean_of(rows, "bound", epsilon=epsilon)
                else "fails",
            )
            for epsilon in self.epsilons
        ]
        return [*claims, _premises(rows)]

    def draw(self, rows: Sequence[Row]) -> Any:
        exact = [column(select(rows, epsilon=epsilon), "exact_epsilon")[0] for epsilon in self.epsilons]
        series = [
            Series(
                name,
                exact,
                [max(mean_of(rows, key, epsilon=epsilon), 1e-6) for epsilon in self.epsilons],
                self.epsilons,
            )
            for name, key in (("private Dawid–Skene", "error"), ("private majority", "majority"), ("bound", "bound"))
        ]
        lines = {
            "no privacy, majority": max(mean_of(rows, "no_privacy"), 1e-6),
            "best constant": mean_of(rows, "constant"),
            "coin": 0.5,
        }
        panel = Panel(
            "wrong labels",
            "exact ε per value (hollow: claimed)",
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
        return labelled(rows, n_workers=100)

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        claims = []
        for epsilon in self.epsilons:
            for m in sorted(set(column(rows, "n_questions"))):
                where: dict[str, Any] = {"epsilon": epsilon, "n_questions": m}
                ours, bound = mean_of(rows, "ability_error", **where), mean_of(rows, "ability_bound", **where)
                claims.append(
                    Claim(
                        f"Theorem 3: no ability is off by more than 6·√(log m/(m·ε²)) (m = {m:g}, ε = {epsilon:g})",
                        f"at most {bound:.3f}",
                        f"largest error {ours:.3f}; always saying the median {mean_of(rows, 'constant', **where):.3f}, "
                        f"no privacy {mean_of(rows, 'no_privacy', **where):.3f}",
                        "holds" if ours <= bound else "fails",
                    )
                )
        return [*claims, _premises(rows)]

    def draw(self, rows: Sequence[Row]) -> Any:
        sizes = sorted(set(column(rows, "n_questions")))
        drawn = []
        for epsilon in self.epsilons:
            series = [
                Series(name, sizes, [mean_of(rows, key, epsilon=epsilon, n_questions=m) for m in sizes])
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


@dataclass(frozen=True, kw_only=True)
class Theorem4(Reproduction):
    """Experts among spammers. `exponent` gives ⌈n^exponent⌉ experts who are never wrong; all others toss a coin."""

    id = "wang-theorem4"
    title = "private majority voting against private Dawid–Skene"
    paper = PAPER
    interpretation = (
        "⌈n^.45⌉ experts are always right and all others toss a coin, as in §5; n = 500 workers and as many questions. "
        f"channel-bp and one-coin are ours and know the channel from the start. {_UNIT}"
    )
    exponent: float = 0.45
    epsilons: tuple[float, ...] = (0.5, 1.0, 2.0, 3.0)
    sizes: tuple[int, ...] = (50, 100, 200, 500)

    def rows(self, settings: Settings) -> list[Row]:
        rows: list[Row] = []
        for seed in settings.seeds(min(settings.trials, 2) if settings.quick else None):
            for n in self.sizes:
                for epsilon in self.epsilons if n == 500 else (2.0,):
                    rows += self._trial(n, epsilon, seed)
        return rows

    def _trial(self, n: int, epsilon: float, seed: int) -> list[Row]:
        experts = ceil(n**self.exponent)
        crowd = preset("wang-spammers", n_workers=n, n_questions=500, experts=experts).draw(seed)
        mechanism = RandomizedResponse(epsilon=epsilon)
        reports = mechanism.randomize(crowd.answers, Keystream(f"{seed}:{n}:{epsilon}"))
        methods = {
            "private Dawid–Skene": PrivateDawidSkene(),
            "private majority": Majority(),
            "one-coin (ours)": OneCoin(),
        }
        if (ours := METHODS.get("channel-bp")) is not None:
            methods["channel-bp (ours)"] = ours()
        measured = {name: wrong(method.fit(reports), crowd) for name, method in methods.items()}
        measured |= {
            "no privacy": wrong(PrivateDawidSkene().fit(Reports.unprotected(crowd.answers)), crowd),
            "best constant": constant_error(crowd),
            "majority, exact law": majority_error(n, experts, epsilon),
            "floor of Theorem 4": majority_error_floor(n, self.exponent, epsilon).value,
        }
        exact = mechanism.channel(crowd.answers.domain).epsilon
        shared: Row = {"n": n, "experts": experts, "epsilon": epsilon, "exact_epsilon": exact, "trial": float(seed)}
        return [shared | {"method": name, "error": error} for name, error in measured.items()]

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        def error(method: str, n: int = 500, epsilon: float = 2.0) -> float:
            return mean_of(rows, "error", method=method, n=float(n), epsilon=epsilon)

        experts = int(column(select(rows, n=500.0), "experts")[0])
        ours, majority = error("private Dawid–Skene"), error("private majority")
        small, law = error("floor of Theorem 4", 50), error("majority, exact law", 50)
        return [
            Claim(
                f"private Dawid–Skene beats private majority voting (n = 500, {experts} experts, ε = 2 per value)",
                "smaller error",
                f"Dawid–Skene {ours:.4f}, majority {majority:.3f}",
                "holds" if ours < majority else "fails",
            ),
            Claim(
                "Theorem 4: majority errs at least 2·exp(−κ²⌈n^δ⌉/2) (n = 500, ε = 2)",
                f"at least {error('floor of Theorem 4'):.4f}",
                f"measured {majority:.3f}, exact law {error('majority, exact law'):.3f}",
                "holds" if error("majority, exact law") >= error("floor of Theorem 4") else "fails",
            ),
            Claim(
                "the same for a small crowd (n = 50): n must be “sufficiently large”",
                f"at least {small:.3f}",
                f"exact law {law:.3f}",
                "holds" if law >= small else "fails",
            ),
            Claim(
                "methods that know the channel (not in the paper), ε = .5 per value, n = 500",
                f"private Dawid–Skene {error('private Dawid–Skene', epsilon=0.5):.3f}",
                ", ".join(f"{m} {error(m, epsilon=0.5):.3f}" for m in ("one-coin (ours)", "channel-bp (ours)"))
                + f", private majority {error('private majority', epsilon=0.5):.3f}",
                "cannot tell",
            ),
        ]

    def draw(self, rows: Sequence[Row]) -> Any:
        names = [
            name
            for name in dict.fromkeys(str(row["method"]) for row in rows)
            if name not in ("no privacy", "best constant")
        ]
        lines = {name: mean_of(rows, "error", method=name, n=500.0) for name in ("no privacy", "best constant")}
        exact = [column(select(rows, n=500.0, epsilon=e), "exact_epsilon")[0] for e in self.epsilons]
        by_epsilon = [
            Series(
                name,
                exact,
                [mean_of(rows, "error", method=name, n=500.0, epsilon=e) for e in self.epsilons],
                self.epsilons,
            )
            for name in names
        ]
        by_size = [
            Series(name, self.sizes, [mean_of(rows, "error", method=name, n=float(n), epsilon=2.0) for n in self.sizes])
            for name in names
        ]
        return panels(
            [
                Panel(
                    "n = 500",
                    "exact ε per value (hollow: claimed)",
                    "share of wrong labels",
                    by_epsilon,
                    lines,
                    log_x=True,
                ),
                Panel("ε = 2 per value", "workers n", "share of wrong labels", by_size, lines, log_x=True),
            ],
            caption=f"⌈n^{self.exponent:g}⌉ experts among spammers, 500 questions, all answer; randomised response, ε "
            f"per value; {said_trials(rows)}.",
        )


def wrong(estimate: Estimate, crowd: Crowd) -> float:
    return float(np.mean(estimate.value != crowd.truth))


def ability_gap(estimate: Estimate, crowd: Crowd) -> float:
    """The largest error of an ability."""
    assert estimate.skills is not None
    return float(np.abs(estimate.skills.skill - crowd.skill).max())


def constant_error(crowd: Crowd) -> float:
    return 1 - float(np.bincount(crowd.truth.astype(int)).max()) / len(crowd.truth)


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
