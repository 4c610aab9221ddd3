"""schemathesis over the whole OpenAPI document, as each role: no 5xx, no status or shape that is not documented."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from broker import plain
from broker.pool_scene import numbered_tasks, open_pool, pool_draft

from crowdveil.client import Requester

pytestmark = pytest.mark.slow
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


# Who may call what is another test's table; here each role is thorough in its own rooms.
ROOMS = {"worker": ("public", "worker"), "requester": ("requester",), "operator": ("operator", "account")}


def tags_of_operations(server: Any) -> list[str]:
    """The tag of every operation that the document has; each has one."""
    paths = plain.get(f"{server.address}/api/v1/openapi.json").json()["paths"].values()
    return [tag for path in paths for operation in path.values() for tag in operation["tags"]]


@pytest.mark.parametrize("role", ROOMS)
def test_the_api_is_what_its_document_says(role: str, seeded: Any, tmp_path: Path) -> None:
    token = {
        "worker": lambda: seeded.worker_token(),
        "requester": lambda: seeded.broker(seeded.lab).call("POST", "/account/tokens", {})["token"],
        "operator": lambda: seeded.broker(seeded.operator()).call("POST", "/account/tokens", {})["token"],
    }[role]()
    given = {"address": seeded.address, "token": token, "operator": seeded.operator(), "ids": seeded.ids}
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{seeded.address}/api/v1/openapi.json"]
    command += ["--checks", CHECKS, "--max-examples", "6", "--phases", "examples,coverage,fuzzing", "--no-color"]
    command += ["--seed", "6", "--generation-database", "none", "--suppress-health-check", "all", "--warnings", "off"]
    command += ["--continue-on-failure"]
    command += [part for tag in ROOMS[role] for part in ("--include-tag", tag)]
    hooks = {"SCHEMATHESIS_HOOKS": str(Path(__file__).with_name("schema_hooks.py"))}
    hooks |= {"CROWDVEIL_SCHEMA": json.dumps(given)}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=600, env=os.environ | hooks
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "No issues found" in done.stdout
    # Nothing is left out: the rooms together are the house, and here every operation of this room was tested.
    tags = tags_of_operations(seeded)
    assert set(tags) == {tag for room in ROOMS.values() for tag in room}
    selected = re.search(r"Selected: (\d+)/(\d+)", done.stdout)
    tested = re.search(r"Tested: (\d+)", done.stdout)
    assert selected, done.stdout[-3000:]
    assert tested, done.stdout[-3000:]
    n_mine = sum(tag in ROOMS[role] for tag in tags)
    assert (int(selected[1]), int(selected[2]), int(tested[1])) == (n_mine, len(tags), n_mine)


@pytest.fixture(scope="module")
def seeded(make_server: Any, make_draft: Any) -> Any:
    """One server for the three roles, with studies in every state, so that there is something to find."""
    server = make_server()
    server.lab = server.requester_token("schema lab")
    requester = Requester(server.broker(server.lab))
    studies = [requester.create(make_draft()) for _ in range(4)]
    for study in studies[1:]:
        requester.open(study)
    requester.close(studies[2])
    requester.close(studies[3])
    requester.publish(studies[3])
    pools = [open_pool(requester, pool_draft(), numbered_tasks(6)) for _ in range(2)]
    draft = requester.create(pool_draft())
    upload = server.broker(server.lab).call("POST", f"/requester/studies/{draft}/uploads")["upload"]
    server.ids = {"study": [*studies, *pools, draft], "upload": [upload]}
    return server
