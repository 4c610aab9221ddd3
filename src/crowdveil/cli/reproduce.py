"""`crowdveil reproduce`: make a paper's table or figure again, with what it leaves out."""

from __future__ import annotations

import secrets
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from crowdveil.cli._common import Json, Seed, show, whole_file
from crowdveil.cli._text import table, tell
from crowdveil.errors import FileError, InputError


def command(
    id: Annotated[str | None, typer.Argument(help="Which table or figure, or `all`; see --list.")] = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder for the results.")] = Path("reproduced"),
    data: Annotated[Path | None, typer.Option(help="The folder with the datasets (or CROWDVEIL_DATA).")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="How many trials to average over.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer trials and smaller crowds.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="List what can be reproduced.")] = False,
    seed: Seed = None,
    as_json: Json = False,
) -> None:
    """Regenerate a paper's table or figure as CSV, SVG, PNG and a note with the verdict on each claim.

    Example: crowdveil reproduce loki-examples -o results
    """
    from crowdveil.papers import REPRODUCTIONS

    if list_ or id is None:
        rows = [{"id": each.id, "title": each.title, "paper": each.paper} for each in REPRODUCTIONS.values()]
        show({"reproductions": rows}, as_json=as_json, human=lambda: _list(rows))
        return
    if id != "all" and id not in REPRODUCTIONS:
        raise InputError(f"there is no reproduction {id!r}", fix="see crowdveil reproduce --list")
    chosen = list(REPRODUCTIONS) if id == "all" else [id]
    outcomes = _run(chosen, output, data, seeds, quick, seed)
    result: dict[str, Any] = outcomes[0] if id != "all" else {"reproductions": outcomes}
    show(result, as_json=as_json, human=lambda: _tell(outcomes))


def _run(
    chosen: list[str], output: Path, data: Path | None, trials: int | None, quick: bool, seed: int | None
) -> list[dict[str, Any]]:
    from crowdveil.papers import REPRODUCTIONS, Settings
    from crowdveil.papers.core.run import page, reproduce

    first = secrets.randbits(32) if seed is None else seed
    settings = Settings(first, trials or (3 if quick else 20), quick, data, progress=_progress)
    outcomes: list[dict[str, Any]] = []
    for id in chosen:
        _progress(f"{id} (seed {first})")
        try:
            outcomes.append(reproduce(REPRODUCTIONS[id], settings, output).to_json())
        except FileError:
            # Of many, one whose data is not on this disk is passed over by name; alone, it is an error.
            if len(chosen) == 1:
                raise
            outcomes.append({"id": id, "claims": [], "files": [], "left_out": "its datasets are not on this disk"})
    if len(chosen) > 1:
        with whole_file(output / "papers.md", force=True) as unfinished:
            unfinished.write_text(page(outcomes), encoding="utf-8")
    return outcomes


def _progress(message: str) -> None:
    sys.stderr.write(f"… {message}\n")


def _list(rows: list[dict[str, str]]) -> None:
    table([(row["id"], f"{row['title']} ({row['paper']})") for row in rows])


def _tell(outcomes: list[dict[str, Any]]) -> None:
    for outcome in outcomes:
        typer.echo(f"\n{outcome['id']}" + (f": left out, {outcome['left_out']}" if "left_out" in outcome else ""))
        for claim in outcome["claims"]:
            line = f"  [{claim['verdict']}] {claim['claim']}: published {claim['published']}, ours {claim['ours']}"
            tell(line, indent="    ")
