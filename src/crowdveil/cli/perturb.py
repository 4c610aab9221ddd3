"""`crowdveil perturb`: randomise a file of answers into a file of reports."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from crowdveil.answers import Answers
from crowdveil.cli._common import (
    Epsilon,
    Force,
    Json,
    Normalize,
    Options,
    Parameters,
    Participation,
    ScaleFlag,
    Seed,
    check_output,
    described_mechanism,
    parse_domain,
    show,
    something_to_hide,
    to_standard_output,
    whole_files,
    words_aside,
)
from crowdveil.cli._levels import describe_groups, read_mechanisms
from crowdveil.cli._progress import working
from crowdveil.entropy import entropy_from
from crowdveil.errors import DomainError, InputError, UnservableError
from crowdveil.files.paths import is_parquet, is_stream, sidecar
from crowdveil.guarantee import Guarantee
from crowdveil.reports import Reports

if TYPE_CHECKING:
    from crowdveil.mechanisms import Mechanism


def command(
    answers: Annotated[Path, typer.Argument(help="A table: worker, question, answer; - is standard input.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Where reports go: .csv, .parquet, or - (Parquet).")],
    mechanism: Annotated[str, typer.Option("--mechanism", help="See `crowdveil mechanisms`.")],
    epsilon: Epsilon = None,
    options: Options = None,
    scale: ScaleFlag = None,
    param: Parameters = None,
    protect_participation: Participation = False,
    questions: Annotated[Path | None, typer.Option(help="All questions of the study: a file with that column.")] = None,
    workers: Annotated[
        Path | None, typer.Option(help="All workers; columns mechanism, epsilon or level are personal.")
    ] = None,
    max_rows: Annotated[int, typer.Option(help="Refuse to write more reports than this.")] = 50_000_000,
    normalize: Normalize = False,
    seed: Seed = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Randomise answers: the file that comes out is all that would have left the workers' devices.

    With mechanism none the reports are the answers, and the output says so.

    Example: crowdveil perturb answers.csv -o reports.csv --mechanism randomized-response --epsilon 1 --options no,yes
    """
    # Loaded here and not above: a shell that completes a flag waits for whatever stands there.
    from crowdveil.files import read_answers

    words_aside(output, as_json=as_json)
    n_files = 1 if is_parquet(output) or is_stream(output) else 2
    personal = read_mechanisms(workers, mechanism, epsilon, param, protect_participation) if workers else {}
    # With personal levels the flags may leave ε to the file; anybody's mechanism then stands for all.
    chosen = (
        next(iter(personal.values()))
        if personal
        else described_mechanism(mechanism, epsilon, param, protect_participation)
    )
    if (questions or (workers and not personal)) and not protect_participation:
        raise InputError("--questions and --workers name who reports; they need --protect-participation")
    domain = parse_domain(options, scale)
    for path in (output, sidecar(output))[:n_files]:
        check_output(path, answers, questions, workers, force=force)
    with working("reading", quiet=as_json):
        table = _whole_study(read_answers(answers, domain, normalize=normalize), questions, workers)
    for each in {*personal.values(), chosen}:
        something_to_hide(each, table.domain)
    n_reports = len(table.workers) * len(table.questions) if protect_participation else len(table)
    if n_reports > max_rows:
        raise InputError(f"this would write {n_reports} reports but --max-rows is {max_rows}", fix="raise --max-rows")
    with working("randomising" if chosen.name != "none" else "copying", quiet=as_json):
        reports = _randomize(chosen, table, seed, personal, named_domain=domain is not None)
    with working("writing", quiet=as_json):
        _write(output, reports, force)
    if personal:
        guarantee = max((channel.guarantee for channel in reports.channels), key=lambda each: each.epsilon)
    else:
        guarantee = reports.channels[0].guarantee if chosen.research_only else chosen.guarantee(table.domain)
    warnings = _visible(guarantee, named_domain=domain is not None, named_all=bool(questions and workers))
    if seed is not None and guarantee.protected:
        warnings.append("drawn from a seed: whoever learns it can undo the noise; release only reports without one")
    if personal:
        warnings.append("which mechanism and which ε a worker chose is visible: each report names its channel")
    result: dict[str, Any] = {
        "mechanism": mechanism,
        "research_only": any(each.research_only for each in {*personal.values(), chosen}),
        "n_answers": len(table),
        "n_reports": len(reports),
        "n_workers": reports.n_workers,
        "n_questions": reports.n_questions,
        "guarantee": guarantee.to_json() | {"requested_epsilon": epsilon},
        **({"groups": groups} if (groups := describe_groups(personal, table.domain)) else {}),
        "warnings": warnings,
        "output": str(output),
    }
    where = "on standard output" if is_stream(output) else f"in {output}"
    weakest = "the weakest level: " if personal else ""
    lines = [f"{len(reports)} reports {where}: {weakest}{guarantee}", *warnings]
    with words_aside(output, as_json=as_json):
        show(result, as_json=as_json, human=lambda: typer.echo("\n".join(lines)))


def _randomize(
    chosen: Mechanism, table: Answers, seed: int | None, personal: dict[str, Mechanism], *, named_domain: bool
) -> Reports:
    from crowdveil.mechanisms.personal import randomize_by_worker

    try:
        if personal:
            return randomize_by_worker(table, personal, entropy_from(seed))
        return chosen.randomize(table, entropy_from(seed))
    except (UnservableError, DomainError) as error:
        if named_domain:
            raise
        # Without a domain numbers are read as options, which may be all that is wrong.
        problem = f"mechanism {chosen.name} cannot serve the options that were read from the answers: {error.problem}"
        raise InputError(problem, fix="give --scale LOW:HIGH if they are levels, or use randomized-response") from None


def _visible(guarantee: Guarantee, *, named_domain: bool, named_all: bool) -> list[str]:
    """What the file tells beside its reports, because it was read off the answers."""
    warnings = []
    if guarantee.protected and not named_domain:
        warnings.append(
            "the options are those seen in the answers, so that somebody chose each of them is visible; "
            "name them with --options or --scale"
        )
    if guarantee.protects_participation and not named_all:
        warnings.append(
            "workers and questions are those seen in the answers, so that each of them has an answer at all is "
            "visible; name everybody and everything with --workers and --questions"
        )
    return warnings


def _whole_study(answers: Answers, questions: Path | None, workers: Path | None) -> Answers:
    """The answers with everybody and everything that must report, answered or not."""
    return replace(
        answers,
        workers=_extend_ids(answers.workers, workers, "worker"),
        questions=_extend_ids(answers.questions, questions, "question"),
    )


def _extend_ids(ids: Any, path: Path | None, name: str) -> Any:
    if path is None:
        return ids
    from crowdveil.files import read_ids

    listed = read_ids(path, name)
    strangers = set(ids) - set(listed)
    if strangers:
        raise InputError(f"{name} {sorted(strangers)[0]!r} has answers but is not in {path.name}", fix="add the row")
    existing = set(ids)
    return np.concatenate([ids, np.array([entry for entry in listed if entry not in existing], dtype=object)])


def _write(output: Path, reports: Reports, force: bool) -> None:
    """Reports and channels appear together: the channels first, so no report is ever without."""
    from crowdveil.files import write_reports

    if is_stream(output):
        # Parquet holds the channels itself; a stream has no file beside it.
        with to_standard_output(".parquet") as temporary:
            write_reports(temporary, reports)
        return
    if is_parquet(output):
        with whole_files(output, force=force) as (temporary,):
            write_reports(temporary, reports)
        return
    with whole_files(sidecar(output), output, force=force) as (beside, temporary):
        write_reports(temporary, reports, beside=beside)
