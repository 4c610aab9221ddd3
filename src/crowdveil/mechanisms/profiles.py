"""The public profiles V of the questions, for the factorisation mechanisms: d × n, every column of L1 norm 1."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crowdveil.entropy import Keystream, uniforms
from crowdveil.validation import Rule

# Beyond, the matrix of the factors fills a computer's memory.
_MOST_FACTORS = 10_000
Sign: TypeAlias = Literal["signed", "positive"]
Factors: TypeAlias = Annotated[int, Rule(f"from 1 to {_MOST_FACTORS}", lambda factors: 1 <= factors <= _MOST_FACTORS)]


def question_profiles(n_factors: int, n_questions: int, *, sign: Sign, seed: int) -> NDArray[np.float64]:
    """V is drawn without looking at any answer and known to everybody, hence a seed and not the system's entropy.

    A column of norm 1 makes the L1 sensitivity of V·answers the range of one answer, which is what the noise covers.
    """
    draws = uniforms(Keystream(f"task-profiles:{seed}"), n_factors * n_questions).reshape(n_factors, n_questions)
    profiles = draws if sign == "positive" else 2 * draws - 1
    columns: NDArray[np.float64] = profiles / np.abs(profiles).sum(axis=0)
    return columns
