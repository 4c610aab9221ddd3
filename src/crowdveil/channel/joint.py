"""The channel of a research mechanism whose reports share a secret: right for one report, no promise for several.

Li's two layers and Sun's sparse ones draw something once per worker. One report alone has a table like any channel's,
which inference may read; but that table's ε is not what a worker with many reports has.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from crowdveil.canonical_json import sha256_of
from crowdveil.channel.table import Channel
from crowdveil.errors import ChannelError
from crowdveil.guarantee import Guarantee

FORMAT = "crowdveil-joint-channel/1"


@dataclass(frozen=True, eq=False, repr=False)
class JointChannel(Channel):
    """A channel with the promise of its mechanism in place of that of its table."""

    mechanism: str
    promise: Guarantee

    @classmethod
    def of(cls, channel: Channel, mechanism: str, promise: Guarantee) -> JointChannel:
        return cls(channel.inputs, channel.outputs, channel.bits, channel.sampler, channel.form, mechanism, promise)

    @cached_property
    def guarantee(self) -> Guarantee:
        return self.promise

    @cached_property
    def epsilon(self) -> float:
        return self.promise.epsilon

    @property
    def alone(self) -> Channel:
        """The table of one report."""
        return Channel(self.inputs, self.outputs, self.bits, self.sampler, self.form)

    @cached_property
    def sha256(self) -> str:
        return sha256_of(self._record())

    def _record(self) -> dict[str, object]:
        head = {"format": FORMAT, "mechanism": self.mechanism, "channel": self.alone.to_json()}
        return head | self.promise.to_record()

    def to_json(self) -> dict[str, object]:
        return self._record() | {"sha256": self.sha256}

    @classmethod
    def from_json(cls, data: Any) -> JointChannel:
        """Read a record back; a changed one is refused."""
        try:
            found = cls.of(Channel.from_json(data["channel"]), data["mechanism"], Guarantee.from_record(data))
            unchanged = found.to_json() == data
        except (KeyError, TypeError, ValueError):
            unchanged = False
        if not unchanged:
            raise ChannelError("the joint channel was changed or is not understood", fix="make the reports again")
        return found
