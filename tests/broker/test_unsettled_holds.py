"""A hold that appears while its worker submits is settled, and the ledger check sees one that is not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from broker.scene import Scene, books_balance


def test_a_hold_that_appears_during_a_submission_is_settled(
    django_here: Path, make_draft: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from crowdveil.broker.ledger.models import Reservation
    from crowdveil.broker.submissions import submit as module

    scene = Scene(make_draft())
    worker, begin = scene.worker(), module.write_transaction

    @contextmanager
    def accept_first() -> Iterator[None]:
        scene.reserve(worker)
        with begin():
            yield

    monkeypatch.setattr(module, "write_transaction", accept_first)
    scene.submit(worker, {"ill": 0, "days": 0})
    assert not Reservation.objects.filter(account=worker.id).exists()
    assert (scene.budget(worker).epsilon_held, scene.purse().held, scene.purse().places_held) == (0, 0, 0)
    books_balance()


def test_the_ledger_check_sees_a_hold_beside_its_spend(django_here: Path, make_draft: Any) -> None:
    from crowdveil.broker.ledger.check import problems
    from crowdveil.broker.ledger.models import Reservation, Spend
    from crowdveil.broker.ledger.reservations import release_unsettled

    scene = Scene(make_draft())
    worker = scene.worker()
    scene.reserve(worker)
    books_balance()
    # All sums agree, as they did after the race.
    planted = Spend.objects.create(account=worker.id, study=scene.study.id, level="medium", epsilon=0, rho=0)
    assert [sentence for sentence in problems() if worker.id in sentence and "hold" in sentence]
    assert release_unsettled() == 1
    assert not Reservation.objects.filter(account=worker.id).exists()
    planted.delete()
    books_balance()


def test_the_ledger_check_sees_a_hold_of_a_pool_without_a_lease(django_here: Path, make_draft: Any) -> None:
    from crowdveil.broker.ledger.check import problems
    from crowdveil.broker.ledger.models import Spend
    from crowdveil.broker.ledger.reservations import release_unsettled
    from crowdveil.broker.pools.models import Lease, Pool

    scene = Scene(make_draft())
    worker = scene.worker()
    hold = scene.reserve(worker)
    pool = Pool.objects.create(study=scene.study.id)
    spend = Spend.objects.create(account=worker.id, study=scene.study.id, level="medium", epsilon=0, rho=0)
    assert [sentence for sentence in problems() if scene.study.id in sentence and "leases" in sentence]
    lease = Lease.objects.create(study=scene.study.id, pseudonym="p", level=0, expires=hold.expires)
    books_balance()
    assert release_unsettled() == 0
    for planted in (pool, spend, lease):
        planted.delete()
    books_balance()
