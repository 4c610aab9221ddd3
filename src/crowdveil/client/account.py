"""A device's account at the broker: its key is renewed in time, and a lost one is told, never replaced unasked."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from crowdveil.client.device_state import Memory
from crowdveil.client.http import Broker, ProblemError

_UNAUTHORIZED = 401
_GONE = (
    "the broker no longer knows this device's key: it was not used for two years, or the account was erased; begin a "
    "new account with begin_anew (crowdveil answer sign-up --anew), which keeps the ledger but not what "
    "the old one earned"
)


class Account:
    """What the device remembers of it is in `memory`."""

    def __init__(self, broker: Broker, memory: Memory) -> None:
        self._broker, self._memory = broker, memory
        self._broker.token = memory.fact("token") or broker.token

    @property
    def id(self) -> str | None:
        """None before the sign-up."""
        return self._memory.fact("id")

    def sign_up(self, wishes: dict[str, object]) -> str:
        made = self._broker.call("POST", "/workers", wishes)
        for name in ("id", "default_level"):
            self._memory.remember(name, made[name])
        self._keep_token(made)
        return str(made["id"])

    def check(self) -> None:
        """Raises where the broker says that it no longer knows this account; one that does not answer says nothing."""
        try:
            self.call("GET", "/workers/me")
        except ProblemError as refused:
            if refused.status:
                raise

    def is_lost(self) -> bool:
        """Whether the broker does not know this account, or there never was one. It has to answer."""
        if self.id is None:
            return True
        try:
            self.call("GET", "/workers/me")
        except ProblemError as refused:
            if refused.status != _UNAUTHORIZED:
                raise
            return True
        return False

    def forget(self) -> None:
        for name in ("id", "token", "renew-after"):
            self._memory.forget(name)
        self._broker.token = ""

    def call(self, method: str, path: str, body: object = None, **headers: str) -> Any:
        """As this worker: with a key that is renewed in time, and in plain words where it is known no more."""
        if self._is_renewal_due():
            with suppress(ProblemError):
                self._renew()
        try:
            return self._broker.call(method, path, body, **headers)
        except ProblemError as refused:
            if refused.status != _UNAUTHORIZED or self._memory.fact("token") is None:
                raise
            code = refused.code
        # The broker's clock may differ from ours: a key that it takes for expired can still be renewed.
        try:
            self._renew()
        except ProblemError as refused:
            if refused.status != _UNAUTHORIZED:
                raise
            raise ProblemError(_UNAUTHORIZED, {"type": code, "detail": _GONE}) from None
        return self._broker.call(method, path, body, **headers)

    def _is_renewal_due(self) -> bool:
        """A key lasts a year; halfway a fresh one is fetched. Where that fails, the next call tries again."""
        due = self._memory.fact("renew-after")
        return self._memory.fact("token") is not None and (due is None or datetime.now(UTC).isoformat() >= due)

    def _renew(self) -> None:
        self._keep_token(self._broker.call("POST", "/workers/me/tokens", {"label": "renewed"}))

    def _keep_token(self, made: dict[str, Any]) -> None:
        now = datetime.now(UTC)
        halfway = now + (datetime.fromisoformat(made["expires"]) - now) / 2
        self._memory.remember("token", made["token"])
        self._memory.remember("renew-after", halfway.isoformat())
        self._broker.token = made["token"]
