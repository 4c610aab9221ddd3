"""`crowdveil demo`: the whole story in the terminal, with a crowd that is made up on the spot."""

from __future__ import annotations

import secrets
from typing import Annotated, Any

import typer

from crowdveil.cli._common import Json, Seed, show
from crowdveil.cli._text import tell
from crowdveil.guarantee import round_up

_OPTIONS = ("no", "yes")
_BAR = 30
_SHARE = 0.2


def command(
    workers: Annotated[int, typer.Option(min=10, help="How many people answer.")] = 600,
    questions: Annotated[int, typer.Option(min=1, help="How many questions they are asked.")] = 60,
    epsilon: Annotated[float, typer.Option(help="The privacy loss of one report.")] = 1.0,
    seed: Seed = None,
    as_json: Json = False,
) -> None:
    """Ask a made-up crowd sensitive questions, see only noise, and learn the truth all the same.

    Example: crowdveil demo --workers 600 --epsilon 1
    """
    chosen = secrets.randbits(32) if seed is None else seed
    result = tell_story(workers, questions, epsilon, chosen)
    show(result, as_json=as_json, human=lambda: _print(result))


def tell_story(n_workers: int, n_questions: int, epsilon: float, seed: int) -> dict[str, Any]:
    """Simulate, randomise, infer, account and audit; everything the demonstration says is in here."""
    from crowdveil.domain import Choices
    from crowdveil.entropy import entropy_from
    from crowdveil.mechanisms import RandomizedResponse
    from crowdveil.reports import Reports
    from crowdveil.simulate import ChoiceCrowd

    domain = Choices(_OPTIONS)
    # As many answers from everybody, so that Ada always has some to account for.
    each = max(round(_SHARE * n_questions), 1)
    crowd = ChoiceCrowd(
        n_workers=n_workers, n_questions=n_questions, domain=domain, answers_per_worker=each, class_shares=(0.65, 0.35)
    ).draw(seed=seed)
    mechanism = RandomizedResponse(epsilon=epsilon)
    reports = mechanism.randomize(crowd.answers, entropy_from(seed))
    channel = mechanism.channel(domain)
    truths = crowd.truths()
    return {
        "seed": seed,
        "workers": n_workers,
        "questions": n_questions,
        "n_reports": len(reports),
        "guarantee": channel.guarantee.to_json(),
        "sentence": str(channel.guarantee),
        "changed": float((reports.report != crowd.answers.answer).mean()),
        "found": _measure_accuracy(reports, Reports.unprotected(crowd.answers), truths),
        "worker": _account(channel, int((crowd.answers.worker == 0).sum())),
        "audit": _audit(channel, epsilon, seed),
    }


def _measure_accuracy(reports: Any, answers: Any, truths: dict[str, str]) -> dict[str, float]:
    """The share of truths found: ours, beside what is trivial and what would need no privacy."""
    from crowdveil.inference import method
    from crowdveil.inference.metrics import constants, score

    truth_by_question: Any = truths
    ours = method("auto").fit(reports)
    return {
        f"{ours.method} on the reports": score(ours, truth_by_question)["accuracy"],
        "majority of the reports": score(method("majority").fit(reports), truth_by_question)["accuracy"],
        "always the commonest answer": constants(ours, truth_by_question)["best constant"]["accuracy"],
        "without any privacy": score(method("auto").fit(answers), truth_by_question)["accuracy"],
    }


def _account(channel: Any, n_answers: int) -> dict[str, Any]:
    """One worker's ledger: the answers of this study, and then as many more as the budget allows."""
    from crowdveil.accounting import Budget, Ledger, Spend
    from crowdveil.errors import BudgetError

    ledger = Ledger(Budget(n_answers * channel.epsilon + 2))
    ledger.charge("ada", Spend.through(channel, name="this study", count=n_answers), key="this study")
    after = ledger.loss("ada").epsilon
    try:
        ledger.charge("ada", Spend.through(channel, name="a greedy study", count=1000), key="greedy")
        refusal = ""
    except BudgetError as error:
        refusal = str(error)
    return {"answers": n_answers, "spent": after, "refusal": refusal}


def _audit(channel: Any, claimed: float, seed: int) -> dict[str, Any]:
    """The claim beside the proof from the table."""
    from crowdveil.audit.conformance import python_conforms, vector_of
    from crowdveil.audit.exact import exact_audit
    from crowdveil.entropy import entropy_from

    proof = exact_audit(channel, claimed)
    sampler = python_conforms(vector_of(channel, entropy_from(seed)))
    return {"claimed": claimed, "exact": channel.epsilon, "verdict": proof.verdict, "sampler": sampler}


def _print(result: dict[str, Any]) -> None:
    worker, audit = result["worker"], result["audit"]
    tell(
        f"1. Ask. {result['workers']} people get {result['questions']} sensitive questions (a made-up crowd).",
        indent="   ",
    )
    tell(
        f"2. Randomise. {result['n_reports']} reports leave their devices, {result['changed']:.0%} of them differ from "
        f"the answer behind them. Each: {result['sentence']}.",
        indent="   ",
    )
    typer.echo("3. Infer. Truths found:")
    for name, share in result["found"].items():
        typer.echo(f"   {name:<30} {share:6.1%}  {'█' * round(_BAR * share)}")
    spent = f"ε {round_up(worker['spent'], 2)} for all of them together"
    tell(f"4. Account. Ada answered {worker['answers']} questions and has spent {spent}. Later:", indent="   ")
    tell(f"   {worker['refusal']}", indent="   ")
    tell(
        f"5. Audit. Claimed ε {audit['claimed']:g}, exact ε {audit['exact']:.7f} from the integer table: the claim "
        f"{audit['verdict']}; the sampler on edge-case bytes: {audit['sampler']}.",
        indent="   ",
    )
    typer.echo(f"\nAgain with: crowdveil demo --seed {result['seed']}")
