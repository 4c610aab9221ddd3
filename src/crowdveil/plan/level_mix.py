"""Workers at several levels of privacy in one study: the error to expect from all of them together."""

from __future__ import annotations

from collections.abc import Sequence

from crowdveil.errors import InputError
from crowdveil.plan.density_evolution import Prediction, predict_parts
from crowdveil.plan.design import CrowdPart, Setting
from crowdveil.plan.population import predict_population_parts


def mix(setting: Setting, parts: Sequence[CrowdPart], *, population: bool = False, effort: float = 1.0) -> Prediction:
    """The error of a study in which `parts` report through different channels, read together by one method.

    A part is a level of privacy: its channel on this domain (the identity channel for level "none") and how many
    workers choose it. They count instead of the setting's own `n_workers` and `epsilon`; skills are taken to be the
    same at every level. `population` asks for the crowd's opinion instead of the truth, `effort` below 1 trades
    precision for time (.2 takes about a tenth of a second).

    >>> from crowdveil.domain import Choices
    >>> from crowdveil.mechanisms import mechanism
    >>> from crowdveil.plan import CrowdSkill
    >>> domain = Choices(("no", "yes"))
    >>> setting = Setting(domain, 1.0, 40, 0.9, CrowdSkill.from_name("mixed", domain))
    >>> low, high = (mechanism("randomized-response", epsilon=each).channel(domain) for each in (3.0, 0.5))
    >>> both = mix(setting, [CrowdPart(low, 20), CrowdPart(high, 20)]).error
    >>> mix(setting, [CrowdPart(low, 40)]).error < both < mix(setting, [CrowdPart(high, 40)]).error
    True
    """
    present = [part for part in parts if part.n_workers > 0]
    if not present:
        raise InputError("a mix of levels needs at least one worker", fix="give a part with workers")
    for part in present:
        if part.channel.inputs[: part.channel.n_levels] != setting.domain.symbols:
            raise InputError("a part's channel randomises other answers than the study's", fix="keep one domain")
    if population:
        return predict_population_parts(setting, present)
    return predict_parts(setting, present, effort=effort)
