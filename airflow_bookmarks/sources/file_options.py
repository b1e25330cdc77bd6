"""What a user says about a source of files: one value, checked once, that travels from the script into the plan."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.option import check_choice

if TYPE_CHECKING:
    from collections.abc import Mapping

OnOverwrite = Literal["reprocess", "ignore", "error"]

_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOptions:
    """Which of the files below some folders a run reads.

    Args:
        recursive: whether folders that are no partition are descended into (Spark's `recursiveFileLookup`).
        on_overwrite: a known path with another version is read again whole ("reprocess", as Glue), left alone
            ("ignore", counted) or stops the run ("error").
        late_after: files older than the newest by more than this are not read but counted, and the ledger forgets what
            is older by more than twice this. The newest is that of all that was read or is listed; a file dated in the
            future does not count. So make it longer than the longest time between two runs.
        settle: files younger than this when the listing begins are left to a later run.

    Raises:
        OptionError: `late_after` or `settle` is not positive, or a file could be late before it has settled; a choice
            that is none.

    Example:
        >>> FileOptions(on_overwrite="ignore", settle=timedelta(minutes=5)).facts()
        {'on_overwrite': 'ignore', 'settle_ms': 300000}
    """

    recursive: bool = False
    on_overwrite: OnOverwrite = "reprocess"
    late_after: timedelta | None = None
    settle: timedelta | None = None

    def __post_init__(self) -> None:
        check_choice("on_overwrite", self.on_overwrite, OnOverwrite)
        _check_bounds(self.late_after, self.settle)

    @property
    def late_after_ms(self) -> int | None:
        """`late_after` in milliseconds."""
        return _in_milliseconds(self.late_after)

    @property
    def settle_ms(self) -> int | None:
        """`settle` in milliseconds."""
        return _in_milliseconds(self.settle)

    def given(self) -> list[str]:
        """Return the names of the options that are not the default."""
        return [each.name for each in fields(self) if getattr(self, each.name) != each.default]

    def facts(self) -> dict[str, Any]:
        """Return as plain values what is not the default, for the record of a plan."""
        facts: dict[str, Any] = {
            "recursive": self.recursive or None,
            "on_overwrite": None if self.on_overwrite == "reprocess" else self.on_overwrite,
            "late_after_ms": self.late_after_ms,
            "settle_ms": self.settle_ms,
        }
        return {name: value for name, value in facts.items() if value is not None}

    @classmethod
    def of_facts(cls, facts: Mapping[str, Any]) -> FileOptions:
        """Return the options that `facts` told; what it did not tell is the default."""
        return cls(
            recursive=facts.get("recursive", False),
            on_overwrite=facts.get("on_overwrite", "reprocess"),
            late_after=_from_milliseconds(facts.get("late_after_ms")),
            settle=_from_milliseconds(facts.get("settle_ms")),
        )


def _check_bounds(late_after: timedelta | None, settle: timedelta | None) -> None:
    for name, bound in (("late_after", late_after), ("settle", settle)):
        if bound is not None and (not isinstance(bound, timedelta) or bound < _MILLISECOND):
            raise OptionError(f"{name}={bound!r}: expected a positive timedelta. Nothing was read or changed.")
    if late_after is not None and settle is not None and settle >= late_after:
        raise OptionError(
            f"settle={settle!r} is not shorter than late_after={late_after!r}: a file would be late before it has "
            "settled, and never be read. Nothing was read or changed."
        )


def _in_milliseconds(bound: timedelta | None) -> int | None:
    return None if bound is None else bound // _MILLISECOND


def _from_milliseconds(bound: int | None) -> timedelta | None:
    return None if bound is None else bound * _MILLISECOND
