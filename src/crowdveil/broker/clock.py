"""The time as the broker keeps it: days for everything that is stored about people, seconds only for expiry."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta


def now() -> datetime:
    return datetime.now(UTC)


def today() -> date:
    return now().date()


def period() -> str:
    """The month that an earning is booked in."""
    return today().isoformat()[:7]


def after(**delta: float) -> datetime:
    """A moment from now, without fractions of a second."""
    return (now() + timedelta(**delta)).replace(microsecond=0)


def moment(stored: datetime | str) -> datetime:
    """A moment as either database returns it to a plain query."""
    read = datetime.fromisoformat(stored) if isinstance(stored, str) else stored
    return read if read.tzinfo else read.replace(tzinfo=UTC)


def iso(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
