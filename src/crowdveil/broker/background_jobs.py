"""The broker's own chores, in two quiet threads: lapsed holds, due estimates, waiting notices, expired tokens."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial

from django.db import connections

from crowdveil.broker import clock_guard
from crowdveil.broker.identity.attempts import forget_sources
from crowdveil.broker.identity.tokens import forget_expired
from crowdveil.broker.ledger.reservations import release_expired, release_unsettled
from crowdveil.broker.payments.models import Purse
from crowdveil.broker.pools.leases import release_expired as release_expired_leases
from crowdveil.broker.pools.updates import update_due_pools
from crowdveil.broker.results.batches import is_due, make_batch
from crowdveil.broker.studies.lifecycle import finish_closing
from crowdveil.broker.studies.models import Study
from crowdveil.broker.studies.selection import is_to_refine, refine
from crowdveil.broker.webhooks.notices import announce, deliver_due

_log = logging.getLogger("crowdveil.background_jobs")
_PAUSE_SECONDS = 5.0


def start(pause: float = _PAUSE_SECONDS) -> threading.Event:
    """Begin; setting the returned event ends the thread."""
    ended = threading.Event()
    for work in (_work, _deliver):
        threading.Thread(target=work, args=(ended, pause), name="background-jobs", daemon=True).start()
    return ended


def _deliver(ended: threading.Event, pause: float) -> None:
    """In a thread of its own: a requester's slow server must not keep holds from being released."""
    while not ended.wait(pause):
        _attempt(deliver_due)
        connections.close_all()


def _work(ended: threading.Event, pause: float) -> None:
    told: set[str] = set()
    _attempt(finish_closing)
    _attempt(release_unsettled)
    while not ended.wait(pause):
        for chore in (
            release_expired,
            release_expired_leases,
            _estimate_due,
            update_due_pools,
            _refine_selections,
            lambda: _announce_filled(told),
            forget_expired,
            forget_sources,
        ):
            _attempt(chore)
        connections.close_all()


def _attempt(chore: Callable[[], object]) -> None:
    """One chore that fails must not keep the others from being done."""
    try:
        chore()
    except Exception as error:  # noqa: BLE001  # a thread that dies would release no hold any more, and say so nowhere
        _log.warning("chore failed", extra={"error": type(error).__name__})


def _refine_selections() -> None:
    """Where answers were counted, or somebody lets an invitation lapse, go on choosing with what that has taught."""
    # An invitation that a wrong clock lets lapse is given to somebody else.
    if not clock_guard.is_trusted():
        return
    for study in Study.objects.filter(state__in=("pilot", "open"), invitations__isnull=False).distinct():
        if is_to_refine(study):
            _attempt(partial(refine, study))


def _estimate_due() -> None:
    for study in Study.objects.filter(state__in=("pilot", "open")):
        if is_due(study):
            _attempt(partial(make_batch, study))


def _announce_filled(told: set[str]) -> None:
    """Tell once, per process, that a study has no places left."""
    for study in Study.objects.filter(state="open"):
        purse = Purse.objects.filter(study=study.id).first()
        if purse is not None and purse.places_taken >= purse.quota and study.id not in told:
            told.add(study.id)
            announce(study, "study.filled")
