"""Describe gaps: what is missing between the first and the last number, or day, that a context has seen.

`core.ledger.seen` keeps what was seen; this module needs no numpy, because sensors and DAG files import it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

TO = ".."  # between the first and the last of a range


def shown_gaps(stats: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the display form of gaps from the stats of a context; None if gaps are not looked for."""
    gaps = stats.get("gaps")
    return None if gaps is None else {name: value for name, value in gaps.items() if name != "seen"}


def gaps_in_words(gaps: Mapping[str, Any]) -> str:
    """Say how many are missing, and which; `gaps` as in the record of a run.

    Example:
        >>> gaps_in_words({"unit": "day", "missing": 2, "first": "2013-01-01", "last": "2013-01-04",
        ...                "ranges": ["2013-01-02..2013-01-03"], "more_ranges": 0, "lost": 0})
        '2 days of 2013-01-01 to 2013-01-04 are missing: 2013-01-02 to 2013-01-03'
    """
    noun = "" if gaps["unit"] == "number" else " day" if gaps["missing"] == 1 else " days"
    verb = "is" if gaps["missing"] == 1 else "are"
    whole = f"{gaps['missing']}{noun} of {gaps['first']} to {gaps['last']} {verb} missing"
    if not gaps["ranges"]:
        return f"{whole}; which ones is no longer known"
    named = ", ".join(each.replace(TO, " to ") for each in gaps["ranges"])
    more = f", and {gaps['more_ranges']} ranges below" if gaps["more_ranges"] else ""
    said = f"{whole}: {named}{more}"
    return f"{said}, and {gaps['lost']} lower ones, no longer known one by one" if gaps["lost"] else said
