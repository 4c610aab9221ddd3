"""A private PostgreSQL cluster on loopback for as long as a measurement or a test run takes."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

from crowdveil.errors import CheckError


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def postgres_programs() -> Path | None:
    """Where initdb and its siblings are, if PostgreSQL is installed."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    return programs[-1].parent if programs else Path(on_path).parent if on_path else None


class Postgres:
    """initdb, start, one database after another, stop. PostgreSQL refuses to run as root, so root lends it a user."""

    def __init__(self, *, durable: bool = False) -> None:
        programs = postgres_programs()
        if programs is None:
            raise CheckError("PostgreSQL is not installed")
        # A path short enough for a unix socket.
        self._programs, self._home = programs, Path(tempfile.mkdtemp(prefix="cv-pg-"))
        self.port, self._n_databases = free_port(), 0
        self._as = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        if self._as:
            shutil.chown(self._home, "postgres")
        self._run("initdb", "-D", "data", "-U", "crowdveil", "-A", "trust", "-E", "UTF8", "--no-sync")
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self._home}"
        options += "" if durable else " -c fsync=off"
        self._run("pg_ctl", "-D", "data", "-o", options, "-l", "log", "-w", "start")

    def new_database(self) -> str:
        """The URL of a fresh, empty database."""
        self._n_databases += 1
        name = f"broker{self._n_databases}"
        self._run("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", "crowdveil", name)
        return f"postgresql://crowdveil@127.0.0.1:{self.port}/{name}"

    def log(self) -> str:
        """What the cluster wrote down about itself and about statements that failed."""
        return (self._home / "log").read_text(errors="replace")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", "data", "-m", "immediate", "stop")
        shutil.rmtree(self._home, ignore_errors=True)

    def _run(self, program: str, *arguments: str) -> None:
        command = [*self._as, str(self._programs / program), *arguments]
        # A server that is started inherits the pipes; its output goes to a file instead.
        with (self._home / "out").open("ab") as out:
            done = subprocess.run(command, cwd=self._home, stdout=out, stderr=out, check=False)
        if done.returncode:
            raise CheckError(f"{program} failed: {(self._home / 'out').read_text(errors='replace')[-500:]}")
