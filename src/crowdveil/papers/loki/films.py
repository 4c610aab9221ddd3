"""Films as surveys: past ratings with each worker's own noise, and new films to be rated (Kandappu 2015, §4.5.4)."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers import Answers
from crowdveil.channel import identity
from crowdveil.domain import Scale
from crowdveil.files.datasets import data_folder, load_dataset
from crowdveil.mechanisms import Gaussian
from crowdveil.papers.core.reproduction import Settings
from crowdveil.papers.loki.levels import GAMMAS, LEVELS, PAYS, SHARES
from crowdveil.reports import AnyChannel, Reports
from crowdveil.selection import Candidates, History, Selection

DATASET = "movielens_small"
SCALE = Scale("0.5", 5, "0.5")
Floats = NDArray[np.float64]
OPEN = "open"
"""Level none as the paper counts it, at a privacy cost of 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Who can be asked about a film, and what the broker knows of them, where §4.5.4 is silent.

    By default nothing is made up: only who rated a film can be asked about it, and all films of 2004 are the history.
    `filled` gives likely ratings to who rated none, for the `n_workers` who rated most. `least_past` and `least_new`
    are the ratings that a film needs to be in the history or to be a survey.
    """

    name: str = "default"
    filled: bool = False
    n_workers: int | None = None
    least_past: int = 1
    least_new: int = 20
    last: int = 2005

    def crowd(self, films: Films, rng: np.random.Generator) -> FilmCrowd:
        past, new = (
            films.films_of_years(2004, 2004, self.least_past),
            films.films_of_years(2005, self.last, self.least_new),
        )
        chosen = films.most_active(np.concatenate([past, new]), self.n_workers) if self.n_workers else films
        return FilmCrowd.draw(chosen, past, rng.permutation(new), rng, filled=self.filled)


@dataclass(frozen=True, slots=True)
class Films:
    """All ratings, and the year of each film."""

    answers: Answers
    year: NDArray[np.int64]

    @classmethod
    def load(cls, settings: Settings) -> Films:
        answers, _ = load_dataset(DATASET, SCALE, folder=settings.data)
        with (data_folder(settings.data) / DATASET / "items.csv").open(encoding="utf-8", newline="") as stream:
            years = {row["task"]: int(row["year"] or 0) for row in csv.DictReader(stream)}
        return cls(answers, np.array([years.get(str(film), 0) for film in answers.questions]))

    def films_of_years(self, first: int, last: int, least: int) -> NDArray[np.int64]:
        """Films of these years with at least so many ratings."""
        counts = np.bincount(self.answers.question, minlength=len(self.year))
        return np.flatnonzero((self.year >= first) & (self.year <= last) & (counts >= least))

    def most_active(self, films: NDArray[np.int64], n_workers: int) -> Films:
        """The same films with the workers who rated most of these."""
        among = np.isin(self.answers.question, films)
        counts = np.bincount(self.answers.worker[among], minlength=len(self.answers.workers))
        active = np.sort(np.argsort(-counts, kind="stable")[:n_workers])
        new_code = np.full(len(counts), -1, dtype=np.int32)
        new_code[active] = np.arange(len(active), dtype=np.int32)
        rows = new_code[self.answers.worker] >= 0
        columns = self.answers.question[rows], self.answers.answer[rows], self.answers.workers[active]
        return Films(Answers(new_code[self.answers.worker[rows]], *columns, self.answers.questions, SCALE), self.year)

    def ratings_matrix(self, films: NDArray[np.int64]) -> Floats:
        """Worker × film: the ratings given, NaN where there is none."""
        column = np.full(len(self.year), -1)
        column[films] = np.arange(len(films))
        rows = np.flatnonzero(column[self.answers.question] >= 0)
        grid: Floats = np.full((len(self.answers.workers), len(films)), np.nan)
        grid[self.answers.worker[rows], column[self.answers.question[rows]]] = SCALE.numbers[self.answers.answer[rows]]
        return grid


def impute_ratings(given: Floats, rng: np.random.Generator) -> Floats:
    """The ratings given, and likely ones where there is none.

    A likely rating is the film's mean plus the worker's own mean deviation, both shrunk, plus an error as large as the
    residuals, rounded to half stars.
    """
    overall = float(np.nanmean(given))
    film = _shrunk(given - overall, axis=0)
    worker_effect = _shrunk(given - overall - film, axis=1)
    mean = overall + film + worker_effect[:, None]
    likely = mean + np.nanstd(given - mean) * rng.standard_normal(given.shape)
    return np.where(np.isnan(given), np.clip(np.rint(2 * likely) / 2, 0.5, 5.0), given)


@dataclass(frozen=True, slots=True)
class FilmCrowd:
    """Each worker's level, drawn once, what they rate new films (NaN: cannot be asked), and what the broker knows.

    `real` is the share of the ratings, old and new, that somebody really gave.
    """

    workers: NDArray[Any]
    level: NDArray[np.int64]
    ratings: Floats
    history: History
    real: float

    @classmethod
    def draw(
        cls,
        films: Films,
        past: NDArray[np.int64],
        new: NDArray[np.int64],
        rng: np.random.Generator,
        *,
        filled: bool = False,
    ) -> FilmCrowd:
        workers = films.answers.workers
        level = rng.choice(len(LEVELS), len(workers), p=np.array(SHARES) / sum(SHARES))
        ratings = films.ratings_matrix(np.concatenate([past, new]))
        grid = impute_ratings(ratings, rng) if filled else ratings
        history = History.from_reports(_past(workers, level, grid[:, : len(past)], rng))
        real = float(np.isfinite(ratings).sum() / np.isfinite(grid).sum())
        return cls(workers, level, grid[:, len(past) :], history, real)

    def population(self, film: int) -> NDArray[np.int64]:
        """Who can be asked about a new film; θ is their mean rating."""
        return np.flatnonzero(np.isfinite(self.ratings[:, film]))

    def reports(self, film: int, rng: np.random.Generator) -> Floats:
        """What the workers would report about a new film."""
        noisy: Floats = self.ratings[:, film] + np.array(GAMMAS)[self.level] * rng.standard_normal(len(self.level))
        return noisy

    def candidates(self, who: NDArray[np.int64], remaining: Floats, *, none_is_free: bool) -> Candidates:
        """With `none_is_free` level none costs no privacy, as the paper sets it; else its cost is infinite."""
        names = np.array([OPEN if none_is_free else "none", *LEVELS[1:]], dtype=object)
        costs = np.array([0.0 if none_is_free else inf, *level_epsilons()[1:]])
        level = self.level[who]
        return Candidates(self.workers[who], names[level], np.array(PAYS)[level], costs[level], remaining[who])

    def places(self, selection: Selection) -> NDArray[np.int64]:
        """Where the chosen stand in the list of workers."""
        row_by_worker = {worker: row for row, worker in enumerate(self.workers.tolist())}
        return np.array([row_by_worker[worker] for worker in selection.chosen], dtype=np.int64)


@cache
def level_epsilons(delta: float = 0.01) -> tuple[float, ...]:
    """The exact ε per value of each level on this scale, at δ = .01 as in the paper."""
    protected = (Gaussian(sigma=gamma, delta=delta).guarantee(SCALE).epsilon for gamma in GAMMAS[1:])
    return (inf, *protected)


def _shrunk(values: Floats, axis: int, pseudo: float = 5.0) -> Floats:
    """Means along an axis, NaN left out, drawn towards 0 as if by so many zeros."""
    return np.asarray(np.nansum(values, axis=axis) / (np.isfinite(values).sum(axis=axis) + pseudo), dtype=np.float64)


def _past(workers: NDArray[Any], level: NDArray[np.int64], grid: Floats, rng: np.random.Generator) -> Reports:
    """The noisy ratings of past films; level none reports as it is."""
    worker, film = np.nonzero(np.isfinite(grid))
    value, worker_level = grid[worker, film], level[worker]
    number = value + np.array(GAMMAS)[worker_level] * rng.standard_normal(len(value))
    code = np.where(worker_level == 0, np.rint(2 * value - 1).astype(np.int32), -1)
    channels: list[AnyChannel] = [identity(SCALE), *(Gaussian(sigma=gamma).record(SCALE) for gamma in GAMMAS[1:])]
    columns = worker.astype(np.int32), film.astype(np.int32), code, worker_level.astype(np.int16)
    return Reports(*columns, workers, np.arange(grid.shape[1]), tuple(channels), SCALE, number)
