"""Studies whose definition is frozen, kept in memory: what never changes need not be read twice."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from crowdveil.broker.refusal import Refusal
from crowdveil.broker.studies.definition import Opened, read_definition
from crowdveil.broker.studies.models import Study


@dataclass(frozen=True, slots=True)
class Frozen:
    """A study as the intake needs it. Its state is not here: whether it takes submissions, its purse says."""

    id: str
    owner: str
    opened: Opened


@lru_cache(maxsize=256)
def frozen(key: str) -> Frozen:
    """A study that is past its draft; refused otherwise, and a refusal is not remembered."""
    study = Study.objects.filter(id=key).exclude(state="draft").first()
    if study is None:
        raise Refusal("not-found", "there is no such study, or it is not public yet")
    return Frozen(study.id, study.owner_id, read_definition(study.definition, study.sha256))
