"""What a worker may be like when options are chosen: how able, and drawn to which option.

A worker of ability a and leaning b gives the right option with probability a and otherwise one drawn from b:
P(answer | truth) = a·[answer = truth] + (1 − a)·b(answer). Few types cover what crowds show: guessers, experts, people
who say yes to everything, and now and then somebody who has it the wrong way round.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_ABILITIES = (
    (0.0, 1.5),
    (0.1, 1.5),
    (0.25, 1.3),
    (0.4, 1.0),
    (0.55, 0.8),
    (0.7, 0.6),
    (0.8, 0.5),
    (0.9, 0.4),
    (0.97, 0.3),
)
_LEANINGS = ((0.0, 0.5), (0.4, 0.3), (0.8, 0.2))
_CONTRARY = ((-0.3, 0.1), (-0.6, 0.1))
MANY_OPTIONS = 16
"""Beyond so many options a leaning towards each of them would be more types than a crowd can tell apart."""


@dataclass(frozen=True, slots=True, eq=False)
class WorkerTypes:
    """A grid of types: `ability` and prior `share` of each, and `leaning`, type × option.

    Types of one `kin` differ only in the option that they lean to.
    """

    ability: Floats
    leaning: Floats
    share: Floats
    kin: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ability)

    @property
    def skill(self) -> Floats:
        """The probability of a right answer when all options are equally often the truth."""
        skill: Floats = self.ability + (1 - self.ability) / self.leaning.shape[1]
        return skill

    def pool_bias_weights(self, weights: Floats, lean: float) -> Floats:
        """The weights with all but `lean` of each kin's total spread evenly over it.

        From reports alone, a crowd that leans to one option and questions whose truth is mostly that option look much
        alike; what is not believed of a crowd's leaning counts as the shares of the classes.
        """
        even = (np.bincount(self.kin, weights) / np.bincount(self.kin))[self.kin]
        held: Floats = lean * weights + (1 - lean) * even
        return held


def worker_types(n_options: int) -> WorkerTypes:
    """The types for so many options: better than chance far more often than worse, leanings as likely to any option."""
    even = np.full(n_options, 1.0 / n_options)
    rows: list[tuple[float, Floats, float]] = []
    sizes: list[int] = []
    for ability, weight in _ABILITIES:
        for leaning, part in _LEANINGS if 1 < n_options <= MANY_OPTIONS else _LEANINGS[:1]:
            towards = np.eye(n_options) if leaning else even[None]
            sizes.append(len(towards))
            rows += [
                (ability, (1 - leaning) * even + leaning * (option if leaning else even), weight * part / len(towards))
                for option in towards
            ]
    # Contrary workers avoid the right option; at the least possible ability they would never name it.
    rows += [(ability / max(n_options - 1, 1), even, weight) for ability, weight in _CONTRARY if n_options > 1]
    sizes += [1] * (len(rows) - sum(sizes))
    weights = np.array([weight for _, _, weight in rows])
    return WorkerTypes(
        np.array([each for each, _, _ in rows]),
        np.array([row for _, row, _ in rows]),
        weights / weights.sum(),
        np.repeat(np.arange(len(sizes)), sizes),
    )
