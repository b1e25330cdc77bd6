"""The Iceberg table that an output goes to, and what state keeps of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.metadata.known import value_of
from airflow_bookmarks.core.rules.mode import Mode
from airflow_bookmarks.core.text.catalog_name import parts_of, quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.core.run import OutputEntry

_KEYS, _BEFORE, _STAGED, _FOLDER = "upsert_keys", "snapshot_before", "snapshot_staged", "table_folder"


@dataclass(frozen=True, slots=True)
class IcebergTarget:
    """An Iceberg table by its full name: the catalog, the namespace in it, and the table.

    `str` is the name as state keeps it, which `parse` reads.
    """

    catalog: str
    names: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the table of a full name.

        Raises:
            OptionError: it is none.
        """
        catalog, *names = parts_of(text)
        if not names:
            raise OptionError(f"{text!r} names no catalog, as lake.shop.orders does")
        return cls(catalog, tuple(names))

    @classmethod
    def of_entry(cls, entry: OutputEntry) -> Self:
        """Return the table of a stored output.

        Raises:
            OptionError: it names none.
        """
        return cls.parse(entry.target)

    @property
    def sql(self) -> str:
        """The name, in a statement."""
        return quoted(self.catalog, *self.names)

    @property
    def in_catalog(self) -> str:
        """The name without its catalog, as procedures of the catalog take it."""
        return quoted(*self.names)

    def __str__(self) -> str:
        parts = (self.catalog, *self.names)
        plain = ".".join(parts)
        return plain if all(re.fullmatch(r"\w+", part) for part in parts) else quoted(*parts)


@dataclass(frozen=True, slots=True)
class IcebergOutput:
    """What is stored with an output.

    `keys` are those of an upsert. `before` is the snapshot that the table had when the run staged its own, None for an
    empty table; `staged` is that of the run, None before it is there. Their ids have up to 19 digits, which a browser
    would round, so they are stored as text. `folder` is where the table lies, which earlier versions did not store.
    """

    mode: Mode
    partition_by: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    before: int | None = None
    staged: int | None = None
    folder: str | None = None

    @property
    def replaces(self) -> bool:
        """Whether it holds for the table as it was: then what others commit before the publish stands against it.

        Iceberg would bring in an upsert that found no row of its keys as a plain append, also beside rows of these keys
        that came since.
        """
        return self.mode is Mode.OVERWRITE or bool(self.keys)

    def stats(self) -> dict[str, Any]:
        """Return it as stored before the write."""
        keys = {_KEYS: list(self.keys)} if self.keys else {}
        folder = {} if self.folder is None else {_FOLDER: self.folder}
        return {"format": "iceberg", "mode": self.mode.value, "partition_by": list(self.partition_by), **keys, **folder}

    @classmethod
    def of_stats(cls, stats: Mapping[str, Any]) -> Self:
        """Return what `stats` and `figures` wrote; what an earlier version has not stored is as it is by default.

        Raises:
            StateCorruptError: one of the values has another type.
        """
        return cls(
            Mode(value_of(stats, "mode", default=Mode.APPEND.value)),
            tuple(value_of(stats, "partition_by", ())),
            tuple(value_of(stats, _KEYS, ())),
            _id_of(stats, _BEFORE),
            _id_of(stats, _STAGED),
            value_of(stats, _FOLDER),
        )


def figures(staged: int, before: int | None, files: int | None) -> dict[str, Any]:
    """Return what is stored with an output once its snapshot is there: its id, that before it, and its files."""
    return {
        _STAGED: str(staged),
        **({} if before is None else {_BEFORE: str(before)}),
        **({} if files is None else {"files": files}),
    }


def _id_of(stats: Mapping[str, Any], name: str) -> int | None:
    text = value_of(stats, name)
    return None if text is None else int(text)
