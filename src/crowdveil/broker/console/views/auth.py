"""Signing in, enrolling an authenticator, one-time links, signing out."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from crowdveil.broker import clock
from crowdveil.broker.console.access import COOKIE, Visit, let_in, page
from crowdveil.broker.db.transactions import write
from crowdveil.broker.identity import totp, totp_secrets
from crowdveil.broker.identity.links import redeem
from crowdveil.broker.identity.models import Token
from crowdveil.broker.identity.sign_in import confirm, enrol, sign_in
from crowdveil.broker.identity.tokens import digest, issue
from crowdveil.broker.middleware.rate_limit import limit_address, network_of
from crowdveil.broker.problems import Refusal


@require_http_methods(["GET", "HEAD", "POST"])
@page()
def sign_in_page(request: HttpRequest) -> HttpResponse:
    if request.method != "POST":
        return render(request, "console/sign_in.html")
    limit_address(request, "sign-in", settings.SIGN_UP_LIMIT)
    given = request.POST
    try:
        session = sign_in(
            given.get("name", ""), given.get("password", ""), given.get("code") or None, network=network_of(request)
        )
    except Refusal as refusal:
        return render(request, "console/sign_in.html", {"problem": refusal.detail}, status=refusal.status)
    return let_in(session.token, "/console/enrol" if session.enrol else "/console/")


@require_http_methods(["GET", "HEAD", "POST"])
@page("enrol")
def enrol_page(request: Visit) -> HttpResponse:
    """First a lasting password, then the authenticator's first code."""
    account = request.account
    shown: dict[str, Any] = {}
    try:
        if "password" in request.POST:
            shown["secret"] = enrol(account, request.POST["password"])
        elif "code" in request.POST:
            confirm(account, request.POST["code"])
            done = render(request, "console/sign_in.html", {"good": _("Your authenticator works. Sign in with it.")})
            done.delete_cookie(COOKIE, path="/console/")
            return done
    except Refusal as refusal:
        secret = totp_secrets.decrypt(account.id, account.totp_secret)
        shown |= {"problem": refusal.detail, "secret": secret if "code" in request.POST else None}
    if secret := shown.get("secret"):
        shown["qr_code"] = totp.qr_code(secret, account.name or "")
    return render(request, "console/enrol.html", shown, status=422 if "problem" in shown else 200)


@require_http_methods(["GET"])
@page()
def enter(request: HttpRequest, link: str) -> HttpResponse:
    """A one-time link: of two who follow it, one gets in."""
    account = redeem(link) if len(link) < 200 else None
    if account is None:
        raise Refusal("not-found", "this link was used already or has expired; ask for a new one")
    with write():
        text, _token = issue(account, scope=account.role, expires=clock.after(hours=12), label="console")
    return let_in(text, "/console/")


@page()
def nowhere(request: HttpRequest, address: str) -> HttpResponse:
    """People get a page where programs would get a problem."""
    raise Refusal("not-found", "there is nothing at this address")


@require_POST
@page()
def choose_language(request: HttpRequest) -> HttpResponse:
    """Remembered in a cookie of the console; without it the browser's own wish counts."""
    code, after = request.POST.get("language", ""), request.POST.get("next", "")
    if code not in dict(settings.LANGUAGES):
        raise Refusal("not-found", "there is nothing at this address")
    ours = after.startswith("/console/") and "\\" not in after
    response = HttpResponseRedirect(after if ours else "/console/")
    response.set_cookie(
        settings.LANGUAGE_COOKIE_NAME,
        code,
        max_age=settings.LANGUAGE_COOKIE_DAYS * 86400,
        httponly=True,
        samesite="Strict",
        path="/console/",
    )
    return response


@require_POST
@page()
def sign_out(request: HttpRequest) -> HttpResponse:
    Token.objects.filter(digest=digest(request.COOKIES.get(COOKIE, ""))).delete()
    response = HttpResponseRedirect("/console/sign-in")
    response.delete_cookie(COOKIE, path="/console/")
    return response
