"""Drafts of task pools, and open pools on a running server."""

from __future__ import annotations

from typing import Any


def pool_draft(**changes: Any) -> dict[str, Any]:
    """A pool of yes-no tasks at two levels; `rules` change its pool rules."""
    rules = {"batch_size": 4, "redundancy": 2, "max_reports": 3, **changes.pop("rules", {})}
    return {
        "kind": "tasks",
        "title": "Does it follow?",
        "purpose": "To learn which sentences follow from others.",
        "goal": "truth",
        "consent_text": "I agree to label.",
        "quota": 1_000_000,
        "minimum_n": 2,
        "budget_cents": 10_000_000,
        "questions": [
            {
                "id": "label",
                "text": "Does the second sentence follow from the first?",
                "domain": {"type": "choices", "options": ["0", "1"]},
            }
        ],
        "levels": [
            {"name": "none", "mechanism": "none", "pay_cents": 8},
            {"name": "low", "mechanism": "randomized-response", "epsilon": "2", "pay_cents": 10},
        ],
        "pool": rules,
        **changes,
    }


def protected_draft(**changes: Any) -> dict[str, Any]:
    level = {"name": "low", "mechanism": "randomized-response", "epsilon": "2", "pay_cents": 10}
    return pool_draft(protects_participation=True, levels=[level], **changes)


def numbered_tasks(n: int) -> list[dict[str, str]]:
    return [{"id": f"t{k}", "text": f"Premise {k}.", "text_b": f"Hypothesis {k}."} for k in range(n)]


def open_pool(requester: Any, draft: dict[str, Any], tasks: Any, assignments: Any = None) -> str:
    study = str(requester.create(draft))
    requester.upload_tasks(study, tasks, assignments)
    requester.open(study)
    return study
