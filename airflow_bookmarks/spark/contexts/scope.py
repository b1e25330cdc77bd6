"""What a read belongs to: the job and its run, the context, and what the script has said of format and columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.spark.use import RunningJob

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from airflow_bookmarks.lifecycle.run.session import RunSession
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

    def refused(self, what: str) -> OptionError:
        """Return the error for what can't be read like this."""
        return OptionError(f"{self.label}: {what}. Nothing was read or changed.")
