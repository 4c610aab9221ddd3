"""Talking to a broker: JSON over HTTP, every refusal raised with the broker's own words."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from crowdveil.errors import CrowdveilError, InputError
from crowdveil.progress import report_progress

# Too many requests: nothing was done. After the others something may have been, unless doing it again is the same.
_REFUSED = (429,)
_RETRIED = (*_REFUSED, 502, 503, 504)


class ProblemError(CrowdveilError):
    """The broker refused: `code` for programs, the sentence for people, `fields` for the numbers.

    `left` is false where nothing can have reached the broker; `repeated` is true where an earlier try of the same
    request may have reached it and got no reply.
    """

    def __init__(self, status: int, problem: dict[str, Any], *, left: bool = True, repeated: bool = False) -> None:
        self.status, self.left, self.repeated = status, left, repeated
        self.code = str(problem.get("type", "")).rpartition("/")[2] or "failed"
        self.fields: dict[str, Any] = problem.get("fields") or {}
        super().__init__(str(problem.get("detail") or f"the broker answered with status {status}"))


class Broker:
    """One broker, reached at `address`; `token` says who is asking.

    A request that got no reply is sent again, the same bytes, if doing it twice is the same as doing it once; and one
    that came too early is sent again when the broker says.
    """

    def __init__(self, address: str, *, token: str = "", attempts: int = 5, transport: Any = None) -> None:
        if not address.startswith(("http://", "https://")):
            raise InputError(f"a broker's address must start with http:// or https://; got {address!r}")
        self.address = address.rstrip("/")
        self._attempts = attempts
        # Reading the certificates takes longer than a request; plain http has no use for them.
        self._http = httpx.Client(
            base_url=f"{self.address}/api/v1", timeout=60, transport=transport, verify=address.startswith("https")
        )
        self.token = token

    def __enter__(self) -> Broker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def call(self, method: str, path: str, body: object = None, **headers: str) -> Any:
        """The JSON of the reply; a refusal is raised."""
        response, repeated = self._send(method, path, body, headers)
        if response.is_error:
            raise ProblemError(response.status_code, _problem(response), repeated=repeated)
        try:
            return response.json() if response.content else None
        except ValueError:
            detail = f"what answers at {self.address} is not a broker: its reply is not JSON; check the address"
            raise ProblemError(0, {"detail": detail}) from None

    def items(self, path: str) -> Iterator[dict[str, Any]]:
        """Every item of a list, page after page."""
        after = ""
        while True:
            page = self.call("GET", f"{path}?after={after}")
            yield from page["items"]
            if page["next"] is None:
                return
            after = page["next"]

    def download(self, path: str, to: Path) -> None:
        """Stream a reply into a file."""
        with self._http.stream("GET", path, headers=self._headers({})) as response:
            if response.is_error:
                response.read()
                raise ProblemError(response.status_code, _problem(response))
            size = float(response.headers.get("Content-Length", 0)) / 1e6 or None
            with to.open("wb") as file:
                for piece in response.iter_bytes():
                    file.write(piece)
                    report_progress("MB received", response.num_bytes_downloaded / 1e6, size)

    def _send(self, method: str, path: str, body: object, headers: dict[str, str]) -> tuple[httpx.Response, bool]:
        """The reply, and whether an earlier try may have been taken although none came."""
        repeatable = method != "POST" or "Idempotency_Key" in headers or path.endswith("/withdrawals")
        may_have_arrived = repeated = False
        for attempt in range(1, self._attempts + 1):
            last, wait = attempt == self._attempts, 0.1 * 2**attempt
            try:
                response = self._http.request(method, path, json=body, headers=self._headers(headers))
                may_have_arrived = True
                if last or response.status_code not in (_RETRIED if repeatable else _REFUSED):
                    return response, repeated
                repeated = repeated or response.status_code not in _REFUSED
                wait = max(wait, min(60.0, _seconds(response.headers.get("Retry-After", ""))))
            except httpx.TransportError as error:
                may_have_arrived = may_have_arrived or not isinstance(error, httpx.ConnectError)
                repeated = repeated or not isinstance(error, httpx.ConnectError)
                # What never reached the broker may be repeated in any case.
                if last or not (repeatable or isinstance(error, httpx.ConnectError)):
                    detail = (
                        f"the broker at {self.address} does not answer: {error}; check the address, and that it runs"
                    )
                    raise ProblemError(0, {"detail": detail}, left=may_have_arrived) from None
            time.sleep(wait)
        raise AssertionError("unreachable")

    def _headers(self, extra: dict[str, str]) -> dict[str, str]:
        named = {name.replace("_", "-"): value for name, value in extra.items()}
        return named | ({"Authorization": f"Bearer {self.token}"} if self.token else {})


def _seconds(retry_after: str) -> float:
    """How long to wait; proxies may give a date instead, which is not worth reading."""
    return float(retry_after) if retry_after.isdecimal() else 0.0


def _problem(response: httpx.Response) -> dict[str, Any]:
    try:
        body = response.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}
