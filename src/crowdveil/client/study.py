"""Checking a study before answering it: nothing about it is believed that can be computed."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from crowdveil.accounting import cells_at_stake, nano_up
from crowdveil.canonical_json import canonical, sha256_hex
from crowdveil.channel import Channel
from crowdveil.client.questions import build_domain
from crowdveil.client.schema_check import FieldError, check_fields, check_pool_fields
from crowdveil.errors import CrowdveilError, InputError

FORMAT = "crowdveil-study/1"
POOL_FORMAT = "crowdveil-pool/1"
LEVELS = ("none", "low", "medium", "high")


class StudyError(CrowdveilError):
    """A study that must not be answered: something about it is not what it claims to be."""


@dataclass(frozen=True, slots=True)
class Level:
    """One level, recomputed: its channels by question, and what answering everything costs."""

    name: str
    protected: bool
    pay_cents: int
    channels: dict[str, Channel]
    charge: dict[str, int] | None


@dataclass(frozen=True, slots=True)
class Study:
    """A definition whose hash, signature, place in the public log, channels and charges were all checked."""

    id: str
    sha256: str
    definition: dict[str, Any]
    levels: dict[str, Level]

    @property
    def questions(self) -> list[dict[str, Any]]:
        return list(self.definition["questions"])

    @property
    def pool(self) -> dict[str, Any] | None:
        """The rules of a pool of tasks; None for a survey."""
        return self.definition["pool"] if self.definition["format"] == POOL_FORMAT else None

    @property
    def protects_participation(self) -> bool:
        return self.definition["protects_participation"] is True

    @classmethod
    def verify(cls, signed: dict[str, Any], log_line: dict[str, Any], public_key: str) -> Study:
        """The study, or a StudyError that says what is wrong with it."""
        definition, sha256 = signed["definition"], sha256_hex(signed["definition"])
        if definition.get("format") not in (FORMAT, POOL_FORMAT):
            raise StudyError(f"the study has the format {definition.get('format')!r}; update crowdveil")
        _check_fields(definition)
        if sha256 != signed["sha256"]:
            raise StudyError("the definition does not match its hash: it was changed on the way")
        check_signature(definition, signed["signature"], public_key)
        _check_log(log_line, definition["id"], sha256)
        _check_names([level["name"] for level in definition["levels"]])
        _check_skips(definition)
        try:
            levels = {level["name"]: _level(definition, level) for level in definition["levels"]}
        except InputError as error:
            raise StudyError(f"a channel of this study is not what it claims to be: {error}") from None
        _check_order(levels)
        return cls(definition["id"], sha256, definition, levels)


def _check_fields(definition: dict[str, Any]) -> None:
    try:
        check_fields(definition)
    except FieldError as error:
        raise StudyError(str(error)) from None
    if definition["format"] == POOL_FORMAT:
        _check_pool(definition)
    # Elsewhere every report tells of an answer, and all are charged.
    if definition["max_answers"] is not None and not definition["protects_participation"]:
        raise StudyError("the study bounds the answers, which needs protected participation, and it has none")


def _check_pool(definition: dict[str, Any]) -> None:
    try:
        check_pool_fields(definition)
    except FieldError as error:
        raise StudyError(str(error)) from None
    form = definition["questions"]
    if len(form) != 1 or form[0]["show_if"] is not None or definition["max_answers"] is not None:
        raise StudyError("a pool has one form, without conditions, and no bound on the answers")


def check_signature(value: object, signature: str, public_key: str) -> None:
    """Refuse what the broker's key did not sign."""
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key))
        key.verify(bytes.fromhex(signature), canonical(value))
    except (InvalidSignature, ValueError):
        raise StudyError("the signature is not this broker's") from None


def _check_log(line: dict[str, Any], study: str, sha256: str) -> None:
    fields = {name: value for name, value in line.items() if name != "entry"}
    if line.get("entry") != sha256_hex(fields) or line.get("study") != study or line.get("sha256") != sha256:
        raise StudyError("the public log does not have this definition; somebody may be served a special one")


def _check_names(names: list[str]) -> None:
    # A level is chosen by its name: of two with one name the other might be drawn through.
    if names != [name for name in LEVELS if name in names]:
        raise StudyError(f"the levels must differ and stand in the order {', '.join(LEVELS)}; got {', '.join(names)}")


def _check_skips(definition: dict[str, Any]) -> None:
    # Where participation is visible, a report on such a question says that its condition held: no channel hides that.
    depends = any(question["show_if"] for question in definition["questions"])
    promises = any(level["protected"] for level in definition["levels"])
    if depends and promises and not definition["protects_participation"]:
        raise StudyError("whether a question is asked hangs on an earlier answer and is visible: that tells the answer")


def _level(definition: dict[str, Any], level: dict[str, Any]) -> Level:
    # A default level is chosen before a study is seen, so its name must not come to mean "unprotected".
    if level["protected"] == (level["name"] == "none"):
        raise StudyError(f"level {level['name']} is not what its name says: level none, and no other, is unprotected")
    if definition["protects_participation"] and not level["protected"]:
        raise StudyError(f"level {level['name']} protects nothing in a study that says it hides skipped questions")
    channels = {question["id"]: _channel(definition, level, question) for question in definition["questions"]}
    # The form of a pool is filled in for every task of a batch.
    n_repeats = definition["pool"]["batch_size"] if definition["format"] == POOL_FORMAT else 1
    reports = list(channels.values()) * n_repeats
    charge = total_charge(reports, definition["max_answers"]) if level["protected"] else None
    if charge != level["charge"]:
        raise StudyError(f"level {level['name']} says it costs {level['charge']} but its channels cost {charge}")
    return Level(level["name"], level["protected"], level["pay_cents"], channels, charge)


def _check_order(levels: dict[str, Level]) -> None:
    # For the same reason, "high" must not come to mean less than "low".
    charges = [(name, levels[name].charge or {}) for name in LEVELS[1:] if name in levels]
    for (lower, least), (higher, most) in pairwise(charges):
        if most["epsilon_nano"] > least["epsilon_nano"]:
            raise StudyError(f"level {higher} costs more privacy than level {lower}: it is not what its name says")


def _channel(definition: dict[str, Any], level: dict[str, Any], question: dict[str, Any]) -> Channel:
    name, where = level["channels"][question["id"]], f"level {level['name']}, question {question['id']}"
    channel = Channel.from_json(definition["channels"][name])
    if channel.sha256 != name:
        raise StudyError(f"{where}: the channel has another hash than its name")
    if channel.inputs[: channel.n_levels] != build_domain(question).symbols:
        raise StudyError(f"{where}: the channel randomises other answers than the question has")
    if channel.guarantee.protected != level["protected"]:
        raise StudyError(f"{where}: the channel is not as protected as the level says")
    if level["protected"] and channel.protects_participation != definition["protects_participation"]:
        raise StudyError(f"{where}: the channel does not treat skipped questions as the study says")
    return channel


def total_charge(channels: list[Channel], max_answers: int | None) -> dict[str, int]:
    """What all reports cost together: each rounded up, the dearest 2t where at most t are answered."""
    n = cells_at_stake(len(channels), at_most=max_answers)
    epsilon = sorted((nano_up(channel.guarantee.epsilon) for channel in channels), reverse=True)[:n]
    rho = sorted((nano_up(channel.guarantee.rho) for channel in channels), reverse=True)[:n]
    return {"epsilon_nano": sum(epsilon), "rho_nano": sum(rho), "reports": n}
