"""Canonical JSON and its hash: the same bytes in Python and in JavaScript, so both can check the same thing."""

from __future__ import annotations

import hashlib
import json


def canonical(value: object) -> bytes:
    """Sorted keys, no spaces, UTF-8; no floats, because the two languages spell them differently."""
    _refuse_floats(value)
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def sha256_hex(value: object) -> str:
    """The hash of the canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical(value)).hexdigest()


def _refuse_floats(value: object) -> None:
    if isinstance(value, float):
        raise TypeError(f"canonical JSON holds no floats; write {value!r} as a decimal string")
    if isinstance(value, dict):
        for part in value.values():
            _refuse_floats(part)
    elif isinstance(value, list | tuple):
        for part in value:
            _refuse_floats(part)
