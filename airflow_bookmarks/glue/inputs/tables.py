"""Read a table of the catalog: its files in the partitions that the catalog lists, or what its connection reaches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.files.listed_partitions import ListedPartitions
from airflow_bookmarks.files.access import reached_by
from airflow_bookmarks.files.opener import open_filesystem
from airflow_bookmarks.glue.catalogs.formats import format_of as format_of_table
from airflow_bookmarks.glue.catalogs.lookup import declared_types
from airflow_bookmarks.glue.errors import STREAM, GlueUnsupportedError
from airflow_bookmarks.glue.inputs.formats import format_of
from airflow_bookmarks.glue.inputs.frames import FileRead
from airflow_bookmarks.glue.inputs.listing_lines import log_partitions
from airflow_bookmarks.glue.inputs.options import FileWords, Words, below
from airflow_bookmarks.glue.inputs.partitions import chosen
from airflow_bookmarks.spark.features import session_conf
from airflow_bookmarks.spark.session import session_access

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_bookmarks.core.files.file_plan import FilePlan
    from airflow_bookmarks.files.filesystem import FileSystem
    from airflow_bookmarks.glue.catalogs.table import Catalog, GlueTable, Partition
    from airflow_bookmarks.glue.dynamic.frame import DynamicFrame
    from airflow_bookmarks.glue.run import GlueRun

_STREAMS = ("kafka", "kinesis")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRead:
    """One read of a table of files.

    Args:
        call: the call of the script, for messages.
        ctx: the transformation_ctx; may be empty.
        glue_ctx: the `GlueContext` of the script.
        catalog: where the table was found.
        table: what is read.
        predicate: which partitions are, in Spark's SQL; empty: all.
    """

    call: str
    ctx: str
    glue_ctx: object
    catalog: Catalog
    table: GlueTable
    predicate: str

    def read(self, run: GlueRun, options: Mapping[str, Any]) -> DynamicFrame:
        """Return the rows of the files; under a bookmark those that are new.

        Raises:
            OptionError: the table has no location or no known format; an option or the predicate is wrong.
            GlueUnsupportedError: the table is a stream, or has another way to be read.
        """
        table = self.table
        if table.classification in _STREAMS or table.parameters.get("typeOfData", "").lower() in _STREAMS:
            raise GlueUnsupportedError(self.call, f"{table.label}, a stream", STREAM)
        told = format_of_table(table, self.call)
        if not table.location:
            raise OptionError(
                f"{self.call}: {table.label} has no location; its SerDe is {table.serde!r}. Nothing was read or "
                "changed. A view has none: read it with spark.table(...)."
            )
        words = Words(self.call, told.options, options)
        which = FileWords.of(words, table.parameters)
        format = format_of(told.name, words, is_fail_fast=which.is_fail_fast)
        words.tell_left(run, self.ctx)
        with reached_by(session_access(run.spark, session_conf(run.spark))):
            files = open_filesystem(table.location)
            location = files.canonical(table.location)
            listed, created_ms = self._partitions(run, which, files)
        is_csv = format.name == "csv"

        def tell(plan: FilePlan) -> None:
            log_partitions(plan, roots=[location], listed=listed, created_ms=created_ms)

        return FileRead(
            call=self.call,
            ctx=self.ctx,
            glue_ctx=self.glue_ctx,
            paths=[location],
            format=format,
            words=replace(which, exclusions=below(which.exclusions, [str(table.location), location])),
            listed=listed,
            columns=[column.name for column in table.columns] if is_csv else (),
            declared=declared_types(run.spark, table.columns) if is_csv else None,
            tell=tell,
        ).read(run)

    def _partitions(
        self, run: GlueRun, which: FileWords, files: FileSystem
    ) -> tuple[ListedPartitions | None, Mapping[str, int]]:
        """Return the partitions that the predicates admit, and by location when the catalog got each."""
        table, types = self.table, self.table.partition_types
        if not types:
            if self.predicate or which.catalog_predicate:
                given = self.predicate or which.catalog_predicate
                raise OptionError(
                    f"{self.call}: the predicate {given!r} is for partitions, and {table.label} has none. Nothing was "
                    "read or changed. Filter the frame by its columns: .filter(...)."
                )
            return None, {}
        found = list(self.catalog.partitions(table, which.catalog_predicate))
        if not found and table.parameters.get("projection.enabled", "").lower() == "true":
            run.warn_once(
                f"{self.call}: {table.label} has partitions by projection, which only Athena makes: the catalog lists "
                "none, and none is read"
            )
        admitted = [found[row] for row in chosen(run.spark, self.call, types, [p.texts for p in found], self.predicate)]
        placed = [each for each in admitted if each.location]
        if len(placed) < len(admitted):
            run.count("partitions without a location", len(admitted) - len(placed), ctx=self.ctx)
            run.warn_once(
                f"{self.call}: {len(admitted) - len(placed)} partition(s) of {table.label} have no location, and are "
                "skipped"
            )
        listed = ListedPartitions(types, _folders(self.call, placed)).spelled(files.canonical)
        return listed, {files.canonical(str(each.location)): each.created_ms for each in placed}


def _folders(call: str, partitions: Sequence[Partition]) -> dict[str, tuple[str | None, ...]]:
    folders: dict[str, tuple[str | None, ...]] = {}
    for each in partitions:
        location = str(each.location)
        if folders.setdefault(location, each.texts) != each.texts:
            raise OptionError(
                f"{call}: two partitions have the location {location!r}, with the values {folders[location]} and "
                f"{each.texts}: its files would belong to both. Nothing was read or changed. Correct one of them in "
                "the catalog."
            )
    return folders
