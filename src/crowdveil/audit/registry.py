"""The audit of one mechanism, or of the whole registry: exact where there is a table, from outside elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.audit.black_box import black_box
from crowdveil.audit.conformance import (
    Vector,
    javascript_conforms,
    mechanism_conforms,
    python_conforms,
    vector_of,
)
from crowdveil.audit.exact import exact_audit
from crowdveil.audit.finding import Finding, Verdict, refute
from crowdveil.audit.floating_point import (
    Noise,
    laplace_by_inversion,
    named_share,
    named_share_of_table,
    numpy_laplace,
)
from crowdveil.audit.lower_bound import LowerBound
from crowdveil.audit.report_parsing import reader
from crowdveil.audit.targets import Subject, affordable_samples, callable_subject, mechanism_subject
from crowdveil.channel.two_layer import value_epsilon_of_any
from crowdveil.domain import Domain, Scale
from crowdveil.entropy import Entropy
from crowdveil.errors import InputError
from crowdveil.guarantee import Unit
from crowdveil.mechanisms import MECHANISMS, ChannelMechanism, Laplace, Mechanism, TwoLayer, mechanism
from crowdveil.progress import count_progress, progress_listener

SAMPLES = 200_000
# Mechanisms that solve a system for each worker are sampled less; see `--samples`.
SLOW_SAMPLES = 40_000
_JOINT_ANSWERS = 20
_NAMED_SAMPLES = 4_000
_REPEATS = 200


def audit_mechanism(
    subject: Mechanism,
    domain: Domain,
    *,
    claimed: float | None,
    participation: bool,
    entropy: Entropy,
    samples: int | None = None,
) -> Finding:
    """Audit one mechanism on a domain.

    `claimed` is the ε to check; with None, the ε that the mechanism itself states. `participation` includes ∅ among the
    inputs. A mechanism with a channel is audited exactly; for others `samples` reports per input give a lower bound.
    """
    if isinstance(subject, ChannelMechanism):
        return _with_javascript([_exact_row(subject, domain, claimed, entropy)])[0]
    if isinstance(subject, TwoLayer):
        return _joint_row(subject, domain, claimed, participation)
    return _sampled_row(subject, domain, claimed, participation, entropy, samples)


def audit_registry(
    domain: Domain,
    *,
    epsilon: float,
    participation: bool,
    entropy: Entropy,
    samples: int | None = None,
    names: Sequence[str] = tuple(MECHANISMS),
) -> list[Finding]:
    """Audit every mechanism that `names` lists at this ε; one finding each, in the order of the registry."""
    tables, rows = [], []
    for name in count_progress(names, "mechanisms audited"):
        try:
            subject = build_mechanism(name, {"epsilon": epsilon}, participation=participation)
            if isinstance(subject, ChannelMechanism):
                tables.append(_exact_row(subject, domain, epsilon if name != "none" else None, entropy))
                continue
            with progress_listener(None):
                finding = audit_mechanism(
                    subject, domain, claimed=epsilon, participation=participation, entropy=entropy, samples=samples
                )
            rows.append(finding)
        except InputError as error:
            rows.append(Finding(name, _unit(participation), epsilon, research_only=_research(name), note=str(error)))
    order = list(MECHANISMS)
    return sorted([*_with_javascript(tables), *rows], key=lambda row: order.index(row.mechanism))


def audit_callable(
    name: str, domain: Domain, *, claimed: float, participation: bool, delta: float = 0.0, samples: int | None = None
) -> Finding:
    """Audit any Python callable against the ε (and δ) that it claims, from its outputs alone.

    `name` is the callable as `module:function`. Sampling can only refute: a claim that is not refuted is "unknown".
    """
    if not claimed >= 0:
        raise InputError(f"the ε that is claimed must be 0 or more; got {claimed}")
    subject = callable_subject(name, domain, participation=participation)
    n = affordable_samples(subject, SAMPLES) if samples is None else samples
    bound = _bound(subject, n, delta)
    checks, words = _foreign_floating_point(subject, domain, claimed, delta)
    words += _constant(subject)
    return Finding(
        name,
        _unit(participation),
        claimed,
        lower_bound=bound.epsilon,
        verdict="exceeds" if "exceeds" in checks.values() else refute(claimed, bound.epsilon),
        checks=checks,
        note=f"from {n} samples per input{words}",
    )


def build_mechanism(name: str, parameters: dict[str, object], *, participation: bool) -> Mechanism:
    """The mechanism with ∅ protected if it can; one that cannot is still audited with ∅ neighbours."""
    if not participation:
        return mechanism(name, **parameters)
    try:
        return mechanism(name, **parameters, protect_participation=True)
    except InputError:
        if not _research(name):
            raise
        return mechanism(name, **parameters)


def _research(name: str) -> bool:
    return name in MECHANISMS and MECHANISMS[name].research_only


def _unit(participation: bool) -> Unit:
    return "cell" if participation else "value"


def _exact_row(
    subject: ChannelMechanism, domain: Domain, claimed: float | None, entropy: Entropy
) -> tuple[Finding, Vector]:
    channel = subject.channel(domain)
    guarantee = channel.guarantee
    claim = guarantee.epsilon if claimed is None else claimed
    proof = exact_audit(channel, claim)
    vector = vector_of(channel, entropy)
    verdicts = (python_conforms(vector), mechanism_conforms(subject, domain, vector))
    checks: dict[str, Verdict] = {"python": "holds" if set(verdicts) == {"holds"} else "exceeds"}
    if not channel.is_identity:
        checks["floating-point"] = "holds" if named_share_of_table(channel.every_weight()) == 0 else "exceeds"
    note = "not protected: the report is the answer" if channel.is_identity else ""
    verdict = proof.verdict
    if verdict == "holds" and type(subject).randomize is not ChannelMechanism.randomize:
        verdict, note = "unknown", "the table holds, but reports are drawn by other code, of which it proves nothing"
    row = Finding(subject.name, guarantee.unit, claim, exact=proof.epsilon, verdict=verdict, checks=checks, note=note)
    return row, vector


def _with_javascript(tables: Iterable[tuple[Finding, Vector]]) -> list[Finding]:
    """The rows completed by the device's own code; code that is not the table makes the table's proof worthless."""
    listed = list(tables)
    verdicts = javascript_conforms([vector for _, vector in listed])
    rows = [
        replace(row, checks=row.checks | {"javascript": verdict})
        for (row, _), verdict in zip(listed, verdicts, strict=True)
    ]
    return [replace(row, verdict="exceeds") if "exceeds" in row.checks.values() else row for row in rows]


def _joint_row(subject: TwoLayer, domain: Domain, claimed: float | None, participation: bool) -> Finding:
    """Answers share one secret: the exact law of twenty of them refutes, and only that of any number proves."""
    claim = subject.paper_epsilon(domain) if claimed is None else claimed
    if participation:
        # A question without an answer has no report.
        note = "whether a question was answered is visible"
        return Finding(subject.name, "cell", claim, exact=math.inf, verdict="exceeds", research_only=True, note=note)
    exact = subject.guarantee(domain, n_answers=_JOINT_ANSWERS).epsilon
    proven = value_epsilon_of_any(domain.size, *subject.bounds(domain)) <= claim
    return Finding(
        subject.name,
        "value",
        claim,
        exact=exact,
        verdict="exceeds" if exact > claim else "holds" if proven else "unknown",
        research_only=True,
        note=f"for a worker with {_JOINT_ANSWERS} answers",
    )


def _sampled_row(
    subject: Mechanism,
    domain: Domain,
    claimed: float | None,
    participation: bool,
    entropy: Entropy,
    samples: int | None,
) -> Finding:
    guarantee = subject.guarantee(domain)
    with_empty = participation or guarantee.protects_participation
    claim = guarantee.epsilon if claimed is None else claimed
    n = (SLOW_SAMPLES if hasattr(subject, "factors") else SAMPLES) if samples is None else samples
    source = mechanism_subject(subject, domain, participation=with_empty, entropy=entropy)
    bound = _bound(source, n, guarantee.delta)
    checks, words = _floating_point(subject, domain, source, guarantee.delta)
    return Finding(
        subject.name,
        _unit(with_empty),
        claim,
        lower_bound=bound.epsilon,
        verdict="exceeds" if "exceeds" in checks.values() else refute(claim, bound.epsilon),
        research_only=True,
        checks=checks,
        note=f"from {n} samples per input{words}" + (f", δ = {guarantee.delta:g}" if guarantee.delta else ""),
    )


def _floating_point(
    subject: Mechanism, domain: Domain, source: Subject, delta: float
) -> tuple[dict[str, Verdict], str]:
    """Additive Laplace noise is the case for which reachability is decided exactly."""
    if not isinstance(subject, Laplace):
        return {}, ""
    noise = laplace_by_inversion(subject.noise_scale(domain))
    return _check_reachability(source.source(0, _NAMED_SAMPLES), domain, noise, delta)


def _foreign_floating_point(
    source: Subject, domain: Domain, claimed: float, delta: float
) -> tuple[dict[str, Verdict], str]:
    """The same for code that adds NumPy's Laplace noise of scale range/ε, known by reaching all its own reports."""
    read = reader([few := source.source(0, 10)])
    few = read(few)
    if not isinstance(domain, Scale) or not claimed > 0 or few.ndim != 1 or few.dtype.kind != "f":
        return {}, ""
    noise = numpy_laplace(domain.range / claimed)
    if named_share(few, float(domain.low), noise) > 0:
        return {}, ""
    return _check_reachability(read(source.source(0, _NAMED_SAMPLES)), domain, noise, delta)


def _check_reachability(
    reports: NDArray[Any], domain: Domain, noise: Noise, delta: float
) -> tuple[dict[str, Verdict], str]:
    """Reports that another answer cannot give have no finite ε, unless δ forgives them all."""
    share = named_share(reports, float(domain.numbers[-1]), noise)
    if not share:
        return {"floating-point": "unknown"}, ""
    words = f"; {math.floor(100 * share)} % of the reports prove by their last digits that another answer was not given"
    surely = share - 5 * math.sqrt(share * (1 - share) / len(reports))
    return {"floating-point": "exceeds" if surely > delta or not delta else "unknown"}, words


def _constant(subject: Subject) -> str:
    """Code that remembers its draws gives one sample, however often it is called."""
    few = [subject.source(index, _REPEATS) for index in range(subject.n_inputs)]
    read = reader(few)
    still = sum(len(np.unique(read(batch).astype(str), axis=0)) == 1 for batch in few)
    if not still:
        return ""
    return (
        f"; for {still} of {subject.n_inputs} answers no report ever varied: code that remembers what it drew cannot "
        "be audited by calling it again"
    )


def _bound(subject: Subject, samples: int, delta: float) -> LowerBound:
    return black_box(subject.source, subject.n_inputs, samples=samples, pairs=subject.pairs, delta=delta)
