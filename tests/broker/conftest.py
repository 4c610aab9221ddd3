"""Real brokers on loopback, on SQLite and on a private PostgreSQL cluster that lives as long as the test run."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from broker import plain
from waiting import until

from crowdveil.bench._postgres import Postgres, free_port
from crowdveil.client import Broker, Requester

SOURCE = Path(__file__).resolve().parents[2] / "src"
# Programs that tests start; looking into them for doctests would start them.
collect_ignore = ["serve.py", "schema_hooks.py", "small_server.py"]
_ROOM = 2**30


def new_home(homes: Path, name: str) -> Path:
    """A folder of its own for a broker or a crowd of devices."""
    return Path(tempfile.mkdtemp(dir=homes, prefix=f"{name}-"))


class Server:
    """`crowdveil serve` as a user starts it, with its operator enrolled."""

    def __init__(self, home: Path, database: str = "", *options: str, demo: bool = False, **environment: str) -> None:
        self.home, self.database, self.port = home, database, free_port()
        self._options = [*options, *(["--demo"] if demo else [])]
        self.address = f"http://127.0.0.1:{self.port}"
        self.log_path = home / "server.log"
        self._brokers: list[Broker] = []
        self._environment = {
            "CROWDVEIL_RATE_LIMIT": "0",
            "CROWDVEIL_SIGN_UP_LIMIT": "0",
            "CROWDVEIL_WEBHOOKS_TO_PRIVATE_ADDRESSES": "1",
            "PYTHONPATH": str(SOURCE),
            **environment,
        }
        self.start()
        found = re.search(r"one-time password (\S+)", self.log_path.read_text())
        self.one_time_password = found[1] if found else ""
        self._operator = ""

    def start(self) -> None:
        program = str(Path(__file__).with_name("serve.py"))
        command = [sys.executable, program, "serve", "--port", str(self.port), "--data-dir", str(self.home)]
        command += ["--database", self.database] if self.database else []
        command += self._options
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, env=os.environ | self._environment, start_new_session=True
            )
        until(self.ready, explain=self.log_path.read_text)

    def ready(self) -> bool:
        assert self.process.poll() is None, self.log_path.read_text()
        try:
            return plain.get(f"{self.address}/readyz", timeout=2).status_code == 200
        except httpx.TransportError:
            return False

    def stop(self, how: int = signal.SIGTERM) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, how)
            self.process.wait(30)

    def broker(self, token: str = "") -> Broker:
        self._brokers.append(Broker(self.address, token=token))
        return self._brokers[-1]

    def end(self) -> None:
        """Stop serving at once and close what was opened towards it; leaving in peace is another test's matter."""
        self.stop(signal.SIGKILL)
        for broker in self._brokers:
            broker.close()

    def operator(self) -> str:
        """The operator's token, after enrolling like a person does."""
        if not self._operator:
            self._operator = self.enrolled("operator", self.one_time_password)
        return self._operator

    def enrolled(self, name: str, one_time_password: str) -> str:
        """One-time password → lasting password and authenticator → session token."""
        import base64
        import hashlib
        import hmac
        import struct

        def code(secret: str, shift: int) -> str:
            step = int(time.time() // 30) + shift
            mac = hmac.new(base64.b32decode(secret), struct.pack(">Q", step), hashlib.sha1).digest()
            offset = mac[-1] & 15
            return f"{(int.from_bytes(mac[offset : offset + 4], 'big') & 0x7FFFFFFF) % 10**6:06d}"

        broker = self.broker()
        broker.token = broker.call("POST", "/sessions", {"name": name, "password": one_time_password})["token"]
        lasting = f"a lasting password of {name}"
        secret = broker.call("POST", "/account/enrolment", {"new_password": lasting})["totp_secret"]
        broker.call("POST", "/account/enrolment/confirmation", {"code": code(secret, 0)})
        # A code is good once; the next step's is accepted already.
        session = {"name": name, "password": lasting, "code": code(secret, 1)}
        return str(broker.call("POST", "/sessions", session)["token"])

    def requester_token(self, name: str) -> str:
        made = self.broker(self.operator()).call("POST", "/operator/accounts", {"name": name, "role": "requester"})
        return self.enrolled(name, made["one_time_password"])

    def requester(self, name: str) -> Requester:
        return Requester(self.broker(self.requester_token(name)))

    def worker_token(self, **wishes: Any) -> str:
        return str(self.broker().call("POST", "/workers", wishes)["token"])


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where databases of the tests live: in memory if there is room. Killing a process loses no file there either."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > _ROOM
    with tempfile.TemporaryDirectory(
        dir=memory if roomy else tmp_path_factory.getbasetemp(), prefix="crowdveil-", ignore_cleanup_errors=True
    ) as home:
        yield Path(home)


@pytest.fixture
def tmp_path(homes: Path) -> Path:
    """Devices write their ledgers through to the disk, too, hundreds of them in one test."""
    return Path(tempfile.mkdtemp(dir=homes))


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    cluster = Postgres()
    yield cluster
    cluster.stop()


@pytest.fixture(scope="session")
def sqlite_server(homes: Path) -> Iterator[Server]:
    running = Server(new_home(homes, "sqlite"))
    yield running
    running.end()


@pytest.fixture(scope="session")
def postgres_server(postgres: Postgres, homes: Path) -> Iterator[Server]:
    # Two processes, so that no lock of one process can hide a race.
    running = Server(new_home(homes, "postgresql"), postgres.new_database(), "--processes", "2")
    yield running
    running.end()


@pytest.fixture(scope="session", params=["sqlite", "postgres"])
def server(request: pytest.FixtureRequest) -> Server:
    """The same broker on both databases."""
    running: Server = request.getfixturevalue(f"{request.param}_server")
    return running


@pytest.fixture(scope="session")
def make_server(homes: Path) -> Iterator[Callable[..., Server]]:
    """Servers for tests that need one of their own."""
    made: list[Server] = []

    def make(database: str = "", *, home: Path | None = None, demo: bool = False, **environment: str) -> Server:
        made.append(Server(home or new_home(homes, "own"), database, demo=demo, **environment))
        return made[-1]

    yield make
    for each in made:
        each.end()


def draft(**changes: Any) -> dict[str, Any]:
    """A small study: two levels, two questions."""
    return {
        "title": "Health at work",
        "purpose": "To learn how many people go to work ill.",
        "consent_text": "I agree to take part.",
        "quota": 500,
        "minimum_n": 20,
        "budget_cents": 100_000,
        "questions": [
            {"id": "ill", "text": "Did you go to work ill?", "domain": {"type": "choices", "options": ["no", "yes"]}},
            {"id": "days", "text": "How often?", "domain": {"type": "scale", "low": "1", "high": "5"}},
        ],
        "levels": [
            {"name": "low", "mechanism": "randomized-response", "epsilon": "2", "pay_cents": 40},
            {"name": "medium", "mechanism": "randomized-response", "epsilon": "1", "pay_cents": 20},
        ],
        **changes,
    }


@pytest.fixture(scope="session")
def make_draft() -> Callable[..., dict[str, Any]]:
    return draft


@pytest.fixture(scope="session")
def django_here(homes: Path) -> Path:
    """Django in this process, for tests that look at models rather than over HTTP."""
    from crowdveil.broker.bootstrap import Place, migrate

    place = Place(new_home(homes, "here"))
    place.enter()
    from django.contrib.auth.hashers import ScryptPasswordHasher

    ScryptPasswordHasher.work_factor = 2
    migrate()
    return place.data_dir
