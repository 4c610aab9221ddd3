"""Lists in pages: ordered by random id, or by number where the order is public."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ninja import Query

After = Query("", max_length=32, pattern=r"^[0-9a-f]{0,32}$", description="The `next` of the page before.")
Limit = Query(50, ge=1, le=200, description="How many at most.")


def page(rows: Any, after: str, limit: int, spelled: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    """One page of a query set, in the order of its random ids."""
    page_rows = list(rows.filter(id__gt=after).order_by("id")[: limit + 1])
    more = len(page_rows) > limit
    return {"items": [spelled(row) for row in page_rows[:limit]], "next": page_rows[limit - 1].id if more else None}
