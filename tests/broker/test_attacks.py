"""Things that somebody with a grudge would try: each was possible once, or nearly, and is kept impossible here."""

from __future__ import annotations

import secrets
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from broker import plain
from broker.scene import Scene, books_balance, refused
from broker.test_races import submission

N = 40


def running_study(server: Any, make_draft: Any, name: str) -> tuple[Any, str, dict[str, Any]]:
    requester = server.requester(name)
    study = requester.create(make_draft(minimum_n=2))
    requester.open(study)
    return requester, study, server.broker().call("GET", f"/studies/{study}")


def test_a_withdrawal_while_the_study_closes_is_not_undone(server: Any, make_draft: Any) -> None:
    """Closing writes every row anew; a report withdrawn in between must not come back with its copy."""
    import hashlib

    requester, study, signed = running_study(server, make_draft, "closing while withdrawing")
    keys = [secrets.token_bytes(32) for _ in range(N)]
    with (
        plain.Client(base_url=f"{server.address}/api/v1", timeout=60) as http,
        ThreadPoolExecutor(12) as pool,
    ):

        def answer(key: bytes) -> int:
            headers = {"Authorization": f"Bearer {server.worker_token()}", "Idempotency-Key": secrets.token_hex(16)}
            digest = hashlib.sha256(key).hexdigest()
            body = submission(signed["definition"], signed["sha256"]) | {"withdrawal_sha256": digest}
            return http.post(f"/studies/{study}/submissions", json=body, headers=headers).status_code

        assert set(pool.map(answer, keys)) == {201}
        withdraw = lambda key: http.post(f"/studies/{study}/withdrawals", json={"withdrawal_key": key.hex()})  # noqa: E731
        half = [pool.submit(withdraw, key) for key in keys[: N // 4]]
        closing = pool.submit(requester.close, study)
        rest = [pool.submit(withdraw, key) for key in keys[N // 4 : N - 5]]
        assert closing.result()["state"] == "closed"
        assert {each.result().status_code for each in half + rest} == {200}
    token = {"Authorization": f"Bearer {requester._broker.token}"}
    export = plain.get(f"{server.address}/api/v1/requester/studies/{study}/exports/0", headers=token)
    assert export.text.count("\n") == 1 + 5
    check = server.broker(server.operator()).call("GET", "/operator/ledger-check")
    assert check == {"holds": True, "problems": []}


def test_erasing_an_account_while_it_submits_is_one_or_the_other(server: Any, make_draft: Any) -> None:
    """The two want the same rows; in different orders each would wait for the other until one failed."""
    _, study, signed = running_study(server, make_draft, "erasing while submitting")
    with plain.Client(base_url=f"{server.address}/api/v1", timeout=60) as http, ThreadPoolExecutor(16) as pool:

        def both(token: str) -> tuple[int, int]:
            headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": secrets.token_hex(16)}
            body = submission(signed["definition"], signed["sha256"])
            sent = pool.submit(http.post, f"/studies/{study}/submissions", json=body, headers=headers)
            erased = pool.submit(http.delete, "/workers/me", headers={"Authorization": headers["Authorization"]})
            return sent.result().status_code, erased.result().status_code

        with ThreadPoolExecutor(6) as pairs:
            outcomes = set(pairs.map(both, [server.worker_token() for _ in range(N)]))
    assert outcomes <= {(201, 204), (401, 204)}
    check = server.broker(server.operator()).call("GET", "/operator/ledger-check")
    assert check == {"holds": True, "problems": []}


def test_strangers_cannot_lock_an_owner_out_and_get_no_more_guesses(
    django_here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred networks guess at once; who signed in from home before still does, and a stranger must wait."""
    from crowdveil.broker.identity import sign_in as signing
    from crowdveil.broker.identity.accounts import invite

    account, password = invite(f"owner {secrets.token_hex(4)}", "requester", by="")
    name = str(account.name)
    signing.authenticate(name, password, None, network="198.51.100.0/24")
    compared = []
    right = signing.check_password
    monkeypatch.setattr(
        signing, "check_password", lambda given, stored: stored == account.password and compared.append(given)
    )
    for number in range(100):
        with refused("unauthorized"):
            signing.authenticate(name, "a guess", "123456", network=f"203.0.{number}.0/24")
    assert len(compared) == 50
    monkeypatch.setattr(signing, "check_password", right)
    with refused("unauthorized"):
        signing.authenticate(name, password, None, network="203.0.113.0/24")
    assert signing.authenticate(name, password, None, network="198.51.100.0/24").id == account.id
    # Nor do guesses from the owner's own network go on for ever.
    for _ in range(10):
        with refused("unauthorized"):
            signing.authenticate(name, "a guess", None, network="198.51.100.0/24")
    with refused("unauthorized"):
        signing.authenticate(name, password, None, network="198.51.100.0/24")
    assert signing.authenticate(name, password, None, network="203.0.113.0/24").id == account.id


def test_nothing_is_kept_that_names_a_network(django_here: Path) -> None:
    from crowdveil.broker.identity import sign_in as signing
    from crowdveil.broker.identity.accounts import invite
    from crowdveil.broker.identity.attempts import forget_sources
    from crowdveil.broker.identity.models import Source

    network, digests = "198.51.100.0/24", []
    for _ in range(2):
        account, password = invite(f"owner {secrets.token_hex(4)}", "requester", by="")
        signing.authenticate(str(account.name), password, None, network=network)
        (source,) = Source.objects.filter(account=account)
        digests.append(source.digest)
        assert network not in repr(source.__dict__)
    assert digests[0] != digests[1]
    Source.objects.update(expires=signing.clock.now() - timedelta(seconds=1))
    assert forget_sources() >= 2


def test_a_flood_of_new_names_does_not_free_those_who_used_up_their_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    from crowdveil.broker.middleware import rate_limit

    monkeypatch.setattr(rate_limit, "_MOST_BUCKETS", 100)
    monkeypatch.setattr(rate_limit, "_buckets", {})
    for _ in range(5):
        rate_limit.limit("guesser", 5)
    for number in range(80):
        rate_limit.limit(f"flood {number}", 5)
        if number % 10 == 0:
            with refused("rate-limited"):
                rate_limit.limit("guesser", 5)
    for number in range(80, 200):
        rate_limit.limit(f"flood {number}", 5)
        with refused("rate-limited"):
            rate_limit.limit("guesser", 5)
    assert len(rate_limit._buckets) <= 101


def test_half_an_ipv6_address_and_a_mapped_one_are_not_new_networks(django_here: Path) -> None:
    from django.test import RequestFactory

    from crowdveil.broker.middleware.rate_limit import client_network

    def network(address: str, **options: int) -> str:
        return client_network(RequestFactory().get("/", REMOTE_ADDR=address), **options)

    assert network("2001:db8:1:2:3::4") == network("2001:db8:1:2:ffff::9") == "2001:db8:1:2::/64"
    assert network("::ffff:192.0.2.7", v4_bits=32) == network("192.0.2.7", v4_bits=32) == "192.0.2.7/32"
    assert network("not an address") == "unknown"


def test_how_well_workers_do_is_told_in_batches_like_the_estimates(django_here: Path, make_draft: Any) -> None:
    """A list that grew with every submission would tell a requester which panel name has just come in."""
    from crowdveil.broker.results.batches import latest, refresh
    from crowdveil.broker.results.quality import quality

    scene = Scene(make_draft(minimum_n=3, linkable=True))
    told = []
    for number in range(7):
        scene.submit(scene.worker(), {"ill": 0, "days": 0})
        refresh(scene.study)
        if number < 2:
            with refused("below-minimum"):
                quality(scene.study)
        else:
            told.append(len(quality(scene.study)["workers"]))
    assert told == [3, 3, 3, 6, 6]
    assert "workers" not in latest(scene.study)


def test_a_withdrawal_after_closing_makes_no_second_last_estimate(django_here: Path, make_draft: Any) -> None:
    """Two last estimates would differ by exactly the one who withdrew."""
    from crowdveil.broker.results.batches import latest
    from crowdveil.broker.results.models import Batch
    from crowdveil.broker.studies import lifecycle
    from crowdveil.broker.submissions.withdraw import withdraw

    scene = Scene(make_draft(minimum_n=3))
    for _ in range(4):
        scene.submit(scene.worker(), {"ill": 0, "days": 0})
    lifecycle.close(scene.study)
    before = latest(scene.study)
    withdraw(scene.study.id, scene.withdrawal_key.hex())
    lifecycle.finish_closing()
    assert latest(scene.study) == before
    # A crash after the key was destroyed and before the estimates were made is made good at the next start.
    Batch.objects.filter(study=scene.study.id).delete()
    lifecycle.finish_closing()
    assert latest(scene.study)["n"] == 3
    books_balance()


def test_whoever_accepted_an_invitation_in_time_may_still_answer(django_here: Path, make_draft: Any) -> None:
    """The invitation lapses while the place is held: the worker may have drawn, and spent, already."""
    from crowdveil.broker import clock
    from crowdveil.broker.studies.eligibility import check_invited
    from crowdveil.broker.studies.models import Invitation
    from crowdveil.broker.studies.selection import choose, refine

    scene = Scene(make_draft(selection={"policy": "random"}, quota=3, minimum_n=2))
    workers = [scene.worker() for _ in range(6)]
    choose(scene.study, n=2)
    invited = list(Invitation.objects.filter(study=scene.study).values_list("account_id", flat=True))
    accepted = next((worker for worker in workers if worker.id in invited), None) or _account(invited[0])
    scene.reserve(accepted)
    Invitation.objects.filter(study=scene.study).update(expires=clock.now() - timedelta(minutes=1))
    refine(scene.study)
    now = set(Invitation.objects.filter(study=scene.study).values_list("account_id", flat=True))
    # One kept, one replaced: refining never asks more people than the requester did.
    assert accepted.id in now
    assert len(now) == 2
    check_invited(scene.frozen, accepted.id)
    scene.submit(accepted, {"ill": 0, "days": 0})


def _account(key: str) -> Any:
    from crowdveil.broker.identity.models import Account

    return Account.objects.get(id=key)
