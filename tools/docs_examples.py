"""A Griffe extension: examples in docstrings (`>>>`) become code blocks; Markdown would take them for quotations."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\s*\n).+)*", re.MULTILINE)


class FenceExamples(Extension):
    """Puts each example between fences."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Griffe calls this for every object it has read."""
        if obj.docstring:
            obj.docstring.value = EXAMPLE.sub(lambda match: f"```pycon\n{match[0]}\n```", obj.docstring.value)
