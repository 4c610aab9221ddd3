"""Estimates of one study with their intervals, and the sentence that says what protects those who answered."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from crowdveil.broker.results.information import MAX_SECONDS, is_informative, required_sample
from crowdveil.broker.results.multi_select import box_shares
from crowdveil.broker.results.tables import Part, Stored, parts_of, table
from crowdveil.broker.studies.definition import Opened, OpenedLevel
from crowdveil.domain import Choices, Scale
from crowdveil.errors import ChannelError
from crowdveil.estimate import Estimate
from crowdveil.guarantee import round_up
from crowdveil.inference import method
from crowdveil.reports import Reports


def estimate(study: str, opened: Opened, stored: Stored, *, planning_seconds: float = MAX_SECONDS) -> dict[str, Any]:
    """Everything a results page shows, from what was stored at one moment."""
    parts = parts_of(opened)
    seconds = planning_seconds / len(parts)
    workers = np.arange(len(stored))
    counts = np.bincount(stored.levels, minlength=len(opened.levels))
    levels = [level for level in opened.levels.values() if counts[level.number]]
    unprotected = sum(int(counts[level.number]) for level in levels if not level.protected)
    return {
        "study": study,
        "n": len(stored),
        "minimum_n": opened.document["minimum_n"],
        "level": 0.95,
        "levels_used": [level.name for level in levels],
        "privacy": privacy_statement(opened, levels, len(stored), unprotected),
        "unprotected": unprotected,
        "parts": [_part(part, table(part, stored, workers), opened, counts.tolist(), seconds) for part in parts],
    }


def _part(part: Part, reports: Reports, opened: Opened, n_by_level: list[int], seconds: float) -> dict[str, Any]:
    goal = opened.document["goal"]
    found = method(method_for(part, goal)).fit(reports)
    distribution = found if isinstance(part.domain, Choices) else _distribution(reports, goal)
    counts = np.bincount(reports.question, minlength=len(part.questions))
    floor = None if found.floor is None else {"informative": found.floor.informative, "sentence": found.floor.sentence}
    questions = [
        _question(found, place, question, int(counts[place]))
        | {"shares": _shares(distribution, place), "boxes": box_shares(part, reports, place)}
        for place, question in enumerate(part.questions)
    ]
    for question in questions:
        question["informative"] = is_informative(question, part.domain, floor, goal)
        if isinstance(part.domain, Scale):
            _clip(question, part.domain)
    vague = not all(question["informative"] for question in questions)
    return {
        "method": found.method,
        "why": str(found.provenance.get("why", "")),
        "warnings": list(found.warnings),
        "floor": floor,
        "questions": questions,
        "needed": required_sample(part, opened, n_by_level, counts.tolist(), seconds=seconds) if vague else None,
    }


def method_for(part: Part, goal: str) -> str:
    """A population's opinion or the truth of each question: the requester said which in the definition."""
    if goal == "truth":
        return "auto"
    return "frequency" if isinstance(part.domain, Choices) else "population-mean"


def _distribution(reports: Reports, goal: str) -> Estimate | None:
    """How opinions spread over the levels of a scale, where the channels can tell them apart."""
    if goal == "truth":
        return None
    try:
        return method("frequency").fit(reports)
    except ChannelError:
        return None


def _question(found: Estimate, place: int, question: str, n_reports: int) -> dict[str, Any]:
    value = found.values()[place]
    return {
        "question": question,
        "n_reports": n_reports,
        "value": value if not isinstance(value, float) else round(value, 6),
        "confidence": _number(found.confidence[place]),
        "low": _number(found.low[place]),
        "high": _number(found.high[place]),
    }


def _clip(question: dict[str, Any], scale: Scale) -> None:
    """An estimate beyond the end of a scale stands at the end, with its interval, which then is cut off there.

    The end is nearer to whatever is true than the estimate was, so the interval holds that at least as often.
    """
    if question["value"] is None:
        return
    ends = float(scale.low), float(scale.high)
    shift = float(np.clip(question["value"], *ends)) - question["value"]
    for name in ("value", "low", "high"):
        if question[name] is not None:
            question[name] = round(float(np.clip(question[name] + shift, *ends)), 6)


def _shares(found: Estimate | None, place: int) -> list[dict[str, Any]]:
    if found is None or found.posterior is None:
        return []
    low, high = found.parameters.get("low"), found.parameters.get("high")
    # Only frequencies bound every share; a posterior over truths has nothing to bound.
    if low is None or high is None or low.shape != found.posterior.shape:
        low = high = np.full_like(found.posterior, np.nan)
    elif isinstance(found.domain, Choices):
        # The largest share has one interval wherever it is shown: the one that allows for its having been picked.
        top = found.posterior[place].argmax()
        low = low.copy()
        low[place][top] = min(low[place][top], found.low[place])
    return [
        {
            "option": option,
            "share": _number(found.posterior[place][code]) or 0.0,
            "low": _number(low[place][code]),
            "high": _number(high[place][code]),
        }
        for code, option in enumerate(found.domain.symbols)
    ]


def _number(value: Any) -> float | None:
    return round(float(value), 6) if math.isfinite(float(value)) else None


def privacy_statement(
    opened: Opened, levels: list[OpenedLevel], n: int, unprotected: int, *, unit: str = "submission"
) -> str:
    """What protected those who answered: how many were not, and what each level that was used promised.

    A survey is answered in one submission; of a pool a worker may label several batches, each with its own charge.
    """
    said = []
    if unprotected:
        one, many = "was not protected: its report is the answer", "were not protected: their reports are the answers"
        what = one if unprotected == 1 else many
        said.append(f"{unprotected} of {n} {unit}{'es' if unit == 'batch' else 's'} {what} (level none)")
    if unprotected < n:
        who = "The others were randomised" if unprotected else "Randomised"
        said.append(f"{who} on each worker's device")
    for level in levels:
        if level.protected:
            worst = max((opened.channels[sha256].guarantee for sha256 in level.channels), key=lambda each: each.epsilon)
            total = round_up((level.charge or {})["epsilon_nano"] / 1e9)
            whole = "a batch" if unit == "batch" else "the whole study"
            said.append(f"level {level.name}: {worst}; at most ε {total} for {whole}")
    return ". ".join(said) + "."
