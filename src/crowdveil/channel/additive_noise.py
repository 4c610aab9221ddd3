"""The record of a research mechanism that has no table: reports are numbers with noise of known variance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from crowdveil.canonical_json import sha256_hex
from crowdveil.errors import ChannelError
from crowdveil.guarantee import Guarantee

FORMAT = "crowdveil-noise/1"


@dataclass(frozen=True, slots=True)
class NoiseRecord:
    """Which mechanism made the numbers, with which variance, and what it really guarantees.

    `variance` is that of one report around its answer; it never takes the place of a guarantee.
    """

    mechanism: str
    variance: float
    guarantee: Guarantee

    @property
    def protects_participation(self) -> bool:
        return self.guarantee.protects_participation

    def _fields(self) -> dict[str, object]:
        head = {"format": FORMAT, "mechanism": self.mechanism, "variance": repr(self.variance)}
        return head | self.guarantee.to_record()

    @property
    def sha256(self) -> str:
        return sha256_hex(self._fields())

    def to_json(self) -> dict[str, object]:
        return self._fields() | {"sha256": self.sha256}

    @classmethod
    def from_json(cls, data: Any) -> NoiseRecord:
        """Read a record back; a changed one is refused."""
        try:
            record = cls(data["mechanism"], float(data["variance"]), Guarantee.from_record(data))
            unchanged = record.to_json() == data
        except (KeyError, TypeError, ValueError):
            unchanged = False
        if not unchanged:
            raise ChannelError("the noise record was changed or is not understood", fix="make the reports again")
        return record
