"""A requester: write a study, open it, follow it, and read estimates with their uncertainty."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from crowdveil.client.http import Broker, ProblemError
from crowdveil.client.labelling import task_leaf
from crowdveil.errors import CrowdveilError, FileError, InputError
from crowdveil.files import sidecar
from crowdveil.merkle import MerkleTree, leaf_hash
from crowdveil.progress import report_progress

MAX_PART_TASKS, MAX_PART_PAIRS = 2000, 5000
"""So many rows go into one request."""
_MAX_PART_BYTES = 400_000


class Requester:
    """A requester's calls to a broker: create, open, follow and close studies, and read their results.

    The broker's token has the scope requester: it comes from `sign_in`, or was made in the console for a program.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    @classmethod
    def sign_in(cls, broker: Broker, name: str, password: str, code: str) -> Requester:
        session = broker.call("POST", "/sessions", {"name": name, "password": password, "code": code})
        if session["enrol"]:
            raise InputError("this account is not enrolled yet", fix="sign in to the console once and enrol")
        broker.token = session["token"]
        return cls(broker)

    def create(self, draft: dict[str, Any]) -> str:
        return str(self._broker.call("POST", "/requester/studies", draft)["id"])

    def study(self, key: str) -> dict[str, Any]:
        return self._study("GET", key)

    def studies(self) -> list[dict[str, Any]]:
        return list(self._broker.items("/requester/studies"))

    def revise(self, key: str, draft: dict[str, Any]) -> dict[str, Any]:
        return self._study("PUT", key, body=draft)

    def discard(self, key: str) -> None:
        """Throw a draft away."""
        self._broker.call("DELETE", f"/requester/studies/{key}")

    def add_money(self, key: str, cents: int) -> dict[str, Any]:
        return self._study("POST", key, "/budget", {"add_cents": cents})

    def quality(self, key: str) -> dict[str, Any]:
        """How well the workers of a linkable study do, from the same batch as the estimates."""
        return self._study("GET", key, "/quality")

    def pilot(self, key: str) -> dict[str, Any]:
        return self._study("POST", key, "/pilot")

    def open(self, key: str) -> dict[str, Any]:
        return self._study("POST", key, "/open")

    def close(self, key: str) -> dict[str, Any]:
        return self._study("POST", key, "/close")

    def publish(self, key: str) -> dict[str, Any]:
        return self._study("POST", key, "/publish")

    def copy(self, key: str) -> str:
        return str(self._study("POST", key, "/copies")["id"])

    def choose_workers(self, key: str, *, n: int | None = None) -> dict[str, Any]:
        return self._study("POST", key, "/selection", {} if n is None else {"n": n})

    def progress(self, key: str) -> dict[str, Any]:
        return self._study("GET", key, "/progress")

    def results(self, key: str) -> dict[str, Any]:
        """The latest batch of estimates; ProblemError `below-minimum` before there is one."""
        return self._study("GET", key, "/results")

    def follow(self, key: str, *, seconds: float = 60.0) -> dict[str, Any]:
        """Wait for estimates."""
        end = time.monotonic() + seconds
        while True:
            try:
                return self.results(key)
            except ProblemError as problem:
                if problem.code != "below-minimum" or time.monotonic() > end:
                    raise
            time.sleep(1.0)

    def export(self, key: str, to: str | Path, *, part: int = 0) -> Path:
        """Download one part of a closed study's reports; the extension chooses CSV, Parquet or JSON."""
        path = Path(to)
        kind = path.suffix.lstrip(".").lower()
        if kind not in ("csv", "parquet", "json"):
            raise FileError(f"the extension must be .csv, .parquet or .json; got {path.name!r}", fix="rename the file")
        place = f"/requester/studies/{key}/exports/{part}"
        if kind != "parquet":
            channels = self._broker.call("GET", f"{place}/channels")
            sidecar(path).write_text(json.dumps(channels, ensure_ascii=False) + "\n")
        self._broker.download(f"{place}?format={kind}", path)
        return path

    def create_pool(
        self,
        draft: dict[str, Any],
        tasks: list[dict[str, str]],
        assignments: list[dict[str, str]] | None = None,
    ) -> tuple[str, str]:
        """A draft of a pool with its task list: its id and the list's Merkle root. A refused list leaves no draft."""
        key = self.create(draft)
        try:
            return key, self.upload_tasks(key, tasks, assignments)
        except CrowdveilError:
            self.discard(key)
            raise

    def upload_tasks(
        self, key: str, tasks: list[dict[str, str]], assignments: list[dict[str, str]] | None = None
    ) -> str:
        """Make these tasks the list of a draft, whole or not at all; returns the Merkle root that it will have.

        Rows are those of `crowdveil.files.read_tasks` and `read_assignments`.
        """
        upload = self._study("POST", key, "/uploads")["upload"]
        for first, part in _parts(tasks, MAX_PART_TASKS):
            self._study("PUT", key, f"/uploads/{upload}", {"first": first, "tasks": part})
            report_progress("tasks sent", first + len(part), len(tasks))
        for _, pairs in _parts(assignments or [], MAX_PART_PAIRS):
            self._study("PUT", key, f"/uploads/{upload}", {"first": 0, "assignments": pairs})
        root = self._study("POST", key, f"/uploads/{upload}/commit", {"n_tasks": len(tasks)})["tasks_root"]
        leaves = [leaf_hash(task_leaf(task)) for task in tasks]
        if MerkleTree(leaves).root.hex() != root:
            raise InputError("the broker has another list than the one sent", fix="upload it again")
        return str(root)

    def labels(
        self, key: str, *, order: str = "least-certain", below: float | None = None, after: int = 0, limit: int = 50
    ) -> dict[str, Any]:
        """A page of the newest labels of a pool; ProblemError `below-minimum` before there are any."""
        only = "" if below is None else f"&below={below}"
        return self._study("GET", key, f"/labels?order={order}&after={after}&limit={limit}{only}")

    def export_labels(self, key: str, to: str | Path) -> Path:
        """Download the newest labels; the extension chooses CSV, JSON lines or Parquet."""
        path = Path(to)
        kind = path.suffix.lstrip(".").lower()
        if kind not in ("csv", "jsonl", "parquet"):
            raise FileError(f"the extension must be .csv, .jsonl or .parquet; got {path.name!r}", fix="rename the file")
        self._broker.download(f"/requester/studies/{key}/labels/file?format={kind}", path)
        return path

    def export_parts(self, key: str) -> list[dict[str, Any]]:
        return list(self._study("GET", key, "/exports")["parts"])

    def _study(self, method: str, key: str, path: str = "", body: object = None) -> dict[str, Any]:
        reply: dict[str, Any] = self._broker.call(method, f"/requester/studies/{key}{path}", body)
        return reply


def _parts(rows: list[dict[str, str]], n_rows: int) -> Iterator[tuple[int, list[dict[str, str]]]]:
    """Slices of the list that fit into one request, each with the number of its first row."""
    part: list[dict[str, str]] = []
    first = n_bytes = 0
    for number, row in enumerate(rows):
        size = len(json.dumps(row))
        if part and (len(part) == n_rows or n_bytes + size > _MAX_PART_BYTES):
            yield first, part
            first, part, n_bytes = number, [], 0
        part.append(row)
        n_bytes += size
    if part:
        yield first, part
