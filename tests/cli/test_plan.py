"""`crowdveil plan` prints the guarantee after shuffling beside the local one, with its assumption."""

from __future__ import annotations

import json

from cli.run import crowdveil

ONE_QUESTION = ("--options", "no,yes", "--questions", 1, "--workers", 1000, "--population", "--effort", 0)


def test_both_numbers_are_printed_with_their_adversaries() -> None:
    done = crowdveil("plan", *ONE_QUESTION, "--epsilon", 3, "--shuffled-n", 1000, "--dishonest-share", 0.1)
    words = " ".join(done.stdout.split())
    assert "against everybody, the broker included: ε ≤ 3, which is what the ledger counts" in words
    assert "ε ≤ 0.8787, δ = 1e-06 against whoever sees the shuffled table only, if at least 1000 people" in words
    assert "(β = 0.1)" in words
    assert "half of the local ε needs at least 467 people" in words


def test_the_whole_submission_is_amplified_not_one_report() -> None:
    arguments = ("plan", *ONE_QUESTION, "--epsilon", 1, "--shuffled-n", 1000, "--json")
    one = json.loads(crowdveil(*arguments).stdout)["shuffled"]
    four = json.loads(crowdveil(*arguments, "--questions", 4).stdout)["shuffled"]
    assert round(one["epsilon"], 3) == 0.149
    assert four["local_epsilon"] > 3.99
    assert four["epsilon"] > 4 * one["epsilon"]
    bounded = (*arguments, "--questions", 8, "--protect-participation", "--max-answers", 1)
    fields = json.loads(crowdveil(*bounded).stdout)
    assert fields["shuffled"]["local_epsilon"] == fields["charge"]["epsilon"] < 2.01
    assert fields["shuffled"]["amplified"]


def test_without_the_flag_nothing_is_said_about_shuffling() -> None:
    done = crowdveil("plan", *ONE_QUESTION, "--epsilon", 1)
    assert "shuffl" not in done.stdout
    assert "shuffled" not in json.loads(crowdveil("plan", *ONE_QUESTION, "--epsilon", 1, "--json").stdout)


def test_more_people_than_join_are_refused() -> None:
    done = crowdveil("plan", *ONE_QUESTION, "--epsilon", 1, "--shuffled-n", 1001)
    assert done.returncode == 2
    assert "at most the 1000 workers who join" in done.stderr
