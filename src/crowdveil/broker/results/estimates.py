"""Estimates of one study with their intervals, and the sentence that says what protects those who answered."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from crowdveil.broker.results.multi_select import box_shares
from crowdveil.broker.results.tables import Part, Stored, parts_of, table
from crowdveil.broker.studies.definition import Opened
from crowdveil.domain import Choices
from crowdveil.errors import ChannelError
from crowdveil.estimate import Estimate
from crowdveil.guarantee import round_up
from crowdveil.inference import method
from crowdveil.reports import Reports


def estimate(study: str, opened: Opened, stored: Stored) -> dict[str, Any]:
    """Everything a results page shows, from what was stored at one moment."""
    workers = np.arange(len(stored))
    unprotected = [level.number for level in opened.levels.values() if not level.protected]
    return {
        "study": study,
        "n": len(stored),
        "minimum_n": opened.document["minimum_n"],
        "level": 0.95,
        "privacy": privacy_statement(opened),
        "unprotected": int(np.isin(stored.levels, unprotected).sum()),
        "parts": [_part(part, table(part, stored, workers), opened.document["goal"]) for part in parts_of(opened)],
    }


def _part(part: Part, reports: Reports, goal: str) -> dict[str, Any]:
    found = method(method_for(part, goal)).fit(reports)
    distribution = found if isinstance(part.domain, Choices) else _distribution(reports, goal)
    counts = np.bincount(reports.question, minlength=len(part.questions))
    return {
        "method": found.method,
        "why": str(found.provenance.get("why", "")),
        "warnings": list(found.warnings),
        "floor": None
        if found.floor is None
        else {"informative": found.floor.informative, "sentence": found.floor.sentence},
        "questions": [
            _question(found, place, question, int(counts[place]))
            | {"shares": _shares(distribution, place), "boxes": box_shares(part, reports, place)}
            for place, question in enumerate(part.questions)
        ],
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


def _shares(found: Estimate | None, place: int) -> list[dict[str, Any]]:
    if found is None or found.posterior is None:
        return []
    low, high = found.parameters.get("low"), found.parameters.get("high")
    # Only frequencies bound every share; a posterior over truths has nothing to bound.
    bounded = low is not None and high is not None and low.shape == found.posterior.shape
    return [
        {
            "option": option,
            "share": _number(found.posterior[place][code]) or 0.0,
            "low": _number(low[place][code]) if bounded and low is not None else None,
            "high": _number(high[place][code]) if bounded and high is not None else None,
        }
        for code, option in enumerate(found.domain.symbols)
    ]


def _number(value: Any) -> float | None:
    return round(float(value), 6) if math.isfinite(float(value)) else None


def privacy_statement(opened: Opened) -> str:
    """What each level promised, in words and numbers, with the unit named."""
    said = []
    for level in opened.levels.values():
        if not level.protected:
            said.append("level none: not protected, the report is the answer")
            continue
        worst = max((opened.channels[sha256].guarantee for sha256 in level.channels), key=lambda each: each.epsilon)
        total = round_up((level.charge or {})["epsilon_nano"] / 1e9)
        said.append(f"level {level.name}: {worst}; at most ε {total} for the whole study")
    return "Randomised on each worker's device. " + ". ".join(said) + "."
