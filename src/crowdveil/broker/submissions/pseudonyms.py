"""What a worker is called in a study."""

from __future__ import annotations

from crowdveil.broker import keys
from crowdveil.broker.studies.definition_cache import FrozenStudy


def pseudonym_in(study: FrozenStudy, account: str) -> str:
    """A name of its own in every study; one name for all linkable studies of a requester, as workers were told.

    A linkable study has a study key, too: destroying it ends intake there as everywhere.
    """
    pseudonym = keys.pseudonym(study.id, account)
    return keys.panel_pseudonym(study.owner, account) if study.opened.document["linkable"] else pseudonym
