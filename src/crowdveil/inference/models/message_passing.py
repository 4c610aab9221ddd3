"""What the two models of message passing share: a hidden kind per worker, messages in the blocks' state, a residual."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from crowdveil.estimate import Skills
from crowdveil.inference.kernels.message_state import MessageState
from crowdveil.inference.observations.debiasing import table_channels
from crowdveil.inference.observations.likelihood import Emission, build_emission
from crowdveil.inference.protocols import Context, Goal, Parameters, State, Statistics
from crowdveil.inference.uncertainty.summaries import ENDS

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MessageModel:
    """Parameters of all: `belief` (log, worker × kind) and `share` answered per worker."""

    context: Context
    emission: Emission
    precision: Literal["float32", "float64"]

    objective: ClassVar[str] = "mean change of the posteriors (residual)"
    goal: ClassVar[Goal] = "vanish"
    keeps_rows: ClassVar[bool] = False
    remembers: ClassVar[bool] = True
    by_worker: ClassVar[tuple[str, ...]] = ("belief",)
    kept: ClassVar[tuple[str, ...]] = ("share",)

    def init(self) -> Parameters:
        return self.context.start

    def measure(self, statistics: Statistics, parameters: Parameters) -> float:
        if "moved" not in statistics:
            return float("nan")
        return float(statistics["moved"] / max(float(statistics["questions"]), 1.0))

    def project(self, parameters: Parameters) -> Parameters:
        return parameters

    def worker_beliefs(self, parameters: Parameters) -> tuple[Array, Array]:
        """Each worker's kinds, the likeliest as 1 and none impossible, and the shares, in working precision."""
        logs = parameters["belief"]
        belief = np.exp(logs - logs.max(axis=1, keepdims=True)).astype(self.precision)
        return np.maximum(belief, belief.dtype.type(1e-30)), parameters["share"].astype(self.precision)

    def empty(self) -> Array:
        """P(symbol | ∅); nothing where no channel takes ∅ in."""
        emission = self.emission
        empty: Array = emission.table[-1] if emission.with_empty else np.zeros(emission.n_symbols)
        return empty.astype(self.precision)

    def by_channel(self, state: State) -> Array:
        """How many reports the questions of a block have, channel × question."""
        n_channels, n_questions = len(self.emission.offsets), len(state.starts) - 1
        channel = np.searchsorted(self.emission.offsets, state.symbol, side="right") - 1
        counts = np.bincount(channel * n_questions + state.question, minlength=n_channels * n_questions)
        return counts.reshape(n_channels, n_questions).astype(np.float64)

    @staticmethod
    def sweep_statistics(total: Array, moved: float, state: MessageState, counted: str) -> Statistics:
        """The statistics of one sweep: messages to the workers, and the posteriors' sum under the name `counted`."""
        answered = state.posterior[state.answered]
        return {
            "messages": total,
            counted: answered.sum(axis=0, dtype=np.float64),
            "moved": np.array(float(moved)),
            "questions": np.array(float(len(answered))),
        }


def reading(context: Context) -> Emission:
    """The channels of a table as message passing reads them."""
    return build_emission(table_channels(context.channels), context.domain.size)


def summarize_skills(belief: Array, skill: Array, meaning: str) -> Skills:
    """Each worker's mean skill when a kind has this one, and its interval.

    Kinds are few and stand for all workers like them: what is believed of one is spread evenly over the skills that are
    closer to it than to the next.
    """
    values, index = np.unique(skill, return_inverse=True)
    mass = belief @ np.eye(len(values))[index]
    edges = np.concatenate([values[:1], (values[1:] + values[:-1]) / 2, values[-1:]])
    below = np.concatenate([np.zeros((len(belief), 1)), np.cumsum(mass, axis=1)], axis=1)
    mean = belief @ skill
    low, high = (_find_quantile(edges, below, p) for p in ENDS)
    return Skills(np.arange(len(belief)), mean, np.minimum(low, mean), np.maximum(high, mean), meaning)


def _find_quantile(edges: Array, below: Array, share: float) -> Array:
    """Where each row, which rises from 0 to 1 over the edges, has reached this share."""
    cell = np.clip((below[:, 1:] < share).sum(axis=1), 0, len(edges) - 2)
    rows = np.arange(len(below))
    first, last = below[rows, cell], below[rows, cell + 1]
    part = np.divide(share - first, last - first, out=np.zeros(len(below)), where=last > first)
    reached: Array = edges[cell] + np.clip(part, 0.0, 1.0) * (edges[cell + 1] - edges[cell])
    return reached
