"""A small broker for the device's own tests: the app's files with their headers, and the API the worker's app uses.

It keeps every request, so that a test can say what has left the device. The real broker is tested beside it.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from device import studies
from device.node import DEVICE

TYPES = {"css": "text/css", "html": "text/html", "js": "text/javascript", "svg": "image/svg+xml"}
NOTHING_SPENT = {"epsilon_spent_nano": 0, "rho_spent_nano": 0}


class FixtureBroker:
    """Studies, changed files and answers can be set while it runs."""

    def __init__(self) -> None:
        self.studies: dict[str, dict[str, Any]] = {}
        self.served: dict[str, dict[str, Any]] = {}
        self.log: list[dict[str, Any]] = []
        self.changed_files: dict[str, bytes] = {}
        self.requests: list[dict[str, Any]] = []
        self.submissions: dict[str, dict[str, Any]] = {}
        self.spent = dict(NOTHING_SPENT)
        self.told = {"epsilon_cap_nano": 0, "default_level": "medium"}
        # What a worker is paid as, by token; a token that is gone is not known any more.
        self.payees: dict[str, str] = {}
        # Good for nothing but fetching a fresh one.
        self.expired: set[str] = set()
        self.expires = "2099-01-01T00:00:00Z"
        self.public_key = studies.PUBLIC_KEY
        self.forge_receipts = False
        self.closed = False
        self.answered_elsewhere = False
        self.manifest = json.loads((DEVICE / "manifest.json").read_text(encoding="utf-8"))
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def open(self, study: dict[str, Any]) -> None:
        """Put a study on offer and into the log."""
        previous = self.log[-1]["entry"] if self.log else studies.ZEROS
        entry = studies.log_entry(study, index=len(self.log) + 1, previous=previous)
        self.log.append(entry)
        self.studies[study["id"]] = study
        self.served[study["id"]] = studies.served(study, entry)

    def file(self, name: str) -> bytes | None:
        name = name or "index.html"
        if name in self.changed_files:
            return self.changed_files[name]
        path = DEVICE / name
        return path.read_bytes() if path.is_file() else None

    def answer(self, method: str, path: str, query: str, body: Any, headers: dict[str, str]) -> tuple[int, Any]:  # noqa: C901
        """The API, as far as the worker's app uses it."""
        parts = path.split("/")
        token = headers.get("authorization", "").removeprefix("Bearer ")
        is_renewal = (method, path) == ("POST", "workers/me/tokens")
        if token and (token not in self.payees or (token in self.expired and not is_renewal)):
            return 401, {"type": "/problems/unauthorized", "title": "Unauthorized", "status": 401, "detail": "no token"}
        match [method, *parts]:
            case ["GET", ""]:
                return 200, {"name": "crowdveil", "public_key": self.public_key, "demo": False}
            case ["GET", "log"]:
                after = int(dict(pair.split("=") for pair in query.split("&"))["after"])
                return 200, {"items": self.log[after:], "next": None, "head": ""}
            case ["GET", "studies"]:
                return 200, {"items": [studies.card(study) for study in self.studies.values()], "next": None}
            case ["GET", "workers", "me", "studies"]:
                status = {"status": "submitted" if self.answered_elsewhere else "available"}
                return 200, {"items": [studies.card(study) | status for study in self.studies.values()], "next": None}
            case ["GET", "studies", name] if name in self.served:
                return 200, self.served[name]
            case ["POST", "workers"]:
                self.told = dict(body)
                return 201, {"id": "w" * 32, "token": self._issued(f"p{len(self.payees)}"), "expires": self.expires}
            case ["POST", "workers", "me", "tokens"]:
                return 201, {"id": "0" * 32, "token": self._issued(self.payees[token]), "expires": self.expires}
            case ["GET" | "PATCH", "workers", "me"]:
                self.told |= body or {}
                cap = {"epsilon_cap_nano": self.told["epsilon_cap_nano"]}
                level = self.told["default_level"]
                return 200, {"id": "w" * 32, "default_level": level, "budget": self.spent | cap}
            case ["DELETE", "workers", "me"]:
                return 204, None
            case ["GET", "workers", "me", "export"]:
                return 200, {"account": "w" * 32}
            case ["GET", "workers", "me", "payments"]:
                return 200, {"payee": self.payees[token], "earned": [], "paid_out": [], "balance_cents": 20}
            case ["PUT", "studies", name, "reservation"] if self.closed:
                return 409, {"type": "/problems/not-open", "title": "Not open", "status": 409, "detail": "closed"}
            case ["PUT", "studies", name, "reservation"]:
                return 201, {"study": name, "level": body["level"], "expires": "2099-01-01T00:00:00Z"}
            case ["DELETE", "studies", name, "reservation"]:
                return 204, None
            case ["POST", "studies", name, "submissions"] if self.closed:
                return 409, {"type": "/problems/not-open", "title": "Not open", "status": 409, "detail": "closed"}
            case ["POST", "studies", name, "submissions"]:
                return self._submit(name, body, headers["idempotency-key"])
            case ["POST", "studies", name, "withdrawals"] if not self.submissions:
                return 404, {"type": "/problems/not-found", "title": "Not found", "status": 404, "detail": "none"}
            case ["POST", "studies", name, "withdrawals"]:
                return 200, {"withdrawn": True, "study": name}
        return 404, {"type": "/problems/not-found", "title": "Not found", "status": 404, "detail": f"no {path}"}

    def _issued(self, payee: str) -> str:
        token = f"cv_worker_{len(self.payees):043}"
        self.payees[token] = payee
        return token

    def _submit(self, name: str, body: Any, key: str) -> tuple[int, Any]:
        again = key in self.submissions
        self.submissions.setdefault(key, body)
        receipt = {"receipt": "f" * 32, "study": name, "n_reports": len(body["reports"]), "pay_cents": 20}
        receipt |= {"day": "2026-11-15", "level": body["level"], "charge": None}
        signature = studies.sign("something else" if self.forge_receipts else receipt)
        return (200 if again else 201), receipt | {"signature": signature}


def _handler(broker: FixtureBroker) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def _any(self) -> None:
            path, _, query = self.path.partition("?")
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            if path.startswith("/app/"):
                content = broker.file(path.removeprefix("/app/"))
                kind = TYPES.get(path.rpartition(".")[2] if "." in path else "html", "application/json")
                return self._send(200 if content is not None else 404, content or b"", kind, broker.manifest["headers"])
            broker.requests.append({"method": self.command, "path": path, "body": raw.decode(), "headers": headers})
            body = json.loads(raw) if raw else None
            status, answer = broker.answer(self.command, path.removeprefix("/api/v1/"), query, body, headers)
            return self._send(status, b"" if answer is None else json.dumps(answer).encode(), "application/json", {})

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _any

        def _send(self, status: int, content: bytes, kind: str, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in {**headers, "Content-Type": kind, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

    return Handler
