"""crowdveil study: a requester's studies over the API of a broker."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from crowdveil.cli._broker import HERE, Address, Key, tell_each
from crowdveil.cli._common import Force, Json, refuse_existing, show, whole_file
from crowdveil.cli._controls import echo
from crowdveil.cli._progress import working
from crowdveil.errors import FileError, InputError
from crowdveil.files import read_assignments, read_tasks, sidecar

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Run studies at a broker, as a requester.\n\nExample: crowdveil study create draft.json",
)
Token = Annotated[str, typer.Option(envvar="CROWDVEIL_TOKEN", help="A requester's token.")]


def _ask(address: str, token: str, call: Callable[[Any], Any]) -> Any:
    from crowdveil.client import Broker, Requester

    if not token:
        raise InputError(
            "this needs a requester's token", fix="set CROWDVEIL_TOKEN to what 'crowdveil study sign-in' prints"
        )
    with Broker(address, token=token) as broker:
        return call(Requester(broker))


@app.command("sign-in")
def sign_in(name: str, address: Address = HERE, as_json: Json = False) -> None:
    """Print a token that is good for some hours; asks for the password and the code of your authenticator.

    Example: export CROWDVEIL_TOKEN=$(crowdveil study sign-in "Ada's lab")
    """
    from crowdveil.client import Broker, Requester

    password = typer.prompt("password", hide_input=True, err=True)
    code = typer.prompt("code", err=True)
    with Broker(address) as broker:
        Requester.sign_in(broker, name, password, code)
        show({"token": broker.token}, as_json=as_json, human=lambda: echo(broker.token))


@app.command()
def create(
    draft: Path,
    tasks: Annotated[Path | None, typer.Option(help="The task list of a pool: .csv, .jsonl or .parquet.")] = None,
    assignments: Annotated[
        Path | None, typer.Option(help="A listed assignment: rows of a worker code and a task.")
    ] = None,
    address: Address = HERE,
    token: Token = "",
    as_json: Json = False,
) -> None:
    """Create a draft from a JSON file, of a pool with its task list, and print its id.

    Example: crowdveil study create draft.json --tasks tasks.csv
    """
    content = _document(draft)
    if tasks is None:
        if assignments is not None:
            raise InputError("--assignments needs --tasks")
        key = _ask(address, token, lambda requester: requester.create(content))
        show({"id": key}, as_json=as_json, human=lambda: echo(key))
        return
    # The whole file is read before anything is created: a list with a bad row leaves nothing behind.
    with working("reading", quiet=as_json):
        listed = read_tasks(tasks)
        pairs = read_assignments(assignments, listed) if assignments is not None else None
    with working("uploading", quiet=as_json):
        key, root = _ask(address, token, lambda requester: requester.create_pool(content, listed, pairs))
    made = {"id": key, "n_tasks": len(listed), "tasks_root": root}
    show(made, as_json=as_json, human=lambda: echo(key))


@app.command()
def revise(study: Key, draft: Path, address: Address = HERE, token: Token = "", as_json: Json = False) -> None:
    """Replace a draft that is not frozen yet. Example: crowdveil study revise STUDY draft.json"""
    content = _document(draft)
    _tell(_ask(address, token, lambda requester: requester.revise(study, content)), as_json=as_json)


@app.command()
def copy(study: Key, address: Address = HERE, token: Token = "", as_json: Json = False) -> None:
    """Start a new draft like a study and print its id. Example: crowdveil study copy STUDY"""
    key = _ask(address, token, lambda requester: requester.copy(study))
    show({"id": key}, as_json=as_json, human=lambda: echo(key))


@app.command()
def discard(study: Key, address: Address = HERE, token: Token = "", as_json: Json = False) -> None:
    """Throw a draft away. Example: crowdveil study discard STUDY"""
    _ask(address, token, lambda requester: requester.discard(study))
    show({"discarded": study}, as_json=as_json, human=lambda: echo("the draft is gone"))


@app.command("list")
def list_studies(address: Address = HERE, token: Token = "", as_json: Json = False) -> None:
    """Your studies. Example: crowdveil study list"""
    studies = _ask(address, token, lambda requester: requester.studies())
    show({"studies": studies}, as_json=as_json, human=lambda: tell_each(studies, _line))


@app.command("show")
def show_study(study: Key, address: Address = HERE, token: Token = "", as_json: Json = False) -> None:
    """One study: what each level promises, its money, its warnings. Example: crowdveil study show STUDY"""
    _tell(_ask(address, token, lambda requester: requester.study(study)), as_json=as_json)


@app.command()
def pilot(study: Key, address: Address = HERE, token: Token = "", as_json: Json = False) -> None:
    """Freeze the definition and let the first few answer. Example: crowdveil study pilot STUDY"""
    _tell(_ask(address, token, lambda requester: requester.pilot(study)), as_json=as_json)


@app.command("open")
def open_study(study: Key, address: Address = HERE, token: Token = "", as_json: Json = False) -> None:
    """Freeze, sign and publish the definition; everybody may answer. Example: crowdveil study open STUDY"""
    _tell(_ask(address, token, lambda requester: requester.open(study)), as_json=as_json)


@app.command("add-money")
def add_money(
    study: Key,
    cents: Annotated[int, typer.Argument(min=1, help="How much more the study may spend.")],
    address: Address = HERE,
    token: Token = "",
    as_json: Json = False,
) -> None:
    """Add money to a running study. Example: crowdveil study add-money STUDY 5000"""
    _tell(_ask(address, token, lambda requester: requester.add_money(study, cents)), as_json=as_json)


@app.command("select")
def select(
    study: Key,
    n: Annotated[int | None, typer.Option(help="At most so many.")] = None,
    address: Address = HERE,
    token: Token = "",
    as_json: Json = False,
) -> None:
    """Choose workers, or refine the choice by who has answered since. Example: crowdveil study select STUDY"""
    selection = _ask(address, token, lambda requester: requester.choose_workers(study, n=n))
    show(selection, as_json=as_json, human=lambda: echo(f"{selection['new']} invited: {selection['stopped_because']}"))


@app.command()
def progress(study: Key, address: Address = HERE, token: Token = "", as_json: Json = False) -> None:
    """Places and money. Example: crowdveil study progress STUDY"""
    state = _ask(address, token, lambda requester: requester.progress(study))
    money = state["money"]
    paid, budget = money["paid_cents"] + money["commission_cents"], money["budget_cents"]
    line = f"{state['state']}: {state['taken']} of {state['quota']} answered, {paid} of {budget} cents spent"
    show(state, as_json=as_json, human=lambda: echo(line))


@app.command()
def results(study: Key, address: Address = HERE, token: Token = "", as_json: Json = False) -> None:
    """The latest estimates with their intervals. Example: crowdveil study results STUDY"""
    estimates = _ask(address, token, lambda requester: requester.results(study))
    show(estimates, as_json=as_json, human=lambda: _tell_results(estimates))


@app.command()
def quality(study: Key, address: Address = HERE, token: Token = "", as_json: Json = False) -> None:
    """How well the workers of a linkable study do on gold questions. Example: crowdveil study quality STUDY"""
    scores = _ask(address, token, lambda requester: requester.quality(study))
    show(scores, as_json=as_json, human=lambda: tell_each(scores["workers"], _tell_score))


@app.command()
def close(study: Key, address: Address = HERE, token: Token = "", as_json: Json = False) -> None:
    """End the intake and destroy the key that links reports to workers. Example: crowdveil study close STUDY"""
    _tell(_ask(address, token, lambda requester: requester.close(study)), as_json=as_json)


@app.command()
def publish(study: Key, address: Address = HERE, token: Token = "", as_json: Json = False) -> None:
    """Show the estimates to everybody. Example: crowdveil study publish STUDY"""
    _tell(_ask(address, token, lambda requester: requester.publish(study)), as_json=as_json)


@app.command()
def export(
    study: Key,
    output: Annotated[Path, typer.Option("-o", "--output", help="Where the reports go: .csv, .parquet or .json.")],
    part: Annotated[int, typer.Option(min=0, help="Which domain of the study; 0 is the first.")] = 0,
    address: Address = HERE,
    token: Token = "",
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Download a closed study's reports for 'crowdveil infer'. Example: crowdveil study export STUDY -o reports.csv"""
    if output.suffix.lower() not in (".csv", ".parquet", ".json"):
        raise FileError(f"the extension must be .csv, .parquet or .json; got {str(output)!r}", fix="rename the file")
    if output.suffix.lower() != ".parquet":
        refuse_existing(sidecar(output), force=force)
    with whole_file(output, force=force) as temporary, working("downloading", quiet=as_json):
        channels = sidecar(temporary)
        try:
            _ask(address, token, lambda requester: requester.export(study, temporary, part=part))
            if channels.exists():
                channels.replace(sidecar(output))
        finally:
            channels.unlink(missing_ok=True)
    show({"file": str(output), "part": part}, as_json=as_json, human=lambda: echo(f"reports in {output}"))


@app.command()
def labels(
    study: Key,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Where all labels go: .csv, .jsonl or .parquet.")
    ] = None,
    below: Annotated[float | None, typer.Option(min=0, max=1, help="Only labels of a smaller probability.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="So many lines, the least certain first.")] = 20,
    address: Address = HERE,
    token: Token = "",
    force: Force = False,
    as_json: Json = False,
) -> None:
    """The newest labels of a pool, or all of them as a file. Example: crowdveil study labels STUDY -o labels.csv"""
    if output is None:
        found = _ask(address, token, lambda requester: requester.labels(study, below=below, limit=limit))
        show(found, as_json=as_json, human=lambda: _tell_labels(found))
        return
    if output.suffix.lower() not in (".csv", ".jsonl", ".parquet"):
        raise FileError(f"the extension must be .csv, .jsonl or .parquet; got {str(output)!r}", fix="rename the file")
    with whole_file(output, force=force) as temporary, working("downloading", quiet=as_json):
        _ask(address, token, lambda requester: requester.export_labels(study, temporary))
    show({"file": str(output)}, as_json=as_json, human=lambda: echo(f"labels in {output}"))


def _tell_labels(found: dict[str, Any]) -> None:
    reports = f"{found['n_reports']} reports of {found['n_workers']} workers by {found['method']}"
    certain = f"{found['n_certain']} of {found['n_tasks']} tasks certain at {found['certain_at']:g}"
    echo(f"update {found['update']}, {reports}: {certain}. {found['privacy']}")
    for each in found["items"]:
        probability = "" if each["probability"] is None else f"{each['probability']:.3f}"
        echo(f"  {each['task']}: {each['label']} {probability} from {each['n_reports']} reports")


def _document(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise FileError(f"{path} must be a JSON document: {error}") from None


def _tell_score(worker: dict[str, Any]) -> None:
    echo(f"{worker['worker'][:16]}  {worker['score']} [{worker['low']}, {worker['high']}] on {worker['n_gold']} gold")


def _tell(study: dict[str, Any], *, as_json: bool) -> None:
    def human() -> None:
        _line(study)
        for level, promise in study["guarantees"].items():
            echo(f"  {level}: {promise}")
        for warning in study["warnings"]:
            echo(f"  warning: {warning}")

    show(study, as_json=as_json, human=human)


def _line(study: dict[str, Any]) -> None:
    echo(f"{study['id']}  {study['state']:9}  {study['draft']['title']}")


def _tell_results(estimates: dict[str, Any]) -> None:
    echo(f"batch {estimates['batch']}, from {estimates['n']} submissions. {estimates['privacy']}")
    for part in estimates["parts"]:
        for each in part["questions"]:
            if each.get("informative", True):
                echo(f"  {each['question']}: {each['value']} [{each['low']}, {each['high']}] by {part['method']}")
            else:
                echo(
                    f"  {each['question']}: the {each['n_reports']} reports say hardly more than a guess{_needs(part)}"
                )
        for warning in part["warnings"]:
            echo(f"  warning: {warning}")


def _needs(part: dict[str, Any]) -> str:
    """What would halve the uncertainty of a guess, as far as the planner knows."""
    needed = part.get("needed") or {}
    workers, epsilon = needed.get("n_workers"), needed.get("epsilon")
    ways = [] if workers is None else [f"about {workers} people"]
    ways += [] if epsilon is None else [f"ε {epsilon:.2g}"]
    return f"; it would need {' or '.join(ways)}" if ways else ""
