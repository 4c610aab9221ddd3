"""The API as a whole: its routers, its parser and its OpenAPI 3.1 document."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from django.http import HttpRequest
from ninja import NinjaAPI
from ninja.errors import HttpError
from ninja.parser import Parser
from pydantic_core import from_json

from crowdveil import __version__
from crowdveil.broker.api import exports, operator, pools, public, requester, sessions, submissions, webhooks, workers
from crowdveil.broker.api.problems import document_problems, handle_problems

MAX_KEYS = 32
"""Of one object: a draft has 17."""
MAX_VALUES = 40_000
"""Of one document: 200 questions of 64 options, each with 64 options of another question, have 30,000."""


class StrictJson(Parser):
    """JSON of bounded depth and size, without NaN: every unknown key costs an error before any limit of a rate."""

    def parse_body(self, request: HttpRequest) -> Any:
        try:
            document = from_json(request.body, allow_inf_nan=False)
        except ValueError:
            raise HttpError(400, "not JSON") from None
        if not is_reasonable(document):
            raise HttpError(400, "too many keys or values")
        return document


def is_reasonable(document: Any) -> bool:
    """Whether the document has as few keys and values as the largest request that makes sense."""
    pending, n_values = [document], 1
    while pending:
        value = pending.pop()
        if isinstance(value, dict | list):
            n_values += len(value)
            if n_values > MAX_VALUES or (isinstance(value, dict) and len(value) > MAX_KEYS):
                return False
            pending += value.values() if isinstance(value, dict) else value
    return True


class Api(NinjaAPI):
    """NinjaAPI that documents problems with their own content type, once: anybody may ask, and making it takes long."""

    @cached_property
    def _schema(self) -> Any:
        schema = super().get_openapi_schema()
        document_problems(schema)
        return schema

    def get_openapi_schema(self, **arguments: Any) -> Any:
        return self._schema


api = Api(
    title="crowdveil broker",
    version=__version__,
    description="Private studies: reports in, estimates out; no answer ever comes here.",
    urls_namespace="api",
    docs_url=None,
    parser=StrictJson(),
)
handle_problems(api)
api.add_router("", public.router)
api.add_router("", submissions.router)
api.add_router("/workers", workers.router)
api.add_router("", sessions.router)
api.add_router("/requester", requester.router)
api.add_router("/requester", exports.router)
api.add_router("/requester", webhooks.router)
api.add_router("/requester", pools.requester_router)
api.add_router("", pools.worker_router)
api.add_router("", pools.public_router)
api.add_router("/operator", operator.router)
