"""The one current run of a Spark session, as the calls of a script for AWS Glue share it.

no init      reads are whole and writes are direct; commit warns
init         the run of a job: contexts are read by bookmark, with enable writes are staged
failed init  its error is kept, and each later read with a context, write, purge or commit raises it again
failed read  of what was planned, or write: with enable there is no commit, even if the script catches the error
commit       the run is over; another init begins the next one
exit         a run that is not committed is aborted, and the log names it
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections import Counter
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError
from pyspark.sql import SparkSession

from airflow_bookmarks.core.errors import BookmarkError, MisuseError
from airflow_bookmarks.core.option import Option
from airflow_bookmarks.core.text.cause import cause_of
from airflow_bookmarks.glue.errors import DROPPED_RECORDS, ERROR_RECORDS
from airflow_bookmarks.glue.failures import CaughtFailures, Places
from airflow_bookmarks.glue.names import KeptValue, OutputNames, name_of
from airflow_bookmarks.glue.scratch import scratch_folder
from airflow_bookmarks.glue.settings import RUN_KEY, GlueSettings
from airflow_bookmarks.glue.watermarks.kept import KeptWatermarks
from airflow_bookmarks.spark.features import SPARK_ERRORS, session_conf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from airflow_bookmarks.spark.job import BookmarkedJob
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

log = logging.getLogger(__name__)

# What a step of the script left out of what was read: counted on the record of the run as well.
LEFT_OUT_OF_FRAMES = (DROPPED_RECORDS, ERROR_RECORDS)

_READ_WHOLE: ContextVar[str | None] = ContextVar("glue_read_whole", default=None)  # of one thread alone


class GlueRun:
    """The one current run of a Spark session. Made by `current_run`."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.settings = GlueSettings.from_conf(session_conf(spark))
        self.job: BookmarkedJob | None = None
        self.reach_catalog: Callable[[BookmarkStore], None] | None = None
        self.option = Option.DISABLE
        self.job_name: str | None = None
        self.run_id: str | None = None
        self.temp_dir: str | None = self.settings.temp_dir
        self.arguments: Mapping[str, str] = {}
        self.is_begun = False
        self.is_committed = False
        self.is_used = False
        self.runs = 0
        self.counts: Counter[tuple[str, str]] = Counter()
        self.contexts: set[str] = set()
        self._error: BaseException | None = None
        self._failures = CaughtFailures()
        self._lock = threading.RLock()  # scripts read and write tables in several threads
        self._warned: set[str] = set()
        self._outputs = OutputNames(self._shared_outputs, self.warn_once)
        self._written: Counter[str] = Counter()
        self._releases: list[Callable[[], None]] = []
        self._tellers: list[Callable[[], None]] = []
        self._values: dict[str, Any] = {}
        self.watermarks = KeptWatermarks(self.state)

    # ---- its life, as `Job` has it

    def begin(
        self,
        job: BookmarkedJob | None,
        *,
        job_name: str,
        option: Option,
        run_id: str | None,
        temp_dir: str | None,
        arguments: Mapping[str, Any],
    ) -> None:
        """Take the run that `Job.init` has begun; `job` is None where there is no store to record it in."""
        self.job, self.job_name, self.option, self.run_id = job, job_name, option, run_id
        self.temp_dir = temp_dir
        self.arguments = {key: str(value) for key, value in arguments.items() if value is not None}
        self.is_begun, self.is_committed, self.is_used = True, False, False
        self.runs += 1
        self._error = None
        self._forget()

    def fail(self, error: BaseException) -> None:
        """Keep the error of an init, for all that comes after it."""
        if self._error is not error:
            error.add_note(
                "Without job.init the script would read everything, and write beside its bookmark. So each read with a "
                "context, write, purge and commit raises this error again."
            )
        self._error = error

    def commit(self) -> Mapping[str, Any]:
        """Commit the run with the counts of what its steps left out, and end it; return its summary.

        The watermarks that the script has added are written behind the commit. The summary is empty where there is no
        store to record it in.

        Raises:
            MisuseError: a frame was not written, whatever the script made of the error.
        """
        self._failures.check(self.job_name or "")
        self._tell()
        if self.job is not None:
            for (name, ctx), number in self.counts.items():
                if name in LEFT_OUT_OF_FRAMES and number:
                    self.job.active_run.count_left_out(name_of("step", ctx or "script"), name, number)
        summary = {} if self.job is None else self.job.commit()
        try:
            self._write_watermarks()
        finally:
            self.end()
        return summary

    def _write_watermarks(self) -> None:
        try:
            self.watermarks.write()
        except (BookmarkError, BotoCoreError, ClientError) as error:
            error.add_note(
                f"The run of job {self.job_name!r} is committed. Its watermark is kept with it, in job.state, and the "
                "next run of the job writes it before its script reads that table."
            )
            raise

    def end(self) -> None:
        """End the run, committed or not: show its counts, and give back what it held."""
        self.is_committed, self.is_used = True, False
        self._tell()
        self.release()
        for (name, ctx), number in sorted(self.counts.items()):
            log.info("bookmark %s: %s%s: %d", self.job_name, name, f" of {ctx}" if ctx else "", number)

    def _forget(self) -> None:
        """Begin with nothing that belongs to an earlier run."""
        self.counts.clear()
        self.contexts.clear()
        self._warned.clear()
        self._outputs.clear()
        self._written.clear()
        self._values.clear()
        self._failures = CaughtFailures()
        self.watermarks = KeptWatermarks(self.state)

    # ---- where the run stands

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the outputs so far."""
        return self._outputs.given

    @property
    def moves_bookmark(self) -> bool:
        """Whether the commit moves the bookmark: with enable, after init, before the commit."""
        is_open = self.job is not None and self.is_begun and not self.is_committed
        return is_open and self.option is Option.ENABLE

    @property
    def is_managed(self) -> bool:
        """Whether writes are staged and purges are part of the commit."""
        return self.moves_bookmark and self.settings.writes == "managed"

    @property
    def counts_rows(self) -> bool:
        """Whether the rows of each context are counted as they are read, which may keep filters from the source."""
        return self.settings.metrics is not None

    def check(self) -> None:
        """Raise the error of a failed init again, so that a script that caught it doesn't work without a bookmark."""
        if self._error is not None:
            raise self._error

    def writing(self, frame: object, places: Places) -> AbstractContextManager[None]:
        """Let a failure of the block keep the bookmark from being moved, until the frame is written to that place."""
        return self._failures.writing(frame, places) if self.moves_bookmark else nullcontext()

    def reading(self, ctx: str) -> AbstractContextManager[None]:
        """Let a failure of the block keep the bookmark from being moved, if the block has planned a context."""
        if self.job is None or not ctx or not self.moves_bookmark:
            return nullcontext()
        return self._failures.reading(self.job, self.source_name(ctx))

    def note_use(self) -> None:
        """Record that something was read or written since the last commit."""
        if self.is_committed and not self.is_used:
            log.warning(
                "bookmark %s: the script reads or writes after job.commit(): that belongs to no run, so it is read "
                "whole, and written at once",
                self.job_name,
            )
        self.is_used = True

    # ---- what a context is read with

    def job_for(self, ctx: str, call: str) -> BookmarkedJob | None:
        """Return the job to read a context with; None: read whole, about which one warning names the call.

        Args:
            ctx: the transformation_ctx of the read, which may be empty.
            call: the call, for the warning: "create_dynamic_frame.from_catalog(database='shop', table_name='orders')".

        Raises:
            MisuseError: the run is committed. If init has failed, its error.
        """
        whole = _READ_WHOLE.get()
        if whole is not None:
            self.warn_once(f"{whole} has no bookmark: it is read whole in each run")
            return None
        if not ctx:
            self.warn_once(f"{call} has no transformation_ctx, so it has no bookmark: it is read whole in each run")
            return None
        self.check()
        if not self.is_begun:
            self.warn_once(
                f"{call} comes before job.init, or the script has none, so it has no bookmark: it is read whole"
            )
            return None
        if self.is_committed and self.job is not None:
            raise MisuseError(
                f"{call}: the run of job {self.job_name!r} is committed. Nothing was read. Read before job.commit(), "
                "or call job.init again: that begins another run."
            )
        self.contexts.add(ctx)
        return self.job

    @contextmanager
    def reading_whole(self, call: str) -> Iterator[None]:
        """Let the reads of the block be whole; one warning names the call."""
        before = _READ_WHOLE.set(call)
        try:
            yield
        finally:
            _READ_WHOLE.reset(before)

    def source_name(self, ctx: str) -> str:
        """Return the name under which a context's position is kept."""
        return name_of("context", ctx)

    def output_name(self, ctx: str, target: str) -> str:
        """Return the name of an output; see `OutputNames`."""
        return self._outputs.of(ctx, target)

    def _shared_outputs(self) -> KeptValue | None:
        return self.state("glue.outputs") if self.is_managed else None

    def take_output(self, ctx: str, target: str) -> str:
        """Return the name of an output that is about to be written: `output_name`, with a number from the second on.

        A run has each output once, and a script may append to one target several times.
        """
        with self._lock:
            name = self.output_name(ctx, target)
            self._written[name] += 1
            return name if self._written[name] == 1 else name_of("output", f"{name}-{self._written[name]}")

    # ---- what a run keeps

    def count(self, name: str, number: int, *, ctx: str = "") -> None:
        """Add to a count that the log shows at the end of the run.

        Args:
            name: what is counted: `DROPPED_RECORDS`, `ERROR_RECORDS`, "recordsRead".
            number: how many more there are.
            ctx: the context or transform they belong to.
        """
        with self._lock:
            self.counts[(name, ctx)] += number

    def warn_once(self, message: str) -> None:
        """Log a warning, the first time that a run has it."""
        with self._lock:
            is_new = message not in self._warned
            self._warned.add(message)
        if is_new:
            log.warning("bookmark %s: %s", self.job_name or "(no job)", message)

    def warn_of_unknown(self, call: str, given: Mapping[str, Any]) -> None:
        """Log a warning about arguments of a call that mean nothing here, as Glue ignores what it doesn't know."""
        if given:
            self.warn_once(f"{call}: unknown arguments {', '.join(sorted(given))} are ignored")

    def state(self, name: str) -> KeptValue:
        """Return a JSON value that the job keeps from run to run; without a job one that begins empty and ends here."""
        if self.job is None or self.is_committed:
            return _ValueOfRun(name, self._values)
        return self.job.state(name_of("state", name))

    # ---- its end

    def before_end(self, tell: Callable[[], None]) -> None:
        """Call `tell` before the commit, or where there is none at the end of the run: it tells a count."""
        self._tellers.append(tell)

    def _tell(self) -> None:
        while self._tellers:
            self._tellers.pop()()

    def at_end(self, release: Callable[[], None]) -> None:
        """Call `release` at the end of the run: commit, abort or exit."""
        self._releases.append(release)

    def staging_path(self, name: str, offered: str | None = None) -> str:
        """Return a folder of this run, for rows that it fixes for its own use; it disappears with the run.

        Args:
            name: a name for it.
            offered: a folder that the call offers, used where Spark runs on other machines and there is no TempDir.

        Raises:
            OptionError: Spark runs on other machines, and the script has neither.
        """
        job = name_of("job", self.job_name or "no-job")
        folder, remove = scratch_folder(self.spark, self.temp_dir, job, name_of("output", name), offered)
        self.at_end(remove)
        return folder

    def release(self) -> None:
        """Give back what the run has held; what Spark refuses, as after its stop, is named in the log."""
        while self._releases:
            try:
                self._releases.pop()()
            except SPARK_ERRORS as error:
                log.warning("bookmark %s: a frame was not given back: %s", self.job_name, cause_of(error))


class _ValueOfRun:
    """A value that nothing keeps."""

    def __init__(self, name: str, values: dict[str, Any]) -> None:
        self._name, self._values = name, values

    def get(self, default: Any = None) -> Any:
        return self._values.get(self._name, default)

    def set(self, value: Any) -> None:
        self._values[self._name] = value


# By a mark in the session's conf: PySpark makes more than one object for one session.
_RUNS: dict[str, GlueRun] = {}


def current_run(spark: SparkSession) -> GlueRun:
    """Return the current run of a Spark session.

    Raises:
        ImportError: the session is a client of Spark Connect.
        OptionError: a setting of this layer is unknown.
    """
    key = spark.conf.get(RUN_KEY, None)
    if key is None or key not in _RUNS:
        key = uuid.uuid4().hex
        _RUNS[key] = GlueRun(spark)
        spark.conf.set(RUN_KEY, key)
    return _RUNS[key]


def open_runs() -> list[GlueRun]:
    """Return the runs that have begun and are not committed."""
    return [run for run in _RUNS.values() if run.is_begun and not run.is_committed]


def managed_run() -> GlueRun | None:
    """Return the run whose commit makes visible what the script writes; None: what it writes is visible at once.

    Raises:
        MisuseError: several sessions of the process have such a run, and none of them is the active one.
    """
    runs = [run for run in open_runs() if run.is_managed]
    if len(runs) <= 1:
        return runs[0] if runs else None
    active = SparkSession.getActiveSession()
    run = None if active is None else current_run(active)
    if run not in runs:
        names = sorted(str(each.job_name) for each in runs)
        raise MisuseError(
            f"jobs {names} have runs in this process, and no Spark session is active that would say which is meant. "
            "Nothing was read or changed. Run each job in a process of its own."
        )
    return run


def forget_runs() -> None:
    """Forget the runs of all sessions, and give back what they held."""
    while _RUNS:
        _, run = _RUNS.popitem()
        run.release()
