"""No privacy: the report is the answer. Listed and shown as unprotected everywhere, never as ε = 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from crowdveil.channel import Channel, identity
from crowdveil.domain import Domain
from crowdveil.errors import UnservableError
from crowdveil.mechanisms.base import ChannelMechanism
from crowdveil.validation import Rule, check_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class NoPrivacy(ChannelMechanism):
    """No privacy: the report is the answer (the identity channel, ε = ∞)."""

    name: ClassVar[str] = "none"
    summary: ClassVar[str] = "no privacy at all: the report is the answer"
    epsilon: Annotated[float | None, Rule("positive", lambda epsilon: epsilon > 0)] = None
    protect_participation: bool = False

    def __post_init__(self) -> None:
        check_settings(self)
        if self.protect_participation:
            raise UnservableError(
                "mechanism none protects nothing, participation included", fix="use randomized-response"
            )

    def channel(self, domain: Domain) -> Channel:
        return identity(domain)
