"""Real crowds in Sun et al. (2018): their statistics (Table II) and how their answers are spread (Figure 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdveil.papers.core.datasets import numeric
from crowdveil.papers.core.reproduction import Claim, Reproduction, Row, Settings, column, near, select
from crowdveil.papers.sun.trial import PAPER
from crowdveil.plot import Panel, Series, panels

DATASETS = ("wsd", "adult")
SPOKEN = {"wsd": "Web (wsd)", "adult": "AdultContent"}
WEB = "The paper's “Web” is the word-sense data of Snow et al. (2008), wsd, counted from 0: its statistics agree."
_PRINTED = {
    "wsd": {"workers": 34, "questions": 177, "answers": 770, "most": 0.903955, "least": 0.0, "average": 0.705882},
    "adult": {
        "workers": 825,
        "questions": 11_040,
        "answers": 89_796,
        "most": 0.999909,
        "least": 0.316033,
        "average": 0.993666,
    },
}


@dataclass(frozen=True, kw_only=True)
class Table2(Reproduction):
    """Counts and sparsity."""

    id = "sun-table2"
    title = "statistics of the real datasets"
    paper = PAPER
    needs_data = DATASETS
    interpretation = f"{WEB} A worker who answered a question twice counts once."

    def rows(self, settings: Settings) -> list[Row]:
        rows: list[Row] = []
        for name in DATASETS:
            data = numeric(name, settings)
            sparsity = data.sparsity
            counts = {
                "workers": len(data.answers.workers),
                "questions": len(data.answers.questions),
                "answers": len(data.answers),
                "most": float(sparsity.max()),
                "least": float(sparsity.min()),
                "average": float(sparsity.mean()),
            }
            rows += [{"dataset": name, "statistic": key, "value": float(value)} for key, value in counts.items()]
            shares = np.sort(sparsity)
            places = np.linspace(0, len(shares) - 1, min(len(shares), 60)).round().astype(int)
            rows += [{"dataset": name, "statistic": "worker", "value": float(shares[index])} for index in places]
        return rows

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        claims = []
        for name, printed in _PRINTED.items():
            for key, published in printed.items():
                ours = column(select(rows, dataset=name, statistic=key), "value")[0]
                label = f"{key} sparsity" if key in ("most", "least", "average") else f"number of {key}"
                claims.append(
                    Claim(f"{SPOKEN[name]}: {label}", f"{published:g}", f"{ours:.6g}", near(ours, published, 5e-6))
                )
        return [*claims, _misprint(rows)]

    def draw(self, rows: Sequence[Row]) -> Any:
        drawn = []
        for name in DATASETS:
            values = column(select(rows, dataset=name, statistic="worker"), "value")
            x = list(np.linspace(0, 1, len(values)))
            average = column(select(rows, dataset=name, statistic="average"), "value")[0]
            series = [Series("sparsity of a worker", x, values)]
            lines = {"average": average, "average as printed": _PRINTED[name]["average"]}
            drawn.append(Panel(SPOKEN[name], "workers, in order (share)", "share of ∅", series, lines))
        sizes = " and ".join(
            "{:g} workers × {:g} questions".format(
                *(column(select(rows, dataset=name, statistic=key), "value")[0] for key in ("workers", "questions"))
            )
            for name in DATASETS
        )
        return panels(drawn, caption=f"Sparsity is the share of questions that a worker did not answer: {sizes}.")


def _misprint(rows: Sequence[Row]) -> Claim:
    """The printed table against itself."""
    printed = _PRINTED["wsd"]
    implied = printed["workers"] * printed["questions"] * (1 - printed["average"])
    ours = column(select(rows, dataset="wsd", statistic="answers"), "value")[0]
    return Claim(
        "Web: the number of answers that the other printed numbers imply",
        f"{implied:.0f} (770 is printed)",
        f"{ours:.0f}",
        near(ours, implied, 0.5),
    )


@dataclass(frozen=True, kw_only=True)
class Figure1(Reproduction):
    """How answers and truths are spread over the levels."""

    id = "sun-fig1"
    title = "distribution of the answers"
    paper = PAPER
    needs_data = DATASETS
    interpretation = WEB

    def rows(self, settings: Settings) -> list[Row]:
        rows: list[Row] = []
        for name in DATASETS:
            data = numeric(name, settings)
            answers = np.bincount(data.answers.answer, minlength=data.answers.domain.size) / len(data.answers)
            known_truths = data.truth[~np.isnan(data.truth)].astype(int)
            truths = np.bincount(known_truths, minlength=len(answers)) / len(known_truths)
            truth_of_answer = data.truth[data.answers.question]
            right = float(
                np.mean(data.answers.answer[~np.isnan(truth_of_answer)] == truth_of_answer[~np.isnan(truth_of_answer)])
            )
            for level, (a, t) in enumerate(zip(answers, truths, strict=True)):
                row: Row = {"dataset": name, "level": float(level), "answers": a, "truths": t, "right": right}
                rows.append(row | {"n_answers": len(data.answers), "n_truths": len(known_truths)})
        return rows

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        claims = []
        for name in DATASETS:
            part = select(rows, dataset=name)
            zero, right = float(part[0]["truths"]), float(part[0]["right"])
            claims += [
                Claim(
                    f"{SPOKEN[name]}: the truth of more than 72 % of the questions is 0",
                    "> 72 %",
                    f"{zero:.1%}",
                    "holds" if zero > 0.72 else "fails",
                ),
                Claim(
                    f"{SPOKEN[name]}: the majority of answers are right",
                    "majority",
                    f"{right:.1%}",
                    "holds" if right > 0.5 else "fails",
                ),
            ]
        return claims

    def draw(self, rows: Sequence[Row]) -> Any:
        drawn = []
        for name in DATASETS:
            part = select(rows, dataset=name)
            levels = column(part, "level")
            series = [Series(key, levels, column(part, key), kind="bars") for key in ("answers", "truths")]
            drawn.append(Panel(SPOKEN[name], "level", "share", series, categories=[f"{level:g}" for level in levels]))
        sizes = " and ".join(
            f"{part['n_answers']:g} answers, {part['n_truths']:g} truths"
            for part in (select(rows, dataset=name)[0] for name in DATASETS)
        )
        return panels(drawn, caption=f"Shares of the answers and of the known truths at each level: {sizes}.")
