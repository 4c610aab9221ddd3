"""The short way of a submission in good order: the same checks and the same receipt, without the framework around them.

Half of what a submission cost was Django and ninja preparing for requests of every kind. Only success is answered here.
Whatever is unusual, refused or failed goes through the framework from its beginning, as if nobody had looked before;
a submission can be handed in twice, so nothing is lost by that. A test holds the two ways to the same reply.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable
from functools import lru_cache
from io import BytesIO
from typing import Any

from django.conf import settings
from django.http.request import split_domain_port, validate_host
from django.urls import resolve
from pydantic_core import from_json

from crowdveil.broker.api.schemas.common import Submit
from crowdveil.broker.api.submissions import IDEMPOTENCY_KEY, received
from crowdveil.broker.identity.tokens import Bearer, bearer_of
from crowdveil.broker.middleware.concurrency_limit import places
from crowdveil.broker.middleware.rate_limit import COUNTED, limit
from crowdveil.broker.middleware.request_log import finished
from crowdveil.broker.middleware.security_headers import HEADERS

_PATH = re.compile(r"/api/v1/studies/([0-9a-f]{32})/submissions")
_KEY = re.compile(IDEMPOTENCY_KEY)
_STATUS = {200: "200 OK", 201: "201 Created"}
_HEADERS = [("Content-Type", "application/json; charset=utf-8"), *HEADERS.items()]

Environ = dict[str, Any]
Wsgi = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]


class Unusual(Exception):
    """This request is for the framework."""


class ShortWay:
    """A WSGI application that answers plain submissions and hands everything else on."""

    def __init__(self, framework: Wsgi) -> None:
        self._framework = framework
        self._route = ""

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        found = _PATH.fullmatch(environ["PATH_INFO"])
        if found is None or not _plain(environ):
            return self._framework(environ, start_response)
        begun = time.perf_counter()
        # Read before a place is taken, as the turnstile does.
        body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
        try:
            with places:
                status, receipt = _received(environ, found[1], body)
        except Exception:  # noqa: BLE001  # the framework says what was wrong, in the same words as ever
            # The framework begins by giving up a connection that the database has closed.
            environ["wsgi.input"] = BytesIO(body)
            return self._framework(environ, start_response)
        content = json.dumps(receipt).encode()
        finished("POST", self._route or self._found_route(environ["PATH_INFO"]), status, time.perf_counter() - begun)
        start_response(_STATUS[status], [*_HEADERS, ("Content-Length", str(len(content)))])
        return [content]

    def _found_route(self, path: str) -> str:
        """What the log calls this address, asked once: the addresses are not known before the first request."""
        self._route = resolve(path).route
        return self._route


def _plain(environ: Environ) -> bool:
    """Whether the middleware would let this pass: a POST of announced and allowed length to a name of this broker."""
    length = environ.get("CONTENT_LENGTH") or ""
    return (
        environ["REQUEST_METHOD"] == "POST"
        and not environ["SCRIPT_NAME"]
        and length.isdigit()
        and 0 < int(length) <= settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        and "HTTP_TRANSFER_ENCODING" not in environ
        and _is_ours(environ.get("HTTP_HOST", ""))
    )


@lru_cache(maxsize=64)
def _is_ours(host: str) -> bool:
    # What is no host name at all has an empty domain, which a broker that answers to every name would let pass.
    domain, _ = split_domain_port(host)
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)


def _received(environ: Environ, study: str, body: bytes) -> tuple[int, dict[str, Any]]:
    bearer, key = _bearer(environ), environ.get("HTTP_IDEMPOTENCY_KEY", "")
    if not _KEY.fullmatch(key):
        raise Unusual
    payload = Submit.model_validate(from_json(body, allow_inf_nan=False))
    # Last, so that what goes through the framework after all is counted there; what is refused from here on is not
    # counted again. No client can say so: what comes with a request has a name that begins with HTTP.
    limit(f"token {bearer.token}", settings.RATE_LIMIT)
    environ[COUNTED] = bearer.token
    return received(bearer, study, payload, key)


def _bearer(environ: Environ) -> Bearer:
    scheme, _, token = environ.get("HTTP_AUTHORIZATION", "").partition(" ")
    bearer = bearer_of(token) if scheme == "Bearer" and len(token) < 200 else None
    if bearer is None or bearer.scope != "worker":
        raise Unusual
    return bearer
