"""`crowdveil plan`: what a study can find out, before anybody is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from crowdveil.accounting import (
    DEFAULT_DELTA,
    ShuffledGuarantee,
    amplify_by_shuffling,
    minimum_for_amplification,
)
from crowdveil.cli._common import Json, Options, Participation, ScaleFlag, needed_domain, show
from crowdveil.cli._progress import working
from crowdveil.cli._text import tell
from crowdveil.errors import InputError
from crowdveil.guarantee import round_up
from crowdveil.plan import CrowdSkill, Plan, Setting, expected_answers
from crowdveil.plan import plan as make_plan
from crowdveil.plan.monte_carlo import RESOLUTION
from crowdveil.plan.recommend import mechanism_channel


@dataclass(frozen=True, slots=True)
class ShuffledPlan:
    """What shuffling adds to a plan, and how many people would halve the local ε (None: more than ten million)."""

    guarantee: ShuffledGuarantee
    people_for_half: int | None


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
    shuffled_n: Annotated[
        int | None,
        typer.Option("--shuffled-n", help="Print also the ε against who sees only a shuffled table of N people."),
    ] = None,
    dishonest_share: Annotated[
        float, typer.Option("--dishonest-share", help="With --shuffled-n: the share of people taken to collude.")
    ] = 0.0,
    delta: Annotated[
        float, typer.Option("--delta", help="With --shuffled-n: the δ of the guarantee after shuffling.")
    ] = DEFAULT_DELTA,
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
        shuffled = (
            None
            if shuffled_n is None
            else _shuffle(setting, result, max_answers, shuffled_n, dishonest_share=dishonest_share, delta=delta)
        )
    fields = result.to_json()
    if shuffled is not None:
        fields["shuffled"] = shuffled.guarantee.to_json() | {"people_for_half": shuffled.people_for_half}
    show(fields, as_json=as_json, human=lambda: _print(result, target_error, shuffled))


def _shuffle(
    setting: Setting, result: Plan, max_answers: int | None, n: int, *, dishonest_share: float, delta: float
) -> ShuffledPlan:
    """The whole submission as one report: through the product of its channels, or by its ε alone where t is bounded."""
    if n > setting.n_workers:
        raise InputError(f"--shuffled-n must be at most the {setting.n_workers} workers who join; got {n}")
    n_answers = expected_answers(setting.n_questions, setting.share)
    n_reports = setting.n_questions if setting.protect_participation else n_answers
    # Two vectors of at most t answers differ in 2t cells, which the product of all channels does not know.
    bounded = max_answers is not None
    submission = result.charge.epsilon if bounded else [mechanism_channel(result.mechanism, setting)] * n_reports
    guarantee = amplify_by_shuffling(submission, n, delta=delta, dishonest_share=dishonest_share)
    half = guarantee.local_epsilon / 2
    return ShuffledPlan(guarantee, minimum_for_amplification(submission, half, delta, dishonest_share=dishonest_share))


def _print(result: Plan, target: float | None, shuffled: ShuffledPlan | None) -> None:
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
    if shuffled is not None:
        local = round_up(shuffled.guarantee.local_epsilon)
        tell(f"against everybody, the broker included: ε ≤ {local}, which is what the ledger counts")
        tell(f"after shuffling: {shuffled.guarantee}")
        people = shuffled.people_for_half
        tell(f"half of the local ε needs {'more than ten million' if people is None else f'at least {people}'} people")


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
