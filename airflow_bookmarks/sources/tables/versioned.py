"""Tables that keep versions (Delta, Iceberg), as a source: options, errors, counts. Without Spark."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from airflow_bookmarks.core.errors import OptionError, SourceError
from airflow_bookmarks.core.option import check_choice
from airflow_bookmarks.core.selection.bound import UNBOUND, Bound

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

OnChange = Literal["error", "ignore", "reload"]

# Among `skipped`: files of commits that changed rows, where on_change is "ignore".
REWRITTEN = "rewritten"  # written by an update, a merge, an overwrite
REMOVED = "removed"  # removed with their rows, which were read


class RowsChangedError(SourceError):
    """Raised when rows of a table that is read for what was appended were changed since."""


class VersionGoneError(SourceError):
    """Raised when versions of a table that have to be read are no longer kept."""


def total(counts: Sequence[int | None]) -> int | None:
    """Return the sum of counts; None where one of them is not known.

    Example:
        >>> total([1, 2]), total([1, None])
        (3, None)
    """
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionOptions:
    """Which commits of a table are read, and how; `BookmarkedReader.delta` and `iceberg` say what each of them means.

    Raises:
        OptionError: a choice that is none, or choices that contradict each other.
    """

    changes: bool = False
    on_change: OnChange = "error"
    max_versions: int | None = None
    bound: Bound = UNBOUND
    per: str | None = None

    def __post_init__(self) -> None:
        check_choice("on_change", self.on_change, OnChange)
        if not isinstance(self.changes, bool):
            raise OptionError(f"changes={self.changes!r}: expected True or False. Nothing was read or changed.")
        if self.changes and self.on_change != "error":
            raise OptionError(
                f"on_change={self.on_change!r} with changes=True, which reads the changes. Nothing was read or "
                "changed. Leave one of them out."
            )
        self._check_per()
        most = self.max_versions
        if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 1):
            raise OptionError(f"max_versions={most!r}: expected a whole number from 1 on. Nothing was read or changed.")
        for name in ("max_rows", "window"):
            if getattr(self.bound, name) is not None:
                raise OptionError(
                    f"{name}: such a table is bounded by max_versions, max_files or max_bytes. Nothing was read or "
                    "changed."
                )

    def _check_per(self) -> None:
        if self.per is None:
            return
        if not isinstance(self.per, str) or not self.per:
            raise OptionError(f"per={self.per!r}: expected the name of a column. Nothing was read or changed.")
        others = {"changes=True": self.changes, "on_change='reload'": self.on_change == "reload"}
        others |= dict.fromkeys(self.bounds, True)
        if given := [name for name, is_given in others.items() if is_given]:
            raise OptionError(
                f"per={self.per!r} with {', '.join(given)}: each value is read whole, for what was appended. Nothing "
                "was read or changed. Leave one of them out."
            )

    @property
    def bounds(self) -> list[str]:
        """The names of the bounds that are given."""
        return [*(["max_versions"] if self.max_versions is not None else []), *self.bound.given()]

    def bounded(self, bound: Bound) -> VersionOptions:
        """Return them with another bound of files or bytes."""
        return replace(self, bound=bound)

    def stored(self) -> dict[str, Any]:
        """Return them as plain values."""
        return {
            "changes": self.changes,
            "on_change": self.on_change,
            "max_versions": self.max_versions,
            "bound": self.bound.stats(),
            **({} if self.per is None else {"per": self.per}),
        }

    @classmethod
    def of_stored(cls, values: Mapping[str, Any]) -> VersionOptions:
        """Return what `stored` returned."""
        return cls(
            changes=values["changes"],
            on_change=values["on_change"],
            max_versions=values["max_versions"],
            bound=Bound.of_stats(values["bound"]),
            per=values.get("per"),
        )
