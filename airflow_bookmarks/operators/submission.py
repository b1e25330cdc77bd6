"""What an operator does around Spark when the job has a bookmark, whatever submits it.

before   resolve job, option, window    an error here costs no Spark start
         on a retry: what an earlier try committed is published, without Spark
         another run holds the job: fail, or let the driver wait
         skip_when_empty: nothing new is found without Spark, and committed as an empty run
submit   the settings travel as Spark conf, the runtime as a zip
after    enable: success means published; the worker publishes what a driver committed before it died
         not committed, or Spark failed: the try is fenced, and the task fails
         an asset event, metrics
kill     stop Spark where that can be done, fence the try in every case
"""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from airflow.sdk import Asset, AssetAlias, BaseOperator
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException, TaskDeferred

from airflow_bookmarks.core.errors import BookmarkError, JobBusyError, NameInvalidError, OptionError
from airflow_bookmarks.core.instant import to_text
from airflow_bookmarks.core.job import Caller, airflow_job_name, airflow_run_id, check_run_id
from airflow_bookmarks.core.option import Option
from airflow_bookmarks.core.settings import Settings
from airflow_bookmarks.hooks.bookmark import DEFAULT_CONNECTION, BookmarkHook
from airflow_bookmarks.lifecycle.empty_run import commit_empty, log_pending
from airflow_bookmarks.lifecycle.finish import side_summary
from airflow_bookmarks.lifecycle.lease import Machine
from airflow_bookmarks.lifecycle.lineage import lineage
from airflow_bookmarks.lifecycle.naming import key_of
from airflow_bookmarks.lifecycle.pending import pending
from airflow_bookmarks.operators import metrics
from airflow_bookmarks.operators.attempt import Attempt
from airflow_bookmarks.operators.runtime_zip import runtime_zip
from airflow_bookmarks.operators.sharded_attempt import ShardedAttempt
from airflow_bookmarks.operators.wish import OnClear, OnConflict, OnEmpty, Resolved, Wish, check_arguments, check_conf
from airflow_bookmarks.store.address import MEMORY
from airflow_bookmarks.version import __version__

if TYPE_CHECKING:
    from pathlib import Path

    from airflow.sdk import Context
    from airflow.triggers.base import BaseTrigger

    from airflow_bookmarks.lifecycle.pending import Pending
    from airflow_bookmarks.lifecycle.summary import Summary
    from airflow_bookmarks.store.address import StoreAddress

log = logging.getLogger(__name__)

ConfFor = Callable[[dict[str, Any]], Mapping[str, Any]]
AssetPartitions = Callable[[dict[str, Any]], Sequence[str]]


@dataclass(frozen=True, slots=True)
class _Task:
    """What one try of the task works on: all that is known before Spark is."""

    hook: BookmarkHook
    resolved: Resolved
    attempt: Attempt | ShardedAttempt
    settings: Settings


class BookmarkedSubmission(BaseOperator):
    """The part of an operator that has to do with bookmarks; the base of those that submit a Spark application.

    It stands in front of the provider's operator among the bases, whose `execute` then submits. The class that has both
    names `bookmark_template_fields` among its template fields, and says in `submission` how settings and runtime get
    into what is submitted.

    Args:
        bookmark_job: name of the job, the key of its bookmark; default `<dag_id>.<task_id>`, for mapped tasks with the
            map index. (templated)
        bookmark_option: "enable", "pause" or "disable", or Glue's spellings; default: what the connection says, else
            "enable". (templated)
        bookmark_from, bookmark_to: with "pause" only: read again what the runs after FROM up to and including TO have
            read; run numbers or run ids. (templated)
        bookmark_upstream: names of the jobs that the script reads with `.upstream(...)`. (templated)
        bookmark_upstream_until: what an operator or sensor of an upstream returned, or a list of such: up to and
            including those runs is read and no further, though more is published. (templated)
        bookmark_shard: this task's part of a sharded job: "i/n", task i of n, counted from 0, or "lo:hi" of the 64
            virtual shards; for mapped tasks what `core.shard.shards(n)` or `ranges(...)` returns. The job has no map
            index in its default name then, and the script loops over `BookmarkedJob(spark).shards()`. (templated)
        bookmark_on_conflict: "fail" (default) when another run holds the job, before Spark starts; or "wait" in the
            driver.
        bookmark_on_clear: what clearing a task does whose run is finished: "replay" (default) reads its stored plan
            again and replaces its output, "skip" succeeds without Spark, "fail" refuses. A retry never replays.
        skip_when_empty: look first, without Spark, whether there is anything new in the sources that the last run
            recorded; if not, do what `on_empty` says. Where that can't be told, Spark runs.
        on_empty: "succeed" (default) commits an empty run, as Spark would; "skip" skips the task, and makes no run.
        conf_for: a function of what is pending (`files`, `bytes`, `contexts`, ...: what `BookmarkHook.pending` returns)
            that returns Spark conf, for resources that follow the amount; it goes before `conf`.
        bookmark_asset: an asset that gets an event when the task has published something, and only then, with the
            summary as its extra. A hint to whoever is scheduled by it: the job's bookmark says what there is to read.
        asset_partitions: a function of the summary that returns partition keys; the event is one for each of them then.
            DAGs that are scheduled by the asset without partitions do not see such events.
        bookmarks_conn_id: an Airflow connection of the type `bookmarks`.
        ship_runtime: send the runtime along; False where the driver's image has the package.

    Raises:
        OptionError: an unknown or contradictory argument that holds no template, in the constructor. One that does
            fails the task before Spark starts, without a retry.
        JobBusyError: another run holds the job. NotCommittedError: Spark ended well, and nothing was committed.
    """

    bookmark_template_fields: ClassVar[tuple[str, ...]] = (
        "bookmark_job",
        "bookmark_option",
        "bookmark_from",
        "bookmark_to",
        "bookmark_upstream",
        "bookmark_upstream_until",
        "bookmark_shard",
    )

    _task: _Task | None = None
    _made: Summary | None = None

    # Each argument by name, and not by **kwargs: Airflow fills from default_args what it finds in this signature.
    def __init__(
        self,
        *,
        bookmark_job: str | None = None,
        bookmark_option: str | None = None,
        bookmark_from: str | int | None = None,
        bookmark_to: str | int | None = None,
        bookmark_upstream: Sequence[str] = (),
        bookmark_upstream_until: Any = None,
        bookmark_shard: str | None = None,
        bookmark_on_conflict: OnConflict = "fail",
        bookmark_on_clear: OnClear = "replay",
        skip_when_empty: bool = False,
        on_empty: OnEmpty = "succeed",
        conf_for: ConfFor | None = None,
        bookmark_asset: Asset | None = None,
        asset_partitions: AssetPartitions | None = None,
        bookmarks_conn_id: str = DEFAULT_CONNECTION,
        ship_runtime: bool = True,
        **kwargs: Any,
    ) -> None:
        check_arguments(kwargs, _argument_names())
        super().__init__(**kwargs)
        self.bookmark_job = bookmark_job
        self.bookmark_option = bookmark_option
        self.bookmark_from = bookmark_from
        self.bookmark_to = bookmark_to
        self.bookmark_upstream = bookmark_upstream
        self.bookmark_upstream_until = bookmark_upstream_until
        self.bookmark_shard = bookmark_shard
        self.bookmark_on_conflict = bookmark_on_conflict
        self.bookmark_on_clear = bookmark_on_clear
        self.skip_when_empty = skip_when_empty
        self.on_empty = on_empty
        self.conf_for = conf_for
        self.bookmark_asset = bookmark_asset
        self.asset_partitions = asset_partitions
        self.bookmarks_conn_id = bookmarks_conn_id
        self.ship_runtime = ship_runtime
        self._check_arguments()
        if bookmark_asset is not None and asset_partitions is None:
            # An asset among the outlets has an event whenever the task succeeds, also where nothing was published.
            self.outlets = [*self.outlets, _alias(bookmark_asset)]

    def _check_arguments(self) -> None:
        _check_choice("bookmark_on_conflict", self.bookmark_on_conflict, get_args(OnConflict))
        _check_choice("bookmark_on_clear", self.bookmark_on_clear, get_args(OnClear))
        _check_choice("on_empty", self.on_empty, get_args(OnEmpty))
        if self.on_empty != "succeed" and not self.skip_when_empty:
            raise OptionError(
                f"on_empty={self.on_empty!r} is given without skip_when_empty=True. Nothing was read or changed."
            )
        if self.asset_partitions is not None and self.bookmark_asset is None:
            raise OptionError("asset_partitions is given without bookmark_asset. Nothing was read or changed.")
        if self.bookmark_shard is not None and (self.skip_when_empty or self.conf_for is not None):
            raise OptionError(
                "skip_when_empty and conf_for look at one bookmark, and bookmark_shard is of several. Nothing was read "
                "or changed. Leave them out."
            )
        self._wish().check_literals()
        check_conf(self.user_conf())

    # ---- what a submitter says

    def user_conf(self) -> Any:
        """Return the Spark conf that the user gave: a mapping, None, or a template that is not rendered yet."""
        return getattr(self, "conf", None)

    def submit(self, context: Context, conf: Mapping[str, str], runtime: Path | None) -> Any:
        """Submit with `conf` in place of the user's and, if it is to be shipped, the runtime; wait for the end.

        Raises:
            AirflowException, RuntimeError: Spark failed.
        """
        raise NotImplementedError(f"{type(self).__name__} does not say how it submits")

    # ---- the life of a task

    def execute(self, context: Context) -> dict[str, Any]:
        """Submit, and see to it that what was committed is published; return the summary of the run.

        Raises:
            AirflowFailException: what was asked for is wrong (an option, a name, the connection): no retry mends that.
            BookmarkError: before Spark starts, or: Spark ended well and nothing was committed.
            AirflowException, RuntimeError: Spark failed; with a note on where the bookmark stands.
        """
        return self._live(context, lambda task: self._run(task, context))

    def resume_execution(
        self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context
    ) -> dict[str, Any]:
        """Go on after a deferral: do what the provider's operator does then, and finish as if this one had waited.

        Raises:
            as `execute` does.
        """
        goes_on = partial(super().resume_execution, next_method, next_kwargs, context)
        return self._live(context, lambda task: self._go_on(task, context, goes_on))

    def _live(self, context: Context, run: Callable[[_Task], tuple[dict[str, Any], str]]) -> dict[str, Any]:
        outcome: str | None = "failed"
        try:
            summary, outcome = run(self._begin(context))
            return summary
        except (OptionError, NameInvalidError) as error:
            raise AirflowFailException(str(error)) from error
        except AirflowSkipException:
            outcome = "skipped"
            raise
        except TaskDeferred as deferred:
            outcome = None
            deferred.trigger = self._fencing(deferred.trigger)
            raise
        finally:
            if self._task is not None and outcome is not None:
                attempt = self._task.attempt
                metrics.count_task(attempt.job, attempt.store.namespace, outcome)

    def on_kill(self) -> None:
        """Stop Spark, then fence this try: a driver that outlives the submit can't commit any more."""
        try:
            super().on_kill()
        finally:
            self._fence()

    def _begin(self, context: Context) -> _Task:
        """Resolve what the task works on."""
        check_conf(self.user_conf())
        self._check_partitions(context)
        hook = BookmarkHook(self.bookmarks_conn_id)
        ti = context["ti"]
        map_index = -1 if ti.map_index is None else ti.map_index
        resolved = self._wish().resolve(self._default_job(ti, map_index), hook.default_option)
        option = resolved.choice.option
        log.info("bookmark %s: option %s (%s)", resolved.job, option.value, resolved.option_source)
        caller = _caller(context, map_index)
        first = ti.max_tries - (self.retries or 0) + 1
        store = hook.get_conn()
        if option is not Option.DISABLE:
            resolved = replace(resolved, job=key_of(store, resolved.job))  # another name, which a rename gave
        whole = Attempt(store, resolved.job, caller, first, Machine())
        attempt = whole if resolved.share is None else ShardedAttempt(whole, resolved.share)
        self._task = _Task(hook, resolved, attempt, self._settings(resolved, caller, hook.store_uri))
        return self._task

    def _check_partitions(self, context: Context) -> None:
        if self.asset_partitions is None or self.bookmark_asset is None:
            return
        if not hasattr(context["outlet_events"][self.bookmark_asset], "add_partitions"):
            raise OptionError(
                "asset_partitions needs Airflow 3.3 or later. Nothing was read or changed; Spark was not started. "
                "Leave it out."
            )

    def _default_job(self, ti: Any, map_index: int) -> str:
        """Return the job's default name. Mapped tasks with shares of one job have that job in common."""
        is_shared = self.bookmark_shard not in (None, "")
        return airflow_job_name(ti.dag_id, ti.task_id, -1 if is_shared else map_index)

    def _run(self, task: _Task, context: Context) -> tuple[dict[str, Any], str]:
        """Run the task; return its summary, and its outcome for the metrics."""
        if task.resolved.choice.option is not Option.ENABLE:
            self._submit_with(task, context)
            return self._side_summary(task), "side"
        made = task.attempt.finish_earlier()
        if made is None:
            replay, finished = task.attempt.cleared(self.bookmark_on_clear)
            if finished is not None:  # others were told when it was made
                return finished.as_dict(), "skipped"
            made = self._run_enabled(task, context, replay)
        return self._told(made, context)

    def _go_on(self, task: _Task, context: Context, spark: Callable[[], Any]) -> tuple[dict[str, Any], str]:
        if task.resolved.choice.option is not Option.ENABLE:
            spark()
            return self._side_summary(task), "side"
        return self._told(self._finish_after(task, spark), context)

    def _told(self, made: Summary, context: Context) -> tuple[dict[str, Any], str]:
        """Tell others of the run that was made; return its summary, and its outcome for the metrics."""
        self._made = made
        summary = made.as_dict()
        metrics.measure_run(summary)
        if not made.is_empty:
            self._tell(summary, context)
        return summary, "empty" if made.is_empty else "committed"

    def _run_enabled(self, task: _Task, context: Context, replay: int | None) -> Summary:
        attempt = task.attempt
        seen = None
        if replay is not None:
            task = replace(task, settings=replace(task.settings, replay=str(replay)))
        elif self.skip_when_empty or self.conf_for is not None:
            seen = pending(attempt.store, attempt.job)
        attempt.check_free(self.bookmark_on_conflict)
        if seen is not None and self.skip_when_empty:
            summary = self._without_spark(attempt, seen)
            if summary is not None:
                return summary
        return self._finish_after(task, lambda: self._submit_with(task, context, seen))

    def _without_spark(self, attempt: Attempt | ShardedAttempt, seen: Pending) -> Summary | None:
        """Do what `on_empty` says where nothing is new; None where Spark has to run."""
        log_pending(seen)
        if not seen.is_empty or seen.holder is not None:
            return None
        if self.on_empty == "skip":
            raise AirflowSkipException(
                f"bookmark {attempt.job}: nothing is new in {len(seen.contexts)} contexts; Spark was not started, and "
                "no run was made (on_empty='skip')"
            )
        try:
            summary = commit_empty(attempt.store, attempt.job, attempt.caller, attempt.machine)
        except JobBusyError:
            if self.bookmark_on_conflict == "fail":
                raise
            return None  # the driver waits
        if summary is not None:
            log.info("bookmark %s: nothing is new; run %s is empty, without Spark", attempt.job, summary.run_number)
        return summary

    def _finish_after(self, task: _Task, spark: Callable[[], Any]) -> Summary:
        try:
            spark()
        except BookmarkError:
            raise  # refused before anything was submitted
        except Exception as error:  # whatever a provider raises: the try is fenced, and it is raised again
            summary = task.attempt.settle(error)
            if summary is None:
                raise
            return summary
        return task.attempt.finish()

    def _submit_with(self, task: _Task, context: Context, seen: Pending | None = None) -> None:
        conf = {**(self.user_conf() or {})}
        if self.conf_for is not None:
            conf = {**self._conf_for(task, seen), **conf}
        self.submit(context, {**conf, **task.settings.to_conf()}, runtime_zip() if self.ship_runtime else None)

    def _conf_for(self, task: _Task, seen: Pending | None) -> dict[str, str]:
        """Return the conf for what is pending; none where Spark reads something else: a window, or a replay."""
        if self.conf_for is None or seen is None:
            log.info("bookmark %s: conf_for is not asked: it is for new input, in enabled runs", task.resolved.job)
            return {}
        conf = self.conf_for(seen.as_dict())
        if not isinstance(conf, Mapping):
            raise OptionError(f"conf_for returned {conf!r}: expected a dict of Spark conf. Spark was not started.")
        check_conf(conf)
        log.info("bookmark %s: conf_for says %s", task.resolved.job, dict(conf))
        return {str(name): str(value) for name, value in conf.items()}

    # ---- what others are told

    def _tell(self, summary: dict[str, Any], context: Context) -> None:
        """Make the event of the asset, which goes out when the task has succeeded."""
        asset = self.bookmark_asset
        if asset is None:
            return
        if self.asset_partitions is None:
            context["outlet_events"][_alias(asset)].add(asset, extra=summary)
            return
        keys = list(self.asset_partitions(summary))
        if not keys:
            log.info("bookmark %s: asset_partitions names none, so the asset gets no event", summary["job"])
            return
        # Partition keys go with an asset only, not with an alias. It is an outlet of this one try, which has published.
        self.outlets = [*self.outlets, asset]
        event = context["outlet_events"][asset]
        event.extra.update(summary)
        event.add_partitions(keys)

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:
        """Return what the task read and wrote, for Airflow's OpenLineage provider, which asks for it by this name."""
        from airflow_bookmarks.operators.openlineage import operator_lineage

        if self._task is None or self._made is None or self._made.run_number is None:
            return None
        attempt = self._task.attempt
        return operator_lineage(lineage(attempt.store, attempt.job, self._made.run_number))

    def _fence(self) -> None:
        """Fence the try that is running, if it has got as far as Spark.

        Signal handlers call this. The store is opened anew: the handler may have interrupted the one in use in the
        middle of a request.
        """
        task = self._task
        if task is not None and task.resolved.choice.option is Option.ENABLE:
            task.attempt.fence(task.hook.open_store())

    def _fencing(self, trigger: BaseTrigger) -> BaseTrigger:
        """Return the trigger of a deferred task, which from now on is where a kill arrives, with the fence added."""
        from airflow_bookmarks.triggers.submission import Fence, SubmissionTrigger

        task = self._task
        if task is None or task.resolved.choice.option is not Option.ENABLE:
            return trigger
        if isinstance(task.attempt, ShardedAttempt):
            # A fence is of one job. What outlives a kill here does no harm: a retry takes each shard over at once.
            log.warning("bookmark %s: a kill while the task is deferred does not fence its shards", task.attempt.job)
            return trigger
        caller = task.attempt.caller
        fence = Fence(self.bookmarks_conn_id, task.attempt.job, caller.run_id, caller.attempt)
        return SubmissionTrigger.around(trigger, fence)

    # ---- what travels

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
            job=self.bookmark_job,
            option=self.bookmark_option,
            from_run=self.bookmark_from,
            to_run=self.bookmark_to,
            upstream=self.bookmark_upstream,
            upstream_until=self.bookmark_upstream_until,
            shard=self.bookmark_shard,
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
            upstream_until=json.dumps(resolved.until, sort_keys=True) if resolved.until else None,
            dag=json.dumps(dag, sort_keys=True),
            # "fail" is what the driver does anyway; left unsaid, the script may say otherwise.
            on_conflict=None if self.bookmark_on_conflict == "fail" else self.bookmark_on_conflict,
            shard=None if resolved.share is None else resolved.share.text,
            version=__version__,
        )

    def _side_summary(self, task: _Task) -> dict[str, Any]:
        attempt = task.attempt
        option = task.resolved.choice.option.value
        if isinstance(attempt, ShardedAttempt):
            return attempt.side_summary(option).as_dict()
        return side_summary(attempt.store, attempt.job, attempt.caller, option).as_dict()


def _alias(asset: Asset) -> AssetAlias:
    return AssetAlias(f"bookmark {asset.name}")


def _argument_names() -> tuple[str, ...]:
    """Return the names of the arguments that the bookmark has."""
    names = inspect.signature(BookmarkedSubmission.__init__).parameters
    return tuple(name for name in names if name.startswith("bookmark"))


def _check_choice(name: str, value: Any, known: Sequence[str]) -> None:
    if value not in known:
        *most, last = (repr(one) for one in known)
        raise OptionError(f"{name}={value!r}: expected {', '.join(most)} or {last}. Nothing was read or changed.")


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
