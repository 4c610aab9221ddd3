"""The crowds of the papers, by name; every number of a preset can be replaced."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeAlias

from crowdveil.domain import Choices, Scale
from crowdveil.errors import InputError
from crowdveil.registry import check_names, did_you_mean
from crowdveil.simulate.choices import ChoiceCrowd
from crowdveil.simulate.scales import ScaleCrowd

Recipe: TypeAlias = ChoiceCrowd | ScaleCrowd

PRESETS: dict[str, Recipe] = {
    # Sun et al. 2018, §VI: half of the workers with σ = 1, half with σ = 5, nine cells in ten empty.
    "sun": ScaleCrowd(n_workers=2000, n_questions=200, domain=Scale(0, 9)),
    # Li et al. 2018, §7.1: 72 students, 26 groups, 360 answers; abilities chosen so that about 73 % come out right.
    "li-peer-grading": ChoiceCrowd(
        n_workers=72,
        n_questions=26,
        domain=Choices(("unsatisfactory", "satisfactory")),
        ability=(0.35, 0.8),
        answers_per_worker=5,
    ),
    # Wang & Xu, §5: about n^0.45 experts who are never wrong, all others toss a coin.
    "wang-spammers": ChoiceCrowd(
        n_workers=500, n_questions=500, domain=Choices(("0", "1")), ability=(0.5, 0.5), experts=17, share=1.0
    ),
    # Kandappu et al. 2015, §4.5.4: ratings of films, and the levels of privacy that 131 volunteers chose.
    "loki": ScaleCrowd(
        n_workers=500,
        n_questions=100,
        domain=Scale(1, 5),
        sigmas=(0.8, 1.0, 1.2),
        shift=0.4,
        share=0.5,
        truth="middle",
        levels=(("none", 0.138), ("low", 0.244), ("medium", 0.389), ("high", 0.229)),
    ),
}
"""The crowds of the papers by name."""


def preset(name: str, **changes: Any) -> Recipe:
    """The crowd of a paper by its name in `PRESETS`, with some of its settings replaced.

    >>> preset("sun", n_workers=100).n_questions
    200
    """
    recipe = PRESETS.get(name)
    if recipe is None:
        raise InputError(f"preset must be one of {', '.join(PRESETS)}; got {name!r}", fix=did_you_mean(name, PRESETS))
    check_names(f"preset {name}", type(recipe), changes)
    return replace(recipe, **changes)
