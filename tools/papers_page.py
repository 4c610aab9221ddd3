"""Turn one run of `crowdveil reproduce all -o DIR` into docs/explain/papers.md with its figures.

crowdveil reproduce all --quick -o DIR && python tools/papers_page.py DIR
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

EXPLAIN = Path(__file__).parent.parent / "docs" / "explain"
HOW = (
    "*Made by one run of `crowdveil reproduce all --quick -o DIR`, then `python tools/papers_page.py DIR`; nothing is "
    "edited by hand. The same seed (`--seed`) gives the same page, but for the times in li-additional. Without "
    "`--quick` the crowds have the papers' sizes and the averages run over more trials.*\n\n"
)


def main(run: Path, explain: Path = EXPLAIN) -> None:
    text = (run / "papers.md").read_text(encoding="utf-8")
    check(text)
    (explain / "papers").mkdir(exist_ok=True)
    for name in re.findall(r"\]\(([\w-]+\.svg)\)", text):
        shutil.copyfile(run / name, explain / "papers" / name)
    # Rows stay with the run: only the figures are part of the documentation.
    text = re.sub(r"\]\(([\w-]+\.svg)\)", r"](papers/\1)", text)
    text = re.sub(r"; rows in \[([\w-]+\.csv)\]\([\w-]+\.csv\)", r"; rows in `\1` of the run", text)
    head, rest = text.split("\n\n", 1)
    (explain / "papers.md").write_text(f"{head}\n\n{HOW}{rest}", encoding="utf-8")


def check(text: str) -> None:
    """Refuse a page that is stitched from several runs, or from one that left something out."""
    seeds = set(re.findall(r"^Seed (\d+), ", text, flags=re.MULTILINE))
    if len(seeds) != 1:
        sys.exit(f"the page must come from one run, so from one seed; got {', '.join(sorted(seeds)) or 'none'}")
    if left_out := re.findall(r"^\| ([\w-]+) \(left out", text, flags=re.MULTILINE):
        sys.exit(f"the run left out {', '.join(left_out)}; name the folder of the datasets with --data")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
