"""Who is asked in one survey: error against money (Kandappu et al. 2015, Figure 4.2 a), and whether to stop early."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
from crowdveil.papers.loki.errors import constant, expected_square, quadratic, rmse
from crowdveil.papers.loki.films import DATASET, SCALE, FilmCrowd, Films, Reading, level_epsilons
from crowdveil.papers.loki.levels import GAMMAS, PAPER, PAYS
from crowdveil.plot import Panel, Series, panels
from crowdveil.selection import BestPredictors, Cheapest, Greedy, RandomWorkers, Selector

Floats = NDArray[np.float64]
STOP, SPEND, WEIGHTED = "greedy, stops at no gain", "greedy, spends all (printed)", "spends all, weighted (ours)"
RANDOM = "random"
_DRAWN = (STOP, SPEND, "greedy, α = .5", "greedy, α = 1", "best predictors", RANDOM, WEIGHTED, "no privacy")
_OPINIONS = (SCALE.range / 4) ** 2
"""The variance of opinions that weights assume: nobody has to measure it, and noise is far larger."""
OTHERS = (
    Reading(name="the same, history of films with 20 ratings", least_past=20),
    Reading(name="100 workers, ratings filled in", filled=True, n_workers=100),
    Reading(name="100 workers filled in, history of films with 20 ratings", filled=True, n_workers=100, least_past=20),
    Reading(name="50 workers, ratings filled in", filled=True, n_workers=50),
)
READING = (
    "MovieLens (small) stands in for Netflix: all films of 2004 are the history and the films of 2005 with at least 20 "
    "ratings are the surveys. Levels are drawn with the paper's shares; noise and pay as printed; the estimate is the "
    "plain mean (4.4) of the reports. ε is exact, per value at δ = .01 on the scale .5..5; δ adds up over surveys and "
    "is not shown. Where α > 0 level none costs no privacy, as printed; with its true cost, which is infinite, it is "
    "left out: shown beside it."
)


@dataclass(frozen=True, kw_only=True)
class Figure2a(Reproduction):
    """One survey at a time, at each budget; the last one pays for everybody."""

    id = "loki-fig2a"
    title = "selection policies: error against cost"
    paper = PAPER
    needs_data = (DATASET,)
    interpretation = (
        f"{READING} The paper names neither the crowd nor the budgets. Default: only who rated a film can be asked "
        "about it, θ is their mean rating, and the history is what they rated in 2004; no rating is made up. The error "
        "is E(RMSE), exact over the noise of the new reports. The largest budget pays for all of them. Other readings "
        "are shown where stopping is compared with spending: the workers who rated most can all be asked about every "
        "film, and get a likely rating where they gave none (film mean plus own mean deviation plus an error as large "
        "as the residuals, in half stars); the history has only films with 20 ratings. A verdict on stopping needs two "
        "standard errors of the paired difference over trials."
    )
    budgets: tuple[float, ...] = (1.0, 2.0, 5.0, 10.0, 20.0, 40.0)
    reading: Reading = field(default_factory=Reading)
    others: tuple[Reading, ...] = OTHERS
    lifetime: float = 20.0
    least_trials: int = 20

    def policies(self, seed: int) -> dict[str, tuple[Selector, bool]]:
        """Each with whether level none is free of privacy cost."""
        return {
            STOP: (Greedy(), True),
            SPEND: (Greedy(paper_mode=True), True),
            "greedy, α = .5": (Greedy(fairness=0.5, paper_mode=True), True),
            "greedy, α = 1": (Greedy(fairness=1.0, paper_mode=True), True),
            "greedy, α = .5, none left out": (Greedy(fairness=0.5), False),
            "best predictors": (BestPredictors(), True),
            RANDOM: (RandomWorkers(seed=seed), True),
            "cheapest": (Cheapest(), True),
        }

    def rows(self, settings: Settings) -> list[Row]:
        films = Films.load(settings)
        rows = self.measure(films, settings, self.reading, self.budgets, list(self.policies(0)))
        for reading in self.others:
            rows += self.measure(films, settings, reading, self.budgets[-1:], [STOP, SPEND])
        return rows

    def measure(
        self, films: Films, settings: Settings, reading: Reading, budgets: Sequence[float], names: Sequence[str]
    ) -> list[Row]:
        """The same surveys under each of these policies. The levels change with the trial alone, so trials are many."""
        rows: list[Row] = []
        for trial, seed in enumerate(settings.seeds(max(settings.trials, self.least_trials))):
            settings.progress(f"{self.id}: {reading.name}, trial {trial + 1}")
            rng = np.random.default_rng(seed)
            crowd = reading.crowd(films, rng)
            cache: dict[tuple[Any, ...], Chosen] = {}
            for film in range(min(8 if settings.quick else 32, crowd.ratings.shape[1])):
                survey = self._survey(crowd, film, rng, budgets, names, cache)
                rows += add_columns(survey, reading=reading.name, film=film, trial=float(trial), real=crowd.real)
        return rows

    def _survey(
        self,
        crowd: FilmCrowd,
        film: int,
        rng: np.random.Generator,
        budgets: Sequence[float],
        names: Sequence[str],
        kept: dict[tuple[Any, ...], Chosen],
    ) -> list[Row]:
        ratings, who = crowd.ratings[:, film], crowd.population(film)
        theta, rows = float(ratings[who].mean()), list[Row]()
        for budget in budgets:
            for name in names:
                # Where everybody can be asked about every film, a policy always chooses the same people.
                key = (name, budget, who.tobytes(), film if name == RANDOM else -1)
                kept[key] = chosen = kept.get(key) or self._choose(crowd, who, name, budget, film)
                rows += _score_selection(crowd, chosen, ratings, name, budget, theta)
            # Without privacy everybody earns the pay of level none.
            sample = rng.permutation(who)[: max(int(budget / PAYS[0]), 1)]
            plain = float((ratings[sample].mean() - theta) ** 2)
            rows.append({"policy": "no privacy", "budget": budget, "squared": plain, "asked": len(sample) / len(who)})
        rows += [{"policy": "mid-level", "squared": (2.75 - theta) ** 2}, {"policy": "theta", "theta": theta}]
        return add_columns(rows, population=len(who))

    def _choose(self, crowd: FilmCrowd, who: NDArray[np.int64], name: str, budget: float, film: int) -> Chosen:
        policy, free = self.policies(film)[name]
        candidates = crowd.candidates(who, np.full(len(crowd.level), self.lifetime), none_is_free=free)
        selection = policy.select(crowd.history, candidates, budget)
        places = crowd.places(selection)
        return Chosen(places, len(places) / len(who), selection.cost, selection.printed_rmse, selection.expected_rmse)

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        top, default = self.budgets[-1], select(rows, reading=self.reading.name)
        names = (STOP, SPEND, "best predictors", "cheapest")
        others = {name: rmse(default, name, 5.0) for name in names}
        alphas = {name: rmse(default, name, 5.0) for name in (SPEND, "greedy, α = .5", "greedy, α = 1")}
        random, part = rmse(default, RANDOM, 5.0), select(default, policy=SPEND, budget=5.0)
        share = {b: mean_column(default, "asked", policy="best predictors", budget=b) for b in self.budgets}
        near = min(share, key=lambda budget: abs(share[budget] - 0.37))
        best = rmse(default, "best predictors", near)
        return [
            *(_stopping(select(rows, reading=each.name), each, top) for each in (self.reading, *self.others)),
            Claim(
                f"spending all at C = {top:g} is safe when reports are weighted by their noise (not in the paper)",
                "plain mean (4.4)",
                f"RMSE of everybody's plain mean {rmse(default, SPEND, top):.3f}, weighted "
                f"{rmse(default, WEIGHTED, top):.3f}, stopping at no gain {rmse(default, STOP, top):.3f}",
                "holds" if rmse(default, WEIGHTED, top) <= rmse(default, STOP, top) else "fails",
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
                f"RMSE {best:.3f} asking {share[near]:.0%} at C = {near:g}; always the best constant "
                f"{constant(default):.3f}",
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
                f"true {alphas[SPEND]:.3f}, (4.12) as printed {quadratic(part, 'printed'):.3f}, expected without "
                f"chance {quadratic(part, 'corrected'):.3f}",
                "holds" if abs(quadratic(part, "printed") / alphas[SPEND] - 1) < 0.2 else "fails",
            ),
        ]

    def draw(self, rows: Sequence[Row]) -> Any:
        default, top = select(rows, reading=self.reading.name), self.budgets[-1]
        series = [Series(name, self.budgets, [rmse(default, name, b) for b in self.budgets]) for name in _DRAWN]
        lines = {
            "best constant": constant(default),
            "mid-level": quadratic(select(default, policy="mid-level"), "squared", root=True),
        }
        spent = {b: select(default, policy=SPEND, budget=b) for b in self.budgets}
        estimated = [
            Series(label, self.budgets, [quadratic(spent[b], key, root=key == "squared") for b in self.budgets])
            for label, key in (
                (SPEND, "squared"),
                ("(4.12) as printed", "printed"),
                ("expected without chance", "corrected"),
            )
        ]
        readings = (self.reading, *self.others)
        bars = [
            Series(
                name,
                [float(index) for index in range(len(readings))],
                [rmse(select(rows, reading=reading.name), name, top) for reading in readings],
                kind="bars",
            )
            for name in (STOP, SPEND)
        ]
        parts = [select(rows, reading=reading.name) for reading in readings]
        plain = [rmse(part, "no privacy", top) for part in parts]
        bars.append(Series("no privacy, each reading", bars[0].x, plain, kind="bars"))
        bars.append(Series("best constant, each reading", bars[0].x, [*map(constant, parts)], kind="bars"))
        letters = [chr(ord("A") + index) for index in range(len(readings))]
        named = "; ".join(f"{letter} {_describe_reading(each)}" for letter, each in zip(letters, readings, strict=True))
        return panels(
            [
                Panel("true error", "budget C", "RMSE of the mean rating", series, lines, log_x=True),
                Panel("spends all: true and estimated", "budget C", "RMSE", estimated, lines, log_x=True),
                Panel(f"readings, C = {top:g}", "reading (see below)", "RMSE", bars, categories=letters),
            ],
            caption=f"{_sizes(default)}, unit value. Exact ε at δ = .01 of low, medium, high: "
            f"{', '.join(f'{value:.2f}' for value in level_epsilons()[1:])} (printed 3.42, .85, .21); none ∞. "
            f"Readings: {named}.",
        )


@dataclass(frozen=True, slots=True)
class Chosen:
    """Whom a policy asks, and what it expects of them."""

    places: NDArray[np.int64]
    asked: float
    cost: float
    printed: float
    corrected: float


def _score_selection(
    crowd: FilmCrowd, chosen: Chosen, ratings: Floats, name: str, budget: float, theta: float
) -> list[Row]:
    """The error of the plain mean (4.4); for everybody's reports also that of a mean weighted by their noise."""
    opinions, noise = ratings[chosen.places], np.array(GAMMAS)[crowd.level[chosen.places]] ** 2
    row: Row = {
        "policy": name,
        "budget": budget,
        "squared": expected_square(opinions, noise, np.ones_like(noise), theta),
    }
    shared: Row = {"asked": chosen.asked, "cost": chosen.cost, "printed": chosen.printed}
    rows = [row | shared | {"corrected": chosen.corrected}]
    if name == SPEND:
        squared = expected_square(opinions, noise, 1 / (_OPINIONS + noise), theta)
        rows.append({"policy": WEIGHTED, "budget": budget, "squared": squared, "asked": chosen.asked})
    return rows


def stopping_gap(rows: Sequence[Row], budget: float) -> tuple[float, float]:
    """Squared error of stopping minus that of spending all: the mean over trials and its standard error."""
    return paired_difference(rows, "squared", {"policy": STOP, "budget": budget}, {"policy": SPEND, "budget": budget})


def _stopping(rows: Sequence[Row], reading: Reading, budget: float) -> Claim:
    mean, error = stopping_gap(rows, budget)
    # The claim is that spending all is no worse: the opposite pair.
    verdict = smaller(-mean, error)
    asked = mean_column(rows, "asked", policy=STOP, budget=budget)
    return Claim(
        f"spending all is no worse than stopping when nobody lowers the expected error (C = {budget:g}; "
        f"{_describe_reading(reading)})",
        "Algorithm 4.1 spends on; stopping is not discussed",
        f"RMSE spending all {rmse(rows, SPEND, budget):.3f}, stopping {rmse(rows, STOP, budget):.3f} after asking "
        f"{asked:.0%}; squared error stopping − spending {mean:+.3f} ± {error:.3f} "
        f"({said_trials(rows)}; {mean_column(rows, 'real'):.0%} of the ratings are real)",
        verdict,
    )


def _describe_reading(reading: Reading) -> str:
    return "only who rated a film is asked, default" if reading.name == Reading().name else reading.name


def _sizes(rows: Sequence[Row]) -> str:
    populations = column(rows, "population")
    return (
        f"{len(set(column(rows, 'film')))} films of 2005 a trial, {said_trials(rows)}, "
        f"{min(populations):.0f} to {max(populations):.0f} workers a film"
    )
