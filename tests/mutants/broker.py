"""Mistakes on both ends of the wire: what the SDK believes, and what the broker grants and keeps."""

from __future__ import annotations

from mutants.mutant import Mutant

SDK = "tests/broker/test_client.py"
RACES = "tests/broker/test_races.py"
BUDGETS = "tests/broker/test_budgets.py"
RECORDS = "tests/broker/test_records.py"
SIGN_IN = "tests/broker/test_sign_in.py"
LEAKS = "tests/broker/test_leaks.py"
VOTES = "tests/inference/test_voting.py"

MUTANTS = (
    Mutant(
        "SDK: any signature is believed",
        "client/study.py",
        "key.verify(bytes.fromhex(signature), canonical(value))",
        "bytes.fromhex(signature)",
        SDK,
        "tampered",
    ),
    Mutant(
        "SDK: a definition's hash is believed",
        "client/study.py",
        'if sha256 != signed["sha256"]:',
        "if not sha256:",
        SDK,
        "tampered",
    ),
    Mutant(
        "SDK: skip logic may tell an answer",
        "client/study.py",
        'if depends and promises and not definition["protects_participation"]:',
        "if not definition:",
        SDK,
        "channels_lie",
    ),
    Mutant(
        "SDK: a charge is believed",
        "client/study.py",
        'if charge != level["charge"]:',
        "if charge is level:",
        SDK,
        "channels_lie",
    ),
    Mutant(
        "SDK: a level that is not called none may be unprotected",
        "client/study.py",
        'if level["protected"] == (level["name"] == "none"):',
        'if level["protected"] and level["name"] == "none":',
        SDK,
        "name_promises",
    ),
    Mutant(
        "SDK: a line is not looked up in the log",
        "client/worker.py",
        'if self._memory.log_entry(signed["log"]["index"]) != signed["log"]["entry"]:',
        'if signed["log"]["entry"] is None:',
        SDK,
        "made_for_one_worker",
    ),
    Mutant(
        "SDK: a line need not name the one before",
        "client/public_log.py",
        ' or line.get("previous") != previous:',
        ":",
        SDK,
        "not_a_chain",
    ),
    Mutant(
        "SDK: another study is answered",
        "client/worker.py",
        'if signed["definition"].get("id") != key:',
        "if not signed:",
        SDK,
        "another_study",
    ),
    Mutant(
        "SDK: a device that was set back starts anew",
        "client/worker.py",
        'if mirrored["epsilon_spent_nano"] > spent.epsilon or mirrored["rho_spent_nano"] > spent.rho:',
        'if mirrored["epsilon_spent_nano"] > spent.epsilon and spent.epsilon < 0:',
        SDK,
        "set_back or fresh_device",
    ),
    Mutant(
        "SDK: the cap of the sign-up is forgotten",
        "client/worker.py",
        'self._memory.remember("first-cap", repr(budget.epsilon))',
        "",
        SDK,
        "cap_of_the_sign_up",
    ),
    Mutant(
        "broker: holds are not counted as spent",
        "broker/ledger/budget.py",
        "OR epsilon_spent + epsilon_held + %s <= epsilon_cap\n    OR rho_spent + rho_held + %s <= rho_cap)",
        "OR epsilon_spent + %s <= epsilon_cap\n    OR rho_spent + %s <= rho_cap)",
        RACES,
        "forty_accepts and sqlite",
    ),
    Mutant(
        "broker: nobody looks whether the row moved",
        "broker/ledger/budget.py",
        "if not changed(_MOVE, *held, account, *back, int(charge.unprotected), charge.epsilon, charge.rho):",
        "if changed(_MOVE, *held, account, *back, int(charge.unprotected), charge.epsilon, charge.rho) < 0:",
        RACES,
        "forty_accepts and sqlite",
    ),
    Mutant(
        "broker: a report that nothing was held for is not checked",
        "broker/ledger/budget.py",
        "granted = charge.unprotected or (extra_epsilon <= 0 and extra_rho <= 0)",
        "granted = True",
        BUDGETS,
        "either_or",
    ),
    Mutant(
        "broker: a closed study keeps the days",
        "broker/submissions/anonymize.py",
        "level, codes, withdrawal_sha256, '', '', %s FROM sealed",
        "level, codes, withdrawal_sha256, '', '', (SELECT MIN(day) FROM ledger_spend WHERE day <> %s) FROM sealed",
        RECORDS,
        "keeps_no_day",
    ),
    Mutant(
        "broker: the key of a closed study is kept",
        "broker/submissions/anonymize.py",
        "    keys.destroy_study_key(study)\n",
        "",
        LEAKS,
        "links_break",
    ),
    Mutant(
        "broker: a locked account may go on guessing",
        "broker/identity/attempts.py",
        "return int(counted) == 1",
        "return int(counted) >= 0",
        SIGN_IN,
        "guessing",
    ),
    Mutant(
        "broker: one public address among private ones is enough",
        "broker/webhooks/delivery.py",
        "not all(map(is_public, found))",
        "not any(map(is_public, found))",
        "tests/broker/test_webhook_delivery.py",
        "private_network",
    ),
    Mutant(
        "broker: a withdrawal after closing makes another last estimate",
        "broker/results/batches.py",
        "if n < minimum or (last and last.final):",
        "if n < minimum:",
        "tests/broker/test_attacks.py",
        "second_last_estimate",
    ),
    Mutant(
        "broker: a text passes for a number",
        "broker/api/schemas/common.py",
        'extra="forbid", strict=True',
        'extra="forbid"',
        "tests/broker/test_submissions.py",
        "out_of_order",
    ),
    Mutant(
        "broker: a large submission is written to a temporary file",
        "broker/server.py",
        "inbuf_overflow=sys.maxsize",
        "inbuf_overflow=1 << 19",
        "tests/broker/test_server.py",
        "temporary_file",
    ),
    Mutant(
        "broker: the log names the path of a request that failed",
        "broker/middleware/request_log.py",
        "    server.addFilter(OnlyTheKind())",
        "    pass",
        "tests/broker/test_server.py",
        "without_its_path",
    ),
    Mutant(
        "console: a cookie set over TLS is sent without it",
        "broker/console/access.py",
        'cookie["secure"] = request.is_secure()',
        "pass",
        SIGN_IN,
        "cookies",
    ),
    Mutant(
        "certainty read off noise",
        "inference/uncertainty/information_floor.py",
        "classes = (worth * shares + 1) / (worth + len(shares))",
        "classes = shares",
        VOTES,
    ),
)
