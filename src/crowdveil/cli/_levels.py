"""Personal levels on the command line: the mechanism of each worker, from the flags and the workers' file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from crowdveil.cli._common import described_mechanism
from crowdveil.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crowdveil.mechanisms import Mechanism


def read_mechanisms(
    path: Path, name: str, epsilon: float | None, pairs: list[str] | None, protect_participation: bool
) -> dict[str, Mechanism]:
    """The mechanism of each worker of the file; the flags hold where a cell is empty. Empty without such columns."""
    from crowdveil.files.worker_levels import read_worker_levels

    mechanisms = {}
    for worker, settings in read_worker_levels(path).items():
        try:
            mechanisms[worker] = _worker_mechanism(settings, name, epsilon, pairs, protect_participation)
        except InputError as error:
            raise InputError(f"worker {worker!r}: {error.problem}", fix=error.fix, source=path.name) from None
    return mechanisms


def _worker_mechanism(
    settings: Mapping[str, str | float],
    name: str,
    epsilon: float | None,
    pairs: list[str] | None,
    protect_participation: bool,
) -> Mechanism:
    level, own_name = settings.get("level"), str(settings.get("mechanism", name))
    if level == "none" or own_name == "none":
        return described_mechanism("none", None, None, False)
    if level is not None:
        return described_mechanism(own_name, None, [*(pairs or []), f"level={level}"], protect_participation)
    own_epsilon: Any = settings.get("epsilon", epsilon)
    return described_mechanism(own_name, own_epsilon, pairs, protect_participation)


def describe_groups(mechanisms: Mapping[str, Mechanism], domain: Any) -> list[dict[str, Any]]:
    """By mechanism: how many workers use it, and its guarantee."""
    n_workers: dict[Mechanism, int] = {}
    for each in mechanisms.values():
        n_workers[each] = n_workers.get(each, 0) + 1
    return [
        {
            "mechanism": each.name,
            "n_workers": n,
            "research_only": each.research_only,
            "guarantee": each.guarantee(domain).to_json() | {"requested_epsilon": getattr(each, "epsilon", None)},
        }
        for each, n in n_workers.items()
    ]
