"""The SDK repeats what may be repeated, and nothing else: money added twice is money lost."""

from __future__ import annotations

import httpx
import pytest

from crowdveil.client import Broker, ProblemError


class Failing(httpx.BaseTransport):
    """A proxy that says `status` once, whatever its broker did, and then 200."""

    def __init__(self, status: int, retry_after: str) -> None:
        self.asked, self._status, self._retry_after = 0, status, retry_after

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.asked += 1
        headers = {"Retry-After": self._retry_after}
        return httpx.Response(self._status if self.asked == 1 else 200, headers=headers, json={})


@pytest.mark.parametrize(
    ("method", "path", "status", "retry_after", "asked"),
    [
        ("POST", "/requester/studies/x/budget", 504, "", 1),
        ("POST", "/workers", 503, "1", 1),
        ("POST", "/workers", 429, "0", 2),
        ("POST", "/studies/x/withdrawals", 502, "", 2),
        ("GET", "/workers/me", 503, "Mon, 16 Nov 2026 06:00:00 GMT", 2),
        ("GET", "/workers/me", 500, "", 1),
    ],
)
def test_a_reply_that_leaves_it_open_is_asked_again_only_where_that_changes_nothing(
    method: str, path: str, status: int, retry_after: str, asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    failing = Failing(status, retry_after)
    with Broker("http://broker.example", transport=failing) as broker:
        if asked == 2:
            assert broker.call(method, path) == {}
        else:
            with pytest.raises(ProblemError):
                broker.call(method, path)
    assert failing.asked == asked


def test_a_submission_is_always_repeated_with_its_key() -> None:
    failing = Failing(504, "")
    with Broker("http://broker.example", transport=failing) as broker:
        broker.call("POST", "/studies/x/submissions", {}, Idempotency_Key="k" * 16)
    assert failing.asked == 2
