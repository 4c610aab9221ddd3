"""What is shown: above a minimum and in batches, gold only when published, nothing that could not be estimated."""

from __future__ import annotations

import math
import threading
from pathlib import Path
from typing import Any

import pytest
from broker.scene import Scene, refused


def test_nothing_is_shown_below_the_minimum_and_then_only_in_batches(django_here: Path, make_draft: Any) -> None:
    from crowdveil.broker.results.batches import latest, refresh

    scene = Scene(make_draft(minimum_n=5))
    sizes = []
    for n in range(1, 13):
        scene.submit(scene.worker(), {"ill": n % 2, "days": n % 5})
        refresh(scene.study)
        if n < 5:
            with refused("below-minimum"):
                latest(scene.study)
        else:
            sizes.append(latest(scene.study)["n"])
    assert sizes == [5] * 5 + [10] * 3


def test_gold_is_committed_to_scored_from_reports_and_revealed_when_published(
    django_here: Path, make_draft: Any
) -> None:
    from crowdveil.broker.results.batches import latest, refresh
    from crowdveil.broker.results.quality import quality
    from crowdveil.broker.studies import lifecycle
    from crowdveil.canonical_json import sha256_of

    draft = make_draft(minimum_n=2, linkable=True)
    draft["questions"][0]["gold"] = "yes"
    scene = Scene(draft)
    assert "gold" not in scene.opened.document["questions"][0]
    for code in (1, 1, 0):
        scene.submit(scene.worker(), {"ill": code, "days": 0}, "low")
    refresh(scene.study)
    scores = sorted(each["score"] for each in quality(scene.study)["workers"])
    assert scores[0] < 0 < 1 < scores[1] == scores[2]
    lifecycle.close(scene.study)
    assert latest(scene.study)["gold"] is None
    shown = latest(lifecycle.publish(scene.study))
    assert shown["gold"] == {"ill": "yes"}
    assert sha256_of({"salt": shown["gold_salt"], "truths": shown["gold"]}) == scene.opened.document["gold_commitment"]


def test_a_study_that_cannot_be_estimated_keeps_no_other_from_it(
    django_here: Path, make_draft: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from crowdveil.broker import background_jobs
    from crowdveil.broker.results.latest_batch import found

    scenes = [Scene(make_draft(minimum_n=2)) for _ in range(2)]
    for scene in scenes:
        for _ in range(2):
            scene.submit(scene.worker(), {"ill": 0, "days": 0})
    # The background jobs take them in the order of their random ids.
    broken, whole = sorted(scenes, key=lambda scene: scene.study.id)
    real = background_jobs.make_batch

    def make(study: Any) -> None:
        if study.id == broken.study.id:
            raise ValueError("numbers beyond measure")
        real(study)

    monkeypatch.setattr(background_jobs, "make_batch", make)
    background_jobs._attempt(background_jobs._estimate_due)
    assert found(broken.study.id) is None
    assert found(whole.study.id) is not None


def test_quality_is_refused_where_workers_were_promised_not_to_be_told_apart(
    django_here: Path, make_draft: Any
) -> None:
    from crowdveil.broker.results.quality import quality

    with refused("forbidden"):
        quality(Scene(make_draft()).study)


def test_boxes_are_counted_from_whole_tick_vectors(django_here: Path, make_draft: Any) -> None:
    import numpy as np

    from crowdveil.domain import Choices
    from crowdveil.entropy import Keystream
    from crowdveil.mechanisms import mechanism
    from crowdveil.sampler import draw

    boxes = {"type": "tick-all", "boxes": ["a", "b"]}
    levels = [{"name": "medium", "mechanism": "randomized-response", "epsilon": "2", "pay_cents": 0}]
    questions = [{"id": "q", "text": "x", "domain": boxes}]
    scene = Scene(make_draft(questions=questions, levels=levels, protects_participation=True))
    options = Choices(("[]", '["a"]', '["b"]', '["a","b"]'))
    channel = mechanism("randomized-response", epsilon=2.0, protect_participation=True).channel(options)
    # Of 100 who answer, 60 tick a and 20 tick b; 20 more skip.
    answers = np.array([0] * 30 + [1] * 50 + [2] * 10 + [3] * 10 + [-1] * 20)
    for code in draw(channel, answers, Keystream(7)):
        scene.submit(scene.worker(), {"q": int(code)})
    found = scene.estimates()["parts"][0]["questions"][0]["boxes"]
    for each, truth in zip(found, (0.6, 0.2), strict=True):
        assert each["low"] <= truth <= each["high"]
        assert each["high"] - each["low"] < 0.5


def test_truths_are_inferred_by_auto_and_say_why(django_here: Path, make_draft: Any) -> None:
    scene = Scene(make_draft(goal="truth"))
    for number in range(40):
        scene.submit(scene.worker(), {"ill": int(number % 8 != 0), "days": 3 if number % 4 else number % 5}, "low")
    ill, days = scene.estimates()["parts"]
    assert (ill["method"], days["method"]) == ("channel-bp", "channel-em")
    assert "channels are known" in ill["why"]
    assert ill["questions"][0]["value"] == "yes"
    assert days["questions"][0]["low"] <= days["questions"][0]["value"] <= days["questions"][0]["high"]


@pytest.mark.parametrize("kind", ["discrete-laplace", "optimal-scale", "piecewise"])
def test_a_study_from_which_nothing_could_be_estimated_is_not_opened(
    django_here: Path, make_draft: Any, kind: str
) -> None:
    """With ∅ as the mean of all rows nobody can tell how many answered; privacy must not be spent on that."""
    from crowdveil.broker.problems import Refusal

    scale = {"type": "scale", "low": "-2", "high": "2", "step": "1"}
    questions = [{"id": "mood", "text": "How do you feel?", "domain": scale}]
    level = {"name": "medium", "mechanism": kind, "epsilon": "1.0", "pay_cents": 1}
    with pytest.raises(Refusal, match="nobody can tell how many answered"):
        Scene(make_draft(questions=questions, levels=[level], protects_participation=True))
    Scene(make_draft(questions=questions, levels=[level]))
    Scene(make_draft(questions=questions, levels=[level], protects_participation=True, goal="truth"))
    plain = level | {"mechanism": "randomized-response"}
    Scene(make_draft(questions=questions, levels=[plain], protects_participation=True))


@pytest.mark.parametrize(("kind", "hidden"), [("discrete-laplace", True), ("discrete-gaussian", True)])
def test_gold_that_nobody_could_be_scored_by_is_refused_before_the_study_opens(
    django_here: Path, make_draft: Any, kind: str, hidden: bool
) -> None:
    from crowdveil.broker.problems import Refusal

    question = {"id": "mood", "text": "?", "domain": {"type": "scale", "low": "1", "high": "5"}}
    level = {"name": "medium", "mechanism": kind, "epsilon": "1", "pay_cents": 1}
    shape = {"levels": [level], "protects_participation": hidden, "goal": "truth", "linkable": True}
    with pytest.raises(Refusal, match="about mood do not tell all answers apart"):
        Scene(make_draft(questions=[question | {"gold": "3"}], **shape))
    Scene(make_draft(questions=[question], **shape))
    Scene(make_draft(questions=[question | {"gold": "3"}], **shape | {"linkable": False}))


def test_options_that_reports_do_not_tell_apart_are_no_population_study(django_here: Path, make_draft: Any) -> None:
    from crowdveil.broker.problems import Refusal

    question = {"id": "q", "text": "?", "domain": {"type": "choices", "options": list("abcdef")}}
    level = {"name": "medium", "mechanism": "subset-selection", "epsilon": "0.00001", "pay_cents": 1}
    with pytest.raises(Refusal, match="do not tell all options apart"):
        Scene(make_draft(questions=[question], levels=[level]))
    Scene(make_draft(questions=[question], levels=[level | {"epsilon": "1"}]))


def test_an_old_study_without_scores_still_has_estimates(
    django_here: Path, make_draft: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opened before such gold was refused: closing it must not fail for the scores."""
    from crowdveil.broker.results.batches import latest
    from crowdveil.broker.results.quality import quality
    from crowdveil.broker.studies import channels, lifecycle

    question = {"id": "mood", "text": "?", "domain": {"type": "scale", "low": "1", "high": "5"}, "gold": "3"}
    level = {"name": "medium", "mechanism": "discrete-laplace", "epsilon": "1", "pay_cents": 1}
    with monkeypatch.context() as before:
        before.setattr(channels, "_check_scorable", lambda *_: None)
        shape = {"levels": [level], "protects_participation": True, "goal": "truth", "linkable": True, "minimum_n": 3}
        scene = Scene(make_draft(questions=[question], **shape))
    for code in range(3):
        scene.submit(scene.worker(), {"mood": code})
    lifecycle.close(scene.study)
    assert latest(scene.study)["n"] == 3
    assert [(each["n_gold"], each["score"]) for each in quality(scene.study)["workers"]] == [(0, None)] * 3


def test_the_last_estimates_are_of_those_who_stayed(django_here: Path, make_draft: Any) -> None:
    """As many came as withdrew: the number is the same, the people are not."""
    from crowdveil.broker.results.batches import latest, refresh
    from crowdveil.broker.studies import lifecycle
    from crowdveil.broker.submissions.withdraw import withdraw

    scene, keys = Scene(make_draft(minimum_n=10)), []
    for _ in range(10):
        scene.submit(scene.worker(), {"ill": 0, "days": 0}, "low")
        keys.append(scene.withdrawal_key.hex())
    refresh(scene.study)
    before = _share_of_yes(latest(scene.study))
    for key in keys[1:]:
        withdraw(scene.study.id, key)
        scene.submit(scene.worker(), {"ill": 1, "days": 4}, "low")
    lifecycle.close(scene.study)
    assert before == 0
    assert _share_of_yes(latest(scene.study)) > 0.8


def _share_of_yes(shown: dict[str, Any]) -> float:
    (ill,) = [each for part in shown["parts"] for each in part["questions"] if each["question"] == "ill"]
    return float({each["option"]: each["share"] for each in ill["shares"]}["yes"])


def test_at_a_start_every_key_is_destroyed_whatever_estimates_fail(
    django_here: Path, make_draft: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from crowdveil.broker import keys
    from crowdveil.broker.results.latest_batch import found
    from crowdveil.broker.studies import lifecycle
    from crowdveil.broker.studies.models import Study

    scenes = [Scene(make_draft(minimum_n=2)) for _ in range(4)]
    for scene in scenes:
        for _ in range(2):
            scene.submit(scene.worker(), {"ill": 0, "days": 0})
        # What a crash leaves right after the study was closed.
        Study.objects.filter(id=scene.study.id).update(state="closed")
    broken = {scene.study.id for scene in scenes[:2]}
    real = lifecycle.make_batch

    def make(study: Any, *, final: bool) -> None:
        if study.id in broken:
            raise ValueError("numbers beyond measure")
        real(study, final=final)

    monkeypatch.setattr(lifecycle, "make_batch", make)
    lifecycle.finish_closing()
    assert [scene.study.id for scene in scenes if keys.has_study_key(scene.study.id)] == []
    assert {scene.study.id for scene in scenes if found(scene.study.id) is None} == broken


def test_who_looks_while_estimates_are_made_sees_the_last_ones_at_once(django_here: Path, make_draft: Any) -> None:
    """Waiting for each other, those who look would keep submissions out."""
    from crowdveil.broker.results import batches

    scene = Scene(make_draft(minimum_n=2))
    for _ in range(2):
        scene.submit(scene.worker(), {"ill": 0, "days": 0})
    with batches._computing:
        look = threading.Thread(target=batches.refresh, args=(scene.study,), daemon=True)
        look.start()
        look.join(timeout=30)
        assert not look.is_alive()
        with refused("below-minimum"):
            batches.latest(scene.study)
    batches.refresh(scene.study)
    assert batches.latest(scene.study)["n"] == 2


def levels(*names: str) -> list[dict[str, Any]]:
    epsilon = {"low": "4", "medium": "1", "high": "0.1"}
    mechanism = {"none": "none"}
    return [
        {"name": name, "mechanism": mechanism.get(name, "randomized-response"), "pay_cents": 0}
        | ({"epsilon": epsilon[name]} if name in epsilon else {})
        for name in names
    ]


@pytest.mark.parametrize(
    ("used", "statement"),
    [
        (["none"] * 3, "3 of 3 submissions were not protected: their reports are the answers (level none)."),
        (
            ["none", "medium", "medium"],
            "1 of 3 submissions was not protected: its report is the answer (level none). The others were randomised "
            "on each worker's device. level medium: ε ≤ 1 per value (the value of one answered question); whether a "
            "question was answered is visible; at most ε 2 for the whole study.",
        ),
        (
            ["medium"] * 3,
            "Randomised on each worker's device. level medium: ε ≤ 1 per value (the value of one answered question); "
            "whether a question was answered is visible; at most ε 2 for the whole study.",
        ),
    ],
)
def test_the_statement_is_about_the_levels_that_were_used(
    django_here: Path, make_draft: Any, used: list[str], statement: str
) -> None:
    scene = Scene(make_draft(levels=levels("none", "low", "medium")))
    for level in used:
        scene.submit(scene.worker(), {"ill": 0, "days": 0}, level)
    estimates = scene.estimates()
    assert estimates["privacy"] == statement
    assert estimates["levels_used"] == [name for name in ("none", "medium") if name in used]


def test_the_largest_share_has_one_interval(django_here: Path, make_draft: Any) -> None:
    questions = [
        {"id": "job", "text": "?", "domain": {"type": "choices", "options": ["a", "b", "c", "d"]}},
        {"id": "why", "text": "?", "domain": {"type": "tick-all", "boxes": ["x", "y"]}},
    ]
    scene = Scene(make_draft(questions=questions, levels=levels("low")))
    for number in range(40):
        scene.submit(scene.worker(), {"job": (0, 0, 1, 2)[number % 4], "why": (1, 3, 1, 0)[number % 4]}, "low")
    job, why = (part["questions"][0] for part in scene.estimates()["parts"])
    (row,) = [share for share in job["shares"] if share["option"] == job["value"]]
    assert (row["low"], row["high"]) == (job["low"], job["high"])
    # The lower half of the largest share's interval allows for the choice among several; those of the others do not.
    x, y = why["boxes"]
    assert x["share"] - x["low"] > 1.1 * (x["high"] - x["share"])
    assert y["share"] - y["low"] == pytest.approx(y["high"] - y["share"], abs=1e-5)


def test_intervals_end_where_the_scale_ends(django_here: Path, make_draft: Any) -> None:
    questions = [
        {"id": f"grade{number}", "text": "?", "domain": {"type": "scale", "low": "1", "high": "10"}}
        for number in range(6)
    ]
    scene = Scene(make_draft(questions=questions, goal="truth", levels=levels("medium")))
    for _ in range(4):
        scene.submit(scene.worker(), {f"grade{number}": 9 * (number % 2) for number in range(6)})
    (part,) = scene.estimates()["parts"]
    for question in part["questions"]:
        assert 1 <= question["low"] <= question["value"] <= question["high"] <= 10


@pytest.mark.parametrize("goal", ["population", "truth"])
@pytest.mark.parametrize("hidden", [False, True])
def test_where_reports_cannot_tell_the_planner_says_what_it_takes(
    django_here: Path, make_draft: Any, goal: str, hidden: bool
) -> None:
    from crowdveil.broker.results.information import required_sample
    from crowdveil.broker.results.tables import parts_of

    questions = [
        {"id": "job", "text": "?", "domain": {"type": "choices", "options": ["a", "b", "c"]}},
        {"id": "days", "text": "?", "domain": {"type": "scale", "low": "0", "high": "60", "step": "5"}},
        {"id": "why", "text": "?", "domain": {"type": "tick-all", "boxes": ["x", "y"]}},
    ]
    shape = {"levels": levels("high"), "protects_participation": hidden, "goal": goal}
    scene = Scene(make_draft(questions=questions, **shape))
    for number in range(20):
        scene.submit(scene.worker(), {"job": number % 3, "days": number % 13, "why": number % 4}, "high")
    for part, estimates in zip(parts_of(scene.opened), scene.estimates()["parts"], strict=True):
        assert not estimates["questions"][0]["informative"]
        assert set(estimates["needed"]) == {"n_workers", "epsilon"}
        # The same without a clock: this machine may be busy.
        needed = required_sample(part, scene.opened, [20], [20], seconds=math.inf)
        assert needed["n_workers"] > 100
        assert 0.1 < needed["epsilon"] <= 8


def test_the_needed_sample_is_what_the_planner_says_and_is_bounded_in_time(django_here: Path, make_draft: Any) -> None:
    from crowdveil.broker.results.information import required_sample
    from crowdveil.broker.results.tables import parts_of
    from crowdveil.mechanisms import mechanism
    from crowdveil.plan import CrowdSkill, Setting, predict_population
    from crowdveil.plan.population import prior_spread

    questions = [{"id": "job", "text": "?", "domain": {"type": "choices", "options": ["a", "b", "c"]}}]
    scene = Scene(make_draft(questions=questions, levels=levels("high")))
    (part,) = parts_of(scene.opened)
    needed = required_sample(part, scene.opened, [20], [20], seconds=math.inf)
    assert required_sample(part, scene.opened, [20], [20], seconds=-math.inf) == {"n_workers": None, "epsilon": None}

    def error(n_workers: int, epsilon: float) -> float:
        setting = Setting(part.domain, epsilon, n_workers, 1.0, CrowdSkill.from_name("mixed", part.domain))
        channel = mechanism("randomized-response", epsilon=epsilon).channel(part.domain)
        return predict_population(setting, channel).error

    target = prior_spread(part.domain) / 2
    assert 0.85 * target < error(needed["n_workers"], 0.1) <= target
    assert 0.85 * target < error(20, needed["epsilon"]) <= target


def test_a_box_beyond_everybody_has_an_interval_of_some_width(django_here: Path, make_draft: Any) -> None:
    """Unbiased shares may be far above 1 or below 0; cut off there, the interval was a point."""
    questions = [{"id": "why", "text": "?", "domain": {"type": "tick-all", "boxes": ["x", "y"]}}]
    scene = Scene(make_draft(questions=questions, levels=levels("high")))
    for number in range(20):
        scene.submit(scene.worker(), {"why": 2 if number < 3 else 1}, "high")
    for box in scene.estimates()["parts"][0]["questions"][0]["boxes"]:
        assert box["high"] - box["low"] > 0.2
