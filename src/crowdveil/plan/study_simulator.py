"""One whole study, drawn as the setting describes it: truths, workers, and what they report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.domain import Scale
from crowdveil.plan.design import CrowdPart, Setting
from crowdveil.reports import Reports

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class DrawnStudy:
    """`truth` is a code (choices) or a number (scales) for each question, or the opinions' averages.

    `counts` holds for each part and real class how many of them sent each report: question × output.
    """

    truth: NDArray[Any]
    reports: Reports
    parts: Sequence[CrowdPart]
    counts: list[list[NDArray[np.int64]]]


def draw_study(
    setting: Setting, parts: Sequence[CrowdPart], rng: np.random.Generator, *, population: bool = False
) -> DrawnStudy:
    """Truths spread evenly and the reports about them, or evenly spread opinions."""
    truth = draw_truths(setting, rng, population=population)
    columns: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]] = []
    counts: list[list[NDArray[np.int64]]] = []
    first = 0
    for index, part in enumerate(parts):
        counts.append([])
        laws = answer_laws(setting, part, truth, population=population)
        for law, n_workers in zip(laws, setting.crowd.counts(part.n_workers), strict=True):
            worker, question, report = _reports(setting, part, law, int(n_workers), rng)
            cells = question * law.shape[1] + report
            counts[-1].append(np.bincount(cells, minlength=law.size).reshape(law.shape))
            columns.append((worker + first, question, report, np.full(len(report), index)))
            first += int(n_workers)
    worker, question, report, channel = (np.concatenate(column) for column in zip(*columns, strict=True))
    reports = Reports(
        worker.astype(np.int32),
        question.astype(np.int32),
        report.astype(np.int32),
        channel.astype(np.int16),
        np.arange(first),
        np.arange(setting.n_questions),
        tuple(part.channel for part in parts),
        setting.domain,
    )
    return DrawnStudy(truth, reports, parts, counts)


def draw_truths(
    setting: Setting, rng: np.random.Generator, *, population: bool = False, n_questions: int | None = None
) -> NDArray[Any]:
    """Evenly over the options or the range; of opinions that are spread evenly, the averages."""
    domain, size = setting.domain, n_questions or setting.n_questions
    if population:
        return (
            domain.numbers.mean(keepdims=True) if isinstance(domain, Scale) else np.full(domain.size, 1 / domain.size)
        )
    if isinstance(domain, Scale):
        return rng.uniform(float(domain.low), float(domain.high), size)
    return rng.integers(0, domain.size, size)


def answer_laws(setting: Setting, part: CrowdPart, truth: NDArray[Any], *, population: bool = False) -> Floats:
    """P(report | question) of each real class: classes × questions × outputs."""
    domain, real = setting.domain, setting.crowd.real
    if population:
        answers = np.full((len(real), setting.n_questions, domain.size), 1 / domain.size)
    elif isinstance(domain, Scale):
        answers = setting.crowd.answers(domain, truth)[real]
    else:
        answers = setting.crowd.answers(domain, setting.truths)[real][:, truth]
    return setting.apply_channel(part.channel, answers)


def _reports(
    setting: Setting, part: CrowdPart, law: Floats, n_workers: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Worker, question and report of every cell that reports."""
    n_questions = len(law)
    if part.channel.protects_participation:
        worker, question = (index.ravel() for index in np.indices((n_workers, n_questions)))
    else:
        worker, question = np.nonzero(rng.random((n_workers, n_questions)) < setting.share)
    return worker, question, by_inversion(np.cumsum(law, axis=1)[:, :-1], question, rng.random(len(question)))


def by_inversion(edges: Floats, row: NDArray[np.int64], uniform: Floats) -> NDArray[np.int64]:
    """Outputs drawn from the rows of `edges`; row r is moved to [r, r + 1), so that one search serves all rows."""
    n_rows, n_edges = edges.shape
    line = (np.minimum(edges, 1 - 1e-12) + np.arange(n_rows)[:, None]).ravel()
    output: NDArray[np.int64] = np.searchsorted(line, row + uniform, side="right") - row * n_edges
    return output
