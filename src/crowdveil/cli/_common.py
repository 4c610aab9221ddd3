"""What commands share: the flags of a domain, JSON output, and results that appear whole or not at all."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crowdveil.cli._controls import echo
from crowdveil.domain import Domain, parse_options, parse_scale
from crowdveil.errors import FileError, InputError
from crowdveil.estimate import Estimate
from crowdveil.files.paths import is_stream
from crowdveil.registry import missing_parameters
from crowdveil.reports import AnyChannel

if TYPE_CHECKING:
    from crowdveil.mechanisms import Mechanism

Options = Annotated[str | None, typer.Option("--options", help="The answers of choice questions: a,b,c.")]
ScaleFlag = Annotated[str | None, typer.Option("--scale", help="The levels of scale questions: LOW:HIGH[:STEP].")]
Epsilon = Annotated[float | None, typer.Option("--epsilon", help="The privacy loss that one report may cost.")]
Parameters = Annotated[list[str] | None, typer.Option("--param", help="A parameter of the mechanism: name=value.")]
Participation = Annotated[
    bool, typer.Option("--protect-participation", help="Hide also whether a question was answered.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Normalize = Annotated[
    bool,
    typer.Option("--normalize", help="Join answers that differ only in white space, case or Unicode form."),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite the output if it exists.")]
Seed = Annotated[int | None, typer.Option("--seed", help="Reproducible randomness; never for answers of real people.")]


def parse_domain(options: str | None, scale: str | None) -> Domain | None:
    """The domain the flags describe, if any."""
    if options is not None and scale is not None:
        raise InputError("give either --options or --scale; got both")
    if options is not None:
        return parse_options(options)
    return parse_scale(scale) if scale is not None else None


def something_to_hide(chosen: Mechanism, domain: Domain) -> None:
    """Refuse a question that has one answer only: there a slip in spelling the options would pass for privacy."""
    if domain.size < 2 and chosen.name != "none" and not getattr(chosen, "protect_participation", False):
        fix = "name all that may be answered: --options a,b,c or --scale LOW:HIGH"
        raise InputError(f"a question must have two options or more; got only {domain.symbols[0]!r}", fix=fix)


def needed_domain(options: str | None, scale: str | None) -> Domain:
    """The domain, where a command cannot do without."""
    domain = parse_domain(options, scale)
    if domain is None:
        raise InputError("this command needs to know what may be answered", fix="give --options a,b,c or --scale 1:5")
    return domain


def parse_parameters(pairs: list[str] | None) -> dict[str, Any]:
    """`--param name=value`, each value read as JSON where it is JSON and as text elsewhere."""
    parameters: dict[str, Any] = {}
    for pair in pairs or []:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise InputError(f"--param must be name=value; got {pair!r}")
        try:
            parameters[name.replace("-", "_")] = json.loads(value)
        except (ValueError, RecursionError):
            parameters[name.replace("-", "_")] = value
    return parameters


def described_mechanism(
    name: str, epsilon: float | None, pairs: list[str] | None, protect_participation: bool
) -> Mechanism:
    """The mechanism the flags describe; flags that were not given are left to its defaults."""
    from crowdveil.mechanisms import MECHANISMS, mechanism

    parameters = parse_parameters(pairs)
    if epsilon is not None:
        parameters["epsilon"] = epsilon_once(epsilon, parameters)
    if protect_participation:
        parameters["protect_participation"] = True
    for missing in missing_parameters(MECHANISMS[name], parameters) if name in MECHANISMS else ():
        flag = "--epsilon" if missing == "epsilon" else f"--param {missing}=…"
        raise InputError(f"mechanism {name} needs {missing}", fix=f"give {flag}")
    return mechanism(name, **parameters)


def epsilon_once(epsilon: float, parameters: dict[str, Any]) -> float:
    """The ε of the flag, unless --param names one too: of two, nobody could tell which was meant."""
    if "epsilon" in parameters:
        raise InputError(
            f"epsilon is given twice: {epsilon:g} and {parameters['epsilon']}", fix="leave one of them out"
        )
    return epsilon


def list_guarantees(channels: Iterable[AnyChannel]) -> list[dict[str, Any]]:
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
    guarantees = list_guarantees(channels)
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
        **{name: estimate.provenance.get(name) for name in ("class_explanation_weight", "posterior_power")},
    }


def show(result: dict[str, Any], *, as_json: bool, human: Callable[[], None]) -> None:
    """One JSON document, or the same for people."""
    if as_json:
        echo(json.dumps(result, ensure_ascii=False, allow_nan=False))
    else:
        human()


def refuse_existing(path: Path, *, force: bool) -> None:
    """Nothing is overwritten that was not meant to be."""
    if path.exists() and not force:
        raise FileError(f"{path} exists already", fix="choose another name or give --force")


@contextmanager
def whole_file(path: Path, *, force: bool) -> Iterator[Path]:
    """A temporary path beside `path` that takes its place only if everything went well."""
    with whole_files(path, force=force) as (temporary,):
        yield temporary


@contextmanager
def whole_files(*paths: Path, force: bool) -> Iterator[list[Path]]:
    """Temporary paths beside these that take their places, in this order, only if everything went well: all or none."""
    for path in paths:
        check_output(path, force=force)
    temporaries = [path.with_name(f".{path.stem}-{secrets.token_hex(6)}{path.suffix}") for path in paths]
    placed: list[Path] = []
    try:
        yield temporaries
        for temporary, path in zip(temporaries, paths, strict=True):
            _place(temporary, path, force)
            placed.append(path)
    except FileExistsError:
        _take_back(placed)
        taken = paths[len(placed)]
        raise FileError(f"{taken} was made by somebody else meanwhile", fix="choose another name") from None
    except OSError as error:
        if not force:
            _take_back(placed)
        # Of several files that are made together the other may be the one that failed.
        reason = os.strerror(error.errno) if error.errno else str(error)
        problem = f"nothing was written to {paths[-1].parent}: {reason}"
        raise FileError(problem, fix="make room, or choose another place") from error
    finally:
        _take_back(temporaries)


def _take_back(paths: list[Path]) -> None:
    for path in paths:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _place(temporary: Path, path: Path, force: bool) -> None:
    """Of two commands with the same output, one wins whole: reports never stand beside another's channels."""
    if not force:
        try:
            path.hardlink_to(temporary)
            return
        except FileExistsError:
            raise
        except OSError:
            # A file system without links; there the check at the start must do.
            pass
    temporary.replace(path)


@contextmanager
def to_standard_output(suffix: str) -> Iterator[Path]:
    """A temporary file whose content goes to standard output if everything went well."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"output{suffix}"
        yield path
        sys.stdout.flush()
        with path.open("rb") as stream:
            shutil.copyfileobj(stream, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def words_aside(output: Path, *, as_json: bool) -> AbstractContextManager[object]:
    """Where the result itself goes to standard output, what is said about it goes to standard error."""
    if not is_stream(output):
        return nullcontext()
    if as_json:
        raise InputError("standard output cannot take both the result and --json", fix="give -o a file")
    return redirect_stdout(sys.stderr)


def refuse_source(path: Path, *sources: Path | None) -> None:
    """An output must not be what the command reads, nor its other output."""
    if is_stream(path):
        return
    if any(source is not None and source.resolve() == path.resolve() for source in sources):
        raise FileError(f"{path} is read by this command and would be replaced", fix="choose another name")


def check_output(path: Path, *sources: Path | None, force: bool) -> None:
    """Refuse, before any work, an output that could not be written or that would replace what is being read."""
    if is_stream(path):
        return
    if path.is_dir():
        raise FileError(f"{path} is a folder", fix="name a file in it")
    refuse_source(path, *sources)
    refuse_existing(path, force=force)
    if not path.parent.is_dir():
        what = "is not a folder" if path.parent.exists() else "does not exist"
        raise FileError(f"the folder {path.parent} {what}", fix="create it first")
    if not os.access(path.parent, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
        problem = f"the folder {path.parent} may not be written to by you"
        raise FileError(problem, fix="change its permissions, or choose another place")
