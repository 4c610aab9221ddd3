"""A reader who knows every worker: what reports leave open even then, exactly, from counts alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crowdveil.domain import Scale
from crowdveil.plan.density_evolution import TINY, report_counts
from crowdveil.plan.design import CrowdPart, Setting
from crowdveil.plan.study_simulator import DrawnStudy, answer_laws, draw_truths

Floats = NDArray[np.float64]
_CELLS, _MOST_QUESTIONS = 2_000_000, 40_000


@dataclass(frozen=True, slots=True, eq=False)
class OraclePosterior:
    """Log-likelihoods of the truths that are asked about, question × truth; all are equally likely beforehand."""

    logs: Floats
    truths: Floats

    def posterior(self) -> Floats:
        weights = np.exp(self.logs - self.logs.max(axis=1, keepdims=True))
        posterior: Floats = weights / weights.sum(axis=1, keepdims=True)
        return posterior

    def medians(self) -> Floats:
        medians: Floats = self.truths[np.argmax(np.cumsum(self.posterior(), axis=1) >= 0.5, axis=1)]
        return medians


def log_evidence(setting: Setting, drawn: DrawnStudy) -> OraclePosterior:
    return _oracle_posterior(setting, drawn.parts, drawn.counts)


def oracle_error(setting: Setting, parts: Sequence[CrowdPart], rng: np.random.Generator) -> tuple[float, float]:
    """The knowing reader's mean error over many questions, and its standard error."""
    n_cells = sum(len(part.channel.outputs) for part in parts) * len(setting.crowd.real) + len(
        setting.truth_grid_inside
    )
    n_questions = int(np.clip(_CELLS / n_cells, 500, _MOST_QUESTIONS))
    truth = draw_truths(setting, rng, n_questions=n_questions)
    counts: list[list[NDArray[np.int64]]] = []
    for part in parts:
        laws = answer_laws(setting, part, truth)
        present = zip(laws, setting.crowd.counts(part.n_workers), strict=True)
        counts.append(
            [rng.multinomial(report_counts(setting, part.channel, int(n), n_questions, rng), law) for law, n in present]
        )
    belief = _oracle_posterior(setting, parts, counts)
    if isinstance(setting.domain, Scale):
        errors = np.abs(belief.medians() - truth)
    else:
        errors = 1 - belief.posterior().max(axis=1)
    return float(errors.mean()), float(errors.std()) / math.sqrt(n_questions)


def _oracle_posterior(
    setting: Setting, parts: Sequence[CrowdPart], counts: Sequence[Sequence[NDArray[np.int64]]]
) -> OraclePosterior:
    asked, logs = setting.truth_grid_inside, np.zeros(())
    for part, by_class in zip(parts, counts, strict=True):
        tensor = np.log(np.maximum(setting.reports_given_truth(part.channel)[:, asked], TINY))
        for skill_class, count in zip(setting.crowd.real, by_class, strict=True):
            logs = logs + count @ tensor[skill_class].T
    return OraclePosterior(logs, setting.truths[asked])
