"""Following the public log: it only grows, each line names the one before, and what was seen once must stay."""

from __future__ import annotations

from typing import Any

from crowdveil.canonical_json import sha256_hex
from crowdveil.client.device_state import Memory
from crowdveil.client.http import Broker
from crowdveil.client.study import StudyError

_GENESIS = "0" * 64
_PAGE = 1000


def follow(broker: Broker, memory: Memory) -> None:
    """Read what is new in the log and remember it; a log that is no longer the one seen before is refused.

    The last line seen is read again: a broker that shows somebody another log must show it from the first line on.
    """
    index, entry = memory.log_head()
    if index:
        again = broker.call("GET", f"/log?after={index - 1}&limit=1")["items"]
        if [line.get("entry") for line in again] != [entry]:
            raise StudyError("the public log was rewritten: what this device has seen in it is gone")
    else:
        entry = _GENESIS
    while lines := broker.call("GET", f"/log?after={index}&limit={_PAGE}")["items"]:
        checked = []
        for line in lines:
            _check(line, index + 1, entry)
            index, entry = index + 1, str(line["entry"])
            checked.append((index, entry))
        memory.keep_log(checked)


def _check(line: dict[str, Any], index: int, previous: str) -> None:
    fields = {name: value for name, value in line.items() if name != "entry"}
    if line.get("entry") != sha256_hex(fields) or line.get("index") != index or line.get("previous") != previous:
        raise StudyError("the public log is not a chain: a line is missing or was changed")
