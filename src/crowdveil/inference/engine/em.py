"""The one loop of every iterative method, on every engine: pass, measure, stop or step."""

from __future__ import annotations

import math
from dataclasses import dataclass

from crowdveil.inference.acceleration import extrapolate
from crowdveil.inference.engine.local import Passes
from crowdveil.inference.parallel import crew
from crowdveil.inference.protocols import HasDiagnosticsPass, Model, Parameters, Settling, Statistics
from crowdveil.progress import report_progress

SLACK = 1e-6
"""An objective that goes the wrong way by more than this share of itself is not rounding any more."""


@dataclass(frozen=True, slots=True)
class Run:
    """Where the loop ended and how it got there."""

    parameters: Parameters
    trace: tuple[float, ...]
    iterations: int
    converged: bool
    warnings: tuple[str, ...]


def run(
    model: Model,
    session: Passes,
    *,
    max_iter: int,
    tol: float,
    accelerate: bool = False,
    first: Parameters | None = None,
) -> Run:
    """Iterate until the objective changes by less than `tol` of itself (a residual: until it is below `tol`).

    With `accelerate`, steps are extrapolated (SQUAREM) once there is an objective, and every extrapolation that makes
    it worse is taken back. `first` are the parameters to go on from, as they are; without them the model says where to
    start.
    """
    with crew(session.threads):
        return _run(model, _Loop(model, session, tol), model.init() if first is None else first, max_iter, accelerate)


def _run(model: Model, loop: _Loop, parameters: Parameters, max_iter: int, accelerate: bool) -> Run:
    while loop.iterations < max_iter and not loop.converged:
        if accelerate and model.goal != "vanish" and loop.iterations + 3 <= max_iter and loop.trace:
            parameters = _accelerate(loop, parameters)
        else:
            parameters = loop.step(parameters)
        report_progress("iterations", loop.iterations, max_iter, at_most=True, rest=loop.rest, tol=loop.tol)
    if loop.iterations and isinstance(model, HasDiagnosticsPass):
        parameters = model.absorb_scores(loop.session.score_pass(parameters), parameters)
    return Run(parameters, tuple(loop.trace), loop.iterations, loop.converged, loop.warnings(max_iter))


class _Loop:
    """What the loop remembers."""

    def __init__(self, model: Model, session: Passes, tol: float) -> None:
        self.model, self.session, self.tol = model, session, tol
        self.trace: list[float] = []
        self.iterations = 0
        self.converged = False
        self.wrong_way = 0.0
        self.rest: float | None = None

    def step(self, parameters: Parameters) -> Parameters:
        """One pass and the parameters it leads to."""
        statistics, objective = self.try_pass(parameters)
        self.accept(objective)
        if isinstance(self.model, Settling) and self.model.settling(parameters):
            self.converged = False
        return self.model.m_step(statistics, parameters)

    def try_pass(self, parameters: Parameters) -> tuple[Statistics, float]:
        statistics = self.session.e_pass(parameters)
        self.iterations += 1
        return statistics, self.model.measure(statistics, parameters)

    def accept(self, objective: float) -> None:
        if math.isnan(objective):
            return
        if self.model.goal == "vanish":
            self.rest = objective
        elif self.trace:
            gain = self.gain(objective)
            self.wrong_way = max(self.wrong_way, -gain)
            self.rest = abs(gain)
        self.converged = self.rest is not None and self.rest <= self.tol
        self.trace.append(objective)

    def gain(self, objective: float) -> float:
        """How much better than the last objective, as a share of it."""
        better = objective - self.trace[-1] if self.model.goal == "rise" else self.trace[-1] - objective
        return better / (1.0 + abs(self.trace[-1]))

    def warnings(self, max_iter: int) -> tuple[str, ...]:
        messages = []
        if not self.converged and max_iter > 0:
            messages.append(f"not converged after {self.iterations} iterations; raise max_iter or tol")
        if self.wrong_way > SLACK:
            messages.append(f"the {self.model.objective} went the wrong way by {self.wrong_way:.1e} of itself")
        return tuple(messages)


def _accelerate(loop: _Loop, first: Parameters) -> Parameters:
    """Two plain steps, a leap along them, and back to the second step when the leap made it worse."""
    points = [first]
    while len(points) < 3:
        points.append(loop.step(points[-1]))
        if loop.converged:
            return points[-1]
    third = points[-1]
    leap = loop.model.project(extrapolate(*points))
    statistics, objective = loop.try_pass(leap)
    if math.isnan(objective) or loop.gain(objective) < 0:
        return third
    loop.accept(objective)
    return loop.model.m_step(statistics, leap)
