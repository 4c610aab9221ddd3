"""What past linkable studies of one requester tell about its workers, by panel name."""

from __future__ import annotations

import numpy as np

from crowdveil.broker.results.tables import everything, parts_of, table
from crowdveil.broker.studies.definition import read_definition
from crowdveil.broker.studies.models import Study
from crowdveil.errors import InputError
from crowdveil.reports import Reports
from crowdveil.selection import History


def history_of(study: Study) -> History | None:
    """The history that fits this study's domain best; None when there is none to read.

    A study that hides participation is left out: selection needs to see who answered.
    """
    best: Reports | None = None
    past = Study.objects.filter(owner_id=study.owner_id).exclude(state="draft").order_by("id")
    for reports in (reports for earlier in past for reports in _tables(earlier)):
        best = reports if best is None or len(reports) > len(best) else best
    if best is None:
        return None
    try:
        return History.from_reports(best)
    except InputError:
        return None


def _tables(study: Study) -> list[Reports]:
    opened = read_definition(study.definition, study.sha256)
    if not opened.document["linkable"] or opened.protects_participation:
        return []
    stored = everything(study.id, opened)
    return [table(part, stored, np.array(stored.pseudonyms)) for part in parts_of(opened)] if len(stored) else []
