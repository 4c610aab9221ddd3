"""Secrets of authenticators, encrypted at rest with a key that is not in the database (AES-256-GCM, NIST SP 800-38D).

The account's id is authenticated with each, so that a secret copied to another account does not decrypt there.
"""

from __future__ import annotations

import base64
import logging
import secrets
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from crowdveil.broker import keys

_VERSION = "v1:"
_NONCE_BYTES = 12
_log = logging.getLogger("crowdveil.identity")


def encrypt(account: str, secret: str) -> str:
    nonce = secrets.token_bytes(_NONCE_BYTES)
    sealed = nonce + AESGCM(keys.totp_key()).encrypt(nonce, secret.encode(), account.encode())
    return _VERSION + base64.b64encode(sealed).decode()


def decrypt(account: str, stored: str) -> str | None:
    """The secret; None where there is none, or where it was encrypted with another key."""
    if not stored.startswith(_VERSION):
        return None
    sealed = base64.b64decode(stored.removeprefix(_VERSION))
    try:
        return AESGCM(keys.totp_key()).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], account.encode()).decode()
    except InvalidTag:
        _log.warning("a TOTP secret does not decrypt: totp.key is not the one it was encrypted with; reset the account")
        return None


def encrypt_plain_secrets(accounts: Any) -> None:
    """Encrypt what an older version stored as it was; `accounts` is the model, or its state in a migration."""
    for account in accounts.objects.exclude(totp_secret="").exclude(totp_secret__startswith=_VERSION):
        accounts.objects.filter(id=account.id).update(totp_secret=encrypt(account.id, account.totp_secret))
