"""Studies whose definition is frozen, kept in memory: what never changes need not be read twice."""

from __future__ import annotations

from dataclasses import dataclass

from crowdveil.broker.problems import Refusal
from crowdveil.broker.studies.channel_cache import CellCache
from crowdveil.broker.studies.channels import table_cells
from crowdveil.broker.studies.definition import Definition, read_definition
from crowdveil.broker.studies.models import Study


@dataclass(frozen=True, slots=True)
class FrozenStudy:
    """A study as the intake needs it. Its state is not here: whether it takes submissions, its purse says."""

    id: str
    owner: str
    opened: Definition


_studies: CellCache[FrozenStudy] = CellCache(lambda study: sum(map(table_cells, study.opened.channels.values())))


def get_frozen_study(key: str) -> FrozenStudy:
    """A study that is past its draft; refused otherwise, and a refusal is not remembered."""
    if (remembered := _studies.get(key)) is not None:
        return remembered
    study = Study.objects.filter(id=key).exclude(state="draft").first()
    if study is None:
        raise Refusal("not-found", "there is no such study, or it is not public yet")
    opened = FrozenStudy(study.id, study.owner_id, read_definition(study.definition, study.sha256))
    _studies.put(key, opened)
    return opened
