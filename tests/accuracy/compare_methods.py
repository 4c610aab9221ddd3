"""Print how methods for choices do on every simulated family and ε: python tests/accuracy/compare_methods.py.

Every method reads the same reports, so differences are paired: their standard errors are those of the differences over
seeds. Accuracy and F1 (the average over classes) are of the chosen options. AUC ranks questions by the posterior, one
class against the rest, averaged over classes. The calibration error is the debiased root-mean-square error of Kumar,
Liang & Ma (2019) in fifteen bins of equally many questions, over all seeds of a cell.

The last table compares one method with the others: in how many cells it is worse, after Holm's adjustment (1979) of
the paired t-tests over all cells, and by how much at most.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata, t

sys.path.insert(0, str(Path(__file__).parent.parent))

from accuracy.families import EPSILONS, FAMILIES, Family

from crowdveil import Estimate
from crowdveil.inference import METHODS

Array = NDArray[Any]
N_BINS = 15
SIGNIFICANCE = 0.05


def macro_f1(value: Array, truth: Array) -> float:
    """The average over the classes that occur."""
    scores = []
    for code in np.unique(truth):
        hits = ((value == code) & (truth == code)).sum()
        scores.append(2 * hits / ((value == code).sum() + (truth == code).sum()))
    return float(np.mean(scores))


def macro_auc(posterior: Array, truth: Array) -> float:
    """P(a question of the class has the higher posterior than one of another class), averaged over classes."""
    scores = []
    for code in np.unique(truth):
        positive = truth == code
        n_positive, n_negative = positive.sum(), (~positive).sum()
        if n_negative:
            ranks = rankdata(posterior[:, code])[positive].sum()
            scores.append((ranks - n_positive * (n_positive + 1) / 2) / (n_positive * n_negative))
    return float(np.mean(scores)) if scores else 1.0


def calibration_error(confidence: Array, right: Array) -> float:
    """The debiased root-mean-square calibration error; 0 where chance explains all of it."""
    total = 0.0
    for rows in np.array_split(np.argsort(confidence, kind="stable"), N_BINS):
        if len(rows) > 1:
            accuracy = right[rows].mean()
            gap = accuracy - confidence[rows].mean()
            total += len(rows) / len(right) * (gap**2 - accuracy * (1 - accuracy) / (len(rows) - 1))
    return float(np.sqrt(max(total, 0.0)))


def score_estimate(estimate: Estimate, truth: Array, seconds: float) -> dict[str, Any]:
    """The scores of one fit, and what the calibration error of the whole cell needs."""
    assert estimate.posterior is not None
    return {
        "accuracy": float((estimate.value == truth).mean()),
        "f1": macro_f1(estimate.value, truth),
        "auc": macro_auc(estimate.posterior, truth),
        "seconds": seconds,
        "confidence": estimate.confidence,
        "right": estimate.value == truth,
    }


def run_cell(family: Family, epsilon: float | None, names: list[str], n_seeds: int) -> list[dict[str, Any]]:
    """One row for each method: scores by seed, and the calibration error over all seeds."""
    fits: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for seed in range(n_seeds):
        answers, truth = family.draw(seed)
        reports = family.report(answers, epsilon, seed)
        for name in names:
            start = time.process_time()
            estimate = METHODS[name]().fit(reports)
            fits[name].append(score_estimate(estimate, truth, time.process_time() - start))
    rows = []
    for name, scores in fits.items():
        confidence = np.concatenate([score["confidence"] for score in scores])
        right = np.concatenate([score["right"] for score in scores])
        by_seed = {measure: [score[measure] for score in scores] for measure in ("accuracy", "f1", "auc", "seconds")}
        calibration = None if METHODS[name].shares else calibration_error(confidence, right)
        rows.append({"family": family.name, "epsilon": epsilon, "method": name, "calibration": calibration, **by_seed})
    return rows


def holm(p_values: Array) -> Array:
    """P-values adjusted so that any of them is below α by chance with probability at most α."""
    order = np.argsort(p_values)
    adjusted = np.empty(len(p_values))
    steps = p_values[order] * np.arange(len(p_values), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def compare(rows: list[dict[str, Any]], name: str, other: str) -> list[dict[str, Any]]:
    """The paired differences in accuracy of two methods, cell by cell, with adjusted p-values of either sign."""
    cells = {(row["family"], row["epsilon"], row["method"]): np.array(row["accuracy"]) for row in rows}
    keys = [(family, epsilon) for family, epsilon, method in cells if method == name]
    found = []
    for family, epsilon in keys:
        gain = cells[family, epsilon, name] - cells[family, epsilon, other]
        error = float(gain.std(ddof=1) / np.sqrt(len(gain))) if len(gain) > 1 else 0.0
        statistic = gain.mean() / error if error else np.sign(gain.mean()) * np.inf if gain.mean() else 0.0
        p_value = 2 * t.sf(abs(statistic), len(gain) - 1) if len(gain) > 1 else 1.0
        found.append({"family": family, "epsilon": epsilon, "gain": float(gain.mean()), "error": error, "p": p_value})
    for row, p_value in zip(found, holm(np.array([row["p"] for row in found])), strict=True):
        row["p"] = float(p_value)
    return found


def level(epsilon: float | None) -> str:
    return "∞" if epsilon is None else f"{epsilon:g}"


def print_cells(rows: list[dict[str, Any]], names: list[str]) -> None:
    """One line for each family and ε; the standard errors are over seeds."""
    print("accuracy ± standard error / F1 / AUC / calibration error")
    print(f"{'family':<38} {'ε':>3}  " + "  ".join(f"{name:<29}" for name in names))
    cells = {(row["family"], row["epsilon"], row["method"]): row for row in rows}
    for family, epsilon in dict.fromkeys((row["family"], row["epsilon"]) for row in rows):
        parts = []
        for name in names:
            row = cells[family, epsilon, name]
            accuracy = np.array(row["accuracy"])
            error = accuracy.std(ddof=1) / np.sqrt(len(accuracy)) if len(accuracy) > 1 else 0.0
            calibration = "   –" if row["calibration"] is None else f"{row['calibration']:.3f}"
            scores = f"{np.mean(row['f1']):.3f} / {np.mean(row['auc']):.3f} / {calibration}"
            parts.append(f"{accuracy.mean():.3f} ± {error:.3f} / {scores}")
        print(f"{family:<38} {level(epsilon):>3}  " + "  ".join(f"{part:<29}" for part in parts))


def print_means(rows: list[dict[str, Any]], names: list[str]) -> None:
    """Means over families, by ε; the standard error is that of the mean over seeds, the families being fixed."""
    for measure in ("accuracy", "f1", "auc", "calibration", "seconds"):
        print(f"\nmean {measure} over families")
        print(f"{'ε':>3}  " + "  ".join(f"{name:<26}" for name in names))
        for epsilon in dict.fromkeys(row["epsilon"] for row in rows):
            parts = []
            for name in names:
                values = [row[measure] for row in rows if (row["epsilon"], row["method"]) == (epsilon, name)]
                if values[0] is None:
                    parts.append("–")
                    continue
                table = np.array(values)
                error = ""
                if table.ndim == 2 and table.shape[1] > 1:
                    mean_error = np.sqrt(table.var(axis=1, ddof=1).mean() / table.size)
                    error = f" ± {mean_error:.4f}"
                parts.append(f"{table.mean():.4f}{error}")
            print(f"{level(epsilon):>3}  " + "  ".join(f"{part:<26}" for part in parts))


def print_comparison(rows: list[dict[str, Any]], name: str, names: list[str]) -> None:
    """How often `name` is better and worse than each other method, and where."""
    for other in names:
        if other == name:
            continue
        cells = compare(rows, name, other)
        worse = [cell for cell in cells if cell["gain"] < 0 and cell["p"] < SIGNIFICANCE]
        better = [cell for cell in cells if cell["gain"] > 0 and cell["p"] < SIGNIFICANCE]
        two_errors = [cell for cell in cells if cell["gain"] < -2 * cell["error"]]
        points = [cell for cell in cells if cell["gain"] <= -0.03]
        print(
            f"\n{name} against {other}: {len(cells)} cells; after Holm's adjustment better in {len(better)}, worse in"
            f" {len(worse)}; worse by two standard errors in {len(two_errors)}, by 3 points in {len(points)}"
        )
        for cell in sorted(cells, key=lambda cell: float(cell["gain"]))[:12]:
            if cell["gain"] < -2 * cell["error"] or cell["gain"] <= -0.03:
                place = f"{cell['family']}, ε {level(cell['epsilon'])}"
                print(f"  {place:<48} {cell['gain']:+.4f} ± {cell['error']:.4f}, adjusted p {cell['p']:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=["auto", "dawid-skene", "one-coin", "majority"])
    parser.add_argument("--seeds", type=int, default=20, help="crowds and noises drawn for every cell")
    parser.add_argument("--epsilons", nargs="+", type=float, help="without privacy is inf")
    parser.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--json", type=Path, help="write the scores by seed here")
    asked = parser.parse_args()
    epsilons = EPSILONS if asked.epsilons is None else [None if np.isinf(e) else e for e in asked.epsilons]
    rows: list[dict[str, Any]] = []
    with ProcessPoolExecutor(asked.processes) as pool:
        cells = [
            pool.submit(run_cell, family, epsilon, asked.methods, asked.seeds)
            for family in FAMILIES
            for epsilon in epsilons
        ]
        for cell in cells:
            rows.extend(cell.result())
    if asked.json:
        asked.json.write_text(json.dumps(rows))
    print_cells(rows, asked.methods)
    print_means(rows, asked.methods)
    print_comparison(rows, asked.methods[0], asked.methods)


if __name__ == "__main__":
    main()
