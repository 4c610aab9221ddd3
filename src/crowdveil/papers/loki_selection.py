"""Who is asked: error against money, and over successive surveys (Kandappu et al. 2015, Figure 4.2 a and b)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.papers.loki import PAPER, PAYS
from crowdveil.papers.loki_films import DATASET, Crowd, Films, level_epsilons
from crowdveil.papers.reproduction import Claim, Reproduction, Row, Settings, column, labelled, mean_of, select
from crowdveil.plot import Panel, Series, panels
from crowdveil.selection import BestPredictors, Cheapest, Greedy, RandomWorkers, Selector

Floats = NDArray[np.float64]
STOP, SPEND = "greedy, stops at no gain", "greedy, spends all (printed)"
_READING = (
    "MovieLens (small) stands in for Netflix: films of 2004 are the history and later films are the surveys, each with "
    "at least 20 ratings. The crowd is the 100 workers who rated most of them, and all can be asked about every film: "
    "who did not rate it gets a likely rating (film mean plus own mean deviation plus an error as large as the "
    "residuals, in half stars); θ is the mean over all. Levels are drawn with the paper's shares; noise and pay as "
    "printed. ε is exact, per value at δ = .01 on the scale .5..5; δ adds up over surveys and is not shown. Where α > "
    "0 level none costs no privacy, as printed; with its true cost, which is infinite, it is left out: shown beside it."
)


@dataclass(frozen=True, kw_only=True)
class Figure2a(Reproduction):
    """One survey at a time. `least` is the number of ratings a film needs to be used."""

    id = "loki-fig2a"
    title = "selection policies: error against cost"
    paper = PAPER
    needs_data = (DATASET,)
    interpretation = _READING
    budgets: tuple[float, ...] = (1.0, 2.0, 5.0, 10.0, 20.0, 40.0)
    least: int = 20
    n_workers: int = 100
    lifetime: float = 20.0

    def policies(self, seed: int) -> dict[str, tuple[Selector, bool]]:
        """Each with whether level none is free of privacy cost."""
        return {
            STOP: (Greedy(), True),
            SPEND: (Greedy(paper_mode=True), True),
            "greedy, α = .5": (Greedy(fairness=0.5, paper_mode=True), True),
            "greedy, α = 1": (Greedy(fairness=1.0, paper_mode=True), True),
            "greedy, α = .5, none left out": (Greedy(fairness=0.5), False),
            "best predictors": (BestPredictors(), True),
            "random": (RandomWorkers(seed=seed), True),
            "cheapest": (Cheapest(), True),
        }

    def rows(self, settings: Settings) -> list[Row]:
        films = Films.load(settings)
        past, new = (films.released(year, year, self.least) for year in (2004, 2005))
        films = films.most_active(np.concatenate([past, new]), self.n_workers)
        rows: list[Row] = []
        # The chosen group changes with the trial alone, so few trials tell little however many the films.
        for trial, seed in enumerate(settings.seeds(max(settings.trials, 12))):
            rng = np.random.default_rng(seed)
            crowd = Crowd.draw(films, past, new, rng)
            settings.progress(f"{self.id}: trial {trial + 1}")
            for film in range(2 if settings.quick else len(new)):
                rows += self._survey(crowd, film, rng, float(trial))
        return rows

    def _survey(self, crowd: Crowd, film: int, rng: np.random.Generator, trial: float) -> list[Row]:
        reports, ratings = crowd.reports(film, rng), crowd.ratings[:, film]
        theta, remaining = float(ratings.mean()), np.full(len(crowd.level), self.lifetime)
        rows: list[Row] = []
        for budget in self.budgets:
            for name, (policy, free) in self.policies(film).items():
                selection = policy.select(crowd.history, crowd.candidates(remaining, none_is_free=free), budget)
                places = crowd.places(selection)
                row: Row = {"policy": name, "budget": budget, "squared": float((reports[places].mean() - theta) ** 2)}
                shared: Row = {"printed": selection.printed_rmse, "corrected": selection.expected_rmse}
                rows.append(row | shared | {"asked": len(places) / len(ratings), "cost": selection.cost})
            # Without privacy everybody earns the pay of level none.
            sample = rng.permutation(len(ratings))[: max(int(budget / PAYS[0]), 1)]
            plain = float((ratings[sample].mean() - theta) ** 2)
            rows.append({"policy": "no privacy", "budget": budget, "squared": plain})
        rows += [{"policy": "mid-level", "squared": (2.75 - theta) ** 2}, {"policy": "theta", "theta": theta}]
        return labelled(rows, film=film, trial=trial)

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        top, low = self.budgets[-1], self.budgets[0]
        stop, spend = rmse(rows, STOP, top), rmse(rows, SPEND, top)
        alphas = {name: rmse(rows, name, 5.0) for name in (SPEND, "greedy, α = .5", "greedy, α = 1")}
        part = select(rows, policy=SPEND, budget=5.0)
        random, best = rmse(rows, "random", 5.0), rmse(rows, "best predictors", 20.0)
        others = {name: rmse(rows, name, 5.0) for name in (STOP, SPEND, "best predictors", "cheapest")}
        asked = mean_of(rows, "asked", policy="best predictors", budget=20.0)
        return [
            Claim(
                f"spending the whole budget helps (C = {top:g}; not discussed in the paper)",
                "spend until C is reached",
                f"RMSE spending all {spend:.3f}, stopping at no gain {stop:.3f} (spending all at C = {low:g}: "
                f"{rmse(rows, SPEND, low):.3f})",
                "holds" if spend < stop else "fails",
            ),
            Claim(
                "random selection has the lowest accuracy (C = 5)",
                "lowest accuracy",
                f"random {random:.3f}; " + ", ".join(f"{name} {value:.3f}" for name, value in others.items()),
                "holds" if random > max(others.values()) else "fails",
            ),
            Claim(
                "best predictors give near-perfect estimates, asking 37 % of the crowd",
                "near-perfect",
                f"RMSE {best:.3f} asking {asked:.0%} at C = 20; always the best constant {constant(rows):.3f}",
                "holds" if best < 0.1 else "fails",
            ),
            Claim(
                "α = 0 is as accurate as best predictors, and the error grows with α (C = 5)",
                "identical; grows",
                f"best predictors {others['best predictors']:.3f}; "
                + ", ".join(f"{name} {value:.3f}" for name, value in alphas.items()),
                "holds" if list(alphas.values()) == sorted(alphas.values()) else "differs",
            ),
            Claim(
                "the estimated error (4.12) closely reflects the true error (greedy, spends all, C = 5)",
                "close",
                f"true {rmse(rows, SPEND, 5.0):.3f}, (4.12) as printed {quadratic(part, 'printed'):.3f}, with the "
                f"covariance it drops {quadratic(part, 'corrected'):.3f}",
                "holds" if abs(quadratic(part, "printed") / rmse(rows, SPEND, 5.0) - 1) < 0.2 else "fails",
            ),
        ]

    def draw(self, rows: Sequence[Row]) -> Any:
        names = list(dict.fromkeys(str(row["policy"]) for row in rows if "budget" in row))
        series = [Series(name, self.budgets, [rmse(rows, name, budget) for budget in self.budgets]) for name in names]
        lines = {
            "best constant": constant(rows),
            "mid-level": quadratic(select(rows, policy="mid-level"), "squared", root=True),
        }
        panel = Panel("true error", "budget C", "RMSE of the mean rating", series, lines, log_x=True)
        estimated = [
            Series(
                said,
                self.budgets,
                [quadratic(select(rows, policy=SPEND, budget=b), key, root=key == "squared") for b in self.budgets],
            )
            for said, key in (
                ("true error, spends all", "squared"),
                ("(4.12) as printed", "printed"),
                ("with the covariance", "corrected"),
            )
        ]
        films = len({row["film"] for row in rows})
        ε = ", ".join(f"{value:.2f}" for value in level_epsilons()[1:])
        return panels(
            [panel, Panel("estimated error", "budget C", "RMSE", estimated, log_x=True)],
            caption=f"{films} films of 2005, {len({row['trial'] for row in rows})} trials. Exact ε per value, δ = .01, "
            f"of low, medium, high: {ε} (printed 3.42, .85, .21); none ∞.",
        )


@dataclass(frozen=True, kw_only=True)
class Figure2b(Reproduction):
    """Many surveys in a row, with a lifetime ε for each worker."""

    id = "loki-fig2b"
    title = "error and privacy depletion over successive surveys"
    paper = PAPER
    needs_data = (DATASET,)
    interpretation = (
        f"{_READING} Surveys are the films from 2005 to 2009 in random order, the budget is C = 2 each, and a worker "
        "may spend ε = 20 in all (basic composition). The greedy policy stops at no gain. Depletion is the share of "
        "that ε which protected workers have used up."
    )
    alphas: tuple[float, ...] = (0.0, 0.25, 0.5, 0.9)
    last: int = 2009
    least: int = 20
    n_workers: int = 100
    budget: float = 2.0
    lifetime: float = 20.0
    windows: int = 6

    def rows(self, settings: Settings) -> list[Row]:
        films = Films.load(settings)
        past, new = films.released(2004, 2004, self.least), films.released(2005, self.last, self.least)
        films = films.most_active(np.concatenate([past, new]), self.n_workers)
        rows: list[Row] = []
        for trial, seed in enumerate(settings.seeds(1 if settings.quick else None)):
            rng = np.random.default_rng(seed)
            crowd = Crowd.draw(films, past, rng.permutation(new), rng)
            for alpha in self.alphas:
                for free in (True, False) if alpha else (True,):
                    settings.progress(f"{self.id}: trial {trial + 1}, α = {alpha:g}")
                    rows += labelled(self._run(crowd, alpha, free, seed), trial=float(trial))
        return rows

    def _run(self, crowd: Crowd, alpha: float, free: bool, seed: int) -> list[Row]:
        rng, policy = np.random.default_rng(seed), Greedy(fairness=alpha)
        remaining, own = np.full(len(crowd.level), self.lifetime), np.array(level_epsilons())[crowd.level]
        protected, n_films = crowd.level > 0, crowd.ratings.shape[1]
        rows: list[Row] = []
        for film in range(n_films):
            reports, ratings = crowd.reports(film, rng), crowd.ratings[:, film]
            selection = policy.select(crowd.history, crowd.candidates(remaining, none_is_free=free), self.budget)
            asked = crowd.places(selection)
            if not len(asked):
                break
            charged = asked[protected[asked]]
            remaining[charged] -= own[charged]
            used = 1 - remaining[protected] / self.lifetime
            row: Row = {"alpha": alpha, "none_is_free": str(free), "survey": film + 1}
            row |= {"window": film * self.windows // n_films, "asked": len(asked)}
            row |= {"squared": float((reports[asked].mean() - ratings.mean()) ** 2), "charged": len(charged)}
            row |= {"used": float(used.mean()), "spread": float(used.std())}
            rows.append(row | {"exhausted": float((remaining[protected] < own[protected]).mean())})
        return rows

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        first, last = 0.0, float(self.windows - 1)
        ends = {alpha: (self._error(rows, alpha, first), self._error(rows, alpha, last)) for alpha in self.alphas}
        most, least = self.alphas[-1], self.alphas[0]
        spread = {alpha: self._end(rows, alpha, "exhausted") for alpha in self.alphas}
        true = {alpha: self._end(rows, alpha, "exhausted", "False") for alpha in self.alphas[1:]}
        return [
            Claim(
                "with low α the error starts low and rises over the surveys",
                "rises rapidly",
                f"α = {least:g}: first {ends[least][0]:.3f}, last sixth {ends[least][1]:.3f}",
                "holds" if ends[least][1] > 1.1 * ends[least][0] else "differs",
            ),
            Claim(
                "with high α the quality is more constant",
                "more consistent",
                f"α = {most:g}: first {ends[most][0]:.3f}, last {ends[most][1]:.3f}",
                "holds" if abs(np.diff(ends[most])[0]) < abs(np.diff(ends[least])[0]) else "differs",
            ),
            Claim(
                "higher α depletes privacy more fairly: protected workers who cannot pay any more at the end",
                "fairer",
                ", ".join(f"α = {alpha:g}: {value:.1%}" for alpha, value in spread.items()),
                "holds" if spread[most] < spread[least] else "differs",
            ),
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
        return mean_of([row for row in part if float(row["survey"]) >= last - 2], key)

    def draw(self, rows: Sequence[Row]) -> Any:
        windows = [float(window) for window in range(self.windows)]
        drawn = []
        for key, ylabel, root in (
            ("squared", "RMSE", True),
            ("exhausted", "share who cannot pay any more", False),
            ("used", "share of lifetime ε used", False),
        ):
            series = [
                Series(
                    f"α = {alpha:g}",
                    [w + 1 for w in windows],
                    [
                        quadratic(part, key, root=True) if root else mean_of(part, key)
                        for part in (select(rows, alpha=alpha, window=w, none_is_free="True") for w in windows)
                    ],
                )
                for alpha in self.alphas
            ]
            drawn.append(Panel(ylabel, f"surveys, in {self.windows} parts", ylabel, series))
        surveys = int(max(column(rows, "survey")))
        return panels(
            drawn,
            caption=f"{surveys} surveys, budget C = {self.budget:g} each, lifetime ε = {self.lifetime:g} per "
            "worker (exact ε per value at δ = .01, summed); level none at no privacy cost, as printed.",
        )


def rmse(rows: Sequence[Row], policy: str, budget: float) -> float:
    return quadratic(select(rows, policy=policy, budget=budget), "squared", root=True)


def quadratic(rows: Sequence[Row], key: str, *, root: bool = False) -> float:
    """The quadratic mean of errors; with `root` the column already holds squares."""
    values = np.array(column(rows, key))
    return float(np.sqrt(np.mean(values if root else values**2))) if len(values) else float("nan")


def constant(rows: Sequence[Row]) -> float:
    """The error of saying the same best value of every film."""
    thetas = np.array(column(select(rows, policy="theta"), "theta"))
    return float(np.sqrt(np.mean((thetas - thetas.mean()) ** 2)))
