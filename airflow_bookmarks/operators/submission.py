"""What an operator does around Spark when the job has a bookmark, whatever submits it.

before   resolve job, option, window    an error here costs no Spark start
         on a retry: what an earlier try committed is published, without Spark
         another run holds the job: fail, or let the driver wait
submit   the settings travel as Spark conf, the runtime as a zip
after    enable: success means published; the worker publishes what a driver committed before it died
         not committed, or Spark failed: the try is fenced, and the task fails
kill     stop Spark where that can be done, fence the try in every case
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from airflow.sdk.exceptions import AirflowException

from airflow_bookmarks.core.errors import (
    AttemptRefusedError,
    BookmarkError,
    ChangeRefusedError,
    JobBusyError,
    NotCommittedError,
    OptionError,
)
from airflow_bookmarks.core.head import Take, may_take
from airflow_bookmarks.core.instant import to_text
from airflow_bookmarks.core.job import Caller, airflow_job_name, airflow_run_id, check_name, check_run_id
from airflow_bookmarks.core.option import Choice, Option
from airflow_bookmarks.core.settings import PREFIX, Settings
from airflow_bookmarks.hooks.bookmark import BookmarkHook
from airflow_bookmarks.lifecycle.finish import Outcome, finish, last_summary, outcome, side_summary
from airflow_bookmarks.lifecycle.lease import Machine
from airflow_bookmarks.lifecycle.naming import key_of
from airflow_bookmarks.operators.runtime_zip import runtime_zip
from airflow_bookmarks.store.address import MEMORY
from airflow_bookmarks.version import __version__

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_bookmarks.lifecycle.summary import Summary
    from airflow_bookmarks.store.address import StoreAddress
    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from airflow_bookmarks.store.state_reader import Snapshot

log = logging.getLogger(__name__)

OnConflict = Literal["fail", "wait"]
OnClear = Literal["replay", "skip", "fail"]


# ---- what a user may say, and how it is checked


@dataclass(frozen=True, slots=True)
class Wish:
    """What the task says of its bookmark. Templates are rendered by the time `resolve` is called."""

    job: Any = None
    option: Any = None
    from_run: Any = None
    to_run: Any = None
    upstream: Any = ()

    def check_literals(self) -> None:
        """Check what holds no template: an error in a DAG file shows when the file is read.

        Raises:
            OptionError, NameInvalidError: as `resolve` does.
        """
        if _is_literal(self.job) and _given(self.job) is not None:
            check_name("job", str(self.job))
        if isinstance(self.upstream, str):
            raise OptionError(
                f"bookmark_upstream={self.upstream!r}: expected a list of job names. Nothing was read or changed."
            )
        if isinstance(self.upstream, Sequence):
            for name in self.upstream:
                if _is_literal(name):
                    check_name("job", name)
        if all(_is_literal(value) for value in (self.option, self.from_run, self.to_run)):
            window = _given(self.from_run), _given(self.to_run)
            # Without an option the connection's default decides, which is not known yet: only half a window is wrong.
            fallback = Option.PAUSE if any(window) else Option.ENABLE
            Choice.of(_given(self.option) or fallback, *window)

    def resolve(self, default_job: str, connection_option: str | None) -> Resolved:
        """Return what is in force.

        Raises:
            OptionError: unknown option, half a window, a window without pause. NameInvalidError: a job's name.
        """
        option, source = _given(self.option), "of the task"
        if option is None:
            option, source = connection_option, "default of the connection"
        if option is None:
            option, source = Option.ENABLE.value, "default"
        choice = Choice.of(option, _given(self.from_run), _given(self.to_run))
        upstream = tuple(check_name("job", name) for name in self.upstream or ())
        return Resolved(check_name("job", _given(self.job) or default_job), choice, source, upstream)


@dataclass(frozen=True, slots=True)
class Resolved:
    """The job, option and window in force, where the option comes from, and the declared upstream jobs."""

    job: str
    choice: Choice
    option_source: str
    upstream: tuple[str, ...]


def _given(value: Any) -> str | None:
    """Return a value as text; None where it is empty or what a template makes of None."""
    text = "" if value is None else str(value).strip()
    return None if text in ("", "None") else text


def _is_literal(value: Any) -> bool:
    if isinstance(value, str):
        return "{{" not in value and "{%" not in value
    return value is None or isinstance(value, int)


def check_arguments(given: Mapping[str, Any], known: Sequence[str]) -> None:
    """Make sure that no argument looks like one of the bookmark's and is none; also not one from `default_args`.

    Raises:
        OptionError: a misspelt argument, which would be dropped by Airflow or say something else than meant.
    """
    names = {*given, *(given.get("default_args") or {})}
    unknown = sorted(name for name in names if name.startswith("bookmark") and name not in known)
    if unknown:
        raise OptionError(
            f"unknown argument {unknown[0]!r}; those of the bookmark are {', '.join(sorted(known))}. Nothing was read "
            "or changed."
        )


def check_conf(conf: Any) -> None:
    """Make sure that the user's Spark conf leaves the settings of the bookmark to the operator.

    Raises:
        OptionError: it sets one, so that there would be two places that say it.
    """
    if not isinstance(conf, Mapping):
        return
    taken = sorted(str(key) for key in conf if str(key).startswith(PREFIX))
    if taken:
        raise OptionError(
            f"conf sets {taken[0]!r}, which the operator sets itself. Nothing was read or changed. Say it by an "
            "argument: bookmark_job, bookmark_option, bookmark_from, bookmark_to, bookmark_upstream, "
            "bookmark_on_conflict, or by the connection."
        )


# ---- one try of the task


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of a task, as the bookmark sees it. All of it is done by the worker, without Spark.

    `first` is the try with which the present series of retries began: clearing a task begins a new series, and what
    an earlier one finished does not count for it.
    """

    store: BookmarkStore
    job: str
    caller: Caller
    first: int
    machine: Machine

    @property
    def is_retry(self) -> bool:
        return self.caller.attempt > self.first

    def finish_earlier(self) -> Summary | None:
        """Publish what an earlier try of this series committed; None where it left nothing, and Spark has to run."""
        if not self.is_retry:
            return None
        state, seen = outcome(self.store, self.job, self.caller.run_id)
        if state not in (Outcome.FINISHED, Outcome.DUE) or not self._has_begun(seen):
            return None
        log.info("bookmark %s: an earlier try of %r has committed; Spark is not needed", self.job, self.caller.run_id)
        return finish(self.store, self.job, self.caller, self.machine)

    def cleared(self, on_clear: OnClear) -> tuple[int | None, Summary | None]:
        """Say what becomes of a try whose execution has finished before: the run to replay, or the summary to return.

        Both are None where there is nothing to replay: it is the first time, or what it made was undone since.

        Raises:
            ChangeRefusedError: `on_clear` is "fail", or the execution made several runs.
        """
        seen = self.store.look(self.job, self.caller.run_id)
        execution = seen.execution
        if execution is None or seen.head is None or execution.last_run is None:
            return None, None
        is_again = execution.is_finished or execution.replaying is not None
        if not is_again or self.caller.attempt <= execution.attempt:
            return None, None  # tries that begin anew are those of a DAG run that was deleted and made again
        number = execution.replaying or execution.last_run
        run = self.store.committed_run(self.job, number)
        if run is None or not self.store.ancestry(self.job, seen.head.epoch).is_living(number, run.epoch):
            log.info("bookmark %s: run %d of this task was undone since; it reads what is new", self.job, number)
            return None, None
        if on_clear == "skip":
            log.info("bookmark %s: run %d is finished, and bookmark_on_clear is 'skip'", self.job, number)
            return None, last_summary(self.store, self.job, seen)
        if on_clear == "fail" or execution.first_run not in (None, execution.last_run):
            why = "bookmark_on_clear is 'fail'" if on_clear == "fail" else "it made several runs"
            raise ChangeRefusedError(
                f"job {self.job!r}: {self.caller.run_id!r} has finished run {number}, its task was cleared, and {why}. "
                f"Nothing was read or changed; Spark was not started. 'airflow-bookmarks rewind {self.job} --to "
                f"{number - 1 or 'an earlier run'}' makes it read that input again."
            )
        log.info("bookmark %s: the task was cleared: run %d is replayed", self.job, number)
        return number, None

    def check_free(self, on_conflict: OnConflict) -> None:
        """Make sure that this try may begin, before Spark is started for nothing.

        Raises:
            JobBusyError: another run holds the job, and `on_conflict` is "fail". With "wait" the driver waits.
            AttemptRefusedError: this try was killed, or a higher one was seen.
        """
        seen = self.store.look(self.job, self.caller.run_id)
        verdict = may_take(seen.head, seen.execution, self.caller.run_id, self.caller.attempt, self.machine.clock())
        if verdict is Take.BUSY:
            if on_conflict == "fail":
                raise self._busy(seen)
            log.info("bookmark %s: the driver will wait: %s", self.job, self._busy(seen))
        elif verdict is not Take.ALLOWED:
            raise AttemptRefusedError(
                f"job {self.job!r}: try {self.caller.attempt} of {self.caller.run_id!r} may not begin: this try was "
                "killed, or a higher one was seen (a DAG run that was deleted and made again counts its tries from 1). "
                "Nothing was read or changed; Spark was not started. Clear the task, or trigger a DAG run with "
                "another run id."
            )

    def finish(self) -> Summary:
        """Make sure that the run is published, once Spark has ended well.

        Raises:
            NotCommittedError: the driver ended without a commit; this try is fenced then, so that nobody waits for it.
            PublishError: committed, and can't be published; it stays due.
        """
        seen = self.store.look(self.job, self.caller.run_id)
        try:
            if seen.execution is not None and seen.execution.attempt > 0 and not self._has_begun(seen):
                raise NotCommittedError(
                    f"job {self.job!r}: Spark ended and try {self.caller.attempt} of {self.caller.run_id!r} never "
                    "began a bookmark run; what is there is of an earlier time. State and targets are as before. "
                    "Does the "
                    "script open `with BookmarkedJob(spark) as job:`, under this job's name?"
                )
            return finish(self.store, self.job, self.caller, self.machine)
        except NotCommittedError:
            self.fence(self.store)
            raise

    def settle(self, error: Exception) -> Summary | None:
        """Say what became of the run after Spark failed; return its summary if it is published by the worker.

        None means that the task has to fail with `error`, which then has a note on where the bookmark stands. The try
        is fenced first: in client mode the Python driver may outlive spark-submit, and must not commit after that.
        """
        try:
            self.fence(self.store)
            state, seen = outcome(self.store, self.job, self.caller.run_id)
            if state is Outcome.DUE and self._has_begun(seen):
                summary = finish(self.store, self.job, self.caller, self.machine)
                log.warning(
                    "bookmark %s: Spark failed after the commit of run %s, which the worker has published; the task "
                    "succeeds. Spark's error: %s",
                    self.job,
                    summary.run_number,
                    error,
                )
                return summary
        except BookmarkError as also:
            error.add_note(f"bookmark {self.job}: what became of the run could not be settled: {also}")
            return None
        error.add_note(_fate(self.job, state is Outcome.FINISHED and self._has_begun(seen), seen))
        return None

    def fence(self, store: BookmarkStore) -> None:
        """Fence this try: its driver, if it still lives, can't plan, commit or mark any more."""
        held = store.fence(self.job, self.caller.run_id, self.caller.attempt)
        log.info(
            "bookmark %s: try %d of %r is fenced%s",
            self.job,
            self.caller.attempt,
            self.caller.run_id,
            "; it held the job" if held else "",
        )

    def _has_begun(self, seen: Snapshot) -> bool:
        """Whether a driver of this series of tries took the job."""
        return seen.execution is not None and seen.execution.attempt >= self.first

    def _busy(self, seen: Snapshot) -> JobBusyError:
        lease = seen.head.lease if seen.head is not None else None
        if lease is None:
            raise ValueError(f"job {self.job!r} has no lease")
        return JobBusyError(self.job, lease.run_id, lease.attempt, lease.since, lease.expires_at)


def _fate(job: str, is_published: bool, seen: Snapshot) -> str:
    if is_published and seen.execution is not None:
        return (
            f"bookmark {job}: run {seen.execution.last_run} is committed and published all the same; what failed came "
            "after it. A retry succeeds without Spark."
        )
    if seen.head is None:
        return f"bookmark {job}: nothing was committed; the job has no bookmark yet."
    return (
        f"bookmark {job}: nothing was committed; it stands at run {seen.head.run_number} as before, and the next run "
        "reads the same input."
    )


# ---- the operator's part


class BookmarkedSubmission:
    """Mixin for operators that submit a Spark application; all that such an operator has to do with bookmarks.

    The operator calls `set_bookmark` in its constructor, `run_bookmarked` from `execute`, and names
    `bookmark_template_fields` among its template fields. It has `conf` and `py_files`, as SparkSubmitOperator has.
    """

    bookmark_template_fields: ClassVar[tuple[str, ...]] = (
        "bookmark_job",
        "bookmark_option",
        "bookmark_from",
        "bookmark_to",
        "bookmark_upstream",
    )

    if TYPE_CHECKING:
        conf: dict[Any, Any] | None
        py_files: str | None
        retries: int | None

    _attempt: Attempt | None = None
    _bookmark_hook: BookmarkHook | None = None

    def set_bookmark(
        self,
        *,
        job: str | None,
        option: str | None,
        from_run: str | int | None,
        to_run: str | int | None,
        upstream: Sequence[str],
        on_conflict: OnConflict,
        on_clear: OnClear,
        conn_id: str,
        ship_runtime: bool,
    ) -> None:
        """Take the arguments of the constructor, and check those that hold no template.

        Raises:
            OptionError, NameInvalidError: what is wrong in any case.
        """
        self.bookmark_job = job
        self.bookmark_option = option
        self.bookmark_from = from_run
        self.bookmark_to = to_run
        self.bookmark_upstream = upstream
        self.bookmark_on_conflict = on_conflict
        self.bookmark_on_clear = on_clear
        self.bookmarks_conn_id = conn_id
        self.ship_runtime = ship_runtime
        if on_conflict not in get_args(OnConflict):
            raise OptionError(
                f"bookmark_on_conflict={on_conflict!r}: expected 'fail' or 'wait'. Nothing was read or changed."
            )
        if on_clear not in get_args(OnClear):
            raise OptionError(
                f"bookmark_on_clear={on_clear!r}: expected 'replay', 'skip' or 'fail'. Nothing was read or changed."
            )
        self._wish().check_literals()
        check_conf(self.conf)

    def run_bookmarked(self, context: Context, submit: Callable[[Context], Any]) -> dict[str, Any]:
        """Submit by `submit` with all that the bookmark needs before and after; return the summary of the run.

        Raises:
            BookmarkError: before Spark starts, or: Spark ended well and nothing was committed.
            AirflowException, RuntimeError: Spark failed; with a note on where the bookmark stands.
        """
        check_conf(self.conf)
        hook = self._bookmark_hook = BookmarkHook(self.bookmarks_conn_id)
        ti = context["ti"]
        map_index = -1 if ti.map_index is None else ti.map_index
        default_job = airflow_job_name(ti.dag_id, ti.task_id, map_index)
        resolved = self._wish().resolve(default_job, hook.default_option)
        choice = resolved.choice
        log.info("bookmark %s: option %s (%s)", resolved.job, choice.option.value, resolved.option_source)
        caller = _caller(context, map_index)
        first = ti.max_tries - (self.retries or 0) + 1
        store = hook.get_conn()
        if choice.option is not Option.DISABLE:
            resolved = replace(resolved, job=key_of(store, resolved.job))  # another name, which a rename gave
        attempt = Attempt(store, resolved.job, caller, first, Machine())
        settings = self._settings(resolved, caller, hook.store_uri)
        if choice.option is not Option.ENABLE:
            self._submit_with(settings, context, submit)
            return side_summary(attempt.store, resolved.job, caller, choice.option.value).as_dict()
        earlier = attempt.finish_earlier()
        if earlier is not None:
            return earlier.as_dict()
        replay, skipped = attempt.cleared(self.bookmark_on_clear)
        if skipped is not None:
            return skipped.as_dict()
        settings = replace(settings, replay=None if replay is None else str(replay))
        attempt.check_free(self.bookmark_on_conflict)
        self._attempt = attempt
        return self._submit_and_finish(attempt, settings, context, submit).as_dict()

    def _submit_and_finish(
        self, attempt: Attempt, settings: Settings, context: Context, submit: Callable[[Context], Any]
    ) -> Summary:
        try:
            self._submit_with(settings, context, submit)
        except (AirflowException, RuntimeError) as error:
            summary = attempt.settle(error)
            if summary is None:
                raise
            return summary
        return attempt.finish()

    def _submit_with(self, settings: Settings, context: Context, submit: Callable[[Context], Any]) -> None:
        conf, py_files = self.conf, self.py_files
        self.conf = {**(conf or {}), **settings.to_conf()}
        if self.ship_runtime:
            self.py_files = ",".join([*filter(None, [py_files]), str(runtime_zip())])
        try:
            submit(context)
        finally:
            # Whoever executes this object again finds what the user gave, without the settings of this try.
            self.conf, self.py_files = conf, py_files

    def fence_attempt(self) -> None:
        """Fence the try that is running, if it has got as far as Spark. For `on_kill`, which runs in a signal handler.

        The store is opened anew: the handler may have interrupted the one in use in the middle of a request.
        """
        if self._attempt is not None and self._bookmark_hook is not None:
            self._attempt.fence(self._bookmark_hook.open_store())

    def check_place(self, address: StoreAddress, *, is_cluster: bool) -> None:
        """Make sure that the driver can reach the store from where it runs.

        Raises:
            OptionError: a store in memory, or an SQLite file with a driver on another machine.
        """
        if address.scheme == "sqlite" and address.table == MEMORY:
            raise OptionError(
                "the store is in memory: worker and driver would each have one of their own. Nothing was read or "
                "changed; Spark was not started. Use an SQLite file or a DynamoDB store."
            )
        if address.scheme == "sqlite" and is_cluster:
            raise OptionError(
                f"the store is the SQLite file {address.table!r} and the deploy mode is cluster: the driver runs on "
                "another machine, where the file is absent or another one. Nothing was read or changed; Spark was not "
                "started. Use a DynamoDB store, or deploy mode client."
            )

    def _wish(self) -> Wish:
        return Wish(
            self.bookmark_job, self.bookmark_option, self.bookmark_from, self.bookmark_to, self.bookmark_upstream
        )

    def _settings(self, resolved: Resolved, caller: Caller, store_uri: str) -> Settings:
        dag = {k: v for k, v in asdict(caller).items() if k not in ("run_id", "attempt") and v is not None}
        return Settings(
            job=resolved.job,
            store=store_uri,
            option=resolved.choice.option.value,
            from_run=resolved.choice.from_run,
            to_run=resolved.choice.to_run,
            run_id=caller.run_id,
            attempt=str(caller.attempt),
            upstream=",".join(resolved.upstream) or None,
            dag=json.dumps(dag, sort_keys=True),
            # "fail" is what the driver does anyway; left unsaid, the script may say otherwise.
            on_conflict=None if self.bookmark_on_conflict == "fail" else self.bookmark_on_conflict,
            version=__version__,
        )


def _caller(context: Context, map_index: int) -> Caller:
    ti = context["ti"]
    logical_date = context.get("logical_date")
    return Caller(
        run_id=check_run_id(airflow_run_id(ti.dag_id, ti.run_id, ti.task_id, map_index)),
        attempt=ti.try_number,
        dag_id=ti.dag_id,
        task_id=ti.task_id,
        map_index=map_index,
        dag_run_id=ti.run_id,
        logical_date=None if logical_date is None else to_text(logical_date),
    )
