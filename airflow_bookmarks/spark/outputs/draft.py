"""An output as a script asks for it, before it is known to which sink it goes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.sinks.staging import Mode
from airflow_bookmarks.spark.sinks.deletes import with_deletes
from airflow_bookmarks.spark.spark_names import OF_DELTA_WRITES
from airflow_bookmarks.spark.use import RunningJob

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from pyspark.sql import DataFrame

    from airflow_bookmarks.core.database.sink_table import SinkTable
    from airflow_bookmarks.core.database.upsert import Upsert
    from airflow_bookmarks.core.rules.emptiness import WhenEmpty
    from airflow_bookmarks.sinks.files.catalog import CatalogTable, TableDefinition
    from airflow_bookmarks.sinks.staging import OnUnknownRuns, Staged, StagingRequest
    from airflow_bookmarks.spark.query import Query
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

_DYNAMIC = "spark.sql.sources.partitionOverwriteMode"


class WritingJob(RunningJob, Protocol):
    """What a writer needs besides of the job whose output it writes."""

    store: BookmarkStore

    @property
    def option(self) -> str:
        """The option in force: "enable", "pause" or "disable"."""
        ...

    def check_target(self, target: str, *, overwrites: bool) -> None:
        """Make sure that an output doesn't lie where this run reads, nor replaces what others of its loop wrote."""
        ...

    def check_table(self, address: str, table: SinkTable, *, overwrites: bool, upserts: bool) -> None:
        """Make sure that an output doesn't replace what another one of its run or loop wrote to a table."""
        ...

    def check_landing(self, output: str) -> None:
        """Make sure that the run may have one more output that commits by itself."""
        ...

    def land_last(self, landing: LandingOutput) -> None:
        """Let an output that commits by itself be written at the commit, when all others are staged."""
        ...


class LandingOutput(Protocol):
    """An output that commits by itself, which its script has asked for and the commit of its run writes."""

    @property
    def output(self) -> str:
        """The name of the output."""
        ...

    def query(self) -> Query:
        """Return what the write of its rows reads."""
        ...

    def prepared(self) -> StagingRequest | None:
        """Return what is stored before its rows land; None if this run writes nothing of it, which is recorded then."""
        ...

    def land(self, place: str) -> None:
        """Write its rows under the token that `place` names, and record what has landed."""
        ...


@dataclass(slots=True, kw_only=True)
class OutputDraft:
    """What a script asks of one output.

    Attributes:
        job: The job that writes it.
        frame: Its rows.
        name: Its name.
        staging: Where it is staged, if elsewhere than by default.
        count_rows: Whether the rows are counted in any case.
        when_empty: What becomes of it if no context has anything new.
        on_unknown_runs: What to do where a first run finds files of runs that the store does not know.
        overwrite_published: Whether a pause or disable run may delete what runs have published.
        format: The format, and `is_format_given` whether the script names it.
        mode: Whether it replaces what is there; `overwrite_mode` is the option partitionOverwriteMode, if given.
        partition_by: Its partition columns.
        options: Those of the format.
        upsert: The keys by which its rows replace others, with the `deletes`; None: they are appended.
        catalog_table: The table of a catalog that gets its partitions.
        catalog_definition: How the publish makes that table if it is not there; None: it has to be.
    """

    job: WritingJob
    frame: DataFrame
    name: str
    staging: str | None
    count_rows: bool
    when_empty: WhenEmpty | None
    on_unknown_runs: OnUnknownRuns
    overwrite_published: bool
    format: str = "parquet"
    is_format_given: bool = False
    mode: Mode = Mode.APPEND
    overwrite_mode: str | None = None
    partition_by: tuple[str, ...] = ()
    options: dict[str, str] = field(default_factory=dict)
    upsert: Upsert | None = None
    deletes: DataFrame | None = None
    catalog_table: CatalogTable | None = None
    catalog_definition: TableDefinition | None = None

    @property
    def what(self) -> str:
        """Job and output, as errors name them."""
        return f"job {self.job.name!r}, output {self.name!r}"

    def refused(self, what: str) -> OptionError:
        """Return the error for what can't be written like this; the run then knows that a write was refused."""
        error = OptionError(f"{self.what}: {what}. Nothing was written or committed.")
        self.job.active_run.refuse_write(self.name, error)
        return error

    def writing(self) -> AbstractContextManager[None]:
        """Let the run know that this output is being written, within the block."""
        return self.job.active_run.writing(self.name)

    def rows(self) -> DataFrame:
        """Return the rows, with the delete set of an upsert among them."""
        if self.upsert is None or self.deletes is None:
            return self.frame
        return with_deletes(self.frame, self.deletes, self.upsert, self.what)

    def staged(self, frame: DataFrame, write: Callable[[Sequence[str]], Staged]) -> Staged:
        """Write a frame while the run sees what its query reads; return what was staged.

        Args:
            write: writes the frame; it is told from which contexts that is made.
        """
        uses = self.job.uses
        query = uses.query_of_write(frame)
        made_from = uses.made_from(query, frame.sparkSession)
        with uses.of_write(query):
            return replace(write(made_from), made_from=made_from)

    # ---- what the script has chosen

    def publish_mode(self) -> Mode:
        """Return the mode of an output of files; without partition columns there are no partitions to replace."""
        if self.mode is not Mode.OVERWRITE or not self.partition_by:
            return self.mode
        return self._overwrite()

    def table_mode(self) -> Mode:
        """Return the mode of an output that goes to a Delta or Iceberg table.

        Raises:
            OptionError: an option about overwriting, and it appends.
        """
        if self.mode is not Mode.OVERWRITE:
            if self.overwrite_mode == "dynamic":
                raise self.refused(f"partitionOverwriteMode has no effect in mode {self.mode.value!r}")
            return self.mode
        if self.overwrite_mode is None and any(key.lower() == "replacewhere" for key in self.options):
            return Mode.OVERWRITE
        return self._overwrite()

    def _overwrite(self) -> Mode:
        chosen = self.overwrite_mode or (self.job.spark.conf.get(_DYNAMIC, "static") or "static").lower()
        return Mode.OVERWRITE_PARTITIONS if chosen == "dynamic" else Mode.OVERWRITE

    def check_no_catalog(self, what: str) -> None:
        """Make sure that partitions are not to be added to a catalog, where `what` has none to add."""
        if self.catalog_table is not None:
            raise self.refused(f"in_catalog(...) is for partitions of files, and has no effect on {what}")

    def check_no_delta_options(self, what: str) -> None:
        """Make sure that no option is one of Delta alone, for `what` is no Delta table."""
        for key in self.options:
            if key.lower() in OF_DELTA_WRITES:
                raise self.refused(f"option {key!r} is one of a Delta table and has no effect on {what}")
