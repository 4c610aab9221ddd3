"""Telling requesters' servers what happened to a study: signed, retried, and never with a report inside."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import threading
import time
from datetime import timedelta
from typing import Literal

from crowdveil.broker import clock
from crowdveil.broker.db.transactions import write
from crowdveil.broker.ids import random_id
from crowdveil.broker.problems import Refusal
from crowdveil.broker.studies.models import Study
from crowdveil.broker.webhooks.delivery import post, target_of
from crowdveil.broker.webhooks.models import Notice, Webhook

Event = Literal["study.pilot", "study.opened", "study.filled", "study.closed", "study.published", "results.ready"]
_ATTEMPTS = 6
_looking_up = threading.Lock()


def create(owner: str, url: str, events: list[str]) -> Webhook:
    # One at a time: the server has a few threads, and names that are found slowly would keep everybody else waiting.
    if not _looking_up.acquire(blocking=False):
        raise Refusal("not-ready", "another webhook's address is being looked up; try again")
    try:
        target_of(url)
    finally:
        _looking_up.release()
    return Webhook.objects.create(owner_id=owner, url=url, events=" ".join(events), secret=secrets.token_hex(32))


def announce(study: Study, event: str) -> None:
    """Queue the notice inside the transaction of what it is about; that a study is filled, once for ever."""
    with write():
        if event == "study.filled":
            unannounced = Study.objects.filter(id=study.id, filled_announced=False)
            if not unannounced.update(filled_announced=True):
                return
        for webhook in Webhook.objects.filter(owner_id=study.owner_id):
            if event in webhook.events.split():
                body = {"id": random_id(), "event": event, "study": study.id, "day": clock.today().isoformat()}
                Notice.objects.create(id=body["id"], webhook=webhook, body=json.dumps(body))


def deliver_due() -> int:
    """Send what is due; a failed notice waits twice as long each time and is given up after six attempts."""
    sent = 0
    for notice in Notice.objects.filter(due__lte=clock.now()).select_related("webhook")[:50]:
        if not _claim(notice):
            continue
        delivered = _deliver(notice)
        sent += delivered
        if delivered or notice.attempts + 1 >= _ATTEMPTS:
            notice.delete()
    return sent


def _claim(notice: Notice) -> bool:
    """Of several processes that see the same notice, one puts it off for the others and sends it."""
    wait = timedelta(seconds=10 * 2**notice.attempts)
    mine = Notice.objects.filter(id=notice.id, attempts=notice.attempts)
    return bool(mine.update(attempts=notice.attempts + 1, due=clock.now() + wait))


def format_secret(webhook: Webhook) -> str:
    """The secret as libraries of Standard Webhooks take it."""
    return "whsec_" + base64.b64encode(bytes.fromhex(webhook.secret)).decode()


def sign(secret: str, notice: str, timestamp: int, body: str) -> dict[str, str]:
    """The headers of Standard Webhooks 1.0 (standardwebhooks.com), by which a receiver verifies a notice."""
    mac = hmac.new(bytes.fromhex(secret), f"{notice}.{timestamp}.{body}".encode(), hashlib.sha256)
    return {
        "webhook-id": notice,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": f"v1,{base64.b64encode(mac.digest()).decode()}",
    }


def _deliver(notice: Notice) -> bool:
    headers = {"Content-Type": "application/json"}
    headers |= sign(notice.webhook.secret, notice.id, int(time.time()), notice.body)
    try:
        return post(target_of(notice.webhook.url), notice.body.encode(), headers)
    except Refusal:
        return False
