"""A changed byte anywhere in the app is noticed; signatures hold for what was signed and for nothing else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from typer.testing import CliRunner

from crowdveil.cli import app
from crowdveil.client.release import DEVICE, NAME, Manifest, file_hashes, read_manifest
from crowdveil.client.verify import verify_client
from crowdveil.errors import FileError, InputError

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "tools" / "release_device.py"


def server(changed: dict[str, bytes | None] | None = None) -> httpx.MockTransport:
    """A server that sends the app's files, some of them changed or missing."""
    changed = changed or {}

    def answer(request: httpx.Request) -> httpx.Response:
        name = request.url.path.removeprefix("/app/")
        content = changed[name] if name in changed else (DEVICE / (name or "index.html")).read_bytes()
        return httpx.Response(404) if content is None else httpx.Response(200, content=content)

    return httpx.MockTransport(answer)


def build(folder: Path, **environment: str) -> None:
    env = os.environ | {"PYTHONPATH": str(ROOT / "src")} | environment
    subprocess.run([sys.executable, str(BUILD), str(folder)], env=env, check=True, capture_output=True, text=True)


def test_the_released_app_is_the_same() -> None:
    found = verify_client("http://broker.example", transport=server())
    assert found.same
    assert found.to_json()["verdict"] == "same"


@pytest.mark.parametrize("name", ["", *sorted(read_manifest().files)])
def test_one_changed_byte_is_noticed(name: str) -> None:
    content = bytearray((DEVICE / (name or "index.html")).read_bytes())
    content[len(content) // 2] ^= 1
    found = verify_client("http://broker.example", transport=server({name: bytes(content)}))
    assert [file.name for file in found.differing] == [name or "(entry page)"]


def test_a_missing_file_is_noticed() -> None:
    found = verify_client("http://broker.example/app/", transport=server({"sampler.js": None}))
    assert [(file.name, file.verdict) for file in found.differing] == [("sampler.js", "missing")]


def test_a_server_that_is_not_there_is_one_sentence() -> None:
    with pytest.raises(InputError, match="cannot be reached"):
        verify_client("http://127.0.0.1:9")
    with pytest.raises(InputError, match="must start with http"):
        verify_client("broker.example")


def test_the_generated_parts_are_up_to_date(tmp_path: Path) -> None:
    copy = tmp_path / "device"
    shutil.copytree(DEVICE, copy)
    build(copy)
    changed = [name for name, digest in file_hashes(copy).items() if digest != file_hashes(DEVICE).get(name)]
    assert changed == [], "run python tools/release_device.py"
    assert (copy / NAME).read_bytes() == (DEVICE / NAME).read_bytes(), "run python tools/release_device.py"


def test_a_change_in_any_file_is_a_new_release(tmp_path: Path) -> None:
    copy = tmp_path / "device"
    shutil.copytree(DEVICE, copy)
    style = copy / "style.css"
    style.write_bytes(style.read_bytes() + b"\n")
    build(copy)
    assert read_manifest(copy / NAME).release != read_manifest().release
    assert read_manifest(copy / NAME).release in (copy / "sw.js").read_text(encoding="utf-8")


def test_a_key_signs_the_manifest_and_a_changed_one_is_not_signed(tmp_path: Path) -> None:
    key = Ed25519PrivateKey.generate()
    pem = tmp_path / "key.pem"
    pem.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    copy = tmp_path / "device"
    shutil.copytree(DEVICE, copy)
    build(copy, CROWDVEIL_RELEASE_KEY=str(pem))
    signed = read_manifest(copy / NAME)
    assert signed.signature_holds
    assert signed.public_key == key.public_key().public_bytes_raw().hex()
    other = Manifest(
        signed.release, signed.files | {"app.js": "0"}, signed.headers, signed.public_key, signed.signature
    )
    assert not other.signature_holds


def test_what_is_in_the_repository_is_a_development_build() -> None:
    manifest = read_manifest()
    assert (manifest.public_key, manifest.signature, manifest.signature_holds) == (None, None, False)


def test_a_broken_manifest_is_one_sentence(tmp_path: Path) -> None:
    for content in ("", "{}", json.dumps(read_manifest().to_json() | {"format": "other"})):
        (tmp_path / NAME).write_text(content, encoding="utf-8")
        with pytest.raises(FileError, match="manifest"):
            read_manifest(tmp_path / NAME)


def test_the_command_says_it_and_exits_with_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(changed: dict[str, bytes | None], *flags: str) -> Any:
        original = httpx.Client
        monkeypatch.setattr(httpx, "Client", lambda **given: original(**(given | {"transport": server(changed)})))
        result = CliRunner().invoke(app, ["verify-client", "http://broker.example", *flags])
        monkeypatch.setattr(httpx, "Client", original)
        return result

    good, bad = run({}), run({"app.js": b"x"}, "--json")
    assert good.exit_code == 0
    assert "development build" in good.output
    assert bad.exit_code == 1
    assert json.loads(bad.output)["verdict"] == "changed"
    assert run({}, "--public-key", "ab").exit_code == 1
