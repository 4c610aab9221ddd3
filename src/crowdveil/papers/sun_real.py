"""Real crowds in Sun et al. (2018): their statistics (Table II), answers (Figure 1) and error over ε (Figure 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from crowdveil.entropy import Keystream
from crowdveil.inference import METHODS
from crowdveil.mechanisms import RandomizedResponse
from crowdveil.papers.real import Dataset, numeric
from crowdveil.papers.reproduction import Claim, Reproduction, Row, Settings, column, labelled, near, select
from crowdveil.papers.sun_trial import (
    MECHANISMS,
    PAPER,
    Reading,
    against_epsilon,
    baselines,
    change,
    drawn_baselines,
    error,
    mae,
    measure,
    within_scale,
)
from crowdveil.plot import Panel, Series, panels

DATASETS = ("wsd", "adult")
SPOKEN = {"wsd": "Web (wsd)", "adult": "AdultContent"}
_WEB = "The paper's “Web” is the word-sense data of Snow et al. (2008), wsd, counted from 0: its statistics agree."
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
    interpretation = f"{_WEB} A worker who answered a question twice counts once."

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
            rows += [{"dataset": name, "statistic": "worker", "value": float(shares[place])} for place in places]
        return rows

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        claims = []
        for name, printed in _PRINTED.items():
            for key, published in printed.items():
                ours = column(select(rows, dataset=name, statistic=key), "value")[0]
                said = f"{key} sparsity" if key in ("most", "least", "average") else f"number of {key}"
                claims.append(
                    Claim(f"{SPOKEN[name]}: {said}", f"{published:g}", f"{ours:.6g}", near(ours, published, 5e-6))
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
        return panels(drawn, caption="Sparsity is the share of questions that a worker did not answer.")


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
    interpretation = _WEB

    def rows(self, settings: Settings) -> list[Row]:
        rows: list[Row] = []
        for name in DATASETS:
            data = numeric(name, settings)
            answers = np.bincount(data.answers.answer, minlength=data.answers.domain.size) / len(data.answers)
            known = data.truth[~np.isnan(data.truth)].astype(int)
            truths = np.bincount(known, minlength=len(answers)) / len(known)
            given = data.truth[data.answers.question]
            right = float(np.mean(data.answers.answer[~np.isnan(given)] == given[~np.isnan(given)]))
            for level, (a, t) in enumerate(zip(answers, truths, strict=True)):
                rows.append({"dataset": name, "level": float(level), "answers": a, "truths": t, "right": right})
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
        return panels(drawn, caption="Shares of the answers and of the known truths at each level.")


@dataclass(frozen=True, kw_only=True)
class Figure5(Reproduction):
    """MAE over ε on both datasets. `highest` is the top of the scale; None takes the levels seen."""

    id = "sun-fig5"
    title = "error against ε on real crowds"
    paper = PAPER
    needs_data = DATASETS
    interpretation = (
        f"{_WEB} Levels are 0..4 as §VI-A prints; the levels that the data really has (0..2 and 0..3) are shown beside "
        "it. Noise, V, d and ∅ as in Figure 2; on AdultContent some workers answered fewer than d questions, where MF "
        "has no minimiser, so a ridge of 1 is added there. Estimates are kept within the scale, where the truths are. "
        "With --quick AdultContent has 1000 of its questions, those with a truth among them."
    )
    highest: int | None = 4
    epsilons: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0)
    reading: Reading = field(default_factory=Reading)

    def rows(self, settings: Settings) -> list[Row]:
        rows: list[Row] = []
        for name in DATASETS:
            for label, highest in (("default", self.highest), ("levels seen", None)):
                data = _sample(numeric(name, settings, highest=highest), settings)
                reading = replace(self.reading, name=label, ridge=0.0 if name == "wsd" else 1.0)
                epsilons = self.epsilons if label == "default" else (3.0,)
                trials = (min(settings.trials, 3) if name == "wsd" else 1) if settings.quick else settings.trials
                rows += labelled(self._measured(data, reading, epsilons, trials, settings), dataset=name)
        return rows

    def _measured(
        self, data: Dataset, reading: Reading, epsilons: Sequence[float], trials: int, settings: Settings
    ) -> list[Row]:
        rows = labelled(baselines(data.answers, data.truth, reading), trial=0.0)
        for seed in settings.seeds(trials):
            settings.progress(f"{self.id}: {len(data.answers)} answers, {reading.name}")
            for epsilon in epsilons:
                measured = measure(data.answers, data.truth, epsilon, seed, reading)
                rows += labelled(measured + with_channel(data, epsilon, seed), trial=float(seed))
        size: Row = {"n_workers": len(data.answers.workers), "n_questions": len(data.answers.questions)}
        return labelled(rows, reading=reading.name, **size)

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        claims = []
        for name in DATASETS:
            none, zero = error(rows, "no privacy", dataset=name), error(rows, "always 0", dataset=name)
            mf = error(rows, "MF", dataset=name, epsilon=3.0)
            claims += [
                Claim(
                    f"{SPOKEN[name]}: MAE without privacy, and of always answering 0",
                    "–",
                    f"{none:.3f}, {zero:.3f}",
                    "cannot tell",
                ),
                self._lowest(rows, name),
                Claim(
                    f"{SPOKEN[name]}: MF's error comes from the answers (ε = 3)",
                    "predicts missing answers",
                    f"MF {mf:.3f}, always answering 0 {zero:.3f}, best constant "
                    f"{error(rows, 'best constant', dataset=name):.3f}",
                    "holds" if mf < zero - 0.05 else "fails",
                ),
                self._two_layer(rows, name),
                self._ours(rows, name),
            ]
        return [*claims, self._sharp_drop(rows), *(self._other_levels(rows, name) for name in DATASETS)]

    def _lowest(self, rows: Sequence[Row], name: str) -> Claim:
        wins = [
            min(MECHANISMS, key=lambda each: error(rows, each, dataset=name, epsilon=epsilon)) == "MF"
            for epsilon in self.epsilons
        ]
        changes = ", ".join(f"{each} {change(rows, each, dataset=name, epsilon=3.0):.2f}" for each in MECHANISMS)
        return Claim(
            f"{SPOKEN[name]}: MF has the lowest MAE change in most cases",
            "most cases",
            f"at {sum(wins)} of {len(wins)} claimed ε; change at ε = 3: {changes}",
            "holds" if sum(wins) > len(wins) / 2 else "fails",
        )

    def _two_layer(self, rows: Sequence[Row], name: str) -> Claim:
        rr, two = (change(rows, each, dataset=name, epsilon=3.0) for each in ("RR", "2-layer"))
        exact = column(select(rows, mechanism="2-layer", dataset=name, epsilon=3.0), "exact_epsilon")[0]
        return Claim(
            f"{SPOKEN[name]}: 2-layer has a change comparable to RR (ε = 3)",
            "comparable",
            f"RR {rr:.2f}, 2-layer {two:.2f} (whose exact ε per cell is {exact:g})",
            "holds" if abs(rr - two) < 0.25 * max(rr, two) else "differs",
        )

    def _ours(self, rows: Sequence[Row], name: str) -> Claim:
        ours = change(rows, "RR, channel-em", dataset=name, epsilon=3.0)
        rr = change(rows, "RR", dataset=name, epsilon=3.0)
        return Claim(
            f"{SPOKEN[name]}: the same RR reports read through their channel (channel-em, not in the paper), ε = 3",
            f"RR change {rr:.2f}",
            "not available" if np.isnan(ours) else f"change {ours:.2f}",
            "cannot tell" if np.isnan(ours) else "holds" if ours < rr else "differs",
        )

    def _sharp_drop(self, rows: Sequence[Row]) -> Claim:
        errors = [change(rows, "RR", dataset="adult", epsilon=epsilon) for epsilon in self.epsilons]
        steps = -np.diff(errors)
        shown = ", ".join(f"ε {e:g}: {c:.2f}" for e, c in zip(self.epsilons, errors, strict=True))
        return Claim(
            "AdultContent: the change of RR drops sharply when ε passes 3",
            "sharp drop above 3",
            shown,
            "holds" if int(np.argmax(steps)) == len(steps) - 1 else "differs",
        )

    def _other_levels(self, rows: Sequence[Row], name: str) -> Claim:
        where: dict[str, Any] = {"dataset": name, "reading": "levels seen"}
        changes = {each: change(rows, each, epsilon=3.0, **where) for each in MECHANISMS}
        return Claim(
            f"{SPOKEN[name]}: on the levels that the data has, MF has the lowest change at ε = 3",
            "lowest",
            ", ".join(f"{each} {value:.2f}" for each, value in changes.items()),
            "holds" if min(changes, key=lambda each: changes[each]) == "MF" else "fails",
        )

    def draw(self, rows: Sequence[Row]) -> Any:
        drawn = []
        for name in DATASETS:
            series = against_epsilon(rows, self.epsilons, dataset=name)
            ours = [error(rows, "RR, channel-em", dataset=name, epsilon=epsilon) for epsilon in self.epsilons]
            if not np.isnan(ours).any():
                series.append(Series("RR, channel-em (ours)", self.epsilons, ours))
            lines = drawn_baselines(rows, dataset=name)
            drawn.append(Panel(SPOKEN[name], "exact ε per cell (MF: per value)", "MAE", series, lines, log_x=True))
        sizes = " and ".join(
            f"{int(part['n_workers'])} × {int(part['n_questions'])}"
            for part in (select(rows, dataset=name)[0] for name in DATASETS)
        )
        return panels(
            drawn,
            caption=f"{sizes} workers × questions, levels 0..4. Exact ε: LP .8 of the claim, RR the claim, 2-layer "
            "twice the claim, per cell; MF .8 of the claim per value, ∅ not protected. Hollow: claimed ε.",
        )


def with_channel(data: Dataset, epsilon: float, seed: int) -> list[Row]:
    """The same randomised response, inferred by the method that knows the channel (where it is installed)."""
    method = METHODS.get("channel-em")
    if method is None or len(data.answers.workers) * len(data.answers.questions) > 2_000_000:
        return []
    mechanism = RandomizedResponse(epsilon=epsilon, protect_participation=True)
    reports = mechanism.randomize(data.answers, Keystream(f"{seed}:RR:{epsilon}"))
    value = within_scale(data.answers, np.asarray(method().fit(reports).value, dtype=np.float64))
    guarantee = mechanism.guarantee(data.answers.domain)
    row: Row = {"mechanism": "RR, channel-em", "epsilon": epsilon, "exact_epsilon": guarantee.epsilon, "unit": "cell"}
    return [row | {"mae": mae(value, data.truth)}]


def _sample(data: Dataset, settings: Settings, size: int = 1000) -> Dataset:
    if not settings.quick or len(data.truth) <= size:
        return data
    known, rest = np.flatnonzero(~np.isnan(data.truth)), np.flatnonzero(np.isnan(data.truth))
    more = settings.generator().choice(rest, size - len(known), replace=False)
    return data.with_questions(np.sort(np.concatenate([known, more])))
