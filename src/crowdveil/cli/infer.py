"""`crowdveil infer`: from a file of reports to a file of estimates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from crowdveil.cli._common import (
    Force,
    Json,
    Normalize,
    Options,
    ScaleFlag,
    check_output,
    estimate_json,
    parse_domain,
    parse_parameters,
    refuse_existing,
    refuse_source,
    show,
    to_standard_output,
    whole_files,
    words_aside,
)
from crowdveil.cli._progress import working
from crowdveil.domain import Choices, Domain
from crowdveil.errors import DomainError, FileError, InputError
from crowdveil.estimate import Estimate
from crowdveil.exact import decimal_text
from crowdveil.files.paths import is_parquet, is_stream, start_beside
from crowdveil.reports import Reports

if TYPE_CHECKING:
    from crowdveil.inference import Method

# Parameters of methods that have flags of their own, since no text could spell them.
_FLAGS = ("gold", "engine")
# More numbers than that are hardly ever names of options.
_MANY_NUMBERS = 10


def command(
    reports: Annotated[Path, typer.Argument(help="worker, question, and report or answer; - is standard input.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Where the estimates go: .csv, .parquet, or - (CSV).")],
    method_name: Annotated[str, typer.Option("--method", help="See `crowdveil methods`.")] = "auto",
    truth: Annotated[Path | None, typer.Option("--truth", help="Known truths, to score the estimates.")] = None,
    gold: Annotated[Path | None, typer.Option("--gold", help="Known truths that the method may use.")] = None,
    engine: Annotated[str, typer.Option("--engine", help="Where to compute: local or spark.")] = "local",
    workers_out: Annotated[Path | None, typer.Option("--workers-out", help="Where the workers' skills go.")] = None,
    start: Annotated[Path | None, typer.Option("--start", help="An earlier estimates file to go on from.")] = None,
    colluders: Annotated[
        float | None, typer.Option("--colluders", help="frequency: how far that share of the workers could move it.")
    ] = None,
    options: Options = None,
    scale: ScaleFlag = None,
    param: Annotated[list[str] | None, typer.Option("--param", help="A parameter of the method: name=value.")] = None,
    master: Annotated[str | None, typer.Option(help="Spark: the cluster, spark://HOST:PORT or local[N].")] = None,
    remote: Annotated[str | None, typer.Option(help="Spark: a Spark Connect server, sc://HOST:PORT.")] = None,
    work: Annotated[Path | None, typer.Option(help="Spark: a folder that driver and executors share.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Spark: go on from the checkpoint in --work.")] = False,
    normalize: Normalize = False,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Do not keep the codes of a large file.")] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Estimate the truth of every question from reports, with its uncertainty.

    Example: crowdveil infer reports.csv -o estimates.csv --method dawid-skene --truth truth.csv
    """
    # Loaded here and not above: a shell that completes a flag waits for whatever stands there.
    from crowdveil.cli._spark import Cluster, infer_on_spark
    from crowdveil.files import read_truth
    from crowdveil.files.cache import cache_path, read_reports_cached
    from crowdveil.files.estimates import read_start

    words_aside(output, as_json=as_json)
    _check_outputs(output, workers_out, sources=(reports, truth, gold), here=engine != "spark", force=force)
    known_gold = read_truth(gold) if gold is not None else None
    chosen, asked = _method(method_name, engine, param, known_gold), parse_domain(options, scale)
    if colluders is not None and (engine == "spark" or chosen.name != "frequency"):
        raise InputError("--colluders bounds the shares of --method frequency", fix="name that method, without Spark")
    if engine == "spark":
        if normalize:
            raise InputError("--normalize is for the engine local", fix="correct the answers first, or name --options")
        truth_by_question, cluster = read_truth(truth) if truth else None, Cluster(master, remote, work, resume)
        with working("inferring on Spark", quiet=as_json):
            result = infer_on_spark(
                chosen,
                reports,
                asked,
                output,
                cluster,
                workers_out=workers_out,
                start=start,
                truth=truth_by_question,
                force=force,
            )
        show(result, as_json=as_json, human=lambda: _tell(result, output))
        return
    if master or remote or work or resume:
        raise InputError("--master, --remote, --work and --resume are for Spark", fix="add --engine spark")
    with working("reading", quiet=as_json):
        table = read_reports_cached(reports, asked, cache=not no_cache, normalize=normalize)
    if gold is not None and known_gold is not None:
        _check_gold(known_gold, table, gold)
    with working("inferring", quiet=as_json):
        estimate = chosen.fit(table, read_start(start) if start else None)
    result = _result(estimate, table, asked, truth)
    if colluders is not None:
        result["colluders"] = _poisoning(table, colluders)
    with working("writing", quiet=as_json):
        _write(output, workers_out, estimate, force)
    with words_aside(output, as_json=as_json):
        show(result, as_json=as_json, human=lambda: _tell(result, output))
        if not as_json and not no_cache and cache_path(reports).is_file():
            kept = cache_path(reports).name
            typer.echo(f"the rows stay in {kept} beside the file, to be read at once; or say --no-cache")


def _check_outputs(
    output: Path, workers_out: Path | None, *, sources: tuple[Path | None, ...], here: bool, force: bool
) -> None:
    """Before anything is read: nothing that is there is lost, and each result has a place of its own.

    Spark writes folders, also in stores that no path `here` leads to; it looks at them itself.
    """
    for path in (output, workers_out):
        if path is not None:
            is_parquet(path)
            refuse_source(path, *sources)
            if here:
                check_output(path, force=force)
    if workers_out is not None and workers_out.resolve() == output.resolve():
        raise InputError("--output and --workers-out must be two files", fix="choose another name for one of them")
    if here and not is_stream(output):
        refuse_existing(start_beside(output), force=force)


def _method(name: str, engine: str, param: list[str] | None, gold: Mapping[str, str] | None) -> Method:
    from crowdveil.inference import METHODS, Auto, method

    parameters = parse_parameters(param)
    for flag in set(_FLAGS) & set(parameters):
        raise InputError(f"--param cannot say what {flag} is", fix=f"use --{flag}")
    if engine not in ("local", "spark"):
        raise InputError(f"--engine must be local or spark; got {engine!r}")
    if name == Auto.name and parameters:
        raise InputError("method auto chooses among methods and takes no parameters", fix="name one with --method")
    if gold is not None:
        takes = [kind.name for kind in METHODS.values() if "gold" in {each.name for each in fields(kind)}]  # type: ignore[arg-type]
        if name in METHODS and name not in takes:
            raise InputError(f"method {name} takes no gold questions", fix=f"use {', '.join(takes)}")
        parameters["gold"] = gold
    return method(name, **parameters)


def _check_gold(gold: Mapping[str, str], table: Reports, path: Path) -> None:
    """Gold that fits no question, or that nobody could have answered, is a slip in a file and would pass unseen."""
    from crowdveil.inference.estimation import known_truth

    asked = {str(question) for question in table.questions}
    if not asked.intersection(gold):
        raise FileError("no gold question is among the questions", fix="check that the ids agree", source=path.name)
    for question, truth in gold.items():
        try:
            known_truth(question, truth, table.domain)
        except DomainError as error:
            raise FileError(error.problem, fix=error.fix, field="truth", source=path.name) from None


def _result(estimate: Estimate, table: Reports, asked: Domain | None, truth: Path | None) -> dict[str, Any]:
    result = estimate_json(estimate, estimate.provenance, table.channels, "local")
    result |= _score(estimate, table, truth) if truth else {}
    result["warnings"] = [*result["warnings"], *_read_as_words(table, asked)]
    return result


def _poisoning(table: Reports, colluders: float) -> dict[str, Any]:
    """The bounds of every share that anybody reported on, the one that can be moved furthest first."""
    from crowdveil.inference.poisoning import poisoning_bounds

    bounds = poisoning_bounds(table, colluders)
    shares = [
        {
            "question": str(bounds.questions[question]),
            "option": table.domain.symbols[option],
            "share": float(bounds.share[question, option]),
            "low": float(bounds.low[question, option]),
            "high": float(bounds.high[question, option]),
        }
        for question, option in zip(*np.nonzero(~np.isnan(bounds.share)), strict=True)
    ]
    shares.sort(key=lambda share: min(share["low"] - share["share"], share["share"] - share["high"]))
    return {"share": colluders, "largest_shift": float(np.nanmax(bounds.largest_shift)), "shares": shares}


def _score(estimate: Estimate, table: Reports, truth: Path) -> dict[str, Any]:
    from crowdveil.files import read_truth
    from crowdveil.inference.metrics import baselines, n_scored, score

    truth_by_question: Any = read_truth(truth)
    scored: dict[str, Any] = {
        "metrics": score(estimate, truth_by_question),
        "baselines": baselines(table, estimate, truth_by_question),
        "n_scored": n_scored(estimate, truth_by_question),
    }
    strange = (
        sorted(set(truth_by_question.values()) - set(table.domain.symbols)) if isinstance(table.domain, Choices) else []
    )
    if strange and estimate.posterior is not None:
        warning = f"{truth.name} names {strange[0]!r}, which is no option: no estimate can equal it"
        scored["warnings"] = [*estimate.warnings, warning]
    return scored


def _read_as_words(table: Reports, asked: Domain | None) -> tuple[str, ...]:
    """A warning where many numbers were read as so many options because nobody said that they are a scale."""
    domain = table.domain
    if asked is not None or not isinstance(domain, Choices) or domain.size <= _MANY_NUMBERS:
        return ()
    if not all(_is_number(option) for option in domain.options):
        return ()
    low, high = (decimal_text(edge(map(Decimal, domain.options))) for edge in (min, max))
    return (f"all {domain.size} options are numbers; to read them as a scale, say --scale {low}:{high} or wider",)


def _is_number(option: str) -> bool:
    try:
        return Decimal(option).is_finite()
    except InvalidOperation:
        return False


def _write(output: Path, workers_out: Path | None, estimate: Estimate, force: bool) -> None:
    from crowdveil.files.estimates import write_estimates, write_start, write_workers

    if workers_out is not None and estimate.skills is None:
        raise InputError(f"method {estimate.method} learns no skills", fix="leave --workers-out out")
    if is_stream(output):
        with to_standard_output(".csv") as temporary:
            write_estimates(temporary, estimate)
    start = start_beside(output) if estimate.parameters and not is_stream(output) else None
    wanted = [path for path in (workers_out, start, output) if path is not None and not is_stream(path)]
    with whole_files(*wanted, force=force) as temporaries:
        beside = dict(zip(wanted, temporaries, strict=True))
        if output in beside:
            write_estimates(beside[output], estimate)
        if start is not None:
            write_start(beside[start], estimate)
        if workers_out is not None and estimate.skills is not None:
            write_workers(beside[workers_out], estimate.skills)
    if not estimate.parameters and not is_stream(output):
        # What an earlier estimate in this place could go on from does not belong to this one.
        start_beside(output).unlink(missing_ok=True)


def _tell(result: dict[str, Any], output: Path) -> None:
    counts = f"{result['n_questions']} questions, {result['n_workers']} workers, {result['n_reports']} reports"
    where = "on standard output" if is_stream(output) else f"in {output}"
    typer.echo(f"{result['method']}: {counts}; estimates {where}")
    promises = [promise["words"] for promise in result["guarantees"]]
    if not any(promise["protected"] for promise in result["guarantees"]):
        promises = ["These reports are not protected: they are the answers themselves."]
    for words in promises:
        typer.echo(words)
    if result["iterations"] and result["converged"]:
        typer.echo(f"converged after {result['iterations']} iterations")
    for line in dict.fromkeys((result["floor"], *result["warnings"])):
        if line:
            typer.echo(line)
    if "colluders" in result:
        typer.echo(_colluders_sentence(result["colluders"]))
    if "metrics" in result:
        typer.echo(f"scored on the {result['n_scored']} of {result['n_questions']} questions whose truth is known:")
        rows = {result["method"]: result["metrics"]} | result["baselines"]
        for name, metrics in rows.items():
            typer.echo(f"  {name:<20} " + "  ".join(f"{key} {value:.4f}" for key, value in metrics.items()))


def _colluders_sentence(colluders: dict[str, Any]) -> str:
    who, share = f"if {colluders['share']:.1%} of the workers collude", colluders["shares"][0]
    if colluders["largest_shift"] >= 1:
        return f"{who}, they can make any share they like of {share['option']} in {share['question']}"
    becomes = f"{share['share']:.1%} becomes {share['low']:.1%} to {share['high']:.1%}"
    moved = f"at most {100 * colluders['largest_shift']:.1f} points before projection"
    return f"{who}, they move a share by {moved} ({share['question']}, {share['option']}: {becomes})"
