"""crowdveil restore: a backup into an empty broker, on either database."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crowdveil.cli._common import Json, show
from crowdveil.errors import FileError

# How a gzipped file begins; anything else is refused before a data directory is made.
_GZIP = b"\x1f\x8b"


def command(
    backup: Annotated[Path, typer.Argument(help="What 'crowdveil backup' wrote.")],
    data_dir: Annotated[Path, typer.Option(help="Where the broker shall keep its things.")] = Path("crowdveil-data"),
    database: Annotated[str, typer.Option(help="The --database that the broker will be served with.")] = "",
    as_json: Json = False,
) -> None:
    """Fill an empty broker from a backup. Studies whose key is not in the data directory come back closed.

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
    from crowdveil.broker.ops.backup import restore

    n_rows, closed = restore(backup)
    words = f"{n_rows} rows restored" + (f"; closed, because their key is gone: {', '.join(closed)}" if closed else "")
    show({"rows": n_rows, "closed": closed}, as_json=as_json, human=lambda: typer.echo(words))
