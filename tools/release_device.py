"""Write what must agree in the device code: import map, integrity, content policy, release manifest.

Run it after every change in src/crowdveil/device; a test fails when it was forgotten. With CROWDVEIL_RELEASE_KEY naming
a PEM file the manifest is signed; without, the build says that it is for development.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import sys
from pathlib import Path

from crowdveil.client.release import DEVICE, NAME, Manifest, file_hashes, integrity, read_private_key

# Not part of the app: for Node, for the type checker.
TOOLS = {"package.json", "conformance.mjs", "types.d.ts"}
POLICY = (
    "default-src 'none'; script-src 'self' '{import_map}'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; "
    "require-trusted-types-for 'script'; trusted-types crowdveil"
)


def build(folder: Path, key_path: str | None) -> None:
    """Bring the generated parts of the folder up to date."""
    page, worker = folder / "index.html", folder / "sw.js"
    page.write_text(_page(folder, page.read_text(encoding="utf-8"), release="", signed=False), encoding="utf-8")
    release = _release(folder)
    signed = key_path is not None
    page.write_text(_page(folder, page.read_text(encoding="utf-8"), release=release, signed=signed), encoding="utf-8")
    worker.write_text(_worker(worker.read_text(encoding="utf-8"), release), encoding="utf-8")
    served = {name: digest for name, digest in file_hashes(folder).items() if name not in TOOLS}
    manifest = Manifest(release, served, _headers(page.read_text(encoding="utf-8")))
    if key_path is not None:
        manifest = manifest.signed_by(read_private_key(Path(key_path)))
    text = json.dumps(manifest.to_json(), indent=1, ensure_ascii=False) + "\n"
    (folder / NAME).write_text(text, encoding="utf-8")


def app_files(folder: Path) -> list[str]:
    """What a worker's browser loads and keeps."""
    return [name for name in file_hashes(folder) if name not in TOOLS and name != "sw.js"]


def _release(folder: Path) -> str:
    """One name for all files: a change in any of them is a new release."""
    hashes = file_hashes(folder) | {"sw.js": _hash(_worker((folder / "sw.js").read_text(encoding="utf-8"), ""))}
    return _hash("".join(f"{name} {hashes[name]}\n" for name in sorted(hashes)))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _page(folder: Path, page: str, *, release: str, signed: bool) -> str:
    modules = [name for name in app_files(folder) if name.endswith(".js")]
    hashes = {f"./{name}": integrity((folder / name).read_bytes()) for name in modules}
    import_map = json.dumps({"integrity": hashes}, indent=1)
    digest = base64.b64encode(hashlib.sha256(import_map.encode()).digest()).decode()
    policy = POLICY.format(import_map=f"sha256-{digest}")
    page = re.sub(r'(<script type="importmap">).*?(</script>)', lambda m: m[1] + import_map + m[2], page, flags=re.S)
    page = re.sub(r'(Content-Security-Policy" content=")[^"]*', lambda m: m[1] + policy, page)
    preloads = "".join(f'<link rel="modulepreload" href="{name}">\n' for name in modules)
    page = re.sub(r'(<!-- modules -->\n)(?:<link rel="modulepreload"[^>]*>\n)*', "", page)
    page = page.replace('<script type="module"', "<!-- modules -->\n" + preloads + '<script type="module"')
    mark = f"{release} signed" if signed else release
    page = re.sub(r'(name="release" content=")[^"]*', lambda m: m[1] + mark, page)
    return re.sub(r'(href|src)="([\w./]+\.(?:css|js|json))"(?: integrity="[^"]*")?', _with_integrity(folder), page)


def _with_integrity(folder: Path):  # type: ignore[no-untyped-def]
    def replaced(found: re.Match[str]) -> str:
        return f'{found[1]}="{found[2]}" integrity="{integrity((folder / found[2]).read_bytes())}"'

    return replaced


def _worker(script: str, release: str) -> str:
    return re.sub(r'const RELEASE = "[^"]*"', f'const RELEASE = "{release}"', script)


def _headers(page: str) -> dict[str, str]:
    """What a server sends with every file of the app; the page carries its policy, too, for a careless server."""
    found = re.search(r'Content-Security-Policy" content="([^"]*)', page)
    assert found
    return {
        "Content-Security-Policy": f"{found[1]}; frame-ancestors 'none'",
        "Integrity-Policy": "blocked-destinations=(script)",
        "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-cache",
    }


if __name__ == "__main__":
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else DEVICE, os.environ.get("CROWDVEIL_RELEASE_KEY"))
