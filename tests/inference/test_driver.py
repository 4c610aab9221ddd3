"""The loop itself: when it stops, what it reports, and that a leap in the wrong direction is taken back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from crowdveil.inference.acceleration import extrapolate
from crowdveil.inference.engine.em import run
from crowdveil.inference.protocols import Goal, Parameters, Statistics, add


@dataclass
class Climb:
    """A toy: each pass halves the distance to 3; the objective is minus that distance squared."""

    goal: Goal = "rise"
    rate: float = 0.5
    worse_beyond: float = math.inf
    objective: ClassVar[str] = "height"
    keeps_rows: ClassVar[bool] = True

    def init(self) -> Parameters:
        return {"x": np.array([0.0])}

    def begin(self, block: Any) -> None: ...

    def finish(self, block: Any, parameters: Parameters, state: Any) -> dict[str, Any]:
        return {}

    def e_step(self, block: Any, parameters: Parameters, state: Any) -> tuple[Statistics, Any]:
        return {"x": parameters["x"]}, state

    def measure(self, statistics: Statistics, parameters: Parameters) -> float:
        distance = abs(float(parameters["x"][0]) - 3)
        if float(parameters["x"][0]) > self.worse_beyond:
            return -1e6
        return distance if self.goal != "rise" else -(distance**2)

    def m_step(self, statistics: Statistics, parameters: Parameters) -> Parameters:
        return {"x": statistics["x"] + self.rate * (3 - statistics["x"])}

    def project(self, parameters: Parameters) -> Parameters:
        return parameters


class Alone:
    """A session of one block without rows."""

    threads = 1

    def __init__(self, model: Climb) -> None:
        self.model = model

    def e_pass(self, parameters: Parameters) -> Statistics:
        return self.model.e_step(None, parameters, None)[0]

    def score_pass(self, parameters: Parameters) -> Statistics:
        raise AssertionError("this model never looks")

    def finish(self, parameters: Parameters) -> dict[str, Any]:
        return {}


def test_it_stops_when_the_objective_settles() -> None:
    done = run(model := Climb(), Alone(model), max_iter=200, tol=1e-9)
    assert done.converged
    assert done.iterations == len(done.trace) < 60
    assert done.parameters["x"][0] == pytest.approx(3, abs=1e-3)
    assert done.warnings == ()


def test_it_says_when_it_did_not_settle() -> None:
    done = run(model := Climb(), Alone(model), max_iter=3, tol=1e-9)
    assert not done.converged
    assert done.iterations == 3
    assert "not converged after 3 iterations" in done.warnings[0]


def test_a_residual_must_vanish() -> None:
    done = run(model := Climb(goal="vanish"), Alone(model), max_iter=200, tol=1e-3)
    assert done.converged
    assert done.trace[-1] <= 1e-3 < done.trace[-2]


def test_an_objective_that_goes_the_wrong_way_is_reported() -> None:
    done = run(model := Climb(worse_beyond=2.5), Alone(model), max_iter=6, tol=1e-9)
    assert any("went the wrong way" in warning for warning in done.warnings)


def test_a_leap_saves_iterations() -> None:
    plain = run(slow := Climb(rate=0.05), Alone(slow), max_iter=2000, tol=1e-10)
    fast = run(leap := Climb(rate=0.05), Alone(leap), max_iter=2000, tol=1e-10, accelerate=True)
    assert fast.iterations < plain.iterations / 3
    assert fast.parameters["x"][0] == pytest.approx(3, abs=1e-2)


def test_a_leap_that_makes_it_worse_is_taken_back() -> None:
    model = Climb(rate=0.05, worse_beyond=1.0)
    done = run(model, Alone(model), max_iter=9, tol=1e-12, accelerate=True)
    assert (np.diff(done.trace) >= 0).all()
    assert all(value > -1e6 for value in done.trace)


def test_extrapolation_of_a_straight_line_is_its_end() -> None:
    points = [{"x": np.array([float(place)])} for place in (0, 1, 2)]
    assert extrapolate(*points) is points[2]


def test_statistics_add_by_name() -> None:
    total = add({"a": np.array([1.0, 2.0]), "n": np.array(1.0)}, {"a": np.array([10.0, 20.0]), "n": np.array(2.0)})
    assert total["a"].tolist() == [11, 22]
    assert float(total["n"]) == 3
