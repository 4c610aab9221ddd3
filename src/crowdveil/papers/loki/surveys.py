"""Many surveys in a row: error, and how privacy is used up, for each α (Kandappu et al. 2015, Figure 4.2 b)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

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
from crowdveil.papers.loki.errors import quadratic
from crowdveil.papers.loki.films import DATASET, FilmCrowd, Films, Reading, level_epsilons
from crowdveil.papers.loki.levels import PAPER, PAYS
from crowdveil.papers.loki.selection import READING
from crowdveil.plot import Panel, Series, panels
from crowdveil.selection import Greedy


@dataclass(frozen=True, kw_only=True)
class Figure2b(Reproduction):
    """Many surveys in a row, with a lifetime ε for each worker."""

    id = "loki-fig2b"
    title = "error and privacy depletion over successive surveys"
    paper = PAPER
    needs_data = (DATASET,)
    interpretation = (
        f"{READING} The surveys are all films of 2005 in random order, the budget is C = 2 each, and a worker may "
        "spend ε = 20 in all (basic composition); the paper prints neither. The same workers must be there in every "
        "survey, so the default crowd is the 100 who rated most of these films, with likely ratings where they gave "
        "none; the other reading makes no rating up: films of 2005 to 2009 with 20 ratings, and only who rated a film "
        "can be asked about it. The greedy policy stops at no gain. Depletion is the share of the lifetime ε that "
        "protected workers have used up."
    )
    alphas: tuple[float, ...] = (0.0, 0.25, 0.5, 0.9)
    reading: Reading = field(default_factory=lambda: Reading(filled=True, n_workers=100, least_new=1))
    other: Reading = field(default_factory=lambda: Reading(name="only who rated a film is asked", last=2009))
    budget: float = 2.0
    lifetime: float = 20.0
    windows: int = 6

    def rows(self, settings: Settings) -> list[Row]:
        films, rows = Films.load(settings), list[Row]()
        printed, true = ([(alpha, free) for alpha in self.alphas if alpha or free] for free in (True, False))
        for trial, seed in enumerate(settings.seeds(2 if settings.quick else None)):
            for reading, runs in ((self.reading, [*printed, *true]), (self.other, printed)):
                settings.progress(f"{self.id}: {reading.name}, trial {trial + 1}")
                rows += add_columns(self.trial(films, reading, seed, runs), trial=float(trial))
        return rows

    def trial(self, films: Films, reading: Reading, seed: int, runs: Sequence[tuple[float, bool]]) -> list[Row]:
        """One crowd through all surveys, for each α and whether level none is free of privacy cost."""
        crowd = reading.crowd(films, np.random.default_rng(seed))
        rows = [row for alpha, free in runs for row in self._run(crowd, alpha, free, seed)]
        return add_columns(rows, reading=reading.name, real=crowd.real)

    def _run(self, crowd: FilmCrowd, alpha: float, free: bool, seed: int) -> list[Row]:
        rng, policy = np.random.default_rng(seed), Greedy(fairness=alpha)
        remaining, level_epsilon = np.full(len(crowd.level), self.lifetime), np.array(level_epsilons())[crowd.level]
        protected, n_films = crowd.level > 0, crowd.ratings.shape[1]
        rows: list[Row] = []
        for film in range(n_films):
            reports, ratings, who = crowd.reports(film, rng), crowd.ratings[:, film], crowd.population(film)
            candidates = crowd.candidates(who, remaining, none_is_free=free)
            asked = crowd.places(policy.select(crowd.history, candidates, self.budget))
            if not len(asked):
                continue  # Nobody can pay for this one.
            charged = asked[protected[asked]]
            remaining[charged] -= level_epsilon[charged]
            used = 1 - remaining[protected] / self.lifetime
            theta, sample = float(ratings[who].mean()), rng.permutation(who)[: max(int(self.budget / PAYS[0]), 1)]
            row: Row = {"alpha": alpha, "none_is_free": str(free), "survey": film + 1}
            row |= {"window": film * self.windows // n_films, "asked": len(asked), "theta": theta}
            row |= {"squared": float((reports[asked].mean() - theta) ** 2), "charged": len(charged)}
            row |= {"no_privacy": float((ratings[sample].mean() - theta) ** 2)}
            row |= {"used": float(used.mean()), "spread": float(used.std())}
            rows.append(row | {"exhausted": float((remaining[protected] < level_epsilon[protected]).mean())})
        return rows

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        default, other = (select(rows, reading=each.name) for each in (self.reading, self.other))
        beside = f" ({self.other.name})"
        return [*self._over_time(default), *self._depletion(default), *self._over_time(other, beside)]

    def _over_time(self, rows: Sequence[Row], beside: str = "") -> list[Claim]:
        low, high = self.alphas[0], self.alphas[-1]
        ends = {a: [self._error(rows, a, window) for window in (0.0, self.windows - 1.0)] for a in (low, high)}
        change = {a: abs(last - first) for a, (first, last) in ends.items()}
        exhausted = {alpha: self._end(rows, alpha, "exhausted") for alpha in self.alphas}
        return [
            Claim(
                f"with low α the error starts low and rises over the surveys{beside}",
                "rises rapidly",
                f"RMSE, α = {low:g}: first sixth {ends[low][0]:.3f}, last {ends[low][1]:.3f}",
                "holds" if ends[low][1] > 1.1 * ends[low][0] else "differs",
            ),
            Claim(
                f"with high α the quality is more constant{beside}",
                "more consistent",
                f"RMSE, α = {high:g}: first sixth {ends[high][0]:.3f}, last {ends[high][1]:.3f}",
                "holds" if change[high] < change[low] else "differs",
            ),
            Claim(
                f"higher α depletes privacy more fairly: protected workers who cannot pay any more at the end{beside}",
                "fairer",
                ", ".join(f"α = {alpha:g}: {value:.1%}" for alpha, value in exhausted.items()),
                "holds" if exhausted[high] < exhausted[low] else "differs",
            ),
        ]

    def _depletion(self, rows: Sequence[Row]) -> list[Claim]:
        true = {alpha: self._end(rows, alpha, "exhausted", "False") for alpha in self.alphas[1:]}
        return [
            Claim(
                "how much privacy that takes: mean share of the lifetime ε used at the end",
                "–",
                ", ".join(f"α = {alpha:g}: {self._end(rows, alpha, 'used'):.1%}" for alpha in self.alphas),
                "cannot tell",
            ),
            Claim(
                "the same when level none has its true cost, so that it is left out for α > 0",
                "–",
                ", ".join(
                    f"α = {alpha:g}: exhausted {value:.1%}, RMSE {self._all(rows, alpha, 'False'):.3f} (none free: "
                    f"{self._all(rows, alpha):.3f})"
                    for alpha, value in true.items()
                ),
                "cannot tell",
            ),
        ]

    def _error(self, rows: Sequence[Row], alpha: float, window: float, free: str = "True") -> float:
        return quadratic(select(rows, alpha=alpha, window=window, none_is_free=free), "squared", root=True)

    def _all(self, rows: Sequence[Row], alpha: float, free: str = "True") -> float:
        return quadratic(select(rows, alpha=alpha, none_is_free=free), "squared", root=True)

    def _end(self, rows: Sequence[Row], alpha: float, key: str, free: str = "True") -> float:
        part = select(rows, alpha=alpha, none_is_free=free)
        last = max(column(part, "survey"))
        return mean_column([row for row in part if float(row["survey"]) >= last - 2], key)

    def draw(self, rows: Sequence[Row]) -> Any:
        rows = select(rows, reading=self.reading.name, none_is_free="True")
        windows = [float(window) for window in range(self.windows)]
        theta = np.array(column(rows, "theta"))
        lines = {
            "best constant": float(theta.std()),
            "mid-level": float(np.sqrt(np.mean((theta - 2.75) ** 2))),
            "no privacy": quadratic(rows, "no_privacy", root=True),
        }
        drawn = []
        for key, ylabel in (
            ("squared", "RMSE of the mean rating"),
            ("exhausted", "share who cannot pay any more"),
            ("used", "share of lifetime ε used"),
        ):
            series = [
                Series(
                    f"α = {alpha:g}",
                    [window + 1 for window in windows],
                    [
                        quadratic(part, key, root=True) if key == "squared" else mean_column(part, key)
                        for part in (select(rows, alpha=alpha, window=window) for window in windows)
                    ],
                )
                for alpha in self.alphas
            ]
            panel = Panel(
                ylabel, f"surveys, in {self.windows} parts", ylabel, series, lines if key == "squared" else {}
            )
            drawn.append(panel)
        return panels(
            drawn,
            caption=f"{int(max(column(rows, 'survey')))} surveys (films of 2005), {said_trials(rows)}, "
            f"{self.reading.n_workers} workers, {mean_column(rows, 'real'):.0%} of the ratings real; budget C = "
            f"{self.budget:g} each, lifetime ε = {self.lifetime:g} per worker (exact ε per value at δ = .01, summed); "
            "level none at no privacy cost, as printed.",
        )
