"""What notebooks show: small tables and bar charts as plain HTML and SVG, which load nothing from anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_ROW, _WIDTH, _LABEL, _COUNT = 18, 420, 140, 60
_LONGEST_LABEL = 20


def bar_chart(title: str, labels: Sequence[str], counts: Sequence[float]) -> str:
    """Horizontal bars as an SVG image, one per label, with the count beside; `title` is read to those who see none.

    >>> bar_chart("answers", ["no", "yes"], [1, 3]).count("<rect")
    2
    """
    longest = max([*counts, 1])
    room = _WIDTH - _LABEL - _COUNT
    parts = []
    for row, (label, count) in enumerate(zip(labels, counts, strict=True)):
        base = row * _ROW + 13
        width = room * count / longest
        short = label if len(label) <= _LONGEST_LABEL else label[: _LONGEST_LABEL - 1] + "…"
        parts.append(
            f'<text x="{_LABEL - 6}" y="{base}" text-anchor="end">{escape(short)}</text>'
            f'<rect x="{_LABEL}" y="{row * _ROW + 3}" width="{width:.1f}" height="{_ROW - 6}" fill="#00796b"/>'
            f'<text x="{_LABEL + width + 6:.1f}" y="{base}">{count:g}</text>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{_WIDTH}" height="{_ROW * len(parts)}"'
        f' font-size="12" fill="currentColor"><title>{escape(title)}</title>{"".join(parts)}</svg>'
    )


def html_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, n_rows: int) -> str:
    """The rows as an HTML table; where there are more than are shown, the last line says how many in all."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    more = f'<tr><td colspan="{len(header)}">… {n_rows:,} in all</td></tr>' if n_rows > len(rows) else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}{more}</tbody></table>"
