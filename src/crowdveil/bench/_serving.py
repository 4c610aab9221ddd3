"""A broker in a process of its own, filled for measuring, and the load that is put on it from outside.

CPU and memory are the server's own, from the operating system: what the load costs is not in them.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdveil.bench._postgres import free_port

CONNECTIONS = 16
ANSWERS = 10


@dataclass(slots=True)
class Running:
    """A broker in a process of its own, and what is needed to talk to it."""

    process: subprocess.Popen[bytes]
    port: int
    seed: dict[str, Any]

    def _processes(self) -> list[str]:
        """The server and the processes it started, by their process groups."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(ProcessLookupError, FileNotFoundError):
                if int(_stat(path.name)[2]) == self.process.pid:
                    found.append(path.name)
        return found

    def cpu_seconds(self) -> float:
        """User and system time, from the operating system."""
        ticks = sum(int(_stat(each)[11]) + int(_stat(each)[12]) for each in self._processes())
        return ticks / os.sysconf("SC_CLK_TCK")

    def memory(self) -> float:
        """Resident bytes."""
        return float(sum(int(_stat(each)[21]) for each in self._processes()) * os.sysconf("SC_PAGE_SIZE"))

    def forget_peak(self) -> None:
        """Let the operating system count the peak from now on."""
        for each in self._processes():
            (Path("/proc") / each / "clear_refs").write_text("5")

    def peak_memory(self) -> float:
        """The most resident bytes since the peak was forgotten."""
        lines = (
            line
            for each in self._processes()
            for line in (Path("/proc") / each / "status").read_text().splitlines()
            if line.startswith("VmHWM:")
        )
        return float(sum(int(line.split()[1]) * 1024 for line in lines))

    def submit(self, start: int, stop: int) -> list[float]:
        """One submission for each of these workers over a few connections; seconds each."""
        latencies: list[list[float]] = [[] for _ in range(CONNECTIONS)]
        threads = [
            threading.Thread(target=self._submit_some, args=(range(start + place, stop, CONNECTIONS), times))
            for place, times in enumerate(latencies)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = [each for times in latencies for each in times]
        if len(found) != stop - start:
            raise RuntimeError(f"{stop - start - len(found)} submissions were not accepted")
        return found

    def _submit_some(self, workers: range, times: list[float]) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        path = f"/api/v1/studies/{self.seed['study']}/submissions"
        for worker in workers:
            headers = {
                "Authorization": f"Bearer {self.seed['tokens'][worker]}",
                "Idempotency-Key": secrets.token_hex(16),
            }
            begun = time.perf_counter()
            connection.request("POST", path, self.submission(), headers)
            reply = connection.getresponse()
            reply.read()
            if reply.status == 201:
                times.append(time.perf_counter() - begun)
        connection.close()

    def submission(self) -> bytes:
        reports = [{"question": q, "channel": c, "report": 1} for q, c in self.seed["channels"].items()]
        body = {"study_sha256": self.seed["sha256"], "level": "medium", "consent_version": 1}
        return json.dumps(body | {"withdrawal_sha256": secrets.token_hex(32), "reports": reports}).encode()

    def get(self, path: str) -> int:
        """Read a reply to its end; how many bytes it had."""
        return self._request("GET", path)

    def post(self, path: str) -> int:
        return self._request("POST", path)

    def _request(self, method: str, path: str) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.request(method, path, headers={"Authorization": f"Bearer {self.seed['requester']}"})
        reply = connection.getresponse()
        size = 0
        while piece := reply.read(1 << 16):
            size += len(piece)
        connection.close()
        if reply.status >= 400:
            raise RuntimeError(f"{method} {path} gave {reply.status}")
        return size

    def wait_for_results(self, path: str) -> None:
        end = time.monotonic() + 600
        while time.monotonic() < end:
            try:
                self.get(f"{path}/results")
                return
            except RuntimeError:
                time.sleep(1)


def _stat(process: str) -> list[str]:
    """The fields of /proc/PID/stat after the name: 2 is the process group, 11 and 12 the times, 21 the pages."""
    return (Path("/proc") / process / "stat").read_text().rpartition(")")[2].split()


@contextmanager
def serving(
    database: str, *, n_workers: int, n_submissions: int = 0, program: tuple[str, ...] = ("-m", "crowdveil")
) -> Iterator[Running]:
    with tempfile.TemporaryDirectory(prefix="crowdveil-bench-") as home:
        numbers = [str(number) for number in (ANSWERS, n_workers, n_submissions)]
        seeding = [sys.executable, "-m", "crowdveil.broker.ops.seed", home, database, *numbers]
        seed = json.loads(subprocess.run(seeding, check=True, capture_output=True).stdout)
        port = free_port()
        command = [sys.executable, *program, "serve", "--port", str(port), "--data-dir", home]
        command += ["--database", database] if database else []
        environment = os.environ | {"CROWDVEIL_RATE_LIMIT": "0"}
        with (Path(home) / "log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)
        try:
            wait_until_ready(port)
            yield Running(process, port, seed)
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(30)


def wait_until_ready(port: int) -> None:
    end = time.monotonic() + 120
    while time.monotonic() < end:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/readyz")
            if connection.getresponse().status == 200:
                return
        except OSError:
            time.sleep(0.2)
        finally:
            connection.close()
    raise RuntimeError("the broker did not become ready")
