"""Refuse a request body by its announced length, before a byte of it is read."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from crowdveil.broker.problems import Refusal, problem_response


class BodyLimit:
    """Refuse a body by its announced length before a byte of it is read."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        length = request.META.get("CONTENT_LENGTH") or "0"
        if not length.isdigit() or int(length) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
            return problem_response(
                Refusal("too-large", "the request must be smaller than a megabyte; nothing was stored")
            )
        return self._get_response(request)
