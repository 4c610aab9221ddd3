"""One-time codes from an authenticator app (RFC 6238: SHA-1, 30 seconds, six digits)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import struct
from urllib.parse import quote

import segno
from django.utils.safestring import SafeString, mark_safe

STEP_SECONDS = 30
# A used step that lies further ahead than a clock is ever set back comes from one that was wrong.
MAX_STEPS_AHEAD = 10
_DIGITS = 6
# One step to either side: phones' clocks drift.
_DRIFT = 1


def new_secret() -> str:
    return base64.b32encode(secrets.token_bytes(20)).decode()


def code_at(secret: str, step: int) -> str:
    """The code of one time step.

    >>> code_at(base64.b32encode(b"12345678901234567890").decode(), 1)
    '287082'
    """
    mac = hmac.new(base64.b32decode(secret), struct.pack(">Q", step), hashlib.sha1).digest()
    offset = mac[-1] & 15
    number = struct.unpack(">I", mac[offset : offset + 4])[0] & 0x7FFFFFFF
    return f"{number % 10**_DIGITS:0{_DIGITS}d}"


def step_at(at: float) -> int:
    return int(at // STEP_SECONDS)


def matching_step(secret: str, code: str, *, after: int, at: float) -> int | None:
    """The time step that `code` belongs to, later than the last one used; None when it does not match."""
    now = step_at(at)
    for step in range(now - _DRIFT, now + _DRIFT + 1):
        is_unused = step > after or after > now + MAX_STEPS_AHEAD
        if is_unused and hmac.compare_digest(code_at(secret, step).encode(), code.encode()):
            return step
    return None


def uri(secret: str, name: str) -> str:
    """What an authenticator app reads from a QR code."""
    return f"otpauth://totp/crowdveil:{quote(name)}?secret={secret}&issuer=crowdveil"


def qr_code(secret: str, name: str) -> SafeString:
    """The same as an SVG element without style sheets or scripts, which every content security policy lets pass."""
    return mark_safe(segno.make(uri(secret, name), error="m", micro=False).svg_inline(scale=4, border=4, light="#fff"))
