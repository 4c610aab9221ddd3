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
        float, typer.Option("--effort", help="How much to simulate: 1 takes some seconds, 0 only calculates.")
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
        CrowdSkill.from_name(skill, domain),
        n_questions=questions,
        protect_participation=protect_participation,
    )
    with working("planning", quiet=as_json):
        result = make_plan(
            setting,
            target_error=target_error,
            population=population,
            mechanism=mechanism,
            max_answers=max_answers,
            effort=effort,
        )
    show(result.to_json(), as_json=as_json, human=lambda: _print(result, target_error))


def _print(result: Plan, target: float | None) -> None:
    low, high = result.interval
    tell("feasible" if result.feasible else "not feasible")
    unit = "" if result.unit == "share" else f" {result.unit}"
    tell(f"expected {result.measure}: {_format_error(result)}{unit} (95 of 100 studies: {low:.3g} to {high:.3g})")
    tell(_describe_simulation(result))
    tell(f"a guess without asking: {result.prior_error:.3g}; floor ({result.floor_meaning}): {result.floor:.3g}")
    wanted = f"{result.target_error:.3g}" + (" (half of a guess without asking)" if target is None else "")
    tell(f"for {wanted}: {_describe_needs(result)}")
    tell(f"mechanism {result.mechanism}, method {result.method}: {result.why}")
    tell(
        f"whole study, per worker: ε ≤ {round_up(result.charge.epsilon)} ({result.charge.unit}): "
        f"{result.charge.sentence}"
    )


def _describe_needs(result: Plan) -> str:
    """Workers or ε, and which of the two was only calculated."""
    workers = "more than ten million" if result.workers_needed is None else str(result.workers_needed)
    least = "more than 8" if result.epsilon_needed is None else round_up(result.epsilon_needed, 3)
    simulated = (result.workers_simulated, result.epsilon_simulated)
    only = [" (calculated only)" if any(simulated) and not is_simulated else "" for is_simulated in simulated]
    words = f"{workers} workers at this ε{only[0]}, or ε {least} with these workers{only[1]}"
    return words if any(simulated) else f"{words}; both calculated only"


def _format_error(result: Plan) -> str:
    """No digits that the planner cannot vouch for."""
    if result.known and result.expected_error >= RESOLUTION * result.prior_error:
        return f"{result.expected_error:.3g}"
    if result.expected_error > 3 * result.standard_error and result.expected_error >= RESOLUTION * result.prior_error:
        return f"about {result.expected_error:.2g}, at most {result.at_most:.2g}"
    return f"below {max(result.at_most, RESOLUTION * result.prior_error):.2g}"


def _describe_simulation(result: Plan) -> str:
    if result.n_simulations == 0:
        near = "to half to twice" if result.measure == "mean absolute error" else "within about a quarter of"
        return f"calculated, not simulated: real studies of this kind mostly came {near} such a number"
    return (
        f"simulated {result.n_simulations} times with {result.method}: ± {result.standard_error:.2g} (standard error)"
    )
