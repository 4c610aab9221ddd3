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
from crowdveil.broker.api import answering, exports, operator, public, requester, sessions, webhooks, workers
from crowdveil.broker.api.problems import document_problems, handle_problems


class StrictJson(Parser):
    """JSON of bounded depth, without NaN: the parser refuses what the standard library would recurse into."""

    def parse_body(self, request: HttpRequest) -> Any:
        try:
            return from_json(request.body, allow_inf_nan=False)
        except ValueError:
            raise HttpError(400, "not JSON") from None


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
api.add_router("", answering.router)
api.add_router("/workers", workers.router)
api.add_router("", sessions.router)
api.add_router("/requester", requester.router)
api.add_router("/requester", exports.router)
api.add_router("/requester", webhooks.router)
api.add_router("/operator", operator.router)
