"""What the broker refuses, and how it says so: a code for programs, a sentence for people, numbers where they help."""

from __future__ import annotations

from django.http import HttpResponse, JsonResponse

from crowdveil.errors import CrowdveilError

PROBLEM_JSON = "application/problem+json"

STATUS = {
    "malformed": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "not-invited": 403,
    "not-found": 404,
    "method-not-allowed": 405,
    "over-budget": 409,
    "no-money": 409,
    "no-tasks": 409,
    "not-open": 409,
    "wrong-state": 409,
    "wrong-study-hash": 409,
    "wrong-consent": 409,
    "already-submitted": 409,
    "idempotency-conflict": 409,
    "below-minimum": 409,
    "withdrawn": 410,
    "too-large": 413,
    "invalid": 422,
    "wrong-channel": 422,
    "missing-report": 422,
    "report-out-of-range": 422,
    "rate-limited": 429,
    "failed": 500,
    "not-ready": 503,
}


class Refusal(CrowdveilError):
    """Refused whole; nothing was stored."""

    def __init__(self, code: str, detail: str, **fields: object) -> None:
        self.code, self.detail, self.fields = code, detail, fields
        super().__init__(detail)

    @property
    def status(self) -> int:
        return STATUS[self.code]

    def problem(self) -> dict[str, object]:
        """The body of an RFC 9457 problem."""
        title = self.code.replace("-", " ").capitalize()
        problem = {"type": f"/problems/{self.code}", "title": title, "status": self.status, "detail": self.detail}
        return problem | ({"fields": self.fields} if self.fields else {})


def problem_response(refusal: Refusal) -> HttpResponse:
    """The refusal as an RFC 9457 reply."""
    response = JsonResponse(refusal.problem(), status=refusal.status, content_type=PROBLEM_JSON)
    if refusal.code == "rate-limited":
        response["Retry-After"] = str(refusal.fields.get("retry_after_seconds", 60))
    if refusal.code == "unauthorized":
        response["WWW-Authenticate"] = "Bearer"
    return response
