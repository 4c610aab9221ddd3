"""Whether the clock can be trusted: nothing is destroyed for being old on one reading of it.

A reading is compared with the monotonic clock since this process began, and at a start with the last time that the
broker saw, which is kept in the data directory. After a jump nothing expires until the clock is back, or until an
operator confirms it with `crowdveil serve --confirm-clock`.
"""

from __future__ import annotations

import json
import logging
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from django.conf import settings

from crowdveil.broker import clock
from crowdveil.broker.keys import replace_file

# More than NTP ever steps and a monotonic clock drifts in a year (50 ppm are 26 minutes); less than a session lasts.
MAX_JUMP = timedelta(hours=1)
# A broker may have been switched off for so long; tokens outlive their expiry by a year.
MAX_DOWNTIME = timedelta(days=30)
_SAVE_EVERY = timedelta(minutes=1)
# Counts while the machine sleeps, where the system offers one that does.
_UPTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_log = logging.getLogger("crowdveil.clock")


@dataclass(frozen=True, slots=True)
class _Reading:
    """A trusted time and the uptime at which it was read."""

    at: datetime
    uptime: float


@dataclass(frozen=True, slots=True)
class _LastSeen:
    """The last trusted time, and whether the clock has jumped since."""

    at: datetime
    jumped: bool


_anchor: _Reading | None = None
_saved: _LastSeen | None = None


def is_trusted() -> bool:
    """Whether what is older than the present reading may be destroyed."""
    global _anchor
    now, uptime = clock.now(), time.clock_gettime(_UPTIME)
    if _anchor is None:
        trusted = _fits_last_seen(now)
        _anchor = _Reading(now, uptime) if trusted else None
    else:
        # Against the first reading and not the one before: many small jumps are a large one.
        expected = _anchor.at + timedelta(seconds=uptime - _anchor.uptime)
        trusted = abs(now - expected) <= MAX_JUMP
    if trusted:
        _save(_LastSeen(now, jumped=False))
    elif (seen := _last_seen()) is not None:
        _save(_LastSeen(seen.at, jumped=True))
    return trusted


def confirm() -> None:
    """An operator says that the present time is right."""
    global _anchor
    _anchor = None
    _save(_LastSeen(clock.now(), jumped=False))


def _fits_last_seen(now: datetime) -> bool:
    seen = _last_seen()
    if seen is None:
        return True
    return -MAX_JUMP <= now - seen.at <= (MAX_JUMP if seen.jumped else MAX_DOWNTIME)


def _path() -> Path:
    return Path(settings.DATA_DIR) / "clock.json"


def _last_seen() -> _LastSeen | None:
    try:
        fields = json.loads(_path().read_text())
        return _LastSeen(clock.moment(fields["last_seen"]), bool(fields["jumped"]))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError):
        return _LastSeen(datetime.fromtimestamp(0, UTC), jumped=True)


def _save(seen: _LastSeen) -> None:
    global _saved
    if _saved is not None and _saved.jumped == seen.jumped and abs(seen.at - _saved.at) < _SAVE_EVERY:
        return
    if seen.jumped:
        _log.warning("the clock has jumped; nothing expires until it is back or confirmed with --confirm-clock")
    content = {"last_seen": seen.at.isoformat(), "jumped": seen.jumped}
    try:
        replace_file(_path(), json.dumps(content).encode())
    except OSError as error:
        _log.warning("the time could not be kept in the data directory", extra={"error": type(error).__name__})
    _saved = seen
