"""The page about scale says what was measured: every figure follows from rows that the benchmark printed."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("scale_page", ROOT / "tools" / "scale_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def made_up(tool: ModuleType) -> list[dict[str, Any]]:
    """Rows of every case that the page needs, with round figures."""
    alike = {
        "broker on postgresql: server CPU of a submission": 8.64,
        "bytes a report in memory": 14,
        "dawid-skene, peak extra memory": 18,
        "spark, session and first job": 9,
        "spark, packing": 2000,
        "spark, packed blocks": 16,
        "spark, layout for dawid-skene": 400,
        "spark, states of dawid-skene": 22,
        "spark, the driver's Python after a fit": 200,
        "spark, the driver's Java heap after a fit": 100,
        "spark, results that never came to the driver": 512,
    }
    sizes = (1_000_000, tool.SMALL, tool.LARGE)
    rows = [
        {"case": case, "n": n, "ours": ours, "peer": None, "ratio": None} for case, ours in alike.items() for n in sizes
    ]
    for name in ("one-coin", "dawid-skene"):
        case = f"spark, {name}, one iteration (ratio: spark/local, limit 4)"
        rows += [{"case": case, "n": n, "ours": n * 18e-9, "peer": n * 9e-9, "ratio": 2.0} for n in sizes]
    return rows


def test_the_page_is_computed_from_the_committed_rows(tool: ModuleType) -> None:
    rows = tool.Rows(json.loads(tool.ROWS.read_text(encoding="utf-8"))["rows"])
    assert tool.PAGE.read_text(encoding="utf-8") == tool.page(rows), "run python tools/scale_page.py"


def test_the_sums_are_those_of_a_billion_reports(tool: ModuleType) -> None:
    sums = tool.sums(tool.costs(tool.Rows(made_up(tool))))
    assert sums["intake_cores"] == pytest.approx(10)
    assert sums["iteration_s"] == pytest.approx(36)
    assert sums["fit_hours"] == pytest.approx(0.5)
    assert sums["packing_hours"] == pytest.approx(2400 * 2 / 3600)
    assert sums["disk_gb"] == pytest.approx(38)


def test_every_figure_of_the_page_is_filled_in(tool: ModuleType) -> None:
    page = tool.page(tool.Rows(made_up(tool)))
    assert "{" not in page
    assert "| 10 million | 2 × | 2 × |" in page
    assert "36 core-seconds" in page
