"""Attack the reservations of a broker: workers who accept a study and submit to it at the same moment.

Run by hand, on loopback only and bounded: `python tools/attack_holds.py --pairs 800`. It starts brokers of its own, on
SQLite and, where it is installed, on PostgreSQL. It prints how many holds are left beside a spend of the same worker:
each would keep ε, money and a place until it expires. There should be none.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import secrets
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from crowdveil.bench._postgres import Postgres, postgres_programs
from crowdveil.bench._serving import Running, serving

CONNECTIONS = 40


def send(running: Running, token: str, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=60)
    try:
        headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": secrets.token_hex(16)}
        connection.request(method, f"/api/v1{path}", body, headers)
        reply = connection.getresponse()
        return reply.status, reply.read()
    finally:
        connection.close()


def race(running: Running, token: str) -> tuple[int, int]:
    """Accept the study and submit to it at once; both statuses."""
    study, together = f"/studies/{running.seed['study']}", threading.Barrier(2)
    wish = json.dumps({"level": "medium", "study_sha256": running.seed["sha256"]}).encode()

    def call(method: str, path: str, body: bytes) -> int:
        together.wait()
        return send(running, token, method, path, body)[0]

    with ThreadPoolExecutor(2) as pool:
        accepted = pool.submit(call, "PUT", f"{study}/reservation", wish)
        submitted = pool.submit(call, "POST", f"{study}/submissions", running.submission())
        return accepted.result(), submitted.result()


def attack(database: str, n_pairs: int) -> int:
    """Race so many pairs; how many holds are left."""
    n_left = 0
    with serving(database, n_workers=n_pairs) as running:
        tokens = running.seed["tokens"]
        with ThreadPoolExecutor(CONNECTIONS // 2) as pool:
            statuses = Counter(pool.map(lambda token: race(running, token), tokens))
            for _, reply in pool.map(lambda token: send(running, token, "GET", "/workers/me"), tokens):
                budget = json.loads(reply)["budget"]
                n_left += budget["epsilon_held_nano"] > 0 < budget["epsilon_spent_nano"]
    kind = "PostgreSQL" if database else "SQLite"
    sys.stdout.write(f"{kind}: {n_left} of {n_pairs} holds are left; (accept, submit) replied {dict(statuses)}\n")
    return n_left


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=800, help="workers who accept and submit at once")
    n_pairs = min(parser.parse_args().pairs, 5000)
    n_left = attack("", n_pairs)
    if postgres_programs() is not None:
        cluster = Postgres()
        try:
            n_left += attack(cluster.new_database(), n_pairs)
        finally:
            cluster.stop()
    return 1 if n_left else 0


if __name__ == "__main__":
    os.environ.setdefault("CROWDVEIL_SIGN_UP_LIMIT", "0")
    sys.exit(main())
