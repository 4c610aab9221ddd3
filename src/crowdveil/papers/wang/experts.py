"""Private majority voting against private Dawid–Skene on experts among spammers (Wang & Xu, Theorem 4 and §5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from crowdveil.bounds.wang import majority_error, majority_error_floor
from crowdveil.entropy import Keystream
from crowdveil.inference import ChannelBP, Majority, OneCoin, PrivateDawidSkene
from crowdveil.mechanisms import RandomizedResponse
from crowdveil.papers.core.datasets import constant_error
from crowdveil.papers.core.reproduction import (
    Claim,
    Reproduction,
    Row,
    Settings,
    column,
    mean_column,
    said_trials,
    select,
)
from crowdveil.papers.wang.trial import PAPER, UNIT, wrong
from crowdveil.plot import Panel, Series, panels
from crowdveil.reports import Reports
from crowdveil.simulate import preset


@dataclass(frozen=True, kw_only=True)
class Theorem4(Reproduction):
    """Experts among spammers. `exponent` gives ⌈n^exponent⌉ experts who are never wrong; all others toss a coin."""

    id = "wang-theorem4"
    title = "private majority voting against private Dawid–Skene"
    paper = PAPER
    interpretation = (
        "⌈n^.45⌉ experts are always right and all others toss a coin, as in §5; n = 500 workers and as many questions. "
        f"channel-bp and one-coin are ours and know the channel from the start. {UNIT}"
    )
    exponent: float = 0.45
    epsilons: tuple[float, ...] = (0.5, 1.0, 2.0, 3.0)
    sizes: tuple[int, ...] = (50, 100, 200, 500)
    n_questions: int = 500

    def rows(self, settings: Settings) -> list[Row]:
        rows: list[Row] = []
        for seed in settings.seeds(min(settings.trials, 2) if settings.quick else None):
            for n in self.sizes:
                for epsilon in self.epsilons if n == self.sizes[-1] else (2.0,):
                    rows += self._trial(n, epsilon, seed)
        return rows

    def _trial(self, n: int, epsilon: float, seed: int) -> list[Row]:
        experts = ceil(n**self.exponent)
        crowd = preset("wang-spammers", n_workers=n, n_questions=self.n_questions, experts=experts).draw(seed)
        mechanism = RandomizedResponse(epsilon=epsilon)
        reports = mechanism.randomize(crowd.answers, Keystream(f"{seed}:{n}:{epsilon}"))
        methods = {
            "private Dawid–Skene": PrivateDawidSkene(),
            "private majority": Majority(),
            "one-coin (ours)": OneCoin(),
            "channel-bp (ours)": ChannelBP(),
        }
        measured = {name: wrong(method.fit(reports), crowd) for name, method in methods.items()}
        measured |= {
            "no privacy": wrong(PrivateDawidSkene().fit(Reports.unprotected(crowd.answers)), crowd),
            "best constant": constant_error(crowd.truth),
            "majority, exact law": majority_error(n, experts, epsilon),
            "floor of Theorem 4": majority_error_floor(n, self.exponent, epsilon).value,
        }
        exact = mechanism.channel(crowd.answers.domain).epsilon
        shared: Row = {"n": n, "experts": experts, "epsilon": epsilon, "exact_epsilon": exact, "trial": float(seed)}
        return [shared | {"method": name, "error": error} for name, error in measured.items()]

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        few, many = self.sizes[0], self.sizes[-1]
        experts = int(column(select(rows, n=float(many)), "experts")[0])
        ours, majority = (_error(rows, name, many) for name in ("private Dawid–Skene", "private majority"))
        low = self.epsilons[0]
        knowing = ("one-coin (ours)", "channel-bp (ours)", "private majority")
        return [
            Claim(
                f"private Dawid–Skene beats private majority voting (n = {many}, {experts} experts, ε = 2 per value)",
                "smaller error",
                f"Dawid–Skene {ours:.4f}, majority {majority:.3f}",
                "holds" if ours < majority else "fails",
            ),
            _floor(rows, "Theorem 4: majority errs at least 2·exp(−κ²⌈n^δ⌉/2)", many),
            _floor(rows, "the same for a small crowd: n must be “sufficiently large”", few),
            _floor(rows, "the same for a small ε, where the floor can pass 1", many, low),
            Claim(
                f"methods that know the channel (not in the paper), ε = {low:g} per value, n = {many}",
                f"private Dawid–Skene {_error(rows, 'private Dawid–Skene', many, low):.3f}",
                ", ".join(f"{method} {_format_range(rows, method, many, low)}" for method in knowing),
                "cannot tell",
            ),
        ]

    def draw(self, rows: Sequence[Row]) -> Any:
        plain, many = ("no privacy", "best constant"), self.sizes[-1]
        names = [name for name in dict.fromkeys(str(row["method"]) for row in rows) if name not in plain]
        lines = {name: mean_column(rows, "error", method=name, n=float(many)) for name in plain}
        exact = [column(select(rows, n=float(many), epsilon=e), "exact_epsilon")[0] for e in self.epsilons]
        by_epsilon = [Series(name, exact, [_error(rows, name, many, e) for e in self.epsilons]) for name in names]
        by_size = [Series(name, self.sizes, [_error(rows, name, n) for n in self.sizes]) for name in names]
        wrong_labels = "share of wrong labels"
        return panels(
            [
                Panel(f"n = {many}", "exact ε per value, as claimed", wrong_labels, by_epsilon, lines, log_x=True),
                Panel("ε = 2 per value", "workers n", wrong_labels, by_size, lines, log_x=True),
            ],
            caption=f"⌈n^{self.exponent:g}⌉ experts among spammers, {self.n_questions} questions, all answer; "
            f"randomised response, ε per value; {said_trials(rows)}.",
        )


def _error(rows: Sequence[Row], method: str, n: int, epsilon: float = 2.0) -> float:
    return mean_column(rows, "error", method=method, n=float(n), epsilon=epsilon)


def _format_range(rows: Sequence[Row], method: str, n: int, epsilon: float) -> str:
    """The mean and how far trials differ: whether a method finds the experts of a crowd can be all or nothing."""
    errors = column(select(rows, method=method, n=float(n), epsilon=epsilon), "error")
    return f"{_error(rows, method, n, epsilon):.3f} ({min(errors):.3f} to {max(errors):.3f} over trials)"


def _floor(rows: Sequence[Row], claim: str, n: int, epsilon: float = 2.0) -> Claim:
    names = ("floor of Theorem 4", "majority, exact law", "private majority")
    floor, law, measured = (_error(rows, name, n, epsilon) for name in names)
    return Claim(
        f"{claim} (n = {n}, ε = {epsilon:g})",
        f"at least {floor:.4f}",
        f"measured {measured:.3f}, exact law {law:.3f}",
        "holds" if law >= floor else "fails",
    )
