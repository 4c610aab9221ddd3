"""Random ids: nothing about them tells when, or in which order, a row was made."""

from __future__ import annotations

import os

ID_LENGTH = 32


def random_id() -> str:
    return os.urandom(ID_LENGTH // 2).hex()
