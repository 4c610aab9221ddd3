"""`crowdveil audit`: check a privacy claim without trusting whoever made it."""

from __future__ import annotations

import secrets
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Annotated

import typer

from crowdveil.audit import Finding, audit_callable, audit_mechanism, audit_registry
from crowdveil.audit.registry import build_mechanism
from crowdveil.cli._common import (
    Json,
    Options,
    Parameters,
    ScaleFlag,
    domain_of,
    epsilon_once,
    parameters_of,
    show,
    something_to_hide,
)
from crowdveil.cli._progress import working
from crowdveil.cli._text import table, tell
from crowdveil.domain import Domain, Scale
from crowdveil.entropy import Entropy, Keystream
from crowdveil.errors import CheckError, InputError
from crowdveil.guarantee import positive_epsilon, round_down, round_up

_FIVE_LEVELS = Scale(1, 5)


def command(
    subject: Annotated[str | None, typer.Argument(help="A mechanism, or module:callable.")] = None,
    all_: Annotated[
        bool, typer.Option("--all", help="Every mechanism; research ones are shown but do not fail.")
    ] = False,
    epsilon: Annotated[float | None, typer.Option("--epsilon", help="The ε that is claimed (default 1).")] = None,
    options: Options = None,
    scale: ScaleFlag = None,
    param: Parameters = None,
    protect_participation: Annotated[
        bool, typer.Option("--protect-participation", help="Answered and not answered must look alike, too.")
    ] = False,
    delta: Annotated[float, typer.Option("--delta", help="The δ of a callable's claim.")] = 0.0,
    samples: Annotated[int | None, typer.Option("--samples", help="Samples per input of a black-box audit.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Repeat an audit exactly.")] = None,
    as_json: Json = False,
) -> None:
    """Exact where there is a table, a certified lower bound elsewhere. Exit code 1 when a claim is exceeded.

    Example: crowdveil audit --all --epsilon 1 --scale 1:5
    """
    if all_ == (subject is not None):
        raise InputError(
            "name one mechanism or module:callable, or give --all",
            fix="for example crowdveil audit randomized-response --epsilon 1 --options no,yes",
        )
    if delta and (subject is None or ":" not in subject):
        raise InputError("--delta is for code of yours; our mechanisms state their own δ", fix="leave it out")
    asked = _Asked(epsilon, domain_of(options, scale), protect_participation, samples, _entropy(seed), as_json)
    if subject is None:
        rows = _audit_all(asked, param)
    elif ":" in subject:
        rows = [_audit_callable(subject, asked, delta, param, seed)]
    else:
        rows = [_audit_one(subject, asked, param)]
    show({"rows": [row.to_json() for row in rows]}, as_json=as_json, human=lambda: _table(rows))
    _fail_on_excess(rows, forgive_research=all_)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What every audit needs to know."""

    epsilon: float | None
    domain: Domain | None
    participation: bool
    samples: int | None
    entropy: Entropy
    quiet: bool

    def shown(self, name: str) -> AbstractContextManager[None]:
        return working(f"auditing {name}", quiet=self.quiet)


def _entropy(seed: int | None) -> Entropy:
    """A keystream, because an audit draws millions of reports and releases none; secret unless a seed is given."""
    return Keystream(secrets.token_hex(16) if seed is None else seed)


def _audit_all(asked: _Asked, param: list[str] | None) -> list[Finding]:
    if param:
        raise InputError("--param belongs to one mechanism; with --all there are many")
    domain = asked.domain or _FIVE_LEVELS
    if domain.size < 2:
        raise InputError(f"a question must have two options or more; got only {domain.symbols[0]!r}")
    with asked.shown("every mechanism"):
        return audit_registry(
            domain,
            epsilon=positive_epsilon(1.0 if asked.epsilon is None else asked.epsilon),
            participation=asked.participation,
            entropy=asked.entropy,
            samples=asked.samples,
        )


def _audit_callable(name: str, asked: _Asked, delta: float, param: list[str] | None, seed: int | None) -> Finding:
    if param or seed is not None:
        raise InputError("--param and --seed are for mechanisms of ours; code of yours draws its own noise")
    if asked.epsilon is None:
        raise InputError("the claim to check is missing", fix="give --epsilon")
    if asked.domain is None:
        raise InputError("an audit of your code needs to know what may be answered", fix="give --options or --scale")
    with asked.shown(name):
        return audit_callable(
            name,
            asked.domain,
            claimed=asked.epsilon,
            participation=asked.participation,
            delta=delta,
            samples=asked.samples,
        )


def _audit_one(name: str, asked: _Asked, param: list[str] | None) -> Finding:
    claimed = asked.epsilon if asked.epsilon is not None or param else 1.0
    parameters = parameters_of(param)
    if claimed is not None:
        parameters["epsilon"] = epsilon_once(claimed, parameters)
    subject = build_mechanism(name, parameters, participation=asked.participation)
    domain = asked.domain or _FIVE_LEVELS
    something_to_hide(subject, domain)
    with asked.shown(name):
        return audit_mechanism(
            subject,
            domain,
            claimed=None if name == "none" and asked.epsilon is None else claimed,
            participation=asked.participation,
            entropy=asked.entropy,
            samples=asked.samples,
        )


def _fail_on_excess(rows: list[Finding], *, forgive_research: bool) -> None:
    failed = [row for row in rows if row.verdict == "exceeds" and not (forgive_research and row.research_only)]
    if failed:
        raise CheckError("; ".join(_accusation(row) for row in failed))


def _accusation(row: Finding) -> str:
    if "exceeds" in (row.checks.get("python"), row.checks.get("javascript")):
        return f"{row.mechanism} does not draw what its table says"
    proven = (row.lower_bound or 0.0) > (row.claimed or 0.0)
    if row.checks.get("floating-point") == "exceeds" and row.exact is None and not proven:
        return f"{row.mechanism} claims ε {_number(row.claimed)} per {row.unit} but its reports' last digits tell"
    found = f"ε {_number(row.exact)}" if row.exact is not None else f"at least ε {_down(row.lower_bound)}"
    return f"{row.mechanism} claims ε {_number(row.claimed)} per {row.unit} but has {found}"


def _table(rows: list[Finding]) -> None:
    table([("mechanism", "unit", "claimed", "exact", "at least", "verdict"), *(_cells(row) for row in rows)])
    checked: dict[str, list[str]] = {}
    for row in rows:
        if row.checks:
            checked.setdefault(", ".join(f"{name} {found}" for name, found in row.checks.items()), []).append(
                row.mechanism
            )
    for found, names in checked.items():
        tell(f"also checked of {', '.join(names)}: {found}")
    for row in rows:
        if row.note:
            tell(f"{row.mechanism}: {row.note}")


def _cells(row: Finding) -> tuple[str, ...]:
    name = row.mechanism + (" (research)" if row.research_only else "")
    return name, row.unit, _number(row.claimed), _number(row.exact), _down(row.lower_bound), row.verdict


def _number(value: float | None) -> str:
    return "" if value is None else round_up(value)


def _down(value: float | None) -> str:
    return "" if value is None else round_down(value)
