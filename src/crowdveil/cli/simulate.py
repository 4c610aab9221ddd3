"""`crowdveil simulate`: a crowd whose truth is known, as an answers file and a truth file."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from crowdveil.cli._common import (
    Force,
    Json,
    Options,
    ScaleFlag,
    Seed,
    check_output,
    parse_domain,
    parse_parameters,
    show,
    whole_files,
)
from crowdveil.cli._progress import working
from crowdveil.domain import Choices
from crowdveil.errors import InputError
from crowdveil.files import write_answers
from crowdveil.files.folders import folder_for
from crowdveil.files.write import is_parquet, write_table
from crowdveil.registry import check_names
from crowdveil.simulate import ChoiceCrowd, Crowd, ScaleCrowd, preset
from crowdveil.simulate.presets import Recipe

_DEFAULT_WORKERS, _DEFAULT_QUESTIONS = 100, 50


def command(
    output: Annotated[Path, typer.Option("-o", "--output", help="A folder, or the answers file: .csv or .parquet.")],
    name: Annotated[str | None, typer.Option("--preset", help="sun, li-peer-grading, wang-spammers or loki.")] = None,
    workers: Annotated[int | None, typer.Option(help="How many workers.")] = None,
    questions: Annotated[int | None, typer.Option(help="How many questions.")] = None,
    share: Annotated[float | None, typer.Option(help="The part of the questions that a worker answers.")] = None,
    options: Options = None,
    scale: ScaleFlag = None,
    param: Annotated[list[str] | None, typer.Option("--param", help="A number of the crowd: name=value.")] = None,
    seed: Seed = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Make up a crowd: answers of workers whose skills and truths are known.

    Example: crowdveil simulate --preset sun --seed 1 -o crowd
    """
    changes = {"n_workers": workers, "n_questions": questions, "share": share, "domain": parse_domain(options, scale)}
    overrides = {key: value for key, value in changes.items() if value is not None}
    recipe = _recipe(name, overrides | {key: _frozen(value) for key, value in parse_parameters(param).items()})
    files = _files(output)
    if output.suffix or output.exists():
        for path in files.values():
            check_output(path, force=force)
    with working("making up a crowd", quiet=as_json):
        crowd = recipe.draw(seed)
        _write(crowd, files, force)
    result: dict[str, Any] = {
        "preset": name,
        "n_workers": len(crowd.answers.workers),
        "n_questions": len(crowd.answers.questions),
        "n_answers": len(crowd.answers),
        "files": {kind: str(path) for kind, path in files.items()},
        "seed": seed,
    }
    names = ", ".join(str(path) for path in files.values())
    show(result, as_json=as_json, human=lambda: typer.echo(f"{len(crowd.answers)} answers: {names}"))


def _recipe(name: str | None, changes: dict[str, Any]) -> Recipe:
    """The preset with its changes, or a crowd described by its numbers alone."""
    if name is not None:
        return preset(name, **changes)
    domain = changes.get("domain")
    if domain is None:
        raise InputError("say which crowd to make up", fix="give --preset NAME, --options a,b,c or --scale LOW:HIGH")
    kind = ChoiceCrowd if isinstance(domain, Choices) else ScaleCrowd
    check_names("this crowd", kind, changes)
    return kind(**{"n_workers": _DEFAULT_WORKERS, "n_questions": _DEFAULT_QUESTIONS, **changes})


def _frozen(value: Any) -> Any:
    """Lists, and lists in lists, as tuples."""
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _files(output: Path) -> dict[str, Path]:
    """A folder holds answers.csv, truth.csv and workers.csv; an answers file has the others beside it."""
    if not output.suffix:
        return {kind: output / f"{kind}.csv" for kind in ("answers", "truth", "workers")}
    is_parquet(output)
    beside = {kind: output.with_name(f"{output.stem}.{kind}{output.suffix}") for kind in ("truth", "workers")}
    return {"answers": output, **beside}


def _write(crowd: Crowd, files: dict[str, Path], force: bool) -> None:
    truths = crowd.truths()
    with (
        folder_for(files["answers"].parent) if files["answers"].name == "answers.csv" else nullcontext(),
        whole_files(files["answers"], files["truth"], files["workers"], force=force) as (answers, truth, about),
    ):
        write_answers(answers, crowd.answers)
        write_table(truth, {"question": list(truths), "truth": list(truths.values())})
        notes = {name: list(column) for name, column in crowd.notes.items()}
        write_table(about, {"worker": list(crowd.answers.workers), "skill": crowd.skill, **notes})
