"""An ideal reader of a drawn study: belief propagation with the planner's priors, in plain NumPy."""

from __future__ import annotations

import numpy as np

from crowdveil import Channel, Scale
from crowdveil.plan import Setting


def ideal_error(setting: Setting, channel: Channel, rng: np.random.Generator, *, rounds: int = 8) -> float:
    """The error of one study, drawn cell by cell and read with messages between all workers and questions."""
    truth, reports, seen = _draw(setting, channel, rng)
    tensor = setting.reports_given_truth(channel).transpose(2, 0, 1)[reports]
    n_truths = tensor.shape[-1]
    to_worker = np.broadcast_to(setting.prior, (*reports.shape, n_truths))
    for _ in range(rounds):
        about_class = np.log(np.einsum("wqct,wqt->wqc", tensor, to_worker)) * seen
        others = np.log(setting.crowd.believed) + about_class.sum(axis=1, keepdims=True) - about_class
        about_truth = np.log(np.einsum("wqct,wqc->wqt", tensor, _normalize_logs(others))) * seen
        total = about_truth.sum(axis=0) + np.log(setting.prior)
        to_worker = _normalize_logs(total - about_truth)
    belief = _normalize_logs(total)
    if isinstance(setting.domain, Scale):
        median = setting.truths[np.argmax(np.cumsum(belief, axis=1) >= 0.5, axis=1)]
        return float(np.abs(median - truth).mean())
    return float((belief.argmax(axis=1) != truth).mean())


def _draw(setting: Setting, channel: Channel, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    domain, shape = setting.domain, (setting.n_workers, setting.n_questions)
    classes = np.repeat(setting.crowd.real, setting.crowd.counts(setting.n_workers))
    if isinstance(domain, Scale):
        truth = rng.uniform(float(domain.low), float(domain.high), setting.n_questions)
        given = setting.crowd.answers(domain, truth)[classes]
    else:
        truth = rng.integers(0, domain.size, setting.n_questions)
        given = setting.crowd.answers(domain, setting.truths)[classes][:, truth]
    inputs = _pick(given, rng)
    answered = rng.random(shape) < setting.share
    if setting.protect_participation:
        inputs, answered = np.where(answered, inputs, domain.size), np.ones(shape, dtype=bool)
    return truth, _pick(channel.table[inputs], rng), answered[..., None].astype(float)


def _pick(probabilities: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    edges = np.cumsum(probabilities, axis=-1)[..., :-1]
    return (rng.random(probabilities.shape[:-1])[..., None] > edges).sum(axis=-1)


def _normalize_logs(log_weights: np.ndarray) -> np.ndarray:
    weights = np.exp(log_weights - log_weights.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)
