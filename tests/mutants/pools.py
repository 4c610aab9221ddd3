"""Mistakes about task pools: what a device believes, and what the broker lets pass."""

from __future__ import annotations

from mutants.mutant import Mutant

POOLS = "tests/broker/test_pools.py"
RACES = "tests/broker/test_pool_races.py"
MERKLE = "tests/test_merkle.py"

MUTANTS = (
    Mutant(
        "pools: a task has no bound",
        "broker/pools/submit.py",
        "AND n_reports < %s RETURNING",
        "AND 0 < %s RETURNING",
        RACES,
    ),
    Mutant(
        "pools: a hidden skip may be left out",
        "broker/pools/submit.py",
        "if parcel.study.opened.protects_participation and (missing",
        "if parcel.study.id is None and (missing",
        POOLS,
        "do_not_fit",
    ),
    Mutant(
        "pools: reports on tasks of others are stored",
        "broker/pools/submit.py",
        "if foreign := parcel.reports.keys() - leased:",
        "if foreign := leased - leased:",
        POOLS,
        "do_not_fit",
    ),
    Mutant(
        "pools: an expired lease keeps its tasks",
        "broker/pools/leases.py",
        "_add_load(of_study, tasks_of(key), -1)",
        "tasks_of(key)",
        RACES,
        "expired",
    ),
    Mutant(
        "pools: closing keeps who was leased what",
        "broker/pools/closing.py",
        '"DELETE FROM pools_leasedtask WHERE study = %s",',
        "",
        RACES,
        "closing",
    ),
    Mutant(
        "SDK: a task needs no proof",
        "client/labelling.py",
        'if not verify_inclusion(leaf_hash(task_leaf(task)), task["number"], size, proof, root):',
        "if not root:",
        POOLS,
        "forged",
    ),
    Mutant(
        "SDK: a task may come again",
        "client/device_state.py",
        "again = [task for task, row in before.items() if row is not None and row[0] != batch]",
        "again: list[int] = []",
        POOLS,
        "comes_again",
    ),
    Mutant(
        "ledger: no ceiling for answers one by one",
        "accounting/ledger.py",
        "receipt = self._storage.record(wanted, Charge(nano_down(ceiling), 0))",
        "receipt = self._storage.record(wanted, None)",
        POOLS,
        "one_by_one",
    ),
    Mutant("Merkle: a leaf is hashed like a node", "merkle.py", 'b"\\x00" + entry', 'b"\\x01" + entry', MERKLE),
)
