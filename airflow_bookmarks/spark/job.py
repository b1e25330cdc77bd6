"""`BookmarkedJob`: the interface of the bookmark for PySpark scripts."""

from __future__ import annotations

import copy
import logging
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from airflow_bookmarks.core.errors import MisuseError, OptionError
from airflow_bookmarks.core.job import check_name
from airflow_bookmarks.core.option import Option, check_choice
from airflow_bookmarks.core.rules.emptiness import WhenEmpty
from airflow_bookmarks.core.rules.shard import Shard, shard_name
from airflow_bookmarks.core.selection.bound import Bound
from airflow_bookmarks.core.text.cause import cause_of, exit_code_of
from airflow_bookmarks.files.access import by_own_access, reached_by
from airflow_bookmarks.lifecycle.changes.naming import key_of
from airflow_bookmarks.lifecycle.history.shards import Layout
from airflow_bookmarks.lifecycle.run.environment import environment_of
from airflow_bookmarks.lifecycle.state.manifest import Manifests
from airflow_bookmarks.sinks.staging import OnUnknownRuns
from airflow_bookmarks.spark.arguments import Arguments
from airflow_bookmarks.spark.contexts.options import ReadOptions
from airflow_bookmarks.spark.inputs import Inputs, state_folders
from airflow_bookmarks.spark.loops.batches import BatchLoop
from airflow_bookmarks.spark.loops.partitions import PartitionLoop, is_kept_for_later
from airflow_bookmarks.spark.loops.turn import Ending, Looks, Turn
from airflow_bookmarks.spark.opening import (
    access_of,
    begin_run,
    conf_of,
    reach_databases,
    session_of,
    settings_of,
    show_log,
    sinks_of,
)
from airflow_bookmarks.spark.spark_names import reads_a_context, writes_an_output

# Nothing that imports pyspark: a job without Spark works where it isn't installed.
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import TracebackType

    from pyspark.sql import DataFrame, SparkSession

    from airflow_bookmarks.core.database.sink_table import SinkTable
    from airflow_bookmarks.core.option import OnPartial, OnUnused
    from airflow_bookmarks.core.rules.schema import OnSchemaChange
    from airflow_bookmarks.core.run import ContextState
    from airflow_bookmarks.lifecycle.protocol.acquire import OnConflict
    from airflow_bookmarks.lifecycle.run.checks.expectation import Condition
    from airflow_bookmarks.lifecycle.run.session import RunSession
    from airflow_bookmarks.lifecycle.state.job_state import JobState
    from airflow_bookmarks.lifecycle.state.summary import Summary
    from airflow_bookmarks.sources.source import OnSourceChange
    from airflow_bookmarks.spark.loops.turn import Loop
    from airflow_bookmarks.spark.outputs.draft import LandingOutput
    from airflow_bookmarks.spark.reader import BookmarkedReader
    from airflow_bookmarks.spark.reference import ReferenceReader, References
    from airflow_bookmarks.spark.use import Uses
    from airflow_bookmarks.spark.writer import BookmarkedWriter
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

log = logging.getLogger(__name__)

NO_STREAM = (
    "a Spark stream keeps its own position, in its checkpoint, and two positions of one source would part. Nothing was "
    "read or changed. Use spark.readStream and writeStream without a bookmark, or job.read(...) on a schedule."
)


class BookmarkedJob:
    """One run of a bookmarked job: reads what is new, writes staged output, commits and publishes on leaving the block.

    The operator can pass these settings instead of arguments: `spark.bookmarks.job`, `.store`, `.option`, `.from`,
    `.to`, `.run_id`, `.attempt`, `.replay`, `.start`, `.shard`, `.on_conflict`, `.on_unused`, `.state_uri` and
    `.manifest_uri`. Different values in the two places are an error.

    Args:
        spark: the session; default: the active one. Without one, as in a plain Python task, the job has `state` only:
            it can't read or write, and pyspark is not imported.
        name: the name of the job, which is the key of its bookmark.
        store: a store URI, or an open `BookmarkStore`.
        option: "enable" (default), "pause" or "disable", or Glue's spellings.
        from_run, to_run: run numbers or run ids, with "pause" only: read again what the runs after `from_run`, up to
            and including `to_run`, have read.
        run_id, attempt: the name of the execution, and which try of it this is; default: a new name, and 1.
        replay: the number of a finished run to repeat: its stored plan is read again and its output replaced.
        start: where a job without a bookmark begins: "beginning" (default); "now": everything that the first run to
            commit finds counts as read, and is counted; or a time with a zone, as a datetime or ISO text: files older
            than that count as read, a file of exactly that time does not. For an upstream, runs published by then count
            as read. It has no effect after the first commit: a source that is added later, and a job that was reset,
            begin at the beginning.
        shard: this task's part of a sharded job: `(i, n)`, task i of n, counted from 0; or `range(lo, hi)` of the 64
            virtual shards. Run them with `shards()`.
        on_conflict: what to do while another run holds the job: "fail" (default), or "wait" up to `wait_for`.
        wait_for: how long to wait for another run; default: 1 hour.
        state_uri: a folder for state that is too large for the table ("s3://bucket/prefix"); the store URI can name it
            instead (`?state_uri=`).
        manifest_uri: a folder to which each plan is written before it is read, with every option, in Glue's layout:
            `<manifest_uri>/partitionlisting/<job>/<run id>/<ctx>.input-files.json`.
        on_unused: what to do about a context that had new input which no action of the script used: "warn" (default)
            names it in the log, as far as that is known; "error" commits nothing, and is exact, but keeps filters from
            being pushed down into the read; "ignore" does nothing.
        on_partial: whether a run may write several outputs that commit by themselves, as Delta tables do. "error"
            (default): it may not, for if its driver ends between two of them, one has its rows and the other has none.
            "ask": it may, and should that happen, the next run stops until a person has decided:
            `airflow-bookmarks settle`.

    Raises:
        OptionError: an argument or setting is unknown, or contradicts another. Nothing was read or changed.
        VersionMismatchError: the versions of worker and driver, or of pyspark and pyspark-client, do not fit together.

    Example:
        with BookmarkedJob(spark, name="flights.clean", store="sqlite:////var/lib/bookmarks.db") as job:
            flights = job.read("flights").format("csv").schema(FLIGHTS).load("/lake/raw/flights")
            job.write(flights, "clean").partitionBy("month").save("/lake/clean/flights")
    """

    def __init__(
        self,
        spark: SparkSession | None = None,
        name: str | None = None,
        *,
        store: str | BookmarkStore | None = None,
        option: str | None = None,
        from_run: str | int | None = None,
        to_run: str | int | None = None,
        run_id: str | None = None,
        attempt: int | None = None,
        replay: int | None = None,
        start: str | datetime | None = None,
        shard: Shard | None = None,
        on_conflict: OnConflict | None = None,
        wait_for: timedelta = timedelta(hours=1),
        state_uri: str | None = None,
        manifest_uri: str | None = None,
        on_unused: OnUnused | None = None,
        on_partial: OnPartial = "error",
    ) -> None:
        show_log()
        self._spark = session_of(spark)
        conf = conf_of(self._spark)
        self.access = access_of(self._spark, conf)
        with reached_by(self.access):
            self._given = Arguments.of(
                settings_of(conf),
                name=name,
                store=store,
                option=option,
                from_run=from_run,
                to_run=to_run,
                run_id=run_id,
                attempt=attempt,
                replay=replay,
                start=start,
                shard=shard,
                on_conflict=on_conflict,
                wait_for=wait_for,
                state_uri=state_uri,
                manifest_uri=manifest_uri,
                on_unused=on_unused,
                on_partial=on_partial,
            )
        self.name, self.store = self._given.name, self._given.store
        reach_databases(self.store, conf)
        self._environment = environment_of(self.store, self._given.identity.attempt)
        self._turn = Turn()
        self._references: References | None = None
        self._clear()

    @by_own_access
    def _clear(self) -> None:
        """Begin with nothing that belongs to a run."""
        self.inputs = Inputs(self.name, self._given.upstreams, self._given.untils, state_folders(self.store))
        self._run: RunSession | None = None
        self._uses: Uses | None = None
        self._summary: Summary | None = None
        self._is_aborted = False
        self._session_conf = ExitStack()
        self._landings: list[LandingOutput] = []

    # ---- shards

    def shards(self) -> Iterator[BookmarkedJob]:
        """Yield a job for each virtual shard of this task, each a run of its own; this job itself if it has no shard.

        The same script therefore works with and without shards. The virtual shards are the jobs `<name>~00` to
        `<name>~63`, each with its own bookmark, lease and commit. A failure leaves the shards before it committed.

        Raises:
            ChangeRefusedError: the job has a bookmark as a whole.

        Example:
            for job in BookmarkedJob(spark, shard=(0, 4)).shards():
                with job:
                    flights = job.read("flights").schema(FLIGHTS).csv("/lake/raw/flights")
                    job.write(flights, "clean").save("/lake/clean/flights")
        """
        share = self._given.share
        if share is None:
            yield self
            return
        if self._given.choice.option is not Option.DISABLE:
            self.name = key_of(self.store, self.name)
        with reached_by(self.access):
            of_all = Turn(layout=Layout.of(self.store, self.name), looks=Looks())
        log.info("bookmark %s: share %s, virtual shards %s", self.name, share.text, list(share.numbers))
        with self._references_of_loop():
            for number in share.numbers:
                yield self._at(replace(of_all, shard=number), shard_name(self.name, number))

    def _at(self, turn: Turn, name: str | None = None) -> BookmarkedJob:
        """Return the job of a turn of a loop, which has not begun."""
        job = copy.copy(self)
        job._turn, job.name = turn, name or self.name
        job._clear()
        return job

    # ---- batches

    def batches(
        self,
        *,
        max_files: int | str | None = None,
        max_bytes: int | str | None = None,
        max_rows: int | str | None = None,
        window: timedelta | None = None,
    ) -> Iterator[BookmarkedJob]:
        """Yield a job for each batch of new input, oldest first; each is a run of its own with its own commit.

        The folders are listed once, when the first batch reads them, and the loop ends when everything listed then has
        been read; for a source of your own, when a plan has nothing left. A failure leaves the batches before it
        committed, and a retry of the same execution continues after them. With `pause` and `disable` the loop reads the
        same batches and changes nothing; a pause over a window of runs is a single batch.

        Args:
            max_files, max_bytes, max_rows, window: how much one batch reads of each context; see
                `BookmarkedReader.files` and `.upstream`. A bound given there takes precedence for its context. A kind
                of source that can't be bounded like this refuses it.

        Raises:
            OptionError: a bound is not a positive number or duration.
            MisuseError: the job has begun.

        Example:
            for batch in BookmarkedJob(spark).batches(max_files=1000):
                with batch:
                    flights = batch.read("flights").schema(FLIGHTS).csv("/lake/raw/flights")
                    batch.write(flights, "clean").save("/lake/clean/flights")
        """
        bound = Bound.of(max_files=max_files, max_bytes=max_bytes, max_rows=max_rows, window=window)
        if self._run is not None or self._turn.parts is not None:
            raise MisuseError(
                f"job {self.name!r} has begun, or is a partition, and each batch is a run of its own. Nothing moved. "
                "Write `for batch in BookmarkedJob(...).batches(...):` and, in it, `with batch:`."
            )
        return self._each(BatchLoop(bound))

    def _each(self, loop: Loop) -> Iterator[BookmarkedJob]:
        """Yield the jobs of a loop, each when the one before it has ended."""
        with self._references_of_loop():
            job = self._at(loop.first(self._turn))
            try:
                while True:
                    yield job
                    ending = Ending(job._run, is_done=job._summary is not None, is_aborted=job._is_aborted)
                    following = loop.after(job.name, job._turn, ending)
                    if following is None:
                        break
                    job = job._at(following)
            finally:
                job._leave()
        loop.close(job.name)

    @by_own_access
    def _leave(self) -> None:
        """Give the job back if it is held for a run of the loop that never begins."""
        for run in (self._turn.previous, self._run):
            if run is not None:
                run.leave()

    # ---- partitions

    def partitions(self, ctx: str) -> Iterator[BookmarkedJob]:
        """Yield a job for each part of a source that has new input; each is a run of its own with its own commit.

        Parts are the values of a column, `job.read(ctx).jdbc(..., per="region")`, of a partition column,
        `job.read(ctx).delta(..., per="region")` or `.iceberg(..., per="region")`, or partitions of files,
        `job.read(ctx).files(per_partition=True)`. The first read fixes which of them are new. An exception within
        `with part:` leaves its part where it was; the loop goes on with the others, and raises at its end. A retry of
        the same execution reads what failed. With `pause` and `disable` the loop reads the same and changes nothing.

        Args:
            ctx: the context that is read; a run of the loop reads no other one. `job.reference` is for lookups.

        Raises:
            PartitionsFailedError: at the end of the loop, if values failed; it names them, and has their exceptions.
            MisuseError: the job has begun; or a part of the loop does not read the context.

        Example:
            for part in BookmarkedJob(spark).partitions("orders"):
                with part:
                    orders = part.read("orders").jdbc("conn:shop", "orders", keys=["id"], per="region")
                    part.write(orders, "copy").save("/lake/orders")
        """
        check_name("context", ctx)
        if self._run is not None or self._turn.batches is not None:
            raise MisuseError(
                f"job {self.name!r} has begun, or is a batch, and each partition is a run of its own. Nothing moved. "
                "Write `for part in BookmarkedJob(...).partitions(...):` and, in it, `with part:`."
            )
        return self._each(PartitionLoop(ctx))

    @contextmanager
    def _references_of_loop(self) -> Iterator[None]:
        """Let the jobs of a loop share what they read as references; an outer loop shares its own."""
        if self._references is not None or self._spark is None:
            yield
            return
        from airflow_bookmarks.spark.reference import References  # imports pyspark

        self._references = References("loop")
        try:
            yield
        finally:
            self._references.release()
            self._references = None

    # ---- life

    @by_own_access
    def begin(self) -> BookmarkedJob:
        """Take the job, finish what earlier runs left unfinished, and prepare to read. The `with` block calls this.

        Raises:
            JobBusyError: another run holds the job.
            AttemptRefusedError: this attempt was killed.
            MisuseError: the job has begun already, or has a `shard`: use `shards()`.
            ChangeRefusedError: the shards of this job have bookmarks, so it can't get one as a whole.
        """
        share = self._given.share
        if share is not None and self._turn.shard is None:
            raise MisuseError(
                f"job {self.name!r} is sharded ({share.text}), and each virtual shard is a run of its own. "
                "Nothing moved. Write `for job in BookmarkedJob(...).shards():` and, in it, `with job:`."
            )
        if self._run is not None:
            raise MisuseError(f"job {self.name!r} has begun already. Nothing moved. Make another BookmarkedJob.")
        if self._given.choice.option is not Option.DISABLE and self._turn.previous is None:
            self.name = key_of(self.store, self.name)  # another name, which a rename gave, is that job
        self._run = (
            begin_run(
                self._given,
                self.name,
                self._environment,
                sinks_of(self._spark),
                in_batches=self._turn.goes_on,
                shard=self._turn.shard,
            )
            if self._turn.previous is None
            else self._turn.previous.following()
        )
        try:
            self._prepare_manifests(self._run)
            self._prepare_session()
        except BaseException as error:
            self._abort(error)  # the `with` block is not entered, so nothing else would
            raise
        return self

    def _prepare_manifests(self, run: RunSession) -> None:
        uri = self._given.manifest_uri
        if uri is not None:
            run.write_manifests(Manifests.of(uri, self.name, run.execution_id))

    def _prepare_session(self) -> None:
        if self._spark is not None:
            from airflow_bookmarks.spark.session import listings_held

            self._session_conf.enter_context(listings_held(self._spark))

    @by_own_access
    def commit(self) -> dict[str, Any]:
        """Commit, publish, and return the summary as a plain dict. The end of the `with` block calls this.

        In each of the following cases nothing is committed.

        Raises:
            MisuseError: the job has not begun, or has ended already.
            SourceChangedError: planned input changed during the run.
            ExpectationError: an expectation has failed, even if the script caught its error.
            FencedError: another run has taken the job over.
        """
        run = self.active_run
        self._land()
        if self._uses is not None:
            self._uses.settle(run)
        if self.inputs.unread_upstreams:
            unread = self.inputs.unread_upstreams
            log.warning("bookmark %s: declared upstream jobs %s were not read by this run", self.name, unread)
        self._summary = run.commit()
        self._session_conf.close()
        log.info("bookmark %s: done, %s", self.name, self._summary.in_words())
        return self._summary.as_dict()

    def _land(self) -> None:
        """Write the outputs that commit by themselves, once: a commit that is tried again lands nothing again."""
        if self._landings:
            self.uses.check_used([landing.query() for landing in self._landings])
        wanted = {landing: request for landing in self._landings if (request := landing.prepared()) is not None}
        if wanted:
            places = self.active_run.place_landings({landing.output: request for landing, request in wanted.items()})
            self._land_each(list(wanted), places)
        self._landings = []

    def _land_each(self, landings: Sequence[LandingOutput], places: Mapping[str, str]) -> None:
        landed: list[str] = []
        for landing in landings:
            try:
                landing.land(places[landing.output])
            except BaseException:  # an interrupt too leaves the run half landed, and a person has to hear of it
                if landed:
                    log.error(
                        "bookmark %s: output %r has not landed, and %s has: the next run of the job stops until a "
                        "person has decided what this one counts as (airflow-bookmarks settle)",
                        self.name,
                        landing.output,
                        ", ".join(map(repr, landed)),
                    )
                raise
            landed.append(landing.output)

    @by_own_access
    def abort(self, reason: str) -> None:
        """Release the job without a commit: state and targets stay as they were."""
        self._give_up(reason, None)

    @by_own_access
    def _abort(self, error: BaseException) -> None:
        self._give_up(cause_of(error), exit_code_of(error))

    def _give_up(self, reason: str, exit_code: int | None) -> None:
        if self._run is not None:
            self._is_aborted = True
            try:
                self._run.abort(reason, exit_code=exit_code)
            finally:
                self._session_conf.close()  # the session is the user's, who may go on with it

    def __enter__(self) -> BookmarkedJob:
        is_over = self._summary is not None or self._is_aborted
        return self if self._run is not None and not is_over else self.begin()  # which refuses one that is over

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        if error is None:
            if self._summary is None and not self._is_aborted:
                self._commit_or_abort()
            return None
        if isinstance(error, SystemExit):
            log.warning(
                "bookmark %s: sys.exit(%r) inside the block: nothing is committed. Leave the block first.",
                self.name,
                error.code,
            )
        if self._spark is not None:
            self.inputs.explain(error)
        self._abort(error)
        return is_kept_for_later(self.name, self._turn.parts, error) or None

    def _commit_or_abort(self) -> None:
        try:
            self.commit()
        except BaseException as error:
            # Whatever it is, the job is given back. A loop over partitions keeps an Exception of one for its end, and
            # goes on with the others; what is none, such as an interrupt, ends it at once.
            self._abort(error)
            if not is_kept_for_later(self.name, self._turn.parts, error):
                raise

    # ---- reading and writing

    @reads_a_context
    def read(
        self,
        ctx: str,
        *,
        on_source_change: OnSourceChange = "error",
        on_schema_change: OnSchemaChange = "fail",
        watermark_column: str | None = None,
        count_rows: bool = False,
        deleted_when: str | None = None,
    ) -> BookmarkedReader:
        """Return a reader for what is new in the context `ctx`, with the method names of `spark.read`.

        Options of one kind of source are given where it is named: `.files(...)` of the reader, for files, and
        `.upstream(job, ...)`, for the output of another job.

        Args:
            ctx: the name of the source within the job; its position is stored under that name.
            on_source_change: what to do if the stored position belongs to another source (another path, format or job):
                "error" (default), "reset" (read the new source from the beginning) or, for files, "keep" (continue from
                the position; files under other paths are new).
            on_schema_change: what to do if columns are missing, or have another type than in the previous run: "fail"
                (default) commits nothing and names each column, "accept" continues with the new ones, "reset" reads
                everything from the beginning with the new ones (refused with a bound). Added columns and wider types
                are accepted and reported.
            watermark_column: use the greatest value of this column among the rows read as the watermark of the context,
                instead of the newest file time; refused for an upstream, whose watermark is a run number, and for a
                kind of your own, which has its own. A timestamp, date, integer or decimal; NULL is ignored. It is taken
                from an action of the script that read the whole frame; if none is known, the watermark stays as it
                was, with a warning. It costs nothing with a managed write, and a pass with any other action.
            count_rows: count the rows as an action of the script reads them; this may prevent filter pushdown.
            deleted_when: a condition in Spark's SQL for rows that stand for a deletion ("is_deleted"): the frame has
                the others, and its attribute `deletes` these. What is made of the frame has no such attribute.

        Raises:
            OptionError: a choice is unknown.
            MisuseError: the job was opened without a Spark session.
        """
        check_name("context", ctx)
        wanted = ReadOptions(
            on_source_change=on_source_change,
            on_schema_change=on_schema_change,
            watermark_column=watermark_column,
            count_rows=count_rows,
            deleted_when=deleted_when,
        )
        self._check_spark()
        from airflow_bookmarks.spark.reader import BookmarkedReader  # imports pyspark

        share = self._turn.share(self.name, ctx, self._environment.clock)
        return BookmarkedReader(self, ctx, wanted, share)

    def reference(self, name: str) -> ReferenceReader:
        """Return a reader for a lookup table, with the method names of `spark.read`; the bookmark ignores it.

        It is read once for all batches or shards of a loop and kept (`DataFrame.persist`) until the loop ends, or the
        block of the job if there is no loop. All batches therefore see the same data.

        Raises:
            MisuseError: the job has not begun; or, on loading, another reference of this loop has that name.

        Example:
            airports = batch.reference("airports").csv("/lake/reference/airports.csv", header=True)
        """
        check_name("reference", name)
        self._check_spark()
        _ = self.active_run
        from airflow_bookmarks.spark.reference import ReferenceReader, References  # imports pyspark

        if self._references is None:
            self._references = References("run")
            self._session_conf.callback(self._references.release)
        return ReferenceReader(self.name, name, self.spark, self._references)

    @writes_an_output
    def write(
        self,
        frame: DataFrame,
        name: str = "output",
        *,
        staging: str | None = None,
        count_rows: bool = True,
        stamp_rows: bool = False,
        when_empty: WhenEmpty | None = None,
        on_unknown_runs: OnUnknownRuns = "error",
        overwrite_published: bool = False,
    ) -> BookmarkedWriter:
        """Return a writer for the output `name`, with the method names of `DataFrame.write`.

        The output must then be written: a write that is refused, fails, or has no final call such as `.save(path)`
        blocks the commit, even if the script catches the error.

        Args:
            frame: the rows to write.
            name: the name of the output within the job.
            staging: a folder on the same file system to stage in, for targets whose readers would see `_bookmarks/`.
            count_rows: count the rows that are written (default).
            stamp_rows: add the columns `_run_number` and `_epoch` (bigint) of the run that writes the row; a replay
                writes those of the run that it repeats.
            when_empty: what to do with this output in a run whose contexts have nothing new: "publish" it as in any
                other run, or "discard" it. "rows": in any run, publish it if it has rows, and else make no file of it.
                Default: publish rows, unless they would overwrite while neither a context
                nor `job.state` has moved, and discard an output without rows. Discarded outputs are named in the log
                and counted as `discarded`.
            on_unknown_runs: what to do in a job without a bookmark that begins at the beginning, if its target holds
                files of runs that no job of this store and namespace knows: "error" (default) stops, because the
                bookmark may be lost; "keep" appends to them, for targets that another store writes to on purpose.
            overwrite_published: with pause or disable: allow an overwrite to delete files that runs have published.
                Consumers that have not read these files count them as replaced. By default such a run is refused at its
                end and publishes nothing. A run with enable overwrites as its mode says, without this.

        Raises:
            MisuseError: the frame is streaming, or the job has no Spark session.
            OptionError: a choice is unknown; or with `stamp_rows`, the frame has such a column already, or the option
                is pause or disable.
        """
        self._check_spark()
        run = self.active_run
        run.begin_write(name)
        with run.writing(name):
            check_name("output", name)
            if frame.isStreaming:
                raise MisuseError(f"job {self.name!r}, output {name!r}: {NO_STREAM}")
            from airflow_bookmarks.spark.writer import BookmarkedWriter, stamped  # imports pyspark

            if when_empty is not None:
                check_choice("when_empty", when_empty, WhenEmpty)
            if stamp_rows:
                frame = stamped(self, frame, name)
            check_choice("on_unknown_runs", on_unknown_runs, OnUnknownRuns)
            if not isinstance(overwrite_published, bool):
                raise OptionError(f"overwrite_published={overwrite_published!r}: expected True or False.")
            return BookmarkedWriter(
                self,
                frame,
                name,
                staging=staging,
                count_rows=count_rows,
                when_empty=when_empty,
                on_unknown_runs=on_unknown_runs,
                overwrite_published=overwrite_published,
            )

    def expect(self, condition: Condition, message: str) -> None:
        """Check the data: if the condition is false, this run commits nothing, even if the script catches the error.

        Args:
            condition: True or False, or a function without arguments that returns one; not a Column or DataFrame.
            message: what is expected, in words; stored on the run.

        Raises:
            ExpectationError: the condition is false.
            OptionError: the condition is neither true nor false.
            MisuseError: the job has not begun.

        Example:
            job.expect(flights.where("delay < -1440").isEmpty(), "no flight is a day early")
        """
        self.active_run.expect(condition, message)

    @by_own_access
    def state(self, name: str) -> JobState:
        """Return a JSON value that this job keeps from run to run: a token, a cursor, counters.

        The value is that of the last committed run that is still history. What this run sets is stored in the same
        transaction as the positions. A failed run and `pause` do not change it; `disable` and a first run find none. A
        rewind restores the earlier value, a reset removes it. All values of a job may take up to 16 KB together. Do not
        store secrets in it.

        Example:
            cursor = job.state("cursor")
            rows, following = fetch(since=cursor.get("2013-01-01"))
            cursor.set(following)

        Raises:
            NameInvalidError: `name` is not a valid name.
            MisuseError: the job has not begun.
        """
        return self.active_run.state(name)

    # ---- reading

    @property
    def spark(self) -> SparkSession:
        """The Spark session of this job.

        Raises:
            MisuseError: the job was opened without one.
        """
        if self._spark is None:
            raise MisuseError(
                f"job {self.name!r} was opened without a Spark session, for its state alone. Nothing was read or "
                "changed. Pass a session: BookmarkedJob(spark, ...)."
            )
        return self._spark

    @property
    def readStream(self) -> NoReturn:  # by Spark's name, for users who look for it
        """Refuse a Spark stream.

        Raises:
            MisuseError: always, because a stream keeps its own position, in its checkpoint.
        """
        raise MisuseError(f"job {self.name!r}: {NO_STREAM}")

    @property
    def writeStream(self) -> NoReturn:
        """Refuse a Spark stream; see `readStream`.

        Raises:
            MisuseError: always.
        """
        raise MisuseError(f"job {self.name!r}: {NO_STREAM}")

    def writeTo(self, table: str) -> NoReturn:
        """Refuse to write to a table, whose rows would be visible before the commit.

        Raises:
            MisuseError: always.
        """
        raise MisuseError(
            f"job {self.name!r}: writeTo({table!r}) can't be part of the commit. Nothing was written or changed. Write "
            "a Delta or Iceberg table with job.write(frame, name).delta(table) or .iceberg(table), files with "
            ".save(path), or another table with frame.writeTo(...), at least once: job.run_token tells the rows of a "
            "run."
        )

    @property
    def active_run(self) -> RunSession:
        """The run in progress.

        Raises:
            MisuseError: the job has not begun.
        """
        if self._run is None:
            raise MisuseError(
                f"job {self.name!r} has not begun: use `with BookmarkedJob(...) as job:` or job.begin(). Nothing moved."
            )
        return self._run

    @property
    def option(self) -> str:
        """The option in force: "enable", "pause" or "disable"."""
        return self._given.choice.option.value

    @property
    def virtual_shard(self) -> int | None:
        """The number of the virtual shard that this run reads, 0 to 63; None for a job without shards."""
        return self._turn.shard

    @property
    def run_number(self) -> int | None:
        """The number that this run has once committed; None for pause and disable."""
        return self.active_run.run_number

    @property
    def run_token(self) -> str:
        """A token that only this run has, to mark rows that you write yourself (`df.write`, an API).

        Such rows are written at least once: if the run fails after the write, the next run writes them again under
        another token. Store the token with the rows, and remove rows whose token is not that of a committed run.
        """
        return self.active_run.token

    @property
    def summary(self) -> dict[str, Any] | None:
        """The summary of the run; None before it is committed and published."""
        return None if self._summary is None else self._summary.as_dict()

    @by_own_access
    def watermark(self, ctx: str) -> str | None:
        """Return the committed watermark of a context; this run's own once it has committed."""
        return self.active_run.watermark(ctx)

    @by_own_access
    def position(self, ctx: str) -> dict[str, Any] | None:
        """Return the position of a context: kind, last run that moved it, watermark, source; None if never read."""
        state: ContextState | None = self.active_run.context_state(ctx)
        if state is None:
            return None
        return {
            "kind": state.kind,
            "run_number": state.run.number,
            "watermark": state.watermark,
            "source": state.fingerprint,
        }

    # ---- for reader and writer

    def _check_spark(self) -> None:
        """Raise an error of this package instead of an ImportError if there is no Spark."""
        _ = self.spark

    @property
    def uses(self) -> Uses:
        """What the actions of the session read of the contexts of this run."""
        if self._uses is None:
            from airflow_bookmarks.spark.use import Uses  # imports pyspark

            self._uses = Uses(self.name, self._given.on_unused)
        return self._uses

    def check_target(self, target: str, *, overwrites: bool) -> None:
        """Check that an output neither lies where this run reads, nor replaces what other runs of its loop wrote.

        Raises:
            OptionError: it does one of these.
        """
        if overwrites:
            self._turn.check_overwrite(self.name, target)
        self.inputs.check_target(target, overwrites=overwrites)

    def check_table(self, address: str, table: SinkTable, *, overwrites: bool, upserts: bool) -> None:
        """Check that an output goes to no table that its run reads, and replaces no other one of its run or loop.

        An upsert may replace rows that other runs of its loop wrote: they publish in turn.

        Raises:
            OptionError: it does.
        """
        if overwrites:
            self._turn.check_overwrite(self.name, str(table))
        self.inputs.check_table(address, table, replaces=overwrites or upserts)

    def check_landing(self, output: str) -> None:
        """Make sure that the run may have one more output that commits by itself.

        Raises:
            MisuseError: the run has one already, and `on_partial` is "error".
        """
        if self._landings and self._given.on_partial == "error":
            raise MisuseError(
                f"job {self.name!r}: outputs {self._landings[0].output!r} and {output!r} both go to a sink that "
                "commits by itself, and if the driver died between the two, one would be there and the other one not. "
                "Nothing was written or committed. Write one of them in a job of its own that reads the same source; "
                "or say BookmarkedJob(..., on_partial='ask'): should that happen, the next run stops until a person "
                "has decided."
            )

    def land_last(self, landing: LandingOutput) -> None:
        """Let an output that commits by itself be written at the commit, when all others are staged and checked."""
        self._landings.append(landing)
