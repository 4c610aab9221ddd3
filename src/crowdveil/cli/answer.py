"""crowdveil answer: a worker over the API; only reports leave this machine, at level "none" the answers themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from crowdveil.cli._broker import HERE, Address, Key, tell_each
from crowdveil.cli._common import Json, show
from crowdveil.cli._controls import echo
from crowdveil.errors import FileError
from crowdveil.guarantee import round_down, round_up

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Answer studies as a worker: answers are randomised on this machine, except at level none.\n\n"
    "Example: crowdveil answer list",
)
Home = Annotated[Path, typer.Option(envvar="CROWDVEIL_HOME", help="Where this device keeps its token and its ledger.")]
_AS_THEY_ARE = "not protected: your answers are sent as they are"
_HOME = Path.home() / ".crowdveil"


def _worker(address: str, home: Path, *, epsilon_cap: float | None = None) -> Any:
    from crowdveil.client import Broker, Worker

    return Worker(Broker(address), home, epsilon_cap=epsilon_cap)


@app.command("sign-up")
def sign_up(
    level: Annotated[str, typer.Option(help="Your default level: none, low, medium or high.")] = "medium",
    cap: Annotated[float, typer.Option(help="The ε you are ready to spend in all, for life.")] = 4.0,
    anew: Annotated[bool, typer.Option("--anew", help="In place of an account the broker knows no more.")] = False,
    address: Address = HERE,
    home: Home = _HOME,
    as_json: Json = False,
) -> None:
    """Become a worker: no name, no address. Example: crowdveil answer sign-up --level medium"""
    with _worker(address, home, epsilon_cap=cap) as worker:
        key = (worker.begin_anew if anew else worker.sign_up)(default_level=level)
    show({"id": key, "home": str(home)}, as_json=as_json, human=lambda: echo(f"worker {key}, kept in {home}"))


@app.command("list")
def list_studies(address: Address = HERE, home: Home = _HOME, as_json: Json = False) -> None:
    """What you may answer, with pay and ε for each level. Example: crowdveil answer list"""
    with _worker(address, home) as worker:
        studies = worker.studies()
    show({"studies": studies}, as_json=as_json, human=lambda: tell_each(studies, _tell_card))


@app.command("show")
def show_study(study: Key, address: Address = HERE, home: Home = _HOME, as_json: Json = False) -> None:
    """Check a study and print its questions. Example: crowdveil answer show STUDY"""
    with _worker(address, home) as worker:
        details = worker.study(study)
    show(details.definition, as_json=as_json, human=lambda: _tell_study(details.definition))


@app.command()
def send(
    study: Key,
    answers: Annotated[Path, typer.Argument(help='A JSON file: {"question": "answer"}; what is left out is skipped.')],
    level: Annotated[str | None, typer.Option(help="Another level than your default; that choice is visible.")] = None,
    address: Address = HERE,
    home: Home = _HOME,
    as_json: Json = False,
) -> None:
    """Check a study, charge, randomise (not at level none), send. Example: crowdveil answer send STUDY answers.json"""
    answers_by_question = _answers(answers)
    with _worker(address, home) as worker:
        sent = worker.answer(study, answers_by_question, level=level)
    result = {
        "level": sent.level,
        "protected": sent.protected,
        "reports": list(sent.reports),
        "receipt": sent.receipt,
    }
    show(result, as_json=as_json, human=lambda: _tell_sent(sent))


@app.command()
def label(
    study: Key,
    answers: Annotated[Path, typer.Argument(help='A JSON file: {"task id": "label"}; what is left out is skipped.')],
    batches: Annotated[int, typer.Option(min=1, help="At most so many batches.")] = 1,
    level: Annotated[str | None, typer.Option(help="Another level than your default; that choice is visible.")] = None,
    code: Annotated[str | None, typer.Option(help="Your worker code, where who labels what is listed.")] = None,
    ceiling: Annotated[
        float | None,
        typer.Option(min=0, help="Protect answers one by one, outside your cap, up to this Σε in this pool."),
    ] = None,
    address: Address = HERE,
    home: Home = _HOME,
    as_json: Json = False,
) -> None:
    """Label batches of a pool of tasks. Example: crowdveil answer label STUDY labels.json --batches 5"""
    given = _answers(answers)
    with _worker(address, home) as worker:
        if ceiling is not None:
            worker.set_ceiling(study, ceiling)
        sent = worker.label(
            study,
            lambda task: given.get(task.id),
            level=level,
            batches=batches,
            one_by_one=ceiling is not None,
            worker_code=code,
        )
    receipts = [each.receipt for each in sent]
    pay = sum(receipt["pay_cents"] for receipt in receipts)
    n_reports = sum(len(each.reports) for each in sent)

    def human() -> None:
        echo(f"{len(sent)} batches with {n_reports} reports left this machine, {pay} cents")
        if not all(each.protected for each in sent):
            echo(_AS_THEY_ARE)

    show({"batches": receipts}, as_json=as_json, human=human)


@app.command()
def budget(address: Address = HERE, home: Home = _HOME, as_json: Json = False) -> None:
    """What you have spent and what is left, by this device's own ledger. Example: crowdveil answer budget"""
    with _worker(address, home) as worker:
        loss, remaining, cap = worker.ledger.loss("me"), worker.ledger.left("me"), worker.ledger.budget.epsilon
    result = {"cap": cap, "epsilon": loss.epsilon, "left": remaining.epsilon, "unprotected": loss.unprotected}
    result["one_by_one"] = {
        name: {"count": each.count, "epsilon": each.epsilon, "total": each.total}
        for name, each in loss.one_by_one.items()
    }
    show(result, as_json=as_json, human=lambda: echo(_standing(loss, remaining.epsilon, cap)))


@app.command()
def receipts(address: Address = HERE, home: Home = _HOME, as_json: Json = False) -> None:
    """Every receipt this device holds. Example: crowdveil answer receipts"""
    with _worker(address, home) as worker:
        receipts_sent = worker.receipts()
    show(
        {"receipts": receipts_sent},
        as_json=as_json,
        human=lambda: tell_each(receipts_sent, lambda each: echo(json.dumps(each))),
    )


@app.command()
def payments(address: Address = HERE, home: Home = _HOME, as_json: Json = False) -> None:
    """What you earned and what was paid out. Example: crowdveil answer payments"""
    with _worker(address, home) as worker:
        earnings = worker.payments()
    show(earnings, as_json=as_json, human=lambda: echo(f"{earnings['balance_cents']} cents to come"))


@app.command()
def withdraw(study: Key, address: Address = HERE, home: Home = _HOME, as_json: Json = False) -> None:
    """Have your reports to a study erased; your pay stays. Example: crowdveil answer withdraw STUDY"""
    with _worker(address, home) as worker:
        worker.withdraw(study)
    show({"withdrawn": study}, as_json=as_json, human=lambda: echo("withdrawn; what you earned stays yours"))


@app.command("raise-cap")
def raise_cap(
    cap: Annotated[float, typer.Argument(min=0.0, help="The new ceiling of your ε, over all studies.")],
    address: Address = HERE,
    home: Home = _HOME,
    as_json: Json = False,
) -> None:
    """Set another ceiling for what you may spend; only you can, and only here. Example: crowdveil answer raise-cap 6"""
    with _worker(address, home) as worker:
        worker.raise_cap(cap)
    show({"cap": cap}, as_json=as_json, human=lambda: echo(f"from now on at most ε {cap:g} over all studies"))


@app.command("catch-up")
def catch_up(
    dismiss: Annotated[bool, typer.Option("--dismiss", help="The broker is wrong: keep this device's number.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do it without asking.")] = False,
    address: Address = HERE,
    home: Home = _HOME,
    as_json: Json = False,
) -> None:
    """Count what the broker says you have spent elsewhere, or dismiss it. Example: crowdveil answer catch-up"""
    with _worker(address, home) as worker:
        claimed, known = worker.mirror()
        numbers = f"The broker says ε {round_up(claimed)} was spent, this device knows of ε {round_up(known)}."
        question = "Keep this device's number?" if dismiss else "Count the broker's, for good?"
        if claimed > known and not yes:
            typer.confirm(f"{numbers} {question}", abort=True, err=True)
        (worker.dismiss_mirror if dismiss else worker.catch_up)()
        spent = worker.ledger.loss("me").epsilon
    result = {"claimed": claimed, "epsilon": spent}
    show(result, as_json=as_json, human=lambda: echo(f"this device counts ε {round_up(spent)} as spent"))


@app.command()
def erase(
    yes: Annotated[bool, typer.Option("--yes", help="Do it without asking.")] = False,
    address: Address = HERE,
    home: Home = _HOME,
    as_json: Json = False,
) -> None:
    """Withdraw every submission and erase your account. Example: crowdveil answer erase"""
    if not yes:
        typer.confirm("This withdraws all your reports and erases your account. Go on?", abort=True, err=True)
    with _worker(address, home) as worker:
        worker.erase()
    show({"erased": True}, as_json=as_json, human=lambda: echo("your account and your reports are erased"))


def _answers(path: Path) -> dict[str, Any]:
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise FileError(f"{path} must be a JSON document: {error}") from None
    if not isinstance(given, dict):
        raise FileError(f'{path} must be a JSON object such as {{"question": "answer"}}')
    return given


def _standing(loss: Any, left: float, cap: float) -> str:
    """Spent rounded up and left rounded down, with what the numbers are about."""
    return f"{loss}; ε {round_down(left)} of {cap:g} left, for all answers to all studies together"


def _tell_card(card: dict[str, Any]) -> None:
    echo(f"{card['id']}  {card['status']:9}  {card['title']} ({card['requester']})")
    for level in card["levels"]:
        charge = level["charge"]
        cost = f"ε {round_up(charge['epsilon_nano'] / 1e9)} for all answers together" if charge else _AS_THEY_ARE
        echo(f"    {level['name']}: {level['pay_cents']} cents, {cost}")
    for warning in card["warnings"]:
        echo(f"    warning: {warning}")


def _tell_study(definition: dict[str, Any]) -> None:
    echo(f"{definition['title']}: {definition['purpose']}")
    for level in definition["levels"]:
        echo(f"  level {level['name']}: {'answers are randomised' if level['protected'] else _AS_THEY_ARE}")
    for question in definition["questions"]:
        echo(f"  {question['id']}: {question['text']} {json.dumps(question['domain'], ensure_ascii=False)}")


def _tell_sent(sent: Any) -> None:
    what = "report" if sent.protected else "your answer, as code"
    for report in sent.reports:
        echo(f"  {report['question']}: {what} {report['report']} left this machine")
    if not sent.protected:
        echo(_AS_THEY_ARE)
    echo(f"receipt {sent.receipt['receipt']}, {sent.receipt['pay_cents']} cents")
