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
from crowdveil.papers.loki import GAMMAS, LEVELS, PAYS, SHARES
from crowdveil.papers.reproduction import Settings
from crowdveil.reports import AnyChannel, Reports
from crowdveil.selection import Candidates, History, Selection

DATASET = "movielens_small"
SCALE = Scale("0.5", 5, "0.5")
Floats = NDArray[np.float64]
OPEN = "open"
"""Level none as the paper counts it, at a privacy cost of 0."""


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

    def released(self, first: int, last: int, least: int) -> NDArray[np.int64]:
        """Films of these years with at least so many ratings."""
        counts = np.bincount(self.answers.question, minlength=len(self.year))
        return np.flatnonzero((self.year >= first) & (self.year <= last) & (counts >= least))

    def most_active(self, films: NDArray[np.int64], n_workers: int) -> Films:
        """The same films with the workers who rated most of these."""
        among = np.isin(self.answers.question, films)
        counts = np.bincount(self.answers.worker[among], minlength=len(self.answers.workers))
        kept = np.sort(np.argsort(-counts, kind="stable")[:n_workers])
        place = np.full(len(counts), -1, dtype=np.int32)
        place[kept] = np.arange(len(kept), dtype=np.int32)
        rows = place[self.answers.worker] >= 0
        columns = self.answers.question[rows], self.answers.answer[rows], self.answers.workers[kept]
        return Films(Answers(place[self.answers.worker[rows]], *columns, self.answers.questions, SCALE), self.year)

    def completed(self, films: NDArray[np.int64], rng: np.random.Generator) -> Floats:
        """Worker × film: the ratings given, and likely ones where none was given.

        A likely rating is the film's mean plus the worker's own mean deviation, both shrunk, plus an error as large as
        the residuals, rounded to half stars.
        """
        place = np.full(len(self.year), -1)
        place[films] = np.arange(len(films))
        rows = np.flatnonzero(place[self.answers.question] >= 0)
        worker, film = self.answers.worker[rows], place[self.answers.question[rows]]
        value = SCALE.numbers[self.answers.answer[rows]]
        overall = float(value.mean())
        film_shift = _shrunk(film, value - overall, len(films))
        own = _shrunk(worker, value - overall - film_shift[film], len(self.answers.workers))
        residual = value - overall - film_shift[film] - own[worker]
        likely = overall + film_shift + own[:, None] + residual.std() * rng.standard_normal((len(own), len(films)))
        grid: Floats = np.clip(np.rint(2 * likely) / 2, 0.5, 5.0)
        grid[worker, film] = value
        return grid


@dataclass(frozen=True, slots=True)
class Crowd:
    """Each worker's level, drawn once, what they would rate new films, and the history that the broker has of them."""

    workers: NDArray[Any]
    level: NDArray[np.int64]
    ratings: Floats
    history: History

    @classmethod
    def draw(cls, films: Films, past: NDArray[np.int64], new: NDArray[np.int64], rng: np.random.Generator) -> Crowd:
        workers = films.answers.workers
        level = rng.choice(len(LEVELS), len(workers), p=np.array(SHARES) / sum(SHARES))
        grid = films.completed(np.concatenate([past, new]), rng)
        history = History.from_reports(_past(workers, level, grid[:, : len(past)], rng))
        return cls(workers, level, grid[:, len(past) :], history)

    def reports(self, film: int, rng: np.random.Generator) -> Floats:
        """What the workers would report about a new film."""
        noisy: Floats = self.ratings[:, film] + np.array(GAMMAS)[self.level] * rng.standard_normal(len(self.level))
        return noisy

    def candidates(self, remaining: Floats, *, none_is_free: bool) -> Candidates:
        """With `none_is_free` level none costs no privacy, as the paper sets it; else its cost is infinite."""
        names = np.array([OPEN if none_is_free else "none", *LEVELS[1:]], dtype=object)
        costs = np.array([0.0 if none_is_free else inf, *level_epsilons()[1:]])
        return Candidates(self.workers, names[self.level], np.array(PAYS)[self.level], costs[self.level], remaining)

    def places(self, selection: Selection) -> NDArray[np.int64]:
        """Where the chosen stand in the list of workers."""
        known = {worker: place for place, worker in enumerate(self.workers.tolist())}
        return np.array([known[worker] for worker in selection.chosen], dtype=np.int64)


@cache
def level_epsilons(delta: float = 0.01) -> tuple[float, ...]:
    """The exact ε per value of each level on this scale, at δ = .01 as in the paper."""
    protected = (Gaussian(sigma=gamma, delta=delta).guarantee(SCALE).epsilon for gamma in GAMMAS[1:])
    return (inf, *protected)


def _shrunk(index: NDArray[Any], value: Floats, size: int, pseudo: float = 5.0) -> Floats:
    """Means by index, drawn towards 0 as if by so many zeros."""
    total = np.bincount(index, value, minlength=size)
    return np.asarray(total / (np.bincount(index, minlength=size) + pseudo), dtype=np.float64)


def _past(workers: NDArray[Any], level: NDArray[np.int64], grid: Floats, rng: np.random.Generator) -> Reports:
    """The noisy ratings of past films; level none reports as it is."""
    n_workers, n_films = grid.shape
    worker, film = np.repeat(np.arange(n_workers), n_films), np.tile(np.arange(n_films), n_workers)
    own, code = level[worker], np.rint(2 * grid.ravel() - 1).astype(np.int32)
    number = grid.ravel() + np.array(GAMMAS)[own] * rng.standard_normal(grid.size)
    channels: list[AnyChannel] = [identity(SCALE), *(Gaussian(sigma=gamma).record(SCALE) for gamma in GAMMAS[1:])]
    columns = worker.astype(np.int32), film.astype(np.int32), np.where(own == 0, code, -1), own.astype(np.int16)
    return Reports(*columns, workers, np.arange(n_films), tuple(channels), SCALE, number)
