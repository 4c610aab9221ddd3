"""Privacy and utility of one- and two-layer flipping (Li, Miao, Su, Gao, Li, Ding, Qin, Ren 2018, Theorems 6.2–6.4)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from crowdveil.bounds.theorem import Bound, Premise, check_probability
from crowdveil.errors import InputError

Floats = NDArray[np.float64]


def one_layer_epsilon(flip: float, n_options: int) -> Bound:
    """Theorem 6.2: flipping to one of the others with probability `flip` is ε-private per value.

    >>> print(one_layer_epsilon(0.25, 2))
    Li Theorem 6.2 (one layer): 1.099; its premises hold
    """
    check_probability("flip", flip, open_=True)
    value = math.log((1 - flip) * (n_options - 1) / flip)
    uniform = (n_options - 1) / n_options
    premises = (
        Premise(
            f"flip is at most (s − 1)/s = {uniform:.4g}, else the loss is the negative of this", value >= 0, "crowdveil"
        ),
    )
    return Bound("Li Theorem 6.2 (one layer)", value, premises)


def two_layer_epsilon(low: float, high: float, n_options: int, *, n_answers: int = 1) -> Bound:
    """Theorem 6.3: the flip is drawn once per worker from U(low, high); claimed for any number of answers."""
    _check_range(low, high)
    value = math.log((2 - low - high) * (n_options - 1) / (low + high))
    premises = (
        Premise(
            "the worker gives one answer only, since all answers share one flip probability",
            n_answers == 1,
            "crowdveil",
        ),
        Premise("the mean flip is at most (s − 1)/s, else the loss is the negative of this", value >= 0, "crowdveil"),
    )
    return Bound(
        "Li Theorem 6.3 (two layers)",
        value,
        premises,
        "with k answers the reports betray the shared flip: at a claimed ε of 0 (low 0, high 1, two options) the loss "
        "is ln k for one value and ln C(k, ⌊k/2⌋) for all of them",
    )


def same_privacy(flip: float, low: float, high: float, n_options: int, *, n_answers: int = 1) -> Bound:
    """Theorem 6.4: both mechanisms cost the same when the mean of U(low, high) is `flip`."""
    one_layer, two_layers = (
        one_layer_epsilon(flip, n_options),
        two_layer_epsilon(low, high, n_options, n_answers=n_answers),
    )
    equal = Premise(
        f"(low + high)/2 = {(low + high) / 2:.4g} equals flip = {flip:.4g}", math.isclose(low + high, 2 * flip)
    )
    return Bound(
        "Li Theorem 6.4 (same privacy)", one_layer.value, (equal, *two_layers.premises), two_layers.counterexample
    )


def error_bound(accuracies: Sequence[float], *, flips: Sequence[float] | float = 0.0) -> Bound:
    """Equations (6) and (8): the error of weighted voting on two options, after flipping with `flips`.

    >>> round(error_bound([0.9] * 5).value, 4)
    0.0039
    """
    right = np.array([check_probability("accuracy", accuracy, open_=True) for accuracy in accuracies])
    flip = np.broadcast_to(np.asarray(flips, dtype=float), right.shape)
    flipped = right + flip * (1 - 2 * right)
    premises = (Premise("the weights are 1, the value for which the exponent is derived", False, "crowdveil"),)
    return Bound(
        "Li equation (8)" if np.any(flip) else "Li equation (6)",
        float(np.prod(_effect(flipped))),
        premises,
        "E[exp(−w·x)] is replaced by E[exp(−x)]^w, which is smaller for w > 1: five users who are right with "
        "probability .9 err with probability .0086, the formula gives .0039",
    )


def importance(accuracies: Sequence[float]) -> Floats:
    """Im(u) = 1/G(p_u): how many times larger the bound (6) would be without this user.

    The paper inverts users who are right more often than wrong "without loss of generality" (§6.2.1) and so do we;
    but G is not symmetric, and without the inversion a user with p = .7 would make the bound worse (G = 1.06).
    """
    right = np.array([check_probability("accuracy", accuracy, open_=True) for accuracy in accuracies])
    return 1 / _effect(np.minimum(right, 1 - right))


def important(accuracies: Sequence[float], *, threshold: float) -> NDArray[np.bool_]:
    """Users whose importance is at least `threshold` times the largest."""
    check_probability("threshold", threshold)
    scores = importance(accuracies)
    chosen: NDArray[np.bool_] = scores >= threshold * scores.max()
    return chosen


def error_change_density(change: Floats | float, high: float, n_important: int) -> Floats:
    """Density f(Δ) as the paper prints it: of the product of n uniform flips on [0, high]; 0 outside [0, highⁿ].

    The Δ of (9) has a factor 2 for every user, which (10) drops (see `one_layer_error_change`). Its leading term is
    2ⁿ times the product, with the density f(Δ/2ⁿ)/2ⁿ on [0, (2·high)ⁿ]; Figure 1 of the paper shows f.

    >>> error_change_density(0.5, 1.0, 1).tolist()
    1.0
    """
    _check_range(0.0, high)
    value, largest = np.asarray(change, dtype=float), high**n_important
    inside = (value > 0) & (value <= largest)
    with np.errstate(divide="ignore", invalid="ignore"):
        density = np.log(largest / value) ** (n_important - 1) / (largest * math.factorial(n_important - 1))
    return np.where(inside, density, 0.0)


def one_layer_error_change(flip: float, n_important: int) -> Bound:
    """§6.2.3: Δ, by how much flipping raises the error bound, as n important users' own errors p tend to 0.

    The paper's steps: G(p) is replaced by 2p, (9) writes the bound after flipping as Π 2(p + flip·(1 − 2p)) =
    Π 2p + Δ, and (10) expands Δ without the factor 2 of each user, so that flipⁿ remains. Ours: from (9) the leading
    term is (2·flip)ⁿ, which is `corrected`.

    >>> print(one_layer_error_change(0.5, 2))  # doctest: +ELLIPSIS
    Li Δ (10), one layer: 0.25 as printed, 1 corrected; does not apply: (10) follows from (9)...
    """
    check_probability("flip", flip)
    return Bound(
        "Li Δ (10), one layer",
        flip**n_important,
        (Premise("(10) follows from (9)", flip == 0, "crowdveil"),),
        "(10) leaves out the factor 2 that (9) has for every user: with n = 2, flip = .5 and p → 0 the product in (9) "
        "is 1, (10) gives .25. The replacement of G(p) by 2p, 'very close' in the paper, is .136 against .2 at p = .1",
        corrected=(2 * flip) ** n_important,
    )


def _effect(right: Floats) -> Floats:
    """G(p) of (6): the factor by which a user lowers the bound."""
    effect: Floats = (right / math.e + (1 - right) * math.e) ** np.log(right / (1 - right))
    return effect


def _check_range(low: float, high: float) -> None:
    if not 0 <= low < high <= 1:
        raise InputError(f"the flip range must rise inside 0..1; got {low} to {high}")
