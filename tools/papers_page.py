"""Turn a run of `crowdveil reproduce all -o DIR` into docs/explain/papers.md with its figures.

crowdveil reproduce all --quick -o DIR && python tools/papers_page.py DIR
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

HOW = (
    "*This page was made by `crowdveil reproduce all --quick -o DIR` and `python tools/papers_page.py DIR`; run them "
    "to make it anew. Without `--quick` the crowds have the papers' sizes and the averages run over more trials.*\n\n"
)


def main(run: Path) -> None:
    explain = Path(__file__).parent.parent / "docs" / "explain"
    (explain / "papers").mkdir(exist_ok=True)
    text = (run / "papers.md").read_text(encoding="utf-8")
    for name in re.findall(r"\]\(([\w-]+\.svg)\)", text):
        shutil.copyfile(run / name, explain / "papers" / name)
    # Rows stay with the run: only the figures are part of the documentation.
    text = re.sub(r"\]\(([\w-]+\.svg)\)", r"](papers/\1)", text)
    text = re.sub(r"; rows in \[([\w-]+\.csv)\]\([\w-]+\.csv\)", r"; rows in `\1` of the run", text)
    head, rest = text.split("\n\n", 1)
    (explain / "papers.md").write_text(f"{head}\n\n{HOW}{rest}", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
