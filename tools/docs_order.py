"""The order in which the documentation is read: learn, do, understand, look up, and why it is so."""

from typing import Any

SECTIONS = ["tutorial", "how-to", "explain", "reference", "decisions"]


def on_nav(nav: Any, **_: Any) -> Any:
    """MkDocs calls this with the navigation it made from the directories."""
    nav.items.sort(key=_rank)
    return nav


def _rank(item: Any) -> int:
    if item.is_page and item.file.src_uri == "glossary.md":
        return len(SECTIONS)
    name = item.title.lower().replace(" ", "-") if item.is_section else ""
    return SECTIONS.index(name) if name in SECTIONS else -1
