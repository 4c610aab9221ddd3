"""Turning whatever goes wrong into a problem+json that says what to do, and never into a traceback."""

from __future__ import annotations

import logging
from collections.abc import Callable
from http.client import responses
from typing import Any

from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.db import OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

from crowdveil.broker.api.schemas.common import Problem
from crowdveil.broker.middleware.request_log import where
from crowdveil.broker.problems import PROBLEM_JSON, Refusal, problem_response
from crowdveil.errors import InputError

_log = logging.getLogger("crowdveil.api")

# Every operation may answer with these; what each means stands in `type`.
PROBLEM_STATUSES = (400, 401, 403, 404, 405, 409, 410, 413, 422, 429, 503)


def document_problems(schema: dict[str, Any]) -> None:
    """Add to an OpenAPI document that every operation may be refused.

    Said once here: as a response of each operation it would be seven hundred types, a third of the time to start.
    """
    reply = {"content": {PROBLEM_JSON: {"schema": {"$ref": "#/components/schemas/Problem"}}}}
    refusals = {status: {"description": responses[status]} | reply for status in PROBLEM_STATUSES}
    for operations in schema["paths"].values():
        for operation in operations.values():
            operation["responses"] |= refusals
    schema["components"]["schemas"]["Problem"] = Problem.model_json_schema()


def handle_problems(api: NinjaAPI) -> None:
    """Register one handler per kind of failure."""
    api.add_exception_handler(Refusal, lambda request, refusal: problem_response(refusal))
    api.add_exception_handler(InputError, lambda request, error: problem_response(Refusal("invalid", str(error))))
    api.add_exception_handler(ValidationError, _invalid)
    api.add_exception_handler(AuthenticationError, _handle_unauthorized)
    api.add_exception_handler(HttpError, _http_error)
    api.add_exception_handler(Http404, lambda request, error: not_found(request))
    api.add_exception_handler(RequestDataTooBig, lambda request, error: problem_response(too_large()))
    api.add_exception_handler(SuspiciousOperation, lambda request, error: problem_response(malformed_body()))
    api.add_exception_handler(OperationalError, _no_database)
    api.add_exception_handler(Exception, _handle_error)


def too_large() -> Refusal:
    return Refusal("too-large", "the request must be smaller than a megabyte; nothing was stored")


def malformed_body() -> Refusal:
    return Refusal("malformed", "the request body must be a JSON document of reasonable depth and size")


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return problem_response(Refusal("not-found", "there is nothing at this address"))


def server_error(request: HttpRequest) -> HttpResponse:
    return problem_response(Refusal("failed", "something went wrong here; nothing was stored; try again"))


def _handle_error(request: HttpRequest, error: Exception) -> HttpResponse:
    _log.error("request failed", extra={"error": type(error).__name__, "where": where(error)})
    return server_error(request)


def _no_database(request: HttpRequest, error: Exception) -> HttpResponse:
    _log.error("database does not answer", extra={"error": type(error).__name__, "where": where(error)})
    return problem_response(Refusal("not-ready", "the database does not answer; try again"))


def _handle_unauthorized(request: HttpRequest, error: Exception) -> HttpResponse:
    return problem_response(Refusal("unauthorized", "this needs a valid token: Authorization: Bearer …"))


def _http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    return problem_response(
        malformed_body() if error.status_code == 400 else Refusal("invalid", "the request is not understood")
    )


def _invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    # What was sent is not repeated: a report must not come back in a message or a log.
    errors = [
        {
            "where": ".".join(str(part) for part in each["loc"] if part not in ("body", "payload")),
            "problem": each["msg"],
        }
        for each in error.errors[:20]
    ]
    first = errors[0] if errors else {"where": "", "problem": "not understood"}
    return problem_response(
        Refusal("invalid", f"{first['where'] or 'the request body'}: {first['problem']}", errors=errors)
    )


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return problem_response(malformed_body())


class ProblemForMethod:
    """Django answers a wrong method in plain words; the API speaks JSON."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self._get_response(request)
        if response.status_code != 405 or response.headers.get("Content-Type") == PROBLEM_JSON:
            return response
        allowed = response.headers.get("Allow", "")
        refused = problem_response(Refusal("method-not-allowed", f"this address takes {allowed}; nothing was done"))
        refused["Allow"] = allowed
        return refused
