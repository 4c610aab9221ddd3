"""What the commands that talk to a broker share."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from crowdveil.errors import InputError

_PASSPHRASE = "CROWDVEIL_ESCROW_PASSPHRASE"
HERE = "http://127.0.0.1:8000"
Address = Annotated[str, typer.Option(envvar="CROWDVEIL_BROKER", help="Where the broker is.")]
Key = Annotated[str, typer.Argument(metavar="STUDY", help="The id of the study.")]


def ask_passphrase(*, new: bool) -> str:
    """The passphrase of a key escrow: from the environment, else asked for on the terminal, a new one twice."""
    if passphrase := os.environ.get(_PASSPHRASE):
        return passphrase
    if not sys.stdin.isatty():
        raise InputError("a key escrow needs its passphrase", fix=f"set {_PASSPHRASE}, or start on a terminal")
    return str(typer.prompt("Passphrase of the key escrow", hide_input=True, confirmation_prompt=new, err=True))


def tell_each(items: list[Any], tell: Callable[[Any], None]) -> None:
    """One after the other, for people."""
    for item in items:
        tell(item)
