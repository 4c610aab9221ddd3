"""What the questions of a study may be answered with, read from the definition."""

from __future__ import annotations

import json
from typing import Any

from crowdveil.domain import Choices, Domain, Scale


def build_domain(question: dict[str, Any]) -> Domain:
    """The domain; "tick all that apply" is one choice among all subsets of its boxes.

    >>> build_domain({"domain": {"type": "tick-all", "boxes": ["a", "b"]}}).symbols
    ('[]', '["a"]', '["b"]', '["a","b"]')
    """
    match question["domain"]:
        case {"type": "choices", "options": options}:
            return Choices(tuple(options))
        case {"type": "scale", "low": low, "high": high, "step": step}:
            return Scale(low, high, step)
        case {"type": "tick-all", "boxes": boxes}:
            masks = range(2 ** len(boxes))
            return Choices(
                tuple(_join_boxes([box for bit, box in enumerate(boxes) if mask >> bit & 1]) for mask in masks)
            )
        case other:
            raise ValueError(f"a domain is choices, scale or tick-all; got {other!r}")


def encode_answer(question: dict[str, Any], answer: object) -> int:
    """The code of one answer; -1 for none. Ticked boxes may be given in any order."""
    domain = build_domain(question)
    if isinstance(answer, list | tuple | set):
        boxes = question["domain"].get("boxes", [])
        ticked = [box for box in boxes if box in answer]
        return domain.code(_join_boxes(ticked) if len(ticked) == len(answer) else str(answer))
    return domain.code(answer)


def apply_skip_logic(questions: list[dict[str, Any]], answers: dict[str, Any]) -> dict[str, Any]:
    """The answers that skip logic lets stand: what depends on an answer that was not given is hidden.

    A condition names answers as the domain spells them, ticked boxes as their JSON list.

    >>> why = {"id": "why", "domain": {"type": "tick-all", "boxes": ["a", "b"]}, "show_if": None}
    >>> more = why | {"id": "more", "show_if": {"question": "why", "any_of": ['["a","b"]']}}
    >>> [list(apply_skip_logic([why, more], {"why": ticked, "more": []})) for ticked in (["b", "a"], ["a"])]
    [['why', 'more'], ['why']]
    """
    standing: dict[str, Any] = {}
    spelled: dict[str, str] = {}
    for question in questions:
        key, rule, answer = question["id"], question["show_if"], answers.get(question["id"])
        if answer is not None and (rule is None or spelled.get(rule["question"]) in rule["any_of"]):
            standing[key] = answer
            spelled[key] = build_domain(question).symbols[encode_answer(question, answer)]
    return standing


def _join_boxes(boxes: list[str]) -> str:
    return json.dumps(boxes, ensure_ascii=False, separators=(",", ":"))
