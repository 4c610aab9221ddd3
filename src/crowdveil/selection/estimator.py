"""The estimator whose error a selection promises: the weights with which the chosen workers' reports are combined."""

from __future__ import annotations

from enum import StrEnum


class Estimator(StrEnum):
    """How reports become one number.

    `plain mean` is (4.4) of Kandappu et al. 2015, for numbers and for shares. `inverse-variance mean` is what the
    method `population-mean` computes where levels of privacy think alike: a report weighs 1/(τ² + γ²), τ² the variance
    of opinions and γ² that of its noise. `frequency` counts every worker once, so its weights are the plain mean's.
    """

    PLAIN_MEAN = "plain mean"
    INVERSE_VARIANCE = "inverse-variance mean"
    FREQUENCY = "frequency"
