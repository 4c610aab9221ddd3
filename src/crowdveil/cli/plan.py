"""`crowdveil plan`: what a study can find out, before anybody is asked."""

from __future__ import annotations

from typing import Annotated

import typer

from crowdveil.cli._common import Json, Options, Participation, ScaleFlag, needed_domain, show
from crowdveil.cli._progress import working
from crowdveil.cli._text import tell
from crowdveil.guarantee import round_up
from crowdveil.plan import CrowdSkill, Plan, Setting
from crowdveil.plan import plan as make_plan
from crowdveil.plan.monte_carlo import RESOLUTION


def command(
    epsilon: Annotated[float, typer.Option("--epsilon", help="The privacy loss that one report may cost.")],
    workers: Annotated[int, typer.Option("--workers", help="How many workers join the study.")],
    share: Annotated[float, typer.Option("--share", help="The share of the questions that each answers.")] = 1.0,
    skill: Annotated[
        str,
        typer.Option("--skill", help="expert, good, mixed, poor, spammers, or numbers: 0.8 or 0.9,0.6 or 0.5..0.9."),
    ] = "mixed",
    options: Options = None,
    scale: ScaleFlag = None,
    protect_participation: Participation = False,
    questions: Annotated[int, typer.Option("--questions", help="How many questions the study has.")] = 100,
    target_error: Annotated[float | None, typer.Option("--target-error", help="The error that is wanted.")] = None,
    population: Annotated[
        bool, typer.Option("--population", help="The crowd's opinion is wanted, not the truth of each question.")
    ] = False,
    mechanism: Annotated[
        str | None, typer.Option("--mechanism", help="Plan with this one instead of the best.")
    ] = None,
    max_answers: Annotated[
        int | None, typer.Option("--max-answers", help="A public bound on answers that the device enforces.")
    ] = None,
    effort: Annotated[
        float, typer.Option("--effort", help="How much to rehearse: 1 takes some seconds, 0 only calculates.")
    ] = 1.0,
    as_json: Json = False,
) -> None:
    """The error to expect, the workers or the ε that a target needs, or that it cannot be done, with the floor.

    Example: crowdveil plan --options no,yes --epsilon 1 --workers 200 --share 0.5 --skill mixed --target-error 0.05
    """
    domain = needed_domain(options, scale)
    setting = Setting(
        domain,
        epsilon,
        workers,
        share,
        CrowdSkill.named(skill, domain),
        n_questions=questions,
        protect_participation=protect_participation,
    )
    with working("planning", quiet=as_json):
        found = make_plan(
            setting,
            target_error=target_error,
            population=population,
            mechanism=mechanism,
            max_answers=max_answers,
            effort=effort,
        )
    show(found.to_json(), as_json=as_json, human=lambda: _print(found, target_error))


def _print(found: Plan, target: float | None) -> None:
    low, high = found.interval
    tell("feasible" if found.feasible else "not feasible")
    unit = "" if found.unit == "share" else f" {found.unit}"
    tell(f"expected {found.measure}: {_spelled(found)}{unit} (95 of 100 studies: {low:.3g} to {high:.3g})")
    tell(_rehearsed(found))
    tell(f"a guess without asking: {found.prior_error:.3g}; floor ({found.floor_meaning}): {found.floor:.3g}")
    wanted = f"{found.target_error:.3g}" + (" (half of a guess without asking)" if target is None else "")
    tell(f"for {wanted}: {_needed(found)}")
    tell(f"mechanism {found.mechanism}, method {found.method}: {found.why}")
    tell(
        f"whole study, per worker: ε ≤ {round_up(found.charge.epsilon)} ({found.charge.unit}): {found.charge.sentence}"
    )


def _needed(found: Plan) -> str:
    """Workers or ε, and which of the two was only calculated."""
    workers = "more than ten million" if found.workers_needed is None else str(found.workers_needed)
    least = "more than 8" if found.epsilon_needed is None else round_up(found.epsilon_needed, 3)
    rehearsed = (found.workers_rehearsed, found.epsilon_rehearsed)
    only = [" (calculated only)" if any(rehearsed) and not each else "" for each in rehearsed]
    words = f"{workers} workers at this ε{only[0]}, or ε {least} with these workers{only[1]}"
    return words if any(rehearsed) else f"{words}; both calculated only"


def _spelled(found: Plan) -> str:
    """No digits that the planner cannot vouch for."""
    if found.known and found.expected_error >= RESOLUTION * found.prior_error:
        return f"{found.expected_error:.3g}"
    if found.expected_error > 3 * found.standard_error and found.expected_error >= RESOLUTION * found.prior_error:
        return f"about {found.expected_error:.2g}, at most {found.at_most:.2g}"
    return f"below {max(found.at_most, RESOLUTION * found.prior_error):.2g}"


def _rehearsed(found: Plan) -> str:
    if found.studies_rehearsed == 0:
        near = "to half to twice" if found.measure == "mean absolute error" else "within about a quarter of"
        return f"calculated, not rehearsed: real studies of this kind mostly came {near} such a number"
    return (
        f"rehearsed {found.studies_rehearsed} times with {found.method}: ± {found.standard_error:.2g} (standard error)"
    )
