"""An open study on a running server, and a submission to it in good order."""

from __future__ import annotations

import hashlib
import json
import secrets
from typing import Any

import httpx
from broker import plain


class Ready:
    """An open, participation-protected study with a valid submission to spoil."""

    def __init__(self, server: Any, make_draft: Any) -> None:
        self.server = server
        self.requester = server.requester(f"refusals {secrets.token_hex(4)}")
        self.study = self.requester.create(make_draft(protects_participation=True))
        self.requester.open(self.study)
        self.signed = server.broker().call("GET", f"/studies/{self.study}")
        self.token = server.worker_token()

    def body(self) -> dict[str, Any]:
        level = self.signed["definition"]["levels"][1]
        return {
            "study_sha256": self.signed["sha256"],
            "level": "medium",
            "consent_version": 1,
            "withdrawal_sha256": hashlib.sha256(secrets.token_bytes(32)).hexdigest(),
            "reports": [{"question": q, "channel": c, "report": 0} for q, c in level["channels"].items()],
        }

    def post(self, body: Any, *, key: str | None = None, raw: bytes | None = None) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.token}", "Idempotency-Key": key or secrets.token_hex(16)}
        content = json.dumps(body).encode() if raw is None else raw
        url = f"{self.server.address}/api/v1/studies/{self.study}/submissions"
        return plain.post(url, content=content, headers=headers, timeout=30)

    def nothing_stored(self) -> None:
        assert self.requester.progress(self.study)["taken"] == 0
        budget = self.server.broker(self.token).call("GET", "/workers/me")["budget"]
        assert budget["epsilon_spent_nano"] == budget["epsilon_held_nano"] == 0
