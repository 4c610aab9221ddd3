"""No field can hold an answer or link pseudonyms, and nothing in broker/ can turn an answer into a report."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

BROKER = Path(__file__).resolve().parents[2] / "src" / "crowdveil" / "broker"

# Every column that stores something about a person, and why it cannot hold an answer. A new column must be argued here.
STORED = {
    "identity.Account": "id role name password one_time_password totp_secret totp_confirmed totp_step failed_sign_ins "
    "locked_until disabled default_level payee joined",
    "identity.Token": "id account digest scope label expires",
    "identity.Source": "id account digest failed_sign_ins locked_until familiar expires",
    "identity.Consent": "id account study version day",
    # How many workers were wanted and the number of a batch: counts of a whole study, nothing of one person.
    "studies.Study": "id owner state draft definition sha256 signature gold identifying filled_announced group_size "
    "batch_chosen_by created",
    "studies.LogEntry": "index study sha256 day previous entry",
    "studies.Invitation": "id study account asked expires accepted",
    "ledger.Budget": "account epsilon_cap rho_cap epsilon_spent rho_spent epsilon_held rho_held unprotected",
    "ledger.Reservation": "id study account level epsilon rho cost expires",
    "ledger.Spend": "id account study level epsilon rho day",
    "payments.Purse": "study accepting budget held paid commission quota places_held places_taken",
    "payments.Earning": "id payee period cents paid_out",
    "payments.PayoutBatch": "id day cents",
    "payments.Payout": "id batch payee cents",
    "intake.Submission": "id study pseudonym level codes withdrawal_sha256 receipt idempotency day",
    "intake.Withdrawal": "withdrawal_sha256 study",
    # How many answers were protected one by one, and at which ε: what the worker's device sent, not what was answered.
    "ledger.OneByOne": "id account study level epsilon count day",
    "pools.Pool": "study upload n_tasks root",
    "pools.Task": "id study upload number name content proof gold open n_reports load shuffle",
    "pools.WorkerCode": "id study code pseudonym",
    "pools.Assignment": "id study upload code name task",
    # Which tasks a pseudonym was leased is visible until the pool closes; whether it answered them is not stored here.
    "pools.Lease": "id study pseudonym level expires active",
    "pools.LeasedTask": "id study pseudonym task lease",
    "pools.Batch": "id study pseudonym level tasks codes withdrawal_sha256 lease digest receipt idempotency counted "
    "day",
    "pools.Update": "id study number n_workers n_reports day final complete summary",
    "pools.Label": "id study number task name value probability low high n_reports",
    "results.Batch": "id study number n day final estimates",
    "audit.Act": "index at actor verb subject previous entry",
    "hooks.Webhook": "id owner url events secret",
    "hooks.Notice": "id webhook body attempts due",
}


# The stores that know workers by pseudonyms only.
INTAKE = ("intake.", "pools.")


def models() -> dict[str, Any]:
    from django.apps import apps

    own = [config for config in apps.get_app_configs() if config.name.startswith("crowdveil.broker")]
    return {f"{config.label}.{model.__name__}": model for config in own for model in config.get_models()}


def columns(model: Any) -> list[str]:
    return [field.name for field in model._meta.get_fields() if field.concrete]


def test_every_column_is_one_that_was_argued_for(django_here: Path) -> None:
    found = {name: set(columns(model)) for name, model in models().items()}
    assert found == {name: set(listed.split()) for name, listed in STORED.items()}
    assert not [name for names in found.values() for name in names if "answer" in name]


def test_the_intake_refers_to_nothing_and_nothing_refers_to_it(django_here: Path) -> None:
    for name, model in models().items():
        for field in model._meta.get_fields():
            other = field.related_model._meta.app_label if field.related_model else ""
            if name.startswith(INTAKE) or f"{other}.".startswith(INTAKE):
                assert not field.is_relation, f"{name}.{field.name} links the intake to {other}"
    for name, model in models().items():
        if name.startswith(INTAKE):
            assert not {"account", "worker", "payee", "token"} & set(columns(model)), name
        else:
            assert not {"pseudonym", "codes"} & set(columns(model)), name


def test_no_key_counts_and_no_date_is_finer_than_a_day(django_here: Path) -> None:
    from django.db import models as fields

    public_order = {"studies.LogEntry", "audit.Act"}
    # Moments are kept for what expires or waits, never for what somebody answered.
    expiring = {"locked_until", "expires", "at", "due"}
    for name, model in models().items():
        assert not isinstance(model._meta.pk, fields.AutoField), name
        assert name in public_order or isinstance(model._meta.pk, fields.CharField), name
        for field in model._meta.get_fields():
            if isinstance(field, fields.DateTimeField):
                assert field.name in expiring, f"{name}.{field.name}"
                assert not name.startswith(("intake.", "payments.", "results."))


def sources() -> list[tuple[Path, ast.Module]]:
    return [(path, ast.parse(path.read_text())) for path in sorted(BROKER.rglob("*.py"))]


def test_the_broker_cannot_randomise() -> None:
    """It may build channels; the sampler and every `randomize` are out of reach."""
    offending = []
    for path, tree in sources():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
                ("crowdveil.sampler", "crowdveil.answers")
            ):
                offending.append(f"{path.name} imports {node.module}")
            if isinstance(node, ast.ImportFrom | ast.Import):
                names = [alias.name for alias in node.names]
                if {"draw", "Answers", "randomize", "randomize_through", "crowdveil.sampler"} & set(names):
                    offending.append(f"{path.name} imports {names}")
            if isinstance(node, ast.Attribute) and node.attr in ("randomize", "draw"):
                offending.append(f"{path.name}:{node.lineno} uses .{node.attr}")
    assert offending == []


def test_no_log_call_can_carry_a_body_an_address_or_an_id() -> None:
    """Every log call has a fixed sentence and extras from a short list."""
    allowed = {"method", "route", "status", "milliseconds", "error", "where"}
    seen = 0
    for path, tree in sources():
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            owner = node.func.value
            if not (isinstance(owner, ast.Name) and owner.id in ("_log", "logger", "log", "logging")):
                continue
            if node.func.attr not in ("debug", "info", "warning", "error", "exception", "critical"):
                continue
            seen += 1
            assert isinstance(node.args[0], ast.Constant), f"{path.name}:{node.lineno} formats a log line"
            assert len(node.args) == 1, f"{path.name}:{node.lineno}"
            for keyword in node.keywords:
                assert keyword.arg == "extra"
    assert seen >= 3
    extras = re.search(r"_EXTRA = \((.*?)\)", (BROKER / "middleware" / "request_log.py").read_text())
    assert extras
    assert set(re.findall(r'"(\w+)"', extras[1])) <= allowed | {"study", "n"}
