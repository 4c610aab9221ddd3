"""`crowdveil demo` in a process of its own: it ends well, quickly, and its estimate is near the truth."""

from __future__ import annotations

import json

from cli.run import crowdveil_process


def test_the_demo_tells_its_story() -> None:
    done = crowdveil_process("demo", "--seed", "1")
    assert done.returncode == 0, done.stderr
    assert "ε" in done.stdout


def test_its_estimates_are_within_five_standard_errors() -> None:
    result = json.loads(crowdveil_process("demo", "--seed", "2", "--json").stdout)
    for row in result["rows"]:
        assert abs(row["estimate"] - row["truth"]) < 5 * row["margin"] / 1.96
