"""Attack a broker by its clock: some seconds at +400 days, then the right time again.

Run by hand, on loopback only: `python tools/attack_clock.py`. It starts a broker of its own whose clock is read through
a file, and prints how many tokens and holds of workers have outlived the jump. All of them should.
"""

from __future__ import annotations

import argparse
import http.client
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from crowdveil.bench._serving import Running, serving

N_WORKERS = 10
SHIFTED = """
import sys
from datetime import timedelta
from pathlib import Path
from crowdveil.broker import clock
right, ahead = clock.now, Path(sys.argv.pop(1))
clock.now = lambda: right() + timedelta(days=float(ahead.read_text()))
from crowdveil.cli import main
main()
"""


def call(running: Running, token: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=60)
    try:
        connection.request(method, f"/api/v1{path}", json.dumps(body), {"Authorization": f"Bearer {token}"})
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read())
    finally:
        connection.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=float, default=400.0, help="how far ahead the clock is set")
    parser.add_argument("--seconds", type=float, default=8.0, help="for how long; background jobs run every 5 seconds")
    options = parser.parse_args()
    with tempfile.NamedTemporaryFile("w") as ahead:
        path = Path(ahead.name)
        path.write_text("0")
        with serving("", n_workers=N_WORKERS, program=("-c", SHIFTED, ahead.name)) as running:
            tokens, study = running.seed["tokens"], f"/studies/{running.seed['study']}/reservation"
            wish = {"level": "medium", "study_sha256": running.seed["sha256"]}
            n_accepted = sum(call(running, token, "PUT", study, wish)[0] == 201 for token in tokens)
            path.write_text(str(options.days))
            time.sleep(min(options.seconds, 60.0))
            path.write_text("0")
            n_tokens = sum(call(running, token, "GET", "/workers/me")[0] == 200 for token in tokens)
            n_holds = sum(call(running, token, "GET", study)[0] == 200 for token in tokens)
    sys.stdout.write(f"{n_tokens} of {N_WORKERS} tokens and {n_holds} of {n_accepted} holds are left\n")
    return 0 if (n_tokens, n_holds) == (N_WORKERS, n_accepted) else 1


if __name__ == "__main__":
    sys.exit(main())
