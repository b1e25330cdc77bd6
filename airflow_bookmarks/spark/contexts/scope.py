"""What a read belongs to: the job and its run, the context, and what the script has said of format and columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.spark.use import RunningJob

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from airflow_bookmarks.lifecycle.run.session import RunSession
    from airflow_bookmarks.sources.tables.versioned import VersionOptions
    from airflow_bookmarks.spark.contexts.options import ReadOptions, ReadShare
    from airflow_bookmarks.spark.inputs import Inputs
    from airflow_bookmarks.store.bookmark_store import BookmarkStore


class ReadingJob(RunningJob, Protocol):
    """What a reader needs besides of the job that it reads for."""

    store: BookmarkStore


@dataclass(frozen=True, slots=True)
class ReadScope:
    """One read of one context.

    Args:
        job: the job that it is for.
        ctx: the context.
        options: those of `job.read`.
        share: what this run of a loop reads of it.
        format: what the script reads files as; None where it does not say.
        schema: the columns that the script gives.
        settings: the options of the format.
    """

    job: ReadingJob
    ctx: str
    options: ReadOptions
    share: ReadShare
    format: str | None
    schema: StructType | None
    settings: Mapping[str, str]

    @property
    def label(self) -> str:
        """What messages begin with."""
        return f"job {self.job.name!r}, context {self.ctx!r}"

    @property
    def run(self) -> RunSession:
        """The run that reads."""
        return self.job.active_run

    @property
    def spark(self) -> SparkSession:
        """The session that reads."""
        return self.job.spark

    @property
    def inputs(self) -> Inputs:
        """What the run reads, by which its outputs are checked."""
        return self.job.inputs

    def check_loop(self, part: str | None, whole: str) -> None:
        """Make sure that parts are read in a loop over them, and nothing else is; note that the loop reads.

        Args:
            part: the option by which one part is read; None: all of it is, which is `whole`.

        Raises:
            OptionError: they are not; or a change of columns would start each part over.
        """
        loop = self.share.loop
        if loop is None and part is not None:
            raise self.refused(
                f"{part} reads one part at a time, each in a run of its own: write `for part in "
                f"BookmarkedJob(...).partitions({self.ctx!r}):` and, in it, `with part:`"
            )
        if loop is None:
            return
        if part is None:
            raise self.refused(
                f"{whole} in job.partitions(...), which reads part by part: a table by .jdbc(..., per=<a column>) or "
                ".delta(..., per=<a partition column>) or .iceberg(..., per=...), files by .files(per_partition=True)"
            )
        if self.options.on_schema_change == "reset":
            raise self.refused(f"{part} with on_schema_change='reset': each part would start all of them over")
        loop.is_read = True

    def bounded_versions(self, table: str, options: VersionOptions, what: str, given_as: str) -> VersionOptions:
        """Return the options of a table that keeps versions, within the bound of a loop.

        Args:
            table: the table, as the script names it.
            options: those of the script.
            what: what it is, for messages: "a Delta table".
            given_as: how a script names one.

        Raises:
            OptionError: something is asked for that such a table has not.
        """
        if not isinstance(table, str) or not table.strip():
            raise self.refused(f"the table {table!r}: give {given_as}")
        self.check_loop(None if options.per is None else f"per={options.per!r}", what)
        if self.share.is_shard:
            raise self.refused(f"{what} in a sharded job, each of whose shards would read all of it")
        self.check_read_as_it_is(what)
        bound = self.share.bound
        twice = set(bound.given()) & set(options.bound.given())
        if twice:
            raise self.refused(f"{', '.join(sorted(twice))}: given to the table and to job.batches(...)")
        both = replace(options.bound, **{name: getattr(bound, name) for name in bound.given()})
        if both.is_given:
            self.options.check_ends(both)
        return options.bounded(both)

    def check_read_as_it_is(self, what: str) -> None:
        """Make sure that the script does not say how to read what has a format and columns of its own.

        Raises:
            OptionError: it does.
        """
        others = {"format": self.format is not None, "schema": self.schema is not None, "option": bool(self.settings)}
        if given := [name for name, is_given in others.items() if is_given]:
            raise self.refused(f"{', '.join(given)}: {what} has its own format and columns, and is read as it is")

    def refused(self, what: str) -> OptionError:
        """Return the error for what can't be read like this."""
        return OptionError(f"{self.label}: {what}. Nothing was read or changed.")
