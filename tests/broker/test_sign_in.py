"""At the door: one-time codes, and guesses that do not pay."""

from __future__ import annotations

import secrets
from datetime import timedelta
from pathlib import Path

import pytest
from broker.scene import refused


def test_codes_of_rfc_6238(django_here: Path) -> None:
    import base64

    from crowdveil.broker.identity.totp import code_at, matching_step

    secret = base64.b32encode(b"12345678901234567890").decode()
    vectors = {59: "287082", 1111111109: "081804", 1234567890: "005924", 2000000000: "279037"}
    for at, code in vectors.items():
        assert code_at(secret, at // 30) == code
        assert matching_step(secret, code, after=0, at=at) == at // 30
        assert matching_step(secret, code, after=at // 30, at=at) is None


def test_too_many_requests_are_told_when_to_come_back(django_here: Path) -> None:
    from crowdveil.broker.middleware.rate_limit import limit

    name = secrets.token_hex(8)
    for _ in range(5):
        limit(name, 5)
    with refused("rate-limited"):
        limit(name, 5)
    limit(name, 0)


def test_guessing_many_codes_at_once_is_not_guessing_more_often(
    django_here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each guess begins before the one before it has failed, as requests that arrive together do."""
    from crowdveil.broker.identity import sign_in as signing
    from crowdveil.broker.identity.accounts import invite
    from crowdveil.broker.problems import Refusal

    account, password = invite(f"operator {secrets.token_hex(4)}", "operator", by="")
    compared = []

    def compare(given: str, stored: str) -> bool:
        if stored == account.password:
            compared.append(given)
        if len(guesses) < 30:
            guess()
        return False

    guesses: list[int] = []

    def guess() -> None:
        guesses.append(1)
        with pytest.raises(Refusal, match="locked"):
            signing.authenticate(str(account.name), "a guess", "123456", network="192.0.2.0/24")

    monkeypatch.setattr(signing, "check_password", compare)
    guess()
    assert len(guesses) == 30
    assert len(compared) == 10
    monkeypatch.undo()
    with pytest.raises(Refusal, match="locked"):
        signing.authenticate(str(account.name), password, None, network="192.0.2.0/24")
    later = signing.clock.now() + timedelta(minutes=16)
    monkeypatch.setattr(signing.clock, "now", lambda: later)
    assert signing.authenticate(str(account.name), password, None, network="192.0.2.0/24").id == account.id


@pytest.mark.parametrize("scheme", ["https", "http"])
def test_cookies_set_over_tls_are_not_sent_without_it(django_here: Path, scheme: str) -> None:
    from django.test import Client, override_settings

    from crowdveil.broker.identity.links import issue_link
    from crowdveil.broker.identity.models import Account

    link = issue_link(Account.objects.create(role="requester", name=f"lab {secrets.token_hex(6)}"))
    browser = Client(SERVER_NAME="localhost", HTTP_X_FORWARDED_PROTO=scheme)
    with override_settings(SECURE_PROXY_SSL_HEADER=("HTTP_X_FORWARDED_PROTO", "https")):
        browser.get("/console/sign-in")
        browser.get(f"/console/enter/{link}")
        browser.post("/console/language", {"language": "de"})
    assert browser.cookies.keys() == {"csrftoken", "crowdveil_session", "django_language"}
    assert {bool(cookie["secure"]) for cookie in browser.cookies.values()} == {scheme == "https"}


@pytest.mark.parametrize(
    ("password", "why"),
    [
        ("too short", "at least 10 characters"),
        ("password123", "too common"),
        ("48151623420", "entirely numeric"),
        ("marie-curie", "too similar"),
    ],
)
def test_a_password_that_is_easily_guessed_is_refused(django_here: Path, password: str, why: str) -> None:
    from django.utils.translation import override

    from crowdveil.broker.identity.accounts import invite
    from crowdveil.broker.identity.models import Account
    from crowdveil.broker.identity.sign_in import enrol
    from crowdveil.broker.problems import Refusal

    Account.objects.filter(name="marie curie").delete()
    account, _ = invite("marie curie", "requester", by="")
    with pytest.raises(Refusal, match=why):
        enrol(account, password)
    with override("de"), pytest.raises(Refusal, match="Passwort"):
        enrol(account, password)
    assert enrol(account, "a longer sentence that nobody guesses")


def test_the_qr_code_says_what_an_authenticator_reads(django_here: Path) -> None:
    """Decoding needs a camera's library; that another key or name gives another code is checked without one."""
    from crowdveil.broker.identity.totp import qr_code

    assert qr_code("ABCD", "ada") == qr_code("ABCD", "ada")
    assert len({qr_code("ABCD", "ada"), qr_code("ABCE", "ada"), qr_code("ABCD", "bob"), qr_code("ABCD", "<b>")}) == 4
