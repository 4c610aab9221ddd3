"""The linkage attack: three harmless surveys, one name (Kandappu et al. 2015, §4.3.3.2), and what stops it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.domain import Choices
from crowdveil.entropy import Keystream
from crowdveil.mechanisms import RandomizedResponse
from crowdveil.papers.core.reproduction import (
    Claim,
    Reproduction,
    Row,
    Settings,
    mean_column,
    said_trials,
)
from crowdveil.papers.loki.levels import PAPER
from crowdveil.plot import Panel, Series, panels
from crowdveil.sampler import draw

Codes = NDArray[np.int64]
IDS, PSEUDONYMS = "constant ids", "per-study pseudonyms"


@dataclass(frozen=True, kw_only=True)
class Attack(Reproduction):
    """400 workers among `n_people`; a public roll lists everybody's birthday, sex and postcode."""

    id = "loki-attack"
    title = "who is re-identified from three surveys"
    paper = PAPER
    interpretation = (
        "people live in 20 areas of uneven size, so large that some two thirds are the only one with their date of "
        "birth, sex and postcode (Golle, 2006, found 63 % for the United States). Each of 400 workers takes each of "
        "the first three surveys with probability (72/400)^⅓ and the fourth with 18/72, which gives the paper's counts "
        "on average. The attacker names the person of the public roll who fits the linked reports best; a tie is a "
        "guess. Without linkable ids each survey is matched to the roll by itself. Local privacy is randomised "
        "response of ε per survey (one value each: day and month; year and sex; postcode), exact from the channel."
    )
    n_people: int = 260_000
    n_postcodes: int = 20
    n_workers: int = 400
    epsilons: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0)

    def rows(self, settings: Settings) -> list[Row]:
        rows: list[Row] = []
        for seed in settings.seeds():
            rng = np.random.default_rng(seed)
            roll = self._roll(rng)
            unique = _unique(roll)
            workers = rng.choice(self.n_people, self.n_workers, replace=False)
            took = rng.random((3, self.n_workers)) < (72 / 400) ** (1 / 3)
            linked = workers[took.all(axis=0)]
            fourth = rng.random(len(linked)) < 18 / 72
            shared: Row = {"trial": float(seed), "linked": len(linked), "unique": float(unique.mean())}
            for name, epsilon, named in self._attacks(roll, linked, seed, rng):
                row: Row = {"defence": name, "epsilon": epsilon, "named": float(named.sum())}
                rows.append(shared | row | {"share": float(named.mean()), "health": float(named[fourth].sum())})
        return rows

    def _roll(self, rng: np.random.Generator) -> Codes:
        """One column for what each survey asks: day and month, year and sex, postcode."""
        sizes = rng.lognormal(0, 0.6, self.n_postcodes)
        return np.stack(
            [
                rng.integers(365, size=self.n_people),
                rng.integers(60 * 2, size=self.n_people),
                rng.choice(self.n_postcodes, self.n_people, p=sizes / sizes.sum()),
            ]
        )

    def _attacks(
        self, roll: Codes, linked: Codes, seed: int, rng: np.random.Generator
    ) -> list[tuple[str, float, NDArray[np.bool_]]]:
        exact = roll[:, linked]
        attacks = [(IDS, float("inf"), _name(roll, exact, linked, [1.0] * 3, rng))]
        # Each survey alone: the attacker sees one column and guesses among all who share it.
        alone = np.asarray(np.stack([_name(roll[[k]], exact[[k]], linked, [1.0], rng) for k in range(3)]).any(axis=0))
        attacks.append((PSEUDONYMS, float("inf"), alone))
        for epsilon in self.epsilons:
            reports, weights = [], []
            for k, size in enumerate((365, 120, self.n_postcodes)):
                channel = RandomizedResponse(epsilon=epsilon).channel(Choices(tuple(map(str, range(size)))))
                reports.append(draw(channel, exact[k].astype(np.int32), Keystream(f"{seed}:{k}:{epsilon}")))
                weights.append(channel.epsilon)
            attacks.append(
                (
                    f"constant ids, local privacy ε = {epsilon:g}",
                    epsilon,
                    _name(roll, np.stack(reports), linked, weights, rng),
                )
            )
        return attacks

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        linked, named = mean_column(rows, "linked"), mean_column(rows, "named", defence=IDS)
        health = mean_column(rows, "health", defence=IDS)
        private = {e: mean_column(rows, "named", epsilon=e) for e in self.epsilons}
        return [
            Claim(
                "of 400 workers some 72 can be linked by constant ids",
                "72",
                f"{linked:.0f}",
                "holds" if abs(linked - 72) < 15 else "differs",
            ),
            Claim(
                "date of birth, sex and postcode single people out",
                "effective",
                f"{named:.0f} of {linked:.0f} are named ({mean_column(rows, 'share', defence=IDS):.0%}); "
                f"{mean_column(rows, 'unique'):.0%} of the population are unique",
                "holds" if named > linked / 2 else "fails",
            ),
            Claim(
                "the health of 18 follows from the fourth survey",
                "18",
                f"{linked / 4:.0f} linked, {health:.0f} of them by name",
                "holds" if health > 5 else "differs",
            ),
            Claim(
                "per-study pseudonyms stop it (not in the paper)",
                "–",
                f"{mean_column(rows, 'named', defence=PSEUDONYMS):.2f} named",
                "holds" if mean_column(rows, "named", defence=PSEUDONYMS) < 1 else "fails",
            ),
            Claim(
                "local privacy stops it although ids are constant (ε per survey; not in the paper)",
                "–",
                ", ".join(f"ε {e:g}: {value:.2f} named" for e, value in private.items()),
                "holds" if private[self.epsilons[0]] < 1 else "fails",
            ),
        ]

    def draw(self, rows: Sequence[Row]) -> Any:
        names = list(dict.fromkeys(str(row["defence"]) for row in rows))
        places = [float(index) for index in range(len(names))]
        series = [
            Series(label, places, [mean_column(rows, key, defence=name) for name in names], kind="bars")
            for label, key in (("named", "named"), ("named, with their health", "health"))
        ]
        labels = [
            name.replace("constant ids, local privacy ", "local privacy\n").replace(" ", "\n", 1) for name in names
        ]
        panel = Panel(
            "re-identified workers",
            "defence",
            "workers",
            series,
            {"linked by id": mean_column(rows, "linked")},
            categories=labels,
        )
        return panels(
            [panel],
            caption=f"{self.n_workers} workers, {self.n_people} people on the roll, {said_trials(rows)}; "
            f"exact ε per survey (unit value). Named on average: {', '.join(f'{value:.2g}' for value in series[0].y)}.",
        )


def _unique(roll: Codes) -> NDArray[np.bool_]:
    key = (roll[0] * 120 + roll[1]) * 10_000 + roll[2]
    _, inverse, counts = np.unique(key, return_inverse=True, return_counts=True)
    return np.asarray(counts[inverse] == 1)


def _name(
    roll: Codes, reports: NDArray[Any], linked: Codes, weights: Sequence[float], rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Whether the person who fits the reports best is the right one; among equals one is drawn."""
    hits = np.zeros(len(linked), dtype=bool)
    for column, person in enumerate(linked.tolist()):
        score = np.zeros(roll.shape[1])
        for attribute, report, weight in zip(roll, reports[:, column], weights, strict=True):
            score += weight * (attribute == report)
        best = np.flatnonzero(score >= score.max() - 1e-9)
        hits[column] = rng.choice(best) == person
    return hits
