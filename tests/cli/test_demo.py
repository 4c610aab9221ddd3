"""`crowdveil demo` in a process of its own: it ends well, and what it says is true."""

from __future__ import annotations

import json

from cli.run import crowdveil, crowdveil_process


def test_the_demo_tells_its_story() -> None:
    done = crowdveil_process("demo", "--seed", "1")
    assert done.returncode == 0, done.stderr
    for step in ("1. Ask", "2. Randomise", "3. Infer", "4. Account", "5. Audit"):
        assert step in done.stdout
    assert done.stderr == ""


def test_a_small_crowd_has_a_story_too() -> None:
    for seed in range(4):
        result = json.loads(crowdveil("demo", "--workers", 10, "--questions", 1, "--seed", seed, "--json").stdout)
        assert result["worker"]["answers"] == 1


def test_its_numbers_hold_for_seeds_nobody_chose() -> None:
    for seed in range(20, 24):
        result = json.loads(crowdveil("demo", "--seed", seed, "--json").stdout)
        ours, _, constant, _ = result["found"].values()
        assert ours > constant
        assert result["audit"]["exact"] <= result["audit"]["claimed"]
        assert result["audit"]["verdict"] == "holds"
        assert "left but" in result["worker"]["refusal"]
