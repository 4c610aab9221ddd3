"""A broker filled for measuring: workers with tokens, an open study, and as many submissions as wanted.

Run as `python -m crowdveil.broker.ops.seed DATA_DIR DATABASE N_QUESTIONS N_WORKERS N_SUBMISSIONS`; prints JSON.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from crowdveil.broker.bootstrap import BrokerEnvironment, migrate


def main(data_dir: str, database: str, n_questions: int, n_workers: int, n_submissions: int) -> dict[str, Any]:
    """Fill the broker and say what a client needs to know."""
    BrokerEnvironment(Path(data_dir), database).enter()
    migrate()
    # Django's models exist only after the place was entered.
    filling = import_module("crowdveil.broker.ops.bench_fixture")
    filled: dict[str, Any] = filling.fill(n_questions, n_workers, n_submissions)
    return filled


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6]))))
