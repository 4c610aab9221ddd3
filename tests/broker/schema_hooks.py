"""What schemathesis is told before every call: who is asking, and ids of things that exist, so that it gets inside.

Operations that end the token they are called with, or need one that works once, get a fresh account per case: nothing
of the document is left out. Settings come as JSON in CROWDVEIL_SCHEMA: address, token, operator, and lists of ids.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from typing import Any

import httpx
import schemathesis

GIVEN = json.loads(os.environ["CROWDVEIL_SCHEMA"])
_http = httpx.Client(base_url=f"{GIVEN['address']}/api/v1", timeout=60)


def _call(path: str, body: dict[str, Any], token: str = "") -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    reply = _http.post(path, json=body, headers=headers)
    reply.raise_for_status()
    return dict(reply.json())


def _invited() -> dict[str, Any]:
    return _call("/operator/accounts", {"name": secrets.token_hex(8), "role": "requester"}, GIVEN["operator"])


def _enrolling() -> str:
    made = _invited()
    return str(_call("/sessions", {"name": made["name"], "password": made["one_time_password"]})["token"])


FRESH_TOKEN = {
    "erase_self": lambda: _call("/workers", {})["token"],
    "sign_out": lambda: _call("/account/tokens", {}, GIVEN["token"])["token"],
    "enrol": _enrolling,
    "confirm_enrolment": _enrolling,
}
FRESH_ACCOUNT = ("reset_account", "change_account")
_operator = _http.get("/account", headers={"Authorization": f"Bearer {GIVEN['operator']}"}).raise_for_status().json()


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    name = case.operation.definition.raw["operationId"]
    token = FRESH_TOKEN[name]() if name in FRESH_TOKEN else GIVEN["token"]
    case.headers["Authorization"] = f"Bearer {token}"
    for parameter, value in dict(case.path_parameters or {}).items():
        # Every other well-formed id becomes one that exists. So does the operator's own, which may have been read in an
        # earlier reply: who resets it is nobody any more.
        well_formed = re.fullmatch(r"[0-9a-f]{32}", str(value)) is not None
        if well_formed and (int(value[-1], 16) % 2 == 0 or value == _operator["id"]):
            case.path_parameters[parameter] = _existing(name, parameter, int(value[-2], 16)) or value


def _existing(operation: str, parameter: str, number: int) -> str:
    if operation in FRESH_ACCOUNT:
        return str(_invited()["id"])
    known = GIVEN["ids"].get(parameter, [])
    return known[number % len(known)] if known else ""
