"""A requester's webhooks."""

from __future__ import annotations

from typing import Any

from ninja import Router

from crowdveil.broker.api import auth
from crowdveil.broker.api.schemas.common import Key
from crowdveil.broker.api.schemas.staff import NewWebhook, WebhookList, WebhookMade
from crowdveil.broker.problems import Refusal
from crowdveil.broker.webhooks import notices
from crowdveil.broker.webhooks.models import Webhook

router = Router(tags=["requester"], auth=auth.requester)


@router.get("/webhooks", response={200: WebhookList}, operation_id="list_webhooks")
def list_webhooks(request: auth.Authorized) -> dict[str, Any]:
    """Where you are told."""
    return {"items": [_spelled(hook) for hook in Webhook.objects.filter(owner_id=request.auth.account).order_by("id")]}


@router.post("/webhooks", response={201: WebhookMade}, operation_id="create_webhook")
def create_webhook(request: auth.Authorized, payload: NewWebhook) -> tuple[int, dict[str, Any]]:
    """Be told at this address; the secret that signs the notices is shown once."""
    hook = notices.create(request.auth.account, payload.url, list(payload.events))
    return 201, _spelled(hook) | {"secret": notices.format_secret(hook)}


@router.delete("/webhooks/{webhook}", response={204: None}, operation_id="remove_webhook")
def remove_webhook(request: auth.Authorized, webhook: str = Key) -> tuple[int, None]:
    """Be told no longer."""
    removed, _ = Webhook.objects.filter(id=webhook, owner_id=request.auth.account).delete()
    if not removed:
        raise Refusal("not-found", "you have no such webhook")
    return 204, None


def _spelled(hook: Webhook) -> dict[str, Any]:
    return {"id": hook.id, "url": hook.url, "events": hook.events.split()}
