"""A webhook reaches the address that was checked, under the name that was asked for, and nothing behind a redirect."""

from __future__ import annotations

import ipaddress
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

NAME = "hooks.example.org"


@contextmanager
def listening(address: str, port: int = 0, *, reply: int = 204, tls: ssl.SSLContext | None = None) -> Iterator[Any]:
    """A real server on loopback that remembers which names it was asked by."""
    heard: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            heard.append(self.headers["Host"])
            self.send_response(reply)
            self.send_header("Location", f"http://127.0.0.1:{self.server.server_port}/elsewhere")
            self.end_headers()

        do_GET = do_POST

        def log_message(self, *_: Any) -> None:
            return

    server = HTTPServer((address, port), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    server.heard = heard
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def private_networks(allowed: bool) -> Iterator[None]:
    from django.test import override_settings

    with override_settings(WEBHOOKS_TO_PRIVATE_ADDRESSES=allowed):
        yield


def test_the_name_is_looked_up_once_and_what_was_checked_is_connected_to(django_here: Path) -> None:
    """A name that changes where it points between the check and the connection leads nowhere new."""
    from crowdveil.broker.webhooks.delivery import post, resolve_target

    asked: list[str] = []

    def rebinding(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1" if len(asked) == 1 else "127.0.0.2"]

    with (
        private_networks(True),
        listening("127.0.0.1") as checked,
        listening("127.0.0.2", checked.server_port) as inside,
    ):
        target = resolve_target(f"http://{NAME}:{checked.server_port}/told?a=b", resolve=rebinding)
        assert post(target, b"{}", {})
        assert checked.heard == [f"{NAME}:{checked.server_port}"]
        assert inside.heard == []
    assert asked == [NAME]


@pytest.mark.parametrize(
    "found",
    [
        ["127.0.0.1"],
        ["9.9.9.9", "10.0.0.8"],
        ["::1"],
        ["::ffff:192.168.1.1"],
        ["64:ff9b::a00:1"],
        ["2002:7f00:1::"],
        ["169.254.169.254"],
        ["100.64.0.1"],
        ["0.0.0.0"],
        ["ff02::1"],
        ["fe80::1%eth0"],
    ],
)
def test_a_name_that_points_into_a_private_network_is_refused(django_here: Path, found: list[str]) -> None:
    from crowdveil.broker.problems import Refusal
    from crowdveil.broker.webhooks.delivery import resolve_target

    with private_networks(False), pytest.raises(Refusal, match="must be public"):
        resolve_target(f"https://{NAME}/", resolve=lambda *_: found)


@pytest.mark.parametrize(
    "url", ["http://hooks.example.org/", "https://user@hooks.example.org/", "https:///x", "https://a:99999/"]
)
def test_an_address_that_is_not_plain_https_is_refused(django_here: Path, url: str) -> None:
    from crowdveil.broker.problems import Refusal
    from crowdveil.broker.webhooks.delivery import resolve_target

    with private_networks(False), pytest.raises(Refusal, match=r"https://|port"):
        resolve_target(url, resolve=lambda *_: ["9.9.9.9"])


def test_names_that_are_found_slowly_take_one_place_of_the_api(
    django_here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from crowdveil.broker.identity.models import Account
    from crowdveil.broker.problems import Refusal
    from crowdveil.broker.webhooks import notices

    asked, found = threading.Event(), threading.Event()

    def slowly(url: str) -> None:
        asked.set()
        assert found.wait(30)
        raise Refusal("invalid", "the host is not known")

    owner = Account.objects.create(role="requester", name="slow lab").id
    monkeypatch.setattr(notices, "resolve_target", slowly)
    refusals: list[str] = []

    def create() -> None:
        with pytest.raises(Refusal) as refused:
            notices.create(owner, "https://slow.example/", ["results.ready"])
        refusals.append(refused.value.code)

    first = threading.Thread(target=create)
    first.start()
    assert asked.wait(30)
    create()
    found.set()
    first.join(30)
    assert refusals == ["not-ready", "invalid"]


def test_redirects_are_not_followed(django_here: Path) -> None:
    from crowdveil.broker.webhooks.delivery import post, resolve_target

    with listening("127.0.0.1", reply=307) as server, private_networks(True):
        assert not post(resolve_target(f"http://127.0.0.1:{server.server_port}/"), b"{}", {})
        assert len(server.heard) == 1


def test_tls_asks_for_the_name_and_believes_only_a_certificate_that_has_it(django_here: Path, tmp_path: Path) -> None:
    from crowdveil.broker.webhooks.delivery import post, resolve_target

    served, trusting, names = _tls(tmp_path)
    with listening("127.0.0.1", tls=served) as server, private_networks(True):
        right = resolve_target(f"https://{NAME}:{server.server_port}/", resolve=lambda *_: ["127.0.0.1"])
        assert post(right, b"{}", {}, context=trusting)
        assert names == [NAME]
        wrong = resolve_target(f"https://other.example.org:{server.server_port}/", resolve=lambda *_: ["127.0.0.1"])
        assert not post(wrong, b"{}", {}, context=trusting)
        assert not post(right, b"{}", {})
        assert len(server.heard) == 1


def _tls(place: Path) -> tuple[ssl.SSLContext, ssl.SSLContext, list[str]]:
    """A server with a certificate for the name, a client that trusts it, and the names that clients asked for."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name, now = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, NAME)]), datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, now - timedelta(days=1), now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (place / "both.pem").write_bytes(private + certificate.public_bytes(pem))
    served, names = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), []
    served.load_cert_chain(place / "both.pem")
    served.sni_callback = lambda _socket, asked, _context: names.append(asked)
    return served, ssl.create_default_context(cadata=certificate.public_bytes(pem).decode()), names


def test_an_address_is_public_whatever_its_spelling(django_here: Path) -> None:
    from crowdveil.broker.webhooks.delivery import is_public

    assert is_public("9.9.9.9")
    assert is_public("::ffff:9.9.9.9")
    assert is_public("2620:fe::fe")
    assert not is_public(str(ipaddress.IPv6Address("64:ff9b::") + int(ipaddress.IPv4Address("127.0.0.1"))))
