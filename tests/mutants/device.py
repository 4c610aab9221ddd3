"""Mistakes in the code that runs in the worker's browser."""

from __future__ import annotations

from mutants.mutant import Mutant

VECTORS = "tests/device/test_vectors.py"
DEVICE_LEDGER = "tests/device/test_ledger.py"

MUTANTS = (
    Mutant(
        "JavaScript: threshold on the wrong side",
        "device/sampler.js",
        "Number(threshold <= word)",
        "Number(threshold < word)",
        VECTORS,
    ),
    Mutant(
        "JavaScript: big-endian words",
        "device/sampler.js",
        "words.getUint32(i * size, true)",
        "words.getUint32(i * size, false)",
        VECTORS,
    ),
    Mutant(
        "JavaScript: a weight of more than 64 bits",
        "device/channel.js",
        " && !row.includes(1n << 64n)",
        "",
        VECTORS,
    ),
    Mutant(
        "JavaScript: both sums must fit",
        "device/ledger.js",
        "return sum.epsilon <= cap.epsilon || sum.rho <= cap.rho;",
        "return sum.epsilon <= cap.epsilon && sum.rho <= cap.rho;",
        DEVICE_LEDGER,
    ),
    Mutant(
        "JavaScript: the new line is not counted",
        "device/ledger.js",
        "within(sum(already, line), cap)",
        "within(already, cap)",
        DEVICE_LEDGER,
    ),
    Mutant(
        "JavaScript: charges rounded down",
        "device/nano.js",
        "return Number((top * NANO + bottom - 1n) / bottom);",
        "return Number((top * NANO) / bottom);",
        DEVICE_LEDGER,
    ),
    Mutant(
        "JavaScript: a second draw",
        "device/outbox.js",
        "if (drawn) return { result: drawn };",
        "",
        DEVICE_LEDGER,
    ),
    Mutant(
        "JavaScript: one level's claim is believed",
        "device/study.js",
        "computed.epsilon <= epsilon && ",
        "",
        DEVICE_LEDGER,
    ),
    Mutant(
        "JavaScript: the log is not compared",
        "device/study.js",
        "|| entry.sha256 !== sha256) throw",
        ") throw",
        DEVICE_LEDGER,
    ),
    Mutant(
        "JavaScript: any signature is believed",
        "device/signature.js",
        'return await crypto.subtle.verify("Ed25519", key, bytes(signature), canonical(value));',
        'return key.type === "public";',
        DEVICE_LEDGER,
    ),
    Mutant(
        "JavaScript: skipped questions stay silent",
        "device/study.js",
        "return study.protectsParticipation ? [{ question: id, channel, answer: -1 }] : [];",
        "return [];",
        DEVICE_LEDGER,
    ),
    Mutant(
        "JavaScript: skip logic may tell an answer",
        "device/study.js",
        'refuseUnless(protectsParticipation || !depends, "study.skips");',
        "",
        DEVICE_LEDGER,
    ),
    Mutant(
        "JavaScript: two levels of one name",
        "device/study.js",
        "names.join() === inOrder.join()",
        "names.every((name) => LEVELS.includes(name))",
        DEVICE_LEDGER,
    ),
    Mutant(
        "JavaScript: a clock that was set back is believed",
        "device/ledger.js",
        "return { ...line, day: notBefore(lines, line.day) };",
        "return line;",
        DEVICE_LEDGER,
    ),
    Mutant(
        "JavaScript: a second draw elsewhere is forgotten",
        "device/ledger.js",
        "if (own && theirs && own !== theirs)",
        "if (false)",
        DEVICE_LEDGER,
        "two_devices",
    ),
    Mutant(
        "JavaScript: a study named like a line of the ledger",
        "device/study.js",
        " && /^\\S+$/.test(id)",
        "",
        DEVICE_LEDGER,
        "never_replaced",
    ),
    Mutant(
        "JavaScript: a text from elsewhere lowers the level",
        "device/takeover.js",
        "LEVELS.indexOf(mine) > LEVELS.indexOf(other)",
        "false",
        DEVICE_LEDGER,
        "never_lowers",
    ),
    Mutant(
        "JavaScript: a draw of another account is taken over",
        "device/takeover.js",
        "isSame || !UNSENT.includes(entry.state)",
        "true",
        DEVICE_LEDGER,
        "foreign",
    ),
    Mutant(
        "JavaScript: 1 passes for true",
        "device/schema_check.js",
        'flag = must((value) => typeof value === "boolean")',
        "flag = must((value) => value === 1 || typeof value === 'boolean')",
        DEVICE_LEDGER,
        "another_kind",
    ),
    Mutant(
        "SDK: 1 passes for true",
        "client/schema_check.py",
        "lambda value: isinstance(value, bool))",
        "lambda value: value == 1 or isinstance(value, bool))",
        "tests/client/test_study.py",
    ),
    Mutant(
        "a ledger's file that others can read",
        "accounting/sqlite.py",
        "os.O_WRONLY, 0o600",
        "os.O_WRONLY, 0o644",
        "tests/accounting/test_ledger.py",
        "nobody_else",
    ),
)
