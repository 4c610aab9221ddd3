"""`crowdveil methods`: list the methods, or describe one with its parameters."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Annotated, Any

import typer

from crowdveil.cli._common import Json, show
from crowdveil.cli._text import table, tell
from crowdveil.errors import InputError
from crowdveil.inference import METHODS, Auto, Method
from crowdveil.registry import did_you_mean


def command(
    name: Annotated[str | None, typer.Argument(help="The method to describe; without one, all are listed.")] = None,
    as_json: Json = False,
) -> None:
    """List the methods, or describe one: what it returns and which parameters it has.

    Example: crowdveil methods dawid-skene
    """
    if name is None:
        rows = [_row(kind) for kind in METHODS.values()]
        show({"methods": rows}, as_json=as_json, human=lambda: _list(rows))
        return
    if name not in METHODS:
        raise InputError(f"method must be one of {', '.join(METHODS)}; got {name!r}", fix=did_you_mean(name, METHODS))
    result = _row(METHODS[name]) | {"parameters": _parameters(METHODS[name])}
    show(result, as_json=as_json, human=lambda: _describe(result))


def _row(kind: type[Method]) -> dict[str, Any]:
    values = "either" if kind is Auto else "numbers" if kind.numeric else "options"
    return {"name": kind.name, "values": values, "summary": kind.summary}


def _parameters(kind: type[Method]) -> dict[str, Any]:
    """The parameters that --param can set, with their defaults."""
    plain = (bool, int, float, str)
    parameters = {}
    for each in fields(kind):  # type: ignore[arg-type]
        if each.default is not MISSING and isinstance(each.default, plain):
            parameters[each.name] = each.default
    return parameters


def _list(rows: list[dict[str, Any]]) -> None:
    table([(row["name"], row["values"], row["summary"]) for row in rows])


def _describe(result: dict[str, Any]) -> None:
    tell(f"{result['name']}: {result['summary']}")
    typer.echo(f"  values:     {result['values']}")
    for name, default in result["parameters"].items():
        typer.echo(f"  --param {name}={str(default).lower() if isinstance(default, bool) else default}")
