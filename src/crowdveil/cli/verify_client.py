"""`crowdveil verify-client`: is the app that a server sends the one that was released?"""

from __future__ import annotations

from typing import Annotated

import typer

from crowdveil.cli._common import Json, show
from crowdveil.client.verify import Verification, verify_client
from crowdveil.errors import CheckError


def command(
    url: Annotated[str, typer.Argument(help="The broker's address, with or without /app/.")],
    public_key: Annotated[
        str | None, typer.Option("--public-key", help="Insist that this Ed25519 key signed the release (hexadecimal).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Fetch the worker's app as a browser does and compare every byte with the release installed here.

    Example: crowdveil verify-client http://127.0.0.1:8000
    """
    verdict = verify_client(url)
    show(verdict.to_json(), as_json=as_json, human=lambda: _print(verdict))
    if not verdict.same:
        names = ", ".join(f"{file.name} ({file.verdict})" for file in verdict.differing)
        raise CheckError(f"{verdict.url} does not send the released app: {names}; do not answer there")
    if public_key is not None and not (verdict.manifest.signature_holds and verdict.manifest.public_key == public_key):
        raise CheckError(f"the release installed here is not signed by {public_key}; install a signed release")


def _print(verdict: Verification) -> None:
    for file in verdict.differing:
        typer.echo(f"{file.verdict:8} {file.name}")
    same = len(verdict.files) - len(verdict.differing)
    typer.echo(f"{same} of {len(verdict.files)} files are the same as in release {verdict.manifest.release[:12]}")
    if verdict.manifest.signature_holds:
        typer.echo(f"signed by {verdict.manifest.public_key}")
    else:
        typer.echo("not signed: this is a development build")
