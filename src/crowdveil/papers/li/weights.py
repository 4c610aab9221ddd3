"""The density of Δ and the estimated weights (Li et al. 2018, Figures 1 and 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers import Answers
from crowdveil.bounds.li import error_bound, error_change_density, one_layer_error_change
from crowdveil.entropy import Keystream
from crowdveil.inference import WeightedVote
from crowdveil.mechanisms import TwoLayer
from crowdveil.papers.core.reproduction import Claim, Reproduction, Row, Settings, column, labelled, select
from crowdveil.papers.li.trial import PAPER, READING, SPOKEN, as_answers, duchenne, peer_grading
from crowdveil.plot import Panel, Series, panels
from crowdveil.reports import Reports

Floats = NDArray[np.float64]
_SETTINGS = ((0.5, 2), (0.8, 2), (1.0, 2), (1.0, 3), (1.0, 4))


@dataclass(frozen=True, kw_only=True)
class Figure1(Reproduction):
    """The density of Δ, the formula beside draws."""

    id = "li-fig1"
    title = "density of the error-rate change Δ"
    paper = PAPER
    interpretation = (
        "Δ is the product of n flips, each from U(0, b), the term that the paper says dominates; beside it stands the "
        "error of a vote of five users who are right with probability .9, exactly and by (6)."
    )

    def rows(self, settings: Settings) -> list[Row]:
        n_draws = 100_000 if settings.quick else 1_000_000
        rng = settings.generator()
        rows: list[Row] = []
        for high, n in _SETTINGS:
            draws = np.prod(rng.uniform(0, high, (n_draws, n)), axis=1)
            edges = np.linspace(0, high**n, 26)
            counts, _ = np.histogram(draws, edges)
            middles = (edges[1:] + edges[:-1]) / 2
            density = _mean_density(edges, high, n)
            for place, formula, count in zip(middles, density, counts, strict=True):
                row: Row = {"kind": "density", "high": high, "n": n, "change": float(place), "formula": float(formula)}
                rows.append(row | {"drawn": float(count / n_draws / (edges[1] - edges[0]))})
            # Both sides at the same mean flip: p = b/2 in one layer.
            one = one_layer_error_change(high / 2, n).value
            small: Row = {"kind": "small", "high": high, "n": n, "one_layer": one, "mean": float(draws.mean())}
            rows.append(small | {"below": float((draws < 0.05).mean()), "below_one": float((draws < one).mean())})
        rows.append({"kind": "bound", "exact": _vote_error(), "formula": error_bound([0.9] * 5).value})
        return rows

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        small = {(float(row["high"]), int(float(row["n"]))): row for row in select(rows, kind="small")}
        bound = select(rows, kind="bound")[0]
        wide, narrow, many = (float(small[key]["below"]) for key in ((1.0, 2), (0.5, 2), (1.0, 4)))
        part = small[(1.0, 2)]
        return [
            Claim(
                "a small Δ is more likely when b is smaller",
                "yes",
                f"P(Δ < .05): b = .5 {narrow:.2f}, b = 1 {wide:.2f}",
                "holds" if narrow > wide else "fails",
            ),
            Claim(
                "a small Δ is more likely with more important users",
                "yes",
                f"P(Δ < .05), b = 1: n = 2 {wide:.2f}, n = 4 {many:.2f}",
                "holds" if many > wide else "fails",
            ),
            Claim(
                "Δ is usually smaller than with one layer of the same mean flip",
                "high probability",
                f"in {float(part['below_one']):.0%} of draws (b = 1, n = 2); its mean is {float(part['mean']):.3f}, "
                f"that of one layer {float(part['one_layer']):.3f}",
                "holds" if float(part["below_one"]) > 0.5 else "fails",
            ),
            Claim(
                "(6) bounds the error of weighted voting (five users, each right with probability .9)",
                f"at most {float(bound['formula']):.4f}",
                f"exact error {float(bound['exact']):.4f}",
                "holds" if float(bound["exact"]) <= float(bound["formula"]) else "fails",
            ),
        ]

    def draw(self, rows: Sequence[Row]) -> Any:
        def panel(title: str, chosen: Sequence[tuple[float, int]]) -> Panel:
            series = []
            for high, n in chosen:
                part = select(rows, kind="density", high=high, n=float(n))
                x = column(part, "change")
                series.append(Series(f"b = {high:g}, n = {n}", x, column(part, "formula")))
                drawn = Series(
                    f"b = {high:g}, n = {n}, drawn", x, column(part, "drawn"), kind="points", like=series[-1].name
                )
                series.append(drawn)
            return Panel(title, "Δ", "density", series, log_y=True)

        return panels(
            [panel("n = 2, other b", _SETTINGS[:3]), panel("b = 1, other n", _SETTINGS[2:])],
            caption="Density of Δ in 25 bins. Lines: by the formula, on average over the bin; hollow: products of n "
            "uniform flips on [0, b], drawn.",
        )


def _mean_density(edges: Floats, high: float, n: int, steps: int = 400) -> Floats:
    """The formula as draws are counted, on average over each bin: near 0 it rises too fast for the middle to do."""
    width = (edges[1] - edges[0]) / steps
    places = edges[:-1, None] + width * (np.arange(steps) + 0.5)
    means: Floats = error_change_density(places.ravel(), high, n).reshape(places.shape).mean(axis=1)
    return means


def _vote_error() -> float:
    """P(at most two of five are right)."""
    return float(sum(count * 0.9**k * 0.1 ** (5 - k) for k, count in enumerate((1, 5, 10))))


@dataclass(frozen=True, kw_only=True)
class Figure2(Reproduction):
    """Weights before and after, beside the flips that each worker drew."""

    id = "li-fig2"
    title = "estimated weights before and after perturbation"
    paper = PAPER
    needs_data = ("duchenne",)
    interpretation = (
        "claimed ε = 1, two layers; eight workers are drawn at random to be shown. §7.2 speaks of users without "
        "restriction, so the correlation is over all workers; over the half with most weight, who alone have much to "
        f"lose, it is shown beside. {READING}"
    )
    epsilon: float = 1.0
    least_trials: int = 20

    def rows(self, settings: Settings) -> list[Row]:
        whole, rows = duchenne(settings), list[Row]()
        for crowd in SPOKEN:
            for trial, seed in enumerate(settings.seeds(max(settings.trials, self.least_trials))):
                answers = (peer_grading(seed) if crowd == "peer" else whole).answers
                shown = settings.generator().permutation(len(answers.workers))[: 0 if trial else 8].tolist()
                rows += labelled(self._weights(answers, seed, set(shown)), crowd=crowd, trial=trial)
        return rows

    def _weights(self, answers: Answers, seed: int, shown: set[int]) -> list[Row]:
        before = WeightedVote(max_iter=20).fit(Reports.unprotected(answers)).parameters["weight"]
        reports = TwoLayer(epsilon=self.epsilon).randomize(answers, Keystream(seed))
        after = WeightedVote(max_iter=20).fit(as_answers(reports)).parameters["weight"]
        n_workers = len(answers.workers)
        given = np.maximum(np.bincount(answers.worker, minlength=n_workers), 1)
        flips = np.bincount(answers.worker, reports.report != answers.answer, minlength=n_workers) / given
        columns = zip(before.tolist(), after.tolist(), flips.tolist(), strict=True)
        return [
            {"before": b, "after": a, "flipped": f, "shown": str(worker in shown)}
            for worker, (b, a, f) in enumerate(columns)
        ]

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        return [
            self._absorbed(select(rows, crowd=crowd), name, share)
            for crowd, name in SPOKEN.items()
            for share in (1.0, 0.5)
        ]

    def _absorbed(self, rows: Sequence[Row], name: str, share: float) -> Claim:
        trials = sorted(set(column(rows, "trial")))
        each = [_related(select(rows, trial=trial), share) for trial in trials]
        over = "all workers" if share == 1 else "the half of the workers with most weight"
        related, spread = float(np.mean(each)), float(np.std(each, ddof=1) / np.sqrt(len(each)))
        return Claim(
            f"{name}: a worker who flips more loses weight ({over})",
            "weights absorb the noise",
            f"correlation of flips with lost weight {related:.2f} ± {spread:.2f}, the mean of {len(trials)} trials and "
            "its standard error",
            "holds" if related > 2 * spread else "differs",
        )

    def draw(self, rows: Sequence[Row]) -> Any:
        drawn = []
        for crowd, name in SPOKEN.items():
            part = select(rows, crowd=crowd, shown="True")
            places = [float(place) for place in range(len(part))]
            series = [
                Series("weight, no privacy", places, column(part, "before"), kind="bars"),
                Series("weight after two layers", places, column(part, "after"), kind="bars"),
                Series("share flipped", places, column(part, "flipped"), kind="points"),
            ]
            said = "log-odds weight; share flipped"
            drawn.append(Panel(name, "worker", said, series, categories=[str(i + 1) for i in range(len(part))]))
        sizes = " and ".join(str(len(select(rows, crowd=crowd, trial=0.0))) for crowd in SPOKEN)
        return panels(
            drawn,
            caption=f"Eight workers drawn at random of {sizes}; truth discovery on two layers at claimed ε = "
            f"{self.epsilon:g} per value (the exact ε is in li-fig3).",
        )


def _related(rows: Sequence[Row], share: float) -> float:
    """Correlation of flips with lost weight among the share of workers with most weight."""
    least = float(np.quantile(column(rows, "before"), 1 - share))
    part = [row for row in rows if float(row["before"]) >= least]
    lost = np.array(column(part, "before")) - np.array(column(part, "after"))
    return float(np.corrcoef(lost, column(part, "flipped"))[0, 1])
