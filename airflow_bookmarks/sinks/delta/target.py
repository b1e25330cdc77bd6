"""The Delta table that an output goes to, and what state keeps of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from airflow_bookmarks.core.metadata.known import value_of
from airflow_bookmarks.core.rules.mode import Mode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.core.run import OutputEntry

_IS_PATH, _VERSION_BEFORE, _KEYS, _REPLACES_PART = "is_path", "version_before", "upsert_keys", "replaces_part"
_FOLDER = "table_folder"
_BY_PATH = re.compile(r"delta\.`(.+)`", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class DeltaTarget:
    """A Delta table: by its name in a catalog, or by the path of its folder."""

    name: str
    is_path: bool

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return what a script names: a path has a slash, a name has none; and there is Spark's "delta.`<path>`".

        Example:
            >>> DeltaTarget.parse("sales.orders"), DeltaTarget.parse("delta.`/lake/orders`")
            (DeltaTarget(name='sales.orders', is_path=False), DeltaTarget(name='/lake/orders', is_path=True))
        """
        by_path = _BY_PATH.fullmatch(text)
        if by_path is not None:
            return cls(by_path[1].replace("``", "`"), is_path=True)
        return cls(text, is_path="/" in text)

    @classmethod
    def of_entry(cls, entry: OutputEntry) -> Self:
        """Return the table of a stored output."""
        return cls(entry.target, bool(value_of(entry.stats, _IS_PATH, default="/" in entry.target)))


@dataclass(frozen=True, slots=True)
class DeltaOutput:
    """What is stored with an output before it lands.

    `version_before` is the newest version of the table then: the token of the run can only be in a later one. `keys`
    are those of an upsert. `replaces_part`: the overwrite has a condition (`replaceWhere`). `folder` is where a table
    lies that is named by its name (None: its name is its path).
    """

    mode: Mode
    version_before: int | None = None
    partition_by: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    replaces_part: bool = False
    folder: str | None = None

    def stats(self, target: DeltaTarget) -> dict[str, Any]:
        """Return it as stored, with how the table is named."""
        return {
            "format": "delta",
            "mode": self.mode.value,
            "partition_by": list(self.partition_by),
            _IS_PATH: target.is_path,
            **({} if self.version_before is None else {_VERSION_BEFORE: self.version_before}),
            **({_KEYS: list(self.keys)} if self.keys else {}),
            **({_REPLACES_PART: True} if self.replaces_part else {}),
            **({} if self.folder is None else {_FOLDER: self.folder}),
        }

    @classmethod
    def of_stats(cls, stats: Mapping[str, Any]) -> Self:
        """Return what `stats` wrote; what an earlier version has not stored is as it is by default.

        Raises:
            StateCorruptError: one of the values has another type.
        """
        return cls(
            Mode(value_of(stats, "mode", default=Mode.APPEND.value)),
            value_of(stats, _VERSION_BEFORE),
            tuple(value_of(stats, "partition_by", ())),
            tuple(value_of(stats, _KEYS, ())),
            value_of(stats, _REPLACES_PART, default=False),
            value_of(stats, _FOLDER),
        )
