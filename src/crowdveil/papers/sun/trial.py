"""One trial of Sun et al. (2018, §VI): perturb by each of the four mechanisms, infer by Algorithm 1, take the MAE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers import Answers
from crowdveil.entropy import Keystream
from crowdveil.inference import WeightedMean
from crowdveil.mechanisms import Laplace, MatrixFactorization, Mechanism, RandomizedResponse, SparseTwoLayer
from crowdveil.mechanisms._research_reports import Fill
from crowdveil.mechanisms.profiles import Sign
from crowdveil.papers.core.reproduction import Row, add_columns, mean_column, select
from crowdveil.plot import Panel, Series
from crowdveil.reports import Reports

PAPER = "Sun, Dong, Wang, Yu, Qin: Truth inference on sparse crowdsourcing data with local differential privacy (2018)"
MECHANISMS = ("LP", "RR", "MF", "2-layer")
CONSTANTS = ("best constant", "mid-level")
UNIT = "cell"
HOLLOW = "Hollow, where it differs: the claimed ε."
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How we read the paper's silences. Each field can be changed; the name travels in the rows."""

    name: str = "default"
    factors: int = 2
    sign: Sign = "signed"
    ridge: float = 0.0
    fill: Fill = "random"
    paper_scale: bool = True
    clipped_truths: bool = False

    def mechanisms(self, epsilon: float, seed: int) -> dict[str, Mechanism]:
        factorization = MatrixFactorization(
            epsilon=epsilon,
            factors=self.factors,
            sign=self.sign,
            ridge=self.ridge,
            paper_scale=self.paper_scale,
            seed=seed,
        )
        laplace = Laplace(epsilon=epsilon, protect_participation=True, fill=self.fill, paper_scale=self.paper_scale)
        return {
            "LP": laplace,
            "RR": RandomizedResponse(epsilon=epsilon, protect_participation=True),
            "MF": factorization,
            "2-layer": SparseTwoLayer(epsilon=epsilon),
        }


def measure(
    answers: Answers, truth: Floats, epsilon: float, seed: int, reading: Reading, *, only: Sequence[str] = MECHANISMS
) -> list[Row]:
    """A row for each mechanism: its exact ε in its own unit and the MAE; a truth of NaN is not scored."""
    rows: list[Row] = []
    for name, mechanism in reading.mechanisms(epsilon, seed).items():
        if name not in only:
            continue
        guarantee = mechanism.guarantee(answers.domain)
        reports = mechanism.randomize(answers, Keystream(f"{seed}:{name}:{epsilon}"))
        row: Row = {"mechanism": name, "epsilon": epsilon, "exact_epsilon": guarantee.epsilon, "unit": guarantee.unit}
        rows.append(row | {"mae": mae(algorithm_1(reports), mask_unanswered(answers, truth, reading))})
    return rows


def measure_mechanisms(
    answers: Answers, truth: Floats, epsilons: Sequence[float], seeds: Sequence[int], reading: Reading
) -> list[Row]:
    """The baselines once, then every mechanism at each ε, anew for each seed."""
    rows = baselines(answers, truth, reading)
    for seed in seeds:
        for epsilon in epsilons:
            rows += add_columns(measure(answers, truth, epsilon, seed, reading), trial=float(seed))
    return rows


def baselines(answers: Answers, truth: Floats, reading: Reading) -> list[Row]:
    """Rows for no privacy, the best constant, the middle of the scale and always 0."""
    scored_truth = mask_unanswered(answers, truth, reading)
    levels = answers.domain.numbers
    return [
        {"mechanism": "no privacy", "mae": mae(algorithm_1(Reports.unprotected(answers)), scored_truth)},
        {
            "mechanism": "best constant",
            "mae": mae(np.full(len(scored_truth), np.nanmedian(scored_truth)), scored_truth),
        },
        {"mechanism": "mid-level", "mae": mae(np.full(len(scored_truth), (levels[0] + levels[-1]) / 2), scored_truth)},
        {"mechanism": "always 0", "mae": mae(np.zeros(len(scored_truth)), scored_truth)},
    ]


def mask_unanswered(answers: Answers, truth: Floats, reading: Reading) -> Floats:
    levels = answers.domain.numbers
    return np.clip(truth, levels[0], levels[-1]) if reading.clipped_truths else truth


def algorithm_1(reports: Reports) -> Floats:
    """Sun's truth inference on reports read as answers."""
    return np.asarray(WeightedMean(as_answers=True, max_iter=50, tol=1e-4).fit(reports).value, dtype=np.float64)


def within_scale(answers: Answers, value: Floats) -> Floats:
    """Estimates kept within the scale, for data whose truths are levels."""
    levels = answers.domain.numbers
    return np.clip(value, levels[0], levels[-1])


def mae(value: Floats, truth: Floats) -> float:
    """Over the questions that have both a truth and an estimate."""
    return float(np.nanmean(np.abs(value - truth)))


def error(rows: Sequence[Row], mechanism: str, **wanted: str | float) -> float:
    """The mean MAE over trials, in the default reading unless another is wanted."""
    return mean_column(rows, "mae", mechanism=mechanism, **({"reading": "default"} | wanted))


def change(rows: Sequence[Row], mechanism: str, **wanted: str | float) -> float:
    """The paper's metric: MAE after minus MAE before."""
    where = {name: value for name, value in wanted.items() if name != "epsilon"}
    return error(rows, mechanism, **wanted) - error(rows, "no privacy", **where)


def against_epsilon(rows: Sequence[Row], epsilons: Sequence[float], **where: str | float) -> list[Series]:
    """MAE over the exact ε of each mechanism; what the paper claims is marked where it differs."""
    series = []
    for name in MECHANISMS:
        selected = [select(rows, mechanism=name, epsilon=epsilon, reading="default", **where) for epsilon in epsilons]
        if not all(selected):
            continue
        exact = [float(part[0]["exact_epsilon"]) for part in selected]
        unit = str(selected[0][0]["unit"])
        label = name if unit == UNIT else f"{name} (ε per {unit}; ∅ not protected)"
        y = [mean_column(part, "mae") for part in selected]
        series.append(Series(label, exact, y, claimed=list(epsilons)))
    return series


def epsilon_panel(
    rows: Sequence[Row], epsilons: Sequence[float], title: str, more: Sequence[Series] = (), **where: str | float
) -> Panel:
    """MAE over exact ε beside the trivial baselines."""
    series = [*against_epsilon(rows, epsilons, **where), *more]
    lines = {name: error(rows, name, **where) for name in ("no privacy", *CONSTANTS)}
    return Panel(title, "exact ε per cell (MF: per value)", "MAE", series, lines, log_x=True)


def said_epsilons(rows: Sequence[Row]) -> str:
    """For a caption: how many times the claimed ε each mechanism really has, and for what."""
    texts = []
    for name in MECHANISMS:
        row = select(rows, mechanism=name, reading="default")[0]
        ratio = float(row["exact_epsilon"]) / float(row["epsilon"])
        texts.append(f"{name} {ratio:.2g} (per {row['unit']}{'' if row['unit'] == UNIT else ', ∅ not protected'})")
    return f"Exact ε as a multiple of the claimed: {', '.join(texts)}."


def readings(default: Reading) -> list[Reading]:
    """The alternatives that are shown beside the default."""
    return [
        replace(default, name="positive V", sign="positive"),
        replace(default, name="d = 10", factors=10, ridge=1e-6),
        replace(default, name="truths clipped to the scale", clipped_truths=True),
    ]
