"""Files of workers with personal levels: `worker`, and any of `mechanism`, `epsilon` and `level`."""

from __future__ import annotations

from pathlib import Path

from crowdveil.files.table import read_table

COLUMNS = ("mechanism", "epsilon", "level")


def read_worker_levels(path: str | Path) -> dict[str, dict[str, str | float]]:
    """What the file says of each worker's privacy; an empty cell says nothing. Empty where it has no such column."""
    table = read_table(path, ["worker"], optional=COLUMNS)
    present = [name for name in COLUMNS if name in table]
    if not present:
        return {}
    codes, workers = table.ids("worker")
    encoded = {name: table.encode(name) for name in present}
    levels: dict[str, dict[str, str | float]] = {}
    for row, code in enumerate(codes):
        worker = str(workers[code])
        if worker in levels:
            raise table.wrong(f"worker {worker!r} stands in an earlier row", row, "worker", "give each worker one row")
        texts = {name: text for name, (places, values) in encoded.items() if (text := values[places[row]]) is not None}
        levels[worker] = {name: text.strip() for name, text in texts.items()}
        if "epsilon" in texts:
            try:
                levels[worker]["epsilon"] = float(texts["epsilon"])
            except ValueError:
                problem = f"epsilon must be a number; got {texts['epsilon']!r}"
                raise table.wrong(problem, row, "epsilon", "write it with a decimal point") from None
    return levels
