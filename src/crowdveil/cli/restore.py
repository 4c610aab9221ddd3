"""crowdveil restore: a backup into an empty broker, on either database."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crowdveil.cli._common import Json, show
from crowdveil.errors import FileError


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
        raise FileError(f"there is no file {backup}")
    from crowdveil.broker.start import Place, migrate

    Place(data_dir.resolve(), database).enter()
    migrate()
    from crowdveil.broker.operations.backup import restore

    n_rows, closed = restore(backup)
    words = f"{n_rows} rows restored" + (f"; closed, because their key is gone: {', '.join(closed)}" if closed else "")
    show({"rows": n_rows, "closed": closed}, as_json=as_json, human=lambda: typer.echo(words))
