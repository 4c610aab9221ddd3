"""Random ids: nothing about them tells when, or in which order, a row was made."""

from __future__ import annotations

import secrets

ID_LENGTH = 32


def random_id() -> str:
    return secrets.token_hex(ID_LENGTH // 2)
