"""crowdveil serve: the broker, on SQLite by default, on PostgreSQL by URL."""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from crowdveil.cli._broker import ask_passphrase
from crowdveil.errors import InputError

_DEMO_WORKERS = 150


def command(
    database: Annotated[
        str, typer.Option(help="postgresql://user@host:port/name; SQLite in the data directory without it.")
    ] = "",
    host: Annotated[
        str, typer.Option(help="The address to listen on; put a TLS proxy in front of any but this.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port to listen on.")] = 8000,
    data_dir: Annotated[Path, typer.Option(help="Where the database and the keys are kept.")] = Path("crowdveil-data"),
    processes: Annotated[int, typer.Option(min=1, max=64, help="More than one needs PostgreSQL.")] = 1,
    demo: Annotated[bool, typer.Option("--demo", help="Add a study that workers of the SDK answer.")] = False,
    log: Annotated[
        str,
        typer.Option(help="Where a line per request goes: a file, or - for stderr. With --demo a file by default."),
    ] = "",
    key_escrow: Annotated[
        Path | None,
        typer.Option(help="A file for encrypted copies of the keys of open studies; a new one asks for a passphrase."),
    ] = None,
    confirm_clock: Annotated[
        bool, typer.Option("--confirm-clock", help="The time is right: let things expire again after the clock jumped.")
    ] = False,
) -> None:
    """Run the broker. The first start creates everything and prints the operator's one-time password.

    Example: crowdveil serve --port 8000 --data-dir ./crowdveil-data
    """
    if processes > 1 and not database.startswith("postgres"):
        raise InputError("SQLite is served by one process", fix="leave out --processes or give --database")
    if processes > 1 and not hasattr(os, "fork"):
        raise InputError("this system serves with one process", fix="leave out --processes")
    from crowdveil.broker.bootstrap import Place, migrate, open_to_others

    _check_free(host, port)
    if data_dir.exists() and not data_dir.is_dir():
        raise InputError(f"--data-dir must be a folder; got the file {data_dir}", fix="choose another name")
    if log not in ("", "-") and not Path(log).parent.is_dir():
        raise InputError(f"the folder of --log does not exist; got {log}", fix="create it first")
    log = log or (str(data_dir.resolve() / "requests.log") if demo else "-")
    os.environ["CROWDVEIL_LOG"] = log
    if processes > 1:
        # Read when prometheus_client is imported; the counters of all processes are in files there.
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = metrics = tempfile.mkdtemp(prefix="crowdveil-metrics-")
        atexit.register(shutil.rmtree, metrics, ignore_errors=True)
    os.environ["CROWDVEIL_DEMO"] = "1" if demo else "0"
    if demo:
        # A whole crowd and its audience come from one address.
        os.environ.setdefault("CROWDVEIL_SIGN_UP_LIMIT", "0")
    Place(data_dir.resolve(), database).enter()
    migrate()
    # Before the one-time password is used up: a system may lack what the server needs.
    from crowdveil.broker import server

    if open_to_others(data_dir):
        _warn(f"other users may enter {data_dir}, where the keys are; make it private: chmod 700 {data_dir}")
    _check_clock(confirm_clock)
    from crowdveil.broker.submissions.acknowledged import find_losses

    for loss in find_losses():
        _warn(str(loss))
    _use_escrow(key_escrow)
    address = f"http://{host}:{port}"
    _greet(address)
    if demo:
        _start_demo(address)
    server.run(host, port, processes=processes)


def _check_free(host: str, port: int) -> None:
    """Say at once, before anything is created, that the address cannot be had."""
    try:
        kind, *_, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(kind, socket.SOCK_STREAM) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind(place)
    except OSError as error:
        fix = "stop what listens there, or choose another --host or --port"
        raise InputError(f"cannot listen on {host}:{port}: {error.strerror}", fix=fix) from None


def _warn(sentence: str) -> None:
    typer.echo(f"warning: {sentence}", err=True)


def _check_clock(is_confirmed: bool) -> None:
    from crowdveil.broker import clock, clock_guard

    if is_confirmed:
        clock_guard.confirm()
    elif not clock_guard.is_trusted():
        _warn(
            f"the clock has jumped; it says {clock.iso(clock.now())}. Nothing expires until it is back; "
            "if this time is right, start with --confirm-clock"
        )


def _use_escrow(path: Path | None) -> None:
    from crowdveil.broker import key_escrow
    from crowdveil.broker.studies.lifecycle import synchronize_escrow

    if path is not None:
        if not path.exists():
            key_escrow.create(path.resolve(), ask_passphrase(new=True))
        key_escrow.use(path.resolve())
    synchronize_escrow()


def _greet(address: str) -> None:
    from crowdveil.broker.identity.first_operator import first_operator

    typer.echo(f"workers answer at      {address}/app/")
    typer.echo(f"requesters ask at      {address}/console/")
    typer.echo(f"programs talk to       {address}/api/v1/")
    if password := first_operator():
        typer.echo(f"the operator signs in as 'operator' with the one-time password {password}")


def _start_demo(address: str) -> None:
    """The demo's workers run in a process of their own: what they answer never enters this one."""
    from crowdveil.broker.demo import demo_link, demo_study

    study, n_answered = demo_study()
    worker, requester = f"{address}/app/#/studies/{study}", f"{address}/console/enter/{demo_link()}"
    typer.echo("")
    typer.echo(f"1. answer as a worker:      {worker}")
    typer.echo(f"2. look as its requester:   {requester}  (works once)")
    typer.echo("")
    if n_answered < _DEMO_WORKERS:
        missing = str(_DEMO_WORKERS - n_answered)
        crowd = subprocess.Popen([sys.executable, "-m", "crowdveil.client.demo", address, study, missing])
        atexit.register(crowd.terminate)
