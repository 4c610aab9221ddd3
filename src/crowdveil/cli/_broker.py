"""What the commands that talk to a broker share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

HERE = "http://127.0.0.1:8000"
Address = Annotated[str, typer.Option(envvar="CROWDVEIL_BROKER", help="Where the broker is.")]
Key = Annotated[str, typer.Argument(metavar="STUDY", help="The id of the study.")]


def tell_each(items: list[Any], tell: Callable[[Any], None]) -> None:
    """One after the other, for people."""
    for item in items:
        tell(item)
