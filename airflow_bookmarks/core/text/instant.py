"""Times as text: ISO 8601 in UTC, readable in the table and sortable as text."""

from __future__ import annotations

from datetime import UTC, datetime


def to_text(moment: datetime) -> str:
    """Return an aware time as `2013-01-31T23:59:58.123456Z`, always with microseconds.

    Example:
        >>> to_text(datetime(2013, 1, 31, 23, 59, 58, tzinfo=UTC))
        '2013-01-31T23:59:58.000000Z'
    """
    if moment.tzinfo is None:
        raise ValueError(f"{moment!r} has no time zone: pass an aware datetime")
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def from_text(text: str) -> datetime:
    """Return the aware UTC time that `to_text` wrote."""
    return datetime.fromisoformat(text).astimezone(UTC)


def utc_now() -> datetime:
    """Return the present time of this machine, aware, UTC."""
    return datetime.now(UTC)
