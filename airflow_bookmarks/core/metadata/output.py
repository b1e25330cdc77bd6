"""The metadata of an output: what is stored with it, and code decides on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_bookmarks.core.metadata.known import value_of
from airflow_bookmarks.core.rules.mode import Mode


@dataclass(frozen=True, slots=True)
class OutputMetadata:
    """How an output is written, what its script chose for a run without new input, and what its run has written.

    `mode`, `format`, `partition_by` and `options` are for those that publish it, replay it and read it later: a sink
    that is no files may tell none of them (None, or empty). `partly_read` are folders that the run has replaced and
    of which it has read a part only; `maybe_partly_read`: that is not known. `files` and `bytes` are None until the
    run commits, and so is `rows`, which stays None where rows are not counted. `table_folder` is where a target
    lies that is the name of a table. `catalog_table` is the table over a folder of files whose partitions the publish
    adds, such as "glue:sales.orders"; `catalog_definition` says in JSON how the publish makes that table if need be.
    `version_after` is the version of a Delta table that has the rows, `upsert_keys` are the columns by which they
    replace others.

    Of a run that has landed in some of its tables only, `has_landed` is what its recovery saw of this one, and
    `settled_as` what a person has decided then: "committed" or "given-up" (None: nobody has).
    """

    format: str | None = None
    mode: str | None = None
    partition_by: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    when_empty: str | None = None
    partly_read: tuple[str, ...] = ()
    maybe_partly_read: bool = False
    rows: int | None = None
    files: int | None = None
    bytes: int | None = None
    table_folder: str | None = None
    catalog_table: str | None = None
    catalog_definition: str | None = None
    version_after: int | None = None
    upsert_keys: tuple[str, ...] = ()
    has_landed: bool | None = None
    settled_as: str | None = None

    @property
    def is_append(self) -> bool:
        """Whether its publish replaces nothing; an output without a mode replaces nothing either."""
        return self.mode is None or self.mode == Mode.APPEND

    @classmethod
    def of_stats(cls, stats: Mapping[str, Any]) -> OutputMetadata:
        """Return what code decides on among what is stored with an output; the rest of it is for people.

        Example:
            >>> OutputMetadata.of_stats({"mode": "append", "rows": 3, "discarded": True}).rows
            3

        Raises:
            StateCorruptError: one of the values has another type.
        """
        return cls(
            format=value_of(stats, "format"),
            mode=value_of(stats, "mode"),
            partition_by=tuple(value_of(stats, "partition_by", ())),
            options=value_of(stats, "options", {}),
            when_empty=value_of(stats, "when_empty"),
            partly_read=tuple(value_of(stats, "partly_read", ())),
            maybe_partly_read=value_of(stats, "maybe_partly_read", default=False),
            rows=value_of(stats, "rows"),
            files=value_of(stats, "files"),
            bytes=value_of(stats, "bytes"),
            table_folder=value_of(stats, "table_folder"),
            catalog_table=value_of(stats, "catalog_table"),
            catalog_definition=value_of(stats, "catalog_definition"),
            version_after=value_of(stats, "version_after"),
            upsert_keys=tuple(value_of(stats, "upsert_keys", ())),
            has_landed=value_of(stats, "has_landed"),
            settled_as=value_of(stats, "settled_as"),
        )
