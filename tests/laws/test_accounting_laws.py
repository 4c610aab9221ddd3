"""Laws of composition, for every rule and every mechanism of the registry that serves the domain."""

from __future__ import annotations

import math

import pytest

from crowdveil import Choices, InputError, Scale
from crowdveil.accounting import RULES, JointLaw, Spend, TwoLayerLaw, releases, totals
from crowdveil.audit.costs import independent, mechanism_spend
from crowdveil.channel.two_layer import value_epsilon, vector_epsilon
from crowdveil.domain import Domain
from crowdveil.mechanisms import MECHANISMS, Mechanism, mechanism

DOMAINS: list[Domain] = [Choices(("no", "yes")), Choices(tuple("abcdefgh")), Scale(1, 5)]


def served() -> list[tuple[Mechanism, Domain]]:
    """Every mechanism at two ε, with and without participation protected, on every domain that it serves."""
    cases = []
    for name in MECHANISMS:
        for domain in DOMAINS:
            for epsilon in (0.3, 1.5):
                for more in ({}, {"protect_participation": True}):
                    try:
                        case = mechanism(name, epsilon=epsilon, **more)
                        case.guarantee(domain)
                    except InputError:
                        continue
                    cases.append((case, domain))
    return cases


SERVED = served()
NAMES = [f"{case.name} {domain.size}" for case, domain in SERVED]
PLD_STEPS = 1e-3


def test_the_registry_is_covered() -> None:
    assert {case.name for case, _ in SERVED} == set(MECHANISMS)


@pytest.mark.parametrize(("case", "domain"), SERVED, ids=NAMES)
def test_n_releases_one_by_one_cost_as_much_as_n_at_once(case: Mechanism, domain: Domain) -> None:
    n = 7
    at_once = mechanism_spend(case, domain, name="study", count=n)
    if not independent(case, domain) or not at_once.protected:
        return
    one_by_one = [mechanism_spend(case, domain, name="study") for _ in range(n)]
    for unit in ("value", "cell", "vector"):
        for name, rule in RULES.items():
            together = rule(releases([at_once], unit), 1e-6).epsilon
            apart = rule(releases(one_by_one, unit), 1e-6).epsilon
            slack = n * PLD_STEPS if name == "pld" else 1e-9
            assert math.isinf(together) == math.isinf(apart)
            assert math.isinf(together) or together == pytest.approx(apart, abs=slack, rel=1e-9), (unit, name)


@pytest.mark.parametrize(("case", "domain"), SERVED, ids=NAMES)
def test_more_releases_never_cost_less(case: Mechanism, domain: Domain) -> None:
    few, many = (totals([mechanism_spend(case, domain, name="study", count=count)]) for count in (2, 5))
    for unit, rules in few.items():
        for rule, cost in rules.items():
            assert many[unit][rule].epsilon >= cost.epsilon - 1e-6


@pytest.mark.parametrize(("case", "domain"), SERVED, ids=NAMES)
def test_every_spend_survives_being_written_down(case: Mechanism, domain: Domain) -> None:
    spend = mechanism_spend(case, domain, name="study", count=3)
    assert Spend.from_json(spend.to_json()) == spend


def test_two_layer_follows_its_own_joint_law() -> None:
    domain = Choices(("no", "yes"))
    case = mechanism("two-layer", low=0, high=1)
    low, high = case.bounds(domain)
    for count in (1, 2, 20):
        in_units = totals([mechanism_spend(case, domain, name="study", count=count)])
        assert in_units["value"]["basic"].epsilon == value_epsilon(count, 2, low, high)
        assert in_units["vector"]["basic"].epsilon == vector_epsilon(count, 2, low, high)
    assert in_units["value"]["basic"].epsilon == pytest.approx(math.log(20))
    assert in_units["vector"]["basic"].epsilon == pytest.approx(math.log(math.comb(20, 10)))


def test_dependent_mechanisms_are_known_as_such() -> None:
    dependent = {case.name for case, domain in SERVED if not independent(case, domain)}
    assert dependent == {"two-layer", "matrix-factorization", "dense-factorization"}
    kinds = {type(mechanism_spend(case, domain, name="").law) for case, domain in SERVED if case.name in dependent}
    assert kinds == {JointLaw, TwoLayerLaw}
