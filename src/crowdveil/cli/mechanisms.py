"""`crowdveil mechanisms`: list the mechanisms, or describe one with the privacy it really gives."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from crowdveil.cli._common import (
    Epsilon,
    Json,
    Options,
    Parameters,
    Participation,
    ScaleFlag,
    described_mechanism,
    parse_domain,
    show,
    something_to_hide,
)
from crowdveil.cli._text import table, tell
from crowdveil.domain import Choices, Domain, Scale
from crowdveil.errors import UnservableError
from crowdveil.mechanisms import MECHANISMS, Mechanism


def command(
    name: Annotated[str | None, typer.Argument(help="The mechanism to describe; without one, all are listed.")] = None,
    epsilon: Epsilon = None,
    options: Options = None,
    scale: ScaleFlag = None,
    param: Parameters = None,
    protect_participation: Participation = False,
    as_json: Json = False,
) -> None:
    """List the mechanisms, or describe one: its exact guarantee and its channel.

    Example: crowdveil mechanisms randomized-response --epsilon 1 --options no,yes --json
    """
    if name is None:
        rows = [{"name": kind.name, "research_only": kind.research_only, "summary": kind.summary} for kind in _all()]
        show({"mechanisms": rows}, as_json=as_json, human=lambda: _list(rows))
        return
    requested = epsilon if epsilon is not None or param else 1.0
    chosen = described_mechanism(name, requested, param, protect_participation)
    domain = parse_domain(options, scale) or _example_domain(chosen)
    something_to_hide(chosen, domain)
    result = describe(chosen, domain, requested)
    show(result, as_json=as_json, human=lambda: _describe(chosen, domain, result))


def describe(chosen: Mechanism, domain: Domain, requested: float | None) -> dict[str, Any]:
    """The JSON contract of one mechanism."""
    guarantee = chosen.guarantee(domain)
    channel = chosen.channel(domain).to_json() if hasattr(chosen, "channel") else None
    return {
        "name": chosen.name,
        "research_only": chosen.research_only,
        "summary": chosen.summary,
        "guarantee": guarantee.to_json() | {"requested_epsilon": requested, "note": guarantee.note},
        "channel": channel,
    }


def _all() -> list[type[Mechanism]]:
    return sorted(MECHANISMS.values(), key=lambda kind: kind.research_only)


def _example_domain(chosen: Mechanism) -> Domain:
    """Two options, or five levels for mechanisms that are about numbers."""
    try:
        chosen.guarantee(Choices(("no", "yes")))
    except UnservableError:
        return Scale(1, 5)
    return Choices(("no", "yes"))


def _list(rows: list[dict[str, Any]]) -> None:
    table([(row["name"], row["summary"] + (" (research only)" if row["research_only"] else "")) for row in rows])


def _describe(chosen: Mechanism, domain: Domain, result: dict[str, Any]) -> None:
    tell(f"{chosen.name}: {chosen.summary}")
    typer.echo(f"  answers:   {', '.join(domain.symbols[:8])}{' …' if domain.size > 8 else ''}")
    tell(f"  guarantee: {chosen.guarantee(domain)}", indent=" " * 13)
    if (channel := result["channel"]) is not None:
        shape = f"{len(channel['inputs'])} inputs, {len(channel['outputs'])} outputs"
        typer.echo(f"  channel:   {shape}, sha256 {channel['sha256'][:16]}…")
