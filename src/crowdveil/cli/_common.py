"""What commands share: the flags of a domain, JSON output, and results that appear whole or not at all."""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console

from crowdveil.domain import Domain, parse_options, parse_scale
from crowdveil.errors import FileError, InputError
from crowdveil.estimate import Estimate
from crowdveil.mechanisms import Mechanism, mechanism
from crowdveil.reports import AnyChannel

Item = TypeVar("Item")

Options = Annotated[str | None, typer.Option("--options", help="The answers of choice questions: a,b,c.")]
ScaleFlag = Annotated[str | None, typer.Option("--scale", help="The levels of scale questions: LOW:HIGH[:STEP].")]
Epsilon = Annotated[float | None, typer.Option("--epsilon", help="The privacy loss that one report may cost.")]
Parameters = Annotated[list[str] | None, typer.Option("--param", help="A parameter of the mechanism: name=value.")]
Participation = Annotated[
    bool, typer.Option("--protect-participation", help="Hide also whether a question was answered.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite the output if it exists.")]
Seed = Annotated[int | None, typer.Option("--seed", help="Reproducible randomness; never for answers of real people.")]


def domain_of(options: str | None, scale: str | None) -> Domain | None:
    """The domain the flags describe, if any."""
    if options and scale:
        raise InputError("give either --options or --scale; got both")
    if options:
        return parse_options(options)
    return parse_scale(scale) if scale else None


def needed_domain(options: str | None, scale: str | None) -> Domain:
    """The domain, where a command cannot do without."""
    domain = domain_of(options, scale)
    if domain is None:
        raise InputError("this command needs to know what may be answered", fix="give --options a,b,c or --scale 1:5")
    return domain


def parameters_of(pairs: list[str] | None) -> dict[str, Any]:
    """`--param name=value`, each value read as JSON where it is JSON and as text elsewhere."""
    parameters: dict[str, Any] = {}
    for pair in pairs or []:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise InputError(f"--param must be name=value; got {pair!r}")
        try:
            parameters[name.replace("-", "_")] = json.loads(value)
        except json.JSONDecodeError:
            parameters[name.replace("-", "_")] = value
    return parameters


def described_mechanism(
    name: str, epsilon: float | None, pairs: list[str] | None, protect_participation: bool
) -> Mechanism:
    """The mechanism the flags describe; flags that were not given are left to its defaults."""
    parameters = parameters_of(pairs)
    if epsilon is not None:
        parameters["epsilon"] = epsilon
    if protect_participation:
        parameters["protect_participation"] = True
    return mechanism(name, **parameters)


@contextmanager
def working(what: str) -> Iterator[None]:
    """A sign of life on a terminal's stderr while something takes longer than a moment; nothing elsewhere."""
    with Console(stderr=True).status(what) if sys.stderr.isatty() else nullcontext():
        yield


def guarantees_of(channels: Iterable[AnyChannel]) -> list[dict[str, Any]]:
    """What protects the reports, each different promise once, in numbers and in words."""
    promises = dict.fromkeys(channel.guarantee for channel in channels)
    return [
        promise.to_json()
        | {"protected": promise.protected, "research_only": promise.research_only, "words": str(promise)}
        for promise in promises
    ]


def estimate_json(
    estimate: Estimate, counts: Mapping[str, object], channels: Iterable[AnyChannel], engine: str
) -> dict[str, Any]:
    """What `crowdveil infer` says about an estimate, whichever engine made it."""
    guarantees = guarantees_of(channels)
    return {
        "method": estimate.method,
        "engine": engine,
        **{name: counts[name] for name in ("n_reports", "n_questions", "n_workers")},
        "iterations": estimate.iterations,
        "converged": estimate.converged,
        "warnings": list(estimate.warnings),
        "protected": all(promise["protected"] for promise in guarantees),
        "guarantees": guarantees,
        "objective": estimate.objective,
        "floor": estimate.floor.sentence if estimate.floor else None,
    }


def show(result: dict[str, Any], *, as_json: bool, human: Callable[[], None]) -> None:
    """One JSON document, or the same for people."""
    if as_json:
        typer.echo(json.dumps(result, ensure_ascii=False, allow_nan=False))
    else:
        human()


def tracked(items: Iterable[Item], label: str) -> Iterable[Item]:
    """The items with a progress bar on a terminal, and without one elsewhere."""
    from rich.progress import track

    quiet = not sys.stderr.isatty()
    return track(items, description=label, console=Console(stderr=True), transient=True, disable=quiet)


def refuse_existing(path: Path, *, force: bool) -> None:
    """Nothing is overwritten that was not meant to be."""
    if path.exists() and not force:
        raise FileError(f"{path} exists already", fix="choose another name or give --force")


@contextmanager
def whole_file(path: Path, *, force: bool) -> Iterator[Path]:
    """A temporary path beside `path` that takes its place only if everything went well."""
    refuse_existing(path, force=force)
    if not path.parent.is_dir():
        raise FileError(f"the folder {path.parent} does not exist", fix="create it first")
    temporary = path.with_name(f".{path.stem}-{secrets.token_hex(6)}{path.suffix}")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
