"""Beyond the papers: methods that know the channel beside all published ones, at equal exact privacy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from crowdveil.answers import Answers
from crowdveil.channel.two_layer import value_epsilon
from crowdveil.entropy import Keystream
from crowdveil.inference import ChannelBP, ChannelEM, Majority, Method, OneCoin, PrivateDawidSkene, WeightedVote
from crowdveil.inference.methods.channel_em import Truths
from crowdveil.mechanisms import Laplace, Mechanism, RandomizedResponse, SparseTwoLayer, TwoLayer
from crowdveil.papers.core.datasets import Dataset, constant_error, numeric
from crowdveil.papers.core.reproduction import (
    Claim,
    Reproduction,
    Row,
    Settings,
    add_columns,
    column,
    mean_column,
    paired_difference,
    said_trials,
    select,
    smaller,
)
from crowdveil.papers.li.trial import as_answers, duchenne, error_rate, median_answers
from crowdveil.papers.sun.trial import Reading as SunReading
from crowdveil.papers.sun.trial import algorithm_1, baselines, mae, within_scale
from crowdveil.plot import Panel, Series, panels
from crowdveil.reports import Reports
from crowdveil.simulate import preset

SCALES = {"sun": "Sun's synthetic crowd", "wsd": "Web (wsd), levels 0..4"}
CHOICES = {"experts": "experts among spammers", "duchenne": "Duchenne smiles"}
OURS = {"sun": "RR, channel-em (ours)", "wsd": "RR, channel-em (ours)"} | dict.fromkeys(
    CHOICES, "RR, channel-bp (ours)"
)
SHORT = {"sun": "Sun", "wsd": "wsd", "experts": "experts", "duchenne": "Duchenne"}
_LINES = ("no privacy", "best constant", "mid-level", "coin")
Infer = Callable[[Reports], Any]


@dataclass(frozen=True, kw_only=True)
class BeyondChannel(Reproduction):
    """Four crowds, each at the same exact ε for every mechanism."""

    id = "beyond-channel"
    title = "methods that know the channel, at equal exact privacy"
    paper = "crowdveil: channel-em and channel-bp beside the published mechanisms and methods"
    needs_data = ("wsd", "duchenne")
    interpretation = (
        "every curve stands at the ε it really has. On scales the unit is the cell: LP uses noise range/ε, 2-layer "
        "draws its ε_i from U(0, ε) so that nobody exceeds ε; MF is left out because it has no finite ε per cell. On "
        "choices the unit is the value: two layers draw from U(a, ½) with a such that a worker with the median number "
        "of answers has that ε exactly. Published methods read reports as answers. One-coin, channel-em and channel-bp "
        "are ours. On wsd, whose truths are levels, channel-em is told that truths lie on the scale and the estimates "
        "of published methods are kept on it; channel-em's own default, truths anywhere, is shown beside. A verdict "
        "needs two standard errors of the paired difference over trials and, to hold, an error below that of the best "
        "constant. With --quick the synthetic crowds are smaller."
    )
    cells: tuple[float, ...] = (1.0, 2.0, 3.0)
    values: tuple[float, ...] = (0.5, 1.0, 2.0)
    n_workers: int | None = None

    def rows(self, settings: Settings) -> list[Row]:
        rows: list[Row] = []
        for seed in settings.seeds(3 if settings.quick else None):
            for crowd in (*SCALES, *CHOICES):
                settings.progress(f"{self.id}: {crowd}")
                data = self._data(crowd, seed, settings)
                measured = self._scale(crowd, data, seed) if crowd in SCALES else self._choice(data, seed)
                size = f"{len(data.answers.workers)} × {len(data.answers.questions)}"
                rows += add_columns(measured, crowd=crowd, size=size, trial=float(seed))
        return rows

    def _data(self, crowd: str, seed: int, settings: Settings) -> Dataset:
        if crowd == "wsd":
            return numeric("wsd", settings, highest=4)
        if crowd == "duchenne":
            return duchenne(settings)
        if crowd == "sun":
            n_workers, n_questions = (1000, 100) if settings.quick else (2000, 200)
            drawn = preset("sun", n_workers=self.n_workers or n_workers, n_questions=n_questions).draw(seed)
        else:
            n = self.n_workers or (300 if settings.quick else 500)
            drawn = preset("wang-spammers", n_workers=n, n_questions=n, experts=ceil(n**0.45)).draw(seed)
        return Dataset(drawn.answers, drawn.truth.astype(np.float64))

    def _scale(self, crowd: str, data: Dataset, seed: int) -> list[Row]:
        rows: list[Row] = [
            {"method": str(row["mechanism"]), "error": row["mae"]}
            for row in baselines(data.answers, data.truth, SunReading())
            if row["mechanism"] in _LINES
        ]
        for epsilon in self.cells:
            for name, mechanism, infer in _scale_runs(epsilon, crowd):
                reports = mechanism.randomize(data.answers, Keystream(f"{seed}:{name}:{epsilon}"))
                exact = mechanism.guarantee(data.answers.domain).epsilon
                row: Row = {"method": name, "epsilon": epsilon, "exact_epsilon": exact, "unit": "cell"}
                value = infer(reports)
                value = within_scale(data.answers, value) if crowd == "wsd" and infer is algorithm_1 else value
                rows.append(row | {"error": mae(value, data.truth)})
        return rows

    def _choice(self, data: Dataset, seed: int) -> list[Row]:
        plain = WeightedVote(max_iter=20).fit(Reports.unprotected(data.answers))
        rows: list[Row] = [
            {"method": "no privacy", "error": error_rate(plain, data.truth)},
            {"method": "best constant", "error": constant_error(data.truth)},
            {"method": "coin", "error": 0.5},
        ]
        for epsilon in self.values:
            for name, reports, exact, method in _choice_runs(data.answers, epsilon, seed):
                row: Row = {"method": name, "epsilon": epsilon, "exact_epsilon": exact, "unit": "value"}
                rows.append(row | {"error": error_rate(method.fit(reports), data.truth)})
        return rows

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        claims = []
        for crowd, name in (SCALES | CHOICES).items():
            part = select(rows, crowd=crowd)
            for epsilon in self.cells if crowd in SCALES else self.values:
                claims.append(_comparison(part, name, OURS[crowd], epsilon))
        return claims

    def draw(self, rows: Sequence[Row]) -> Any:
        drawn = []
        for crowd, title in (SCALES | CHOICES).items():
            part = select(rows, crowd=crowd)
            names = dict.fromkeys(str(row["method"]) for row in part if "epsilon" in row)
            epsilons = self.cells if crowd in SCALES else self.values
            series = [
                Series(
                    name,
                    [column(select(part, method=name, epsilon=epsilon), "exact_epsilon")[0] for epsilon in epsilons],
                    [mean_column(part, "error", method=name, epsilon=epsilon) for epsilon in epsilons],
                )
                for name in names
            ]
            lines = {name: mean_column(part, "error", method=name) for name in _LINES if select(part, method=name)}
            unit, measure = ("cell", "MAE") if crowd in SCALES else ("value", "error rate")
            drawn.append(Panel(title, f"exact ε per {unit}", measure, series, lines, log_x=True))
        sizes = dict.fromkeys(f"{SHORT[str(row['crowd'])]} {row['size']}" for row in rows)
        return panels(
            drawn,
            caption=f"Workers × questions: {', '.join(sizes)}; {said_trials(rows)}. Equal exact ε "
            "for every mechanism (no claimed ε differs from it here).",
        )


def _comparison(rows: Sequence[Row], crowd: str, ours: str, epsilon: float) -> Claim:
    errors = {
        name: mean_column(rows, "error", method=name, epsilon=epsilon)
        for name in dict.fromkeys(str(row["method"]) for row in rows if row.get("epsilon") == epsilon)
    }
    mine = errors.pop(ours, float("nan"))
    published = {name: value for name, value in errors.items() if "(ours)" not in name}
    best = min(published, key=lambda name: published[name])
    constant = mean_column(rows, "error", method="best constant")
    unit = str(select(rows, epsilon=epsilon)[0]["unit"])
    gap, spread = paired_difference(
        rows, "error", {"method": ours, "epsilon": epsilon}, {"method": best, "epsilon": epsilon}
    )
    verdict = smaller(gap, spread)
    # To beat the others while any constant does better is no merit.
    verdict = "cannot tell" if verdict == "holds" and mine > constant else verdict
    return Claim(
        f"{crowd}, exact ε = {epsilon:g} per {unit}: {ours.removesuffix(' (ours)')} beside the best published",
        f"{best} {published[best]:.3f}",
        f"{mine:.3f}, difference {gap:+.3f} ± {spread:.3f} (best constant {constant:.3f}, no privacy "
        f"{mean_column(rows, 'error', method='no privacy'):.3f})",
        "differs" if verdict == "fails" else verdict,
    )


def _scale_runs(epsilon: float, crowd: str) -> Iterator[tuple[str, Mechanism, Infer]]:
    response = RandomizedResponse(epsilon=epsilon, protect_participation=True)
    yield "LP, Algorithm 1", Laplace(epsilon=epsilon, protect_participation=True, fill="random"), algorithm_1
    yield "RR, Algorithm 1", response, algorithm_1
    yield "2-layer, Algorithm 1", SparseTwoLayer(epsilon=epsilon / 2), algorithm_1
    if crowd == "wsd":
        yield "RR, channel-em, truths anywhere (ours)", response, _channel_em("anywhere")
    yield "RR, channel-em (ours)", response, _channel_em("on-scale" if crowd == "wsd" else "anywhere")


def _channel_em(truths: Truths) -> Infer:
    return lambda reports: np.asarray(ChannelEM(truths=truths).fit(reports).value, dtype=np.float64)


def _choice_runs(answers: Answers, epsilon: float, seed: int) -> Iterator[tuple[str, Reports, float, Method]]:
    mechanism = RandomizedResponse(epsilon=epsilon)
    reports = mechanism.randomize(answers, Keystream(f"{seed}:RR:{epsilon}"))
    exact = mechanism.channel(answers.domain).epsilon
    yield "RR, majority", reports, exact, Majority()
    yield "RR, TD", as_answers(reports), exact, WeightedVote(max_iter=20)
    yield "RR, private Dawid–Skene", reports, exact, PrivateDawidSkene()
    two, loss = two_layer_with(answers, epsilon)
    yield "two layers, TD", as_answers(two.randomize(answers, Keystream(seed))), loss, WeightedVote(max_iter=20)
    yield "RR, one-coin (ours)", reports, exact, OneCoin()
    yield "RR, channel-bp (ours)", reports, exact, ChannelBP()


def two_layer_with(answers: Answers, epsilon: float) -> tuple[TwoLayer, float]:
    """Flips from U(a, ½), a the smallest multiple of 1/512 that keeps ε for the median number of answers."""
    typical, half = median_answers(answers), Fraction(1, 2)
    low, high = 0, 255
    while low < high:
        middle = (low + high) // 2
        fits = value_epsilon(typical, 2, Fraction(middle, 512), half) <= epsilon
        low, high = (low, middle) if fits else (middle + 1, high)
    exact = value_epsilon(typical, 2, Fraction(low, 512), half)
    return TwoLayer(low=low / 512, high=0.5), exact
