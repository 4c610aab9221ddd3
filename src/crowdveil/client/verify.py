"""Comparing a running server's app with the released code, byte for byte, from outside the browser that trusts it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import httpx

from crowdveil.client.release import Manifest, integrity, read_manifest
from crowdveil.errors import InputError

# A server that cheats only browsers must not be able to tell this check from a browser by its name.
_AS_A_BROWSER = {
    "User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    "Accept": "text/html,application/xhtml+xml,*/*;q=0.8",
    "Accept-Language": "en-US,en;q=0.5",
}
_ENTRY = "index.html"


@dataclass(frozen=True, slots=True)
class Compared:
    """One file: what the release says and what the server sends."""

    name: str
    expected: str
    found: str | None

    @property
    def verdict(self) -> Literal["same", "changed", "missing"]:
        if self.found is None:
            return "missing"
        return "same" if self.found == self.expected else "changed"

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "expected": self.expected, "found": self.found, "verdict": self.verdict}


@dataclass(frozen=True, slots=True)
class Verification:
    """The whole app of one server beside one release."""

    url: str
    manifest: Manifest
    files: tuple[Compared, ...]

    @property
    def same(self) -> bool:
        return all(file.verdict == "same" for file in self.files)

    @property
    def differing(self) -> tuple[Compared, ...]:
        return tuple(file for file in self.files if file.verdict != "same")

    def to_json(self) -> dict[str, Any]:
        return {
            "url": self.url,
            "release": self.manifest.release,
            "signed": self.manifest.signature_holds,
            "public_key": self.manifest.public_key,
            "verdict": "same" if self.same else "changed",
            "files": [file.to_json() for file in self.files],
        }


def verify_client(url: str, *, manifest: Manifest | None = None, transport: Any = None) -> Verification:
    """Fetch the entry page and every file of the app as a browser does, and compare each with the release."""
    address, release = app_address(url), manifest or read_manifest()
    expected = {"": release.files[_ENTRY], **release.files}
    with httpx.Client(headers=_AS_A_BROWSER, timeout=30, transport=transport) as http:
        hashes = {name: _hash_at(http, address + name) for name in expected}
    files = tuple(Compared(name or "(entry page)", expected[name], hashes[name]) for name in expected)
    return Verification(address, release, files)


def app_address(url: str) -> str:
    """The folder of the app, whichever of its addresses was given.

    >>> app_address("https://broker.example")
    'https://broker.example/app/'
    >>> app_address("https://broker.example/app/index.html#/me")
    'https://broker.example/app/'
    """
    bare = url.partition("#")[0].partition("?")[0].removesuffix(_ENTRY)
    if not bare.startswith(("http://", "https://")):
        raise InputError(f"the address must start with http:// or https://; got {url!r}")
    folder = bare.rstrip("/")
    return folder + "/" if folder.endswith("/app") else folder + "/app/"


def _hash_at(http: httpx.Client, address: str) -> str | None:
    try:
        response = http.get(address)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise InputError(f"{address} cannot be reached: {error}", fix="check the address") from None
    return integrity(response.content) if response.status_code == httpx.codes.OK else None
