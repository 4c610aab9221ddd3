"""Who may see a page: the session token of the API in a cookie, forms with a CSRF token, and pages that say why not."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any, cast

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils import translation
from django.views.decorators.csrf import csrf_protect

from crowdveil.broker.identity.models import Account
from crowdveil.broker.identity.tokens import find_bearer
from crowdveil.broker.middleware.request_log import where
from crowdveil.broker.problems import Refusal
from crowdveil.errors import InputError

COOKIE = "crowdveil_session"
_log = logging.getLogger("crowdveil.console")
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
View = Callable[..., Any]
# Not written into a page, not even into the page of the person who typed it.
_SECRETS = ("csrfmiddlewaretoken", "password", "code")
# What htmx takes for "do not ask again".
_STOP_ASKING = 286


class ConsoleRequest(HttpRequest):
    """A request to the console: who is signed in and as what; where a page is for anybody, there may be nobody."""

    account: Account
    scope: str


def console_view(*roles: str) -> Callable[[View], View]:
    """A page of the console; with roles, only for those who are signed in as one of them."""

    def decorate(view: View) -> View:
        @_keeping_to_tls
        @csrf_protect
        @wraps(view)
        def guarded(request: HttpRequest, **arguments: Any) -> HttpResponse:
            with translation.override(translation.get_language_from_request(request)):
                return _with_headers(_answer(view, request, roles, arguments))

        return guarded

    return decorate


def _keeping_to_tls(view: View) -> View:
    """Cookies set over TLS, the one against forgery included, are never sent without it; elsewhere there is no TLS."""

    @wraps(view)
    def careful(request: HttpRequest, **arguments: Any) -> HttpResponse:
        response: HttpResponse = view(request, **arguments)
        for cookie in response.cookies.values():
            cookie["secure"] = request.is_secure()
        return response

    return careful


def _answer(view: View, request: HttpRequest, roles: tuple[str, ...], arguments: dict[str, Any]) -> HttpResponse:
    account, scope = read_session(request)
    if account is not None:
        visit = cast(ConsoleRequest, request)
        visit.account, visit.scope = account, scope
    if roles and account is None:
        return session_ended(request)
    if roles and scope not in roles:
        return render_refusal(request, Refusal("forbidden", f"this page is for a {' or '.join(roles)}"))
    try:
        _must_be_text(request)
        return view(request, **arguments)
    except Refusal as refusal:
        return render_refusal(request, refusal)
    except InputError as error:
        return render_refusal(request, Refusal("invalid", str(error)))
    except Exception as error:  # noqa: BLE001  # people get a page, and the log the place; never what was sent
        _log.error("page failed", extra={"error": type(error).__name__, "where": where(error)})
        return render_refusal(request, Refusal("failed", "something went wrong here; nothing was stored; try again"))


def _must_be_text(request: HttpRequest) -> None:
    """No address and no text of ours holds the character 0, and PostgreSQL cannot store it."""
    if "\0" in request.path_info:
        raise Refusal("not-found", "there is nothing at this address")
    if any("\0" in value for form in (request.GET, request.POST) for _, values in form.lists() for value in values):
        raise Refusal("malformed", "the form holds a character that cannot be stored; take it out")


def session_ended(request: HttpRequest) -> HttpResponse:
    """Nobody is signed in (any more): what was typed is kept, and a part of a page says so on top of that page."""
    if request.headers.get("HX-Request"):
        response = render(request, "console/ended.html", status=_STOP_ASKING)
        for name, value in (("Retarget", "#ended"), ("Reswap", "innerHTML"), ("Reselect", ".notice")):
            response.headers[f"HX-{name}"] = value
        return response
    if request.method != "POST":
        return HttpResponseRedirect("/console/sign-in")
    typed = [(name, value) for name, values in request.POST.lists() if name not in _SECRETS for value in values]
    return render(request, "console/again.html", {"typed": typed}, status=401)


def render_refusal(request: HttpRequest, refusal: Refusal) -> HttpResponse:
    """The refusal as a page, with the same sentence the API would give."""
    return render(request, "console/refused.html", {"refusal": refusal}, status=refusal.status)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form that did not come from a page of ours, or came too late."""
    refusal = Refusal("forbidden", "this form has expired or came from elsewhere; open the page again")
    return _with_headers(render_refusal(request, refusal))


def unreadable(request: HttpRequest) -> HttpResponse:
    """A form of more fields or bytes than any page of ours has."""
    return _with_headers(
        render_refusal(request, Refusal("malformed", "the form is too large or cannot be read; nothing was stored"))
    )


def read_session(request: HttpRequest) -> tuple[Account | None, str]:
    """Whose session the cookie carries, and what it is good for."""
    text = request.COOKIES.get(COOKIE, "")
    bearer = find_bearer(text) if 0 < len(text) < 200 else None
    if bearer is None or bearer.scope not in ("requester", "operator", "enrol"):
        return None, ""
    return Account.objects.filter(id=bearer.account).first(), bearer.scope


def start_session(token: str, to: str) -> HttpResponse:
    """Keep the session in a cookie that scripts cannot read and other sites cannot send."""
    response = HttpResponseRedirect(to)
    response.set_cookie(COOKIE, token, httponly=True, samesite="Strict", path="/console/")
    return response


def _with_headers(response: HttpResponse) -> HttpResponse:
    response.headers.setdefault("Content-Security-Policy", _POLICY)
    # Forms need their own origin to be told to this server, and to nobody else.
    response.headers["Referrer-Policy"] = "same-origin"
    response.headers["Content-Language"] = translation.get_language() or "en"
    response.headers["Vary"] = "Accept-Language, Cookie"
    return response
