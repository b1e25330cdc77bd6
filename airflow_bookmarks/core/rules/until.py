"""Parse `until=`, the last upstream run to read, as scripts and operators give it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_bookmarks.core.errors import OptionError


def until_of(given: int | str | Mapping[str, Any], upstream: str) -> int:
    """Return the run number that `until=` names: a number, or the dict that an operator or sensor returned.

    Its epoch is not checked: run numbers are never reused, and the state tells whether that run is still history.

    Raises:
        OptionError: it is neither, or of another job.
    """
    number = given.get("run_number") if isinstance(given, Mapping) else given
    if isinstance(given, Mapping) and given.get("job") != upstream:
        raise OptionError(
            f"until= is of job {given.get('job')!r}, and {upstream!r} is read. Nothing was read or changed."
        )
    text = str(number)
    if not (text.isascii() and text.isdigit() and len(text) <= 10):
        raise OptionError(
            f"until={given!r}: expected a run number, or what an operator or sensor of {upstream!r} returned. Nothing "
            "was read or changed."
        )
    return int(text)
