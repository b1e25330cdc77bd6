"""Times as text: ISO 8601 in UTC, readable in the table and sortable as text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


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


def in_utc(value: object) -> datetime | None:
    """Return a time with a zone, or the ISO 8601 text of one, in UTC; None if it is neither.

    A time that in UTC is not in the years 1 to 9999 is none.

    Example:
        >>> in_utc("2013-01-31T23:59:58+01:00"), in_utc("2013-01-31"), in_utc("0001-01-01T00:00:00+14:00")
        (datetime.datetime(2013, 1, 31, 22, 59, 58, tzinfo=datetime.timezone.utc), None, None)
    """
    try:
        time = datetime.fromisoformat(value) if isinstance(value, str) else value
        return time.astimezone(UTC) if isinstance(time, datetime) and time.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


def utc_now() -> datetime:
    """Return the present time of this machine, aware, UTC."""
    return datetime.now(UTC)


def in_words(length: timedelta) -> str:
    """Return how long something takes, in the one or two units that matter.

    Example:
        >>> in_words(timedelta(seconds=42)), in_words(timedelta(minutes=61)), in_words(timedelta(days=3, hours=2))
        ('42 s', '1 h 1 min', '3 d 2 h')
    """
    seconds = max(0, int(length.total_seconds()))
    units = [("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)]
    for at, (name, size) in enumerate(units):
        if seconds >= size:
            whole, rest = divmod(seconds, size)
            smaller, its_size = units[min(at + 1, 3)]
            more = rest // its_size if size > 60 else 0
            return f"{whole} {name}" + (f" {more} {smaller}" if more else "")
    return "0 s"
