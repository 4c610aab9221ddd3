"""crowdveil backup: everything a broker holds, except the keys that link reports to workers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crowdveil.cli._common import Force, Json, check_output, show, whole_file
from crowdveil.errors import FileError


def command(
    output: Annotated[Path, typer.Option("-o", "--output", help="The backup file, for example broker.backup.gz.")],
    data_dir: Annotated[Path, typer.Option(help="Where the broker keeps its things.")] = Path("crowdveil-data"),
    database: Annotated[str, typer.Option(help="The --database that the broker is served with.")] = "",
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write a backup while the broker runs. Study keys are never in it.

    Example: crowdveil backup -o broker.backup.gz
    """
    check_output(output, force=force)
    if not (data_dir / "secret").is_file():
        raise FileError(f"{data_dir} is not a broker's data directory", fix="give --data-dir")
    from crowdveil.broker.bootstrap import BrokerEnvironment

    BrokerEnvironment(data_dir.resolve(), database).enter()
    from crowdveil.broker.ops.backup import backup

    with whole_file(output, force=force) as temporary:
        n_rows = backup(temporary)
    result = {"file": str(output), "rows": n_rows}
    show(result, as_json=as_json, human=lambda: typer.echo(f"{n_rows} rows in {output}; study keys are not in it"))
