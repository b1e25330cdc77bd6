"""Which outputs of an upstream are tables whose versions tell what each run wrote, by the format that they store.

A new format is a class here, and its reader in `spark.contexts.upstream`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.sources.delta.source import DeltaSource
from airflow_bookmarks.sources.delta.written import DeltaRuns
from airflow_bookmarks.sources.iceberg.source import IcebergSource
from airflow_bookmarks.sources.iceberg.written import IcebergRuns

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.core.run import OutputEntry
    from airflow_bookmarks.sources.iceberg.written import OpenTable
    from airflow_bookmarks.sources.tables.runs import TableRuns

_FORMATS = frozenset({DeltaSource.kind, IcebergSource.kind})


def table_format(entry: OutputEntry) -> str | None:
    """Return the format of the table that an output went to; None: it went to none whose versions tell what it wrote.

    A format is called as the kind of source that reads it.
    """
    told = entry.metadata.format
    return told if told in _FORMATS and not entry.lies_in_files else None


def is_same_table(one: OutputEntry, other: OutputEntry) -> bool:
    """Whether two outputs went to one table: by its folder, or by its name where one of them stores no folder."""
    places = [each.metadata.table_folder for each in (one, other)]
    if None in places and one.target == other.target:
        return True
    return (places[0] or one.target) == (places[1] or other.target)


class TableOutputs:
    """What the runs of an upstream have written to tables, each looked at once.

    Args:
        what: consumer and upstream, for errors.
        open_iceberg: opens the Iceberg table of an output.
    """

    def __init__(self, what: str, open_iceberg: OpenTable) -> None:
        self.delta, self.iceberg = DeltaRuns(what), IcebergRuns(what, open_iceberg)
        self._formats: Mapping[str, TableRuns] = {DeltaSource.kind: self.delta, IcebergSource.kind: self.iceberg}

    def find(self, entry: OutputEntry) -> TableRuns | None:
        """Return what tells the files of an output; None where it went to no such table."""
        told = table_format(entry)
        return None if told is None else self._formats[told]

    def folder(self, entry: OutputEntry) -> str:
        """Return where an output lies: the folder of its table, or its target."""
        found = self.find(entry)
        return entry.target if found is None else found.folder(entry)
