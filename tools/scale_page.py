"""Compute docs/explain/scale.md from what `crowdveil bench` printed, so that no figure on the page is typed by hand.

crowdveil bench spark --only 10m --json > ten.json && python tools/scale_page.py ten.json

Rows of the files named are merged into docs/explain/scale.json (the newest of a case and size wins), which is committed
with the page. Without a file the page is written anew from the rows that are there.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
TEMPLATE = Path(__file__).with_name("scale_page.md")
ROWS = ROOT / "docs" / "explain" / "scale.json"
PAGE = ROOT / "docs" / "explain" / "scale.md"
REPORTS, PER_SUBMISSION, PER_QUESTION, DAY = 1e9, 10, 10, 86_400
ITERATIONS, FEW_ITERATIONS, CORES, PEAK, MEASURED_CORES = 50, 10, 64, 5, 2
LARGE, SMALL = 50_000_000, 10_000_000


class Rows:
    """Measured rows by case and size."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._rows = {(row["case"].split(" (")[0], row["n"]): row for row in rows}

    def row(self, case: str, n: int | None = None) -> dict[str, Any]:
        """The row of a case; the largest size unless one is named."""
        return self._rows[case, max(size for name, size in self._rows if name == case) if n is None else n]

    def ours(self, case: str, n: int | None = None) -> float:
        return float(self.row(case, n)["ours"])

    def listed(self) -> list[dict[str, Any]]:
        return [self._rows[key] for key in sorted(self._rows)]


def costs(rows: Rows) -> dict[str, float]:
    """Unit costs, each straight from a case of the benchmark."""
    found = {
        "submission_ms": rows.ours("broker on postgresql: server CPU of a submission"),
        "report_bytes": rows.ours("bytes a report in memory"),
        "fit_bytes": rows.ours("dawid-skene, peak extra memory"),
        "start_s": rows.ours("spark, session and first job", LARGE),
        "packing_ns": rows.ours("spark, packing", LARGE),
        "packed_bytes": rows.ours("spark, packed blocks", LARGE),
        "layout_ns": rows.ours("spark, layout for dawid-skene", LARGE),
        "state_bytes": rows.ours("spark, states of dawid-skene", LARGE),
    }
    for size, word in ((SMALL, "small"), (LARGE, "large")):
        for name, short in (("one-coin", "oc"), ("dawid-skene", "ds")):
            measured = rows.row(f"spark, {name}, one iteration", size)
            found[f"{short}_{word}_ns"] = measured["ours"] * 1e9 / size
            found[f"{short}_{word}_local_ns"] = measured["peer"] * 1e9 / size
            found[f"{short}_{word}_ratio"] = measured["ratio"]
    for size, word in ((1_000_000, "tiny"), (SMALL, "small"), (LARGE, "large")):
        found[f"python_{word}_mib"] = rows.ours("spark, the driver's Python after a fit", size)
        found[f"heap_{word}_mib"] = rows.ours("spark, the driver's Java heap after a fit", size)
    results = rows.row("spark, results that never came to the driver", LARGE)
    return found | {"result_bytes": results["ours"] * (1 << 20) / (LARGE / PER_QUESTION)}


def sums(cost: dict[str, float]) -> dict[str, float]:
    """The arithmetic: what a day of a billion reports, and one fit of ten million, come to."""
    intake = REPORTS / PER_SUBMISSION * cost["submission_ms"] / 1000 / DAY
    iteration = REPORTS * cost["ds_large_ns"] * 1e-9 * MEASURED_CORES
    once = REPORTS * (cost["packing_ns"] + cost["layout_ns"]) * 1e-9 * MEASURED_CORES
    local = SMALL * cost["ds_small_local_ns"] * 1e-9
    return {
        "intake_cores": intake,
        "intake_peak": PEAK * intake,
        "submissions_per_core": 1000 / cost["submission_ms"],
        "disk_gb": REPORTS * (cost["packed_bytes"] + cost["state_bytes"]) / 1e9,
        "packing_hours": once / 3600,
        "iteration_s": iteration,
        "fit_hours": ITERATIONS * iteration / 3600,
        "fit_seconds": ITERATIONS * iteration / CORES,
        "refit_hours": FEW_ITERATIONS * iteration / 3600,
        "results_gb": REPORTS / PER_QUESTION * cost["result_bytes"] / 1e9,
        "local_fit_s": ITERATIONS * local,
        "spark_fit_s": ITERATIONS * SMALL * cost["ds_small_ns"] * 1e-9,
        "spark_once_s": cost["start_s"] + SMALL * (cost["packing_ns"] + cost["layout_ns"]) * 1e-9,
        "memory_gb": REPORTS * (cost["report_bytes"] + cost["fit_bytes"]) / 1e9,
    }


def spelled(number: float) -> str:
    """Two digits that count; whole numbers from ten on."""
    return f"{number:,.0f}" if abs(number) >= 10 else f"{number:.2g}"


def page(rows: Rows) -> str:
    """The page with every figure in its place."""
    cost = costs(rows)
    return TEMPLATE.read_text(encoding="utf-8").format(
        **{name: spelled(value) for name, value in (cost | sums(cost)).items()}
    )


def main(files: list[str]) -> None:
    known = json.loads(ROWS.read_text(encoding="utf-8"))["rows"] if ROWS.is_file() else []
    for file in files:
        known += json.loads(Path(file).read_text(encoding="utf-8"))["rows"]
    rows = Rows(known)
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows.listed())
    ROWS.write_text(f'{{"rows": [\n{lines}\n]}}\n', encoding="utf-8")
    PAGE.write_text(page(rows), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
