"""Arguments of operators that change a job: what their templates gave, checked before anything is read or changed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from airflow_bookmarks.core.errors import OptionError


def given(name: str, value: Any) -> str:
    """Return a value as text.

    Raises:
        OptionError: it is empty, or what a template makes of None: never taken for "not given", which would be another
            change than the one that is meant.
    """
    text = str(value).strip()
    if value is None or text in ("", "None"):
        raise OptionError(f"{name}={value!r}: its template gave nothing. Nothing was read or changed.")
    return text


def version_of(job: str, value: Any) -> int | None:
    """Return the version that is expected of a job: a number, or that of a preview of the job.

    Raises:
        OptionError: it is neither, or the preview is of another job.
    """
    if value is None:
        return None
    if isinstance(value, Mapping):
        if value.get("job") != job:
            raise OptionError(
                f"expected_version= is a preview of job {value.get('job')!r}, and {job!r} is to be changed. Nothing "
                "was changed."
            )
        value = value.get("version")
    text = given("expected_version", value)
    if not (text.isascii() and text.isdigit()):
        raise OptionError(
            f"expected_version={value!r}: expected a number, as a preview has it under 'version'. Nothing was read or "
            "changed."
        )
    return int(text)


def time_of(value: datetime | str | None) -> datetime:
    """Return a time with a zone, from ISO 8601, in UTC.

    Raises:
        OptionError: it is no time, or has no zone.
    """
    text = given("to_time", value)
    try:
        time = value if isinstance(value, datetime) else datetime.fromisoformat(text)
        utc = time if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise OptionError(
            f"to_time={value!r} is no ISO 8601 time of the years 1 to 9999 in UTC. Nothing was read or changed. Write "
            "it as 2013-01-31T12:00:00Z."
        ) from error
    if time.tzinfo is None:
        raise OptionError(
            f"to_time={value!r} is a time without a zone. Nothing was read or changed. Write it as "
            "2013-01-31T12:00:00Z."
        )
    return utc


def names_of(contexts: Any) -> tuple[str, ...] | None:
    """Return the names of contexts; None for None, which means all.

    Raises:
        OptionError: it is one text, or a name is empty.
    """
    if contexts is None:
        return None
    if isinstance(contexts, str):
        raise OptionError(f"contexts={contexts!r}: expected a list of names. Nothing was read or changed.")
    return tuple(given("contexts", name) for name in contexts)
