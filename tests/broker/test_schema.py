"""schemathesis over the whole OpenAPI document, as each role: no 5xx, no status or shape that is not documented."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


# Who may call what is another test's table; here each role is thorough in its own rooms.
ROOMS = {"worker": ("public", "worker"), "requester": ("requester",), "operator": ("operator", "account")}


@pytest.mark.parametrize("role", ROOMS)
def test_the_api_is_what_its_document_says(role: str, make_server: Any, make_draft: Any, tmp_path: Path) -> None:
    server = _seeded(make_server, make_draft)
    token = {
        "worker": lambda: server.worker_token(),
        "requester": lambda: server.broker(server.lab).call("POST", "/account/tokens", {})["token"],
        "operator": lambda: server.broker(server.operator()).call("POST", "/account/tokens", {})["token"],
    }[role]()
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{server.address}/api/v1/openapi.json"]
    command += ["--checks", CHECKS, "--max-examples", "6", "--phases", "examples,coverage,fuzzing", "--no-color"]
    command += ["--header", f"Authorization: Bearer {token}", "--seed", "6", "--generation-database", "none"]
    command += ["--suppress-health-check", "all", "--warnings", "off", "--exclude-operation-id", "sign_out"]
    command += ["--exclude-operation-id", "erase_self", "--continue-on-failure"]
    command += [part for tag in ROOMS[role] for part in ("--include-tag", tag)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=600)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "No issues found" in done.stdout


_kept: dict[str, Any] = {}


def _seeded(make_server: Any, make_draft: Any) -> Any:
    """One server for the three roles, with a study in it, so that there is something to find."""
    if "server" not in _kept:
        server = _kept["server"] = make_server()
        server.lab = server.requester_token("schema lab")
        from crowdveil.client import Requester

        requester = Requester(server.broker(server.lab))
        requester.open(requester.create(make_draft()))
    return _kept["server"]
