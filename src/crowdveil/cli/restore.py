"""crowdveil restore: a backup into an empty broker, on either database."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from crowdveil.cli._broker import ask_passphrase
from crowdveil.cli._common import Json, show
from crowdveil.errors import FileError

# How a gzipped file begins; anything else is refused before a data directory is made.
_GZIP = b"\x1f\x8b"


def command(
    backup: Annotated[Path, typer.Argument(help="What 'crowdveil backup' wrote.")],
    data_dir: Annotated[Path, typer.Option(help="Where the broker shall keep its things.")] = Path("crowdveil-data"),
    database: Annotated[str, typer.Option(help="The --database that the broker will be served with.")] = "",
    key_escrow: Annotated[
        Path | None, typer.Option(help="What 'crowdveil serve --key-escrow' wrote: its studies stay open.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Fill an empty broker from a backup. Open studies whose key is neither here nor in an escrow come back closed.

    Example: crowdveil restore broker.backup.gz --data-dir ./new-place
    """
    if not backup.is_file():
        raise FileError(f"there is no file {backup}", fix="give what 'crowdveil backup' wrote")
    with backup.open("rb") as stream:
        if stream.read(2) != _GZIP:
            raise FileError(f"{backup} is not a backup", fix="give what 'crowdveil backup' wrote")
    from crowdveil.broker.bootstrap import Place, migrate

    Place(data_dir.resolve(), database).enter()
    migrate()
    from crowdveil.broker import key_escrow as escrow
    from crowdveil.broker import keys
    from crowdveil.broker.ops.backup import open_studies, restore

    study_keys: dict[str, bytes] = {}
    if key_escrow is not None:
        study_keys = escrow.open_keys(key_escrow, ask_passphrase(new=False))
        escrow.use(key_escrow.resolve())
    ending = [study for study in open_studies(backup) if not keys.has_study_key(study) and study not in study_keys]
    if ending:
        warning = f"the keys of these open studies are gone: {', '.join(ending)}; they will be closed"
        typer.echo(f"warning: {warning}", err=True)
        if sys.stdin.isatty() and not as_json:
            typer.confirm("Restore and close them?", abort=True, err=True)
    n_rows, closed = restore(backup, study_keys)
    words = f"{n_rows} rows restored" + (f"; closed, because their key is gone: {', '.join(closed)}" if closed else "")
    show({"rows": n_rows, "closed": closed}, as_json=as_json, human=lambda: typer.echo(words))
