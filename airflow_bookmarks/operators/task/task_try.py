"""One try of a task with a bookmark in the worker, around Spark, however it is submitted.

before   resolve job, option, window    an error here costs no Spark start
         on a retry: what an earlier try committed is published, without Spark
         another run holds the job: fail, or let the driver wait
         skip_when_empty: nothing new is found without Spark, nor could the script let more in: an empty run
submit   the settings travel as Spark conf, the runtime as a zip
after    enable: success means published; the worker publishes what a driver committed before it died
         not committed, or Spark failed: the try is fenced, and the task fails
         an asset event, metrics
kill     stop Spark where that can be done, fence the try in every case
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.airflow_compat import AirflowFailException, AirflowSkipException, event_extra, takes_partitions
from airflow_bookmarks.core.errors import (
    BookmarkError,
    ChangeRefusedError,
    JobBusyError,
    MisuseError,
    NotCommittedError,
    OptionError,
)
from airflow_bookmarks.core.job import RunIdentity, airflow_run_id, check_run_id
from airflow_bookmarks.core.option import Option
from airflow_bookmarks.core.settings import Settings
from airflow_bookmarks.core.text.instant import to_text
from airflow_bookmarks.hooks.bookmark import BookmarkHook
from airflow_bookmarks.lifecycle.changes.naming import key_of
from airflow_bookmarks.lifecycle.inspect.lineage import lineage
from airflow_bookmarks.lifecycle.inspect.pending import pending
from airflow_bookmarks.lifecycle.protocol.finish import side_summary
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.empty import commit_empty, log_pending
from airflow_bookmarks.lifecycle.state.comparison import RunFigures, past_figures
from airflow_bookmarks.operators.runtime_zip import glue_zip, runtime_zip
from airflow_bookmarks.operators.task import metrics
from airflow_bookmarks.operators.task.attempt import Attempt
from airflow_bookmarks.operators.task.glue_arguments import S3_IMPLEMENTATION, GlueArguments
from airflow_bookmarks.operators.task.log_group import log_group
from airflow_bookmarks.operators.task.sharded_attempt import ShardedAttempt
from airflow_bookmarks.operators.task.task_config import Resolved, check_conf
from airflow_bookmarks.store.uri import MEMORY
from airflow_bookmarks.version import __version__

if TYPE_CHECKING:
    from airflow.sdk import Context
    from airflow.triggers.base import BaseTrigger

    from airflow_bookmarks.lifecycle.inspect.lineage import Lineage
    from airflow_bookmarks.lifecycle.inspect.pending import PendingInput
    from airflow_bookmarks.lifecycle.state.summary import Summary
    from airflow_bookmarks.operators.task.submitter import Submitter

log = logging.getLogger(__name__)

FAILED_PARTITIONS = "failed_partitions"  # the key of an XCom


@dataclass(slots=True)
class TaskTry:
    """One try of a task: the operator, and everything known before Spark. `made` is the resulting run, `seen` what was
    pending, if that was looked up.
    """

    operator: Submitter
    context: Context
    hook: BookmarkHook
    resolved: Resolved
    attempt: Attempt | ShardedAttempt
    settings: Settings
    made: Summary | None = None
    seen: PendingInput | None = None

    @classmethod
    def of(cls, operator: Submitter, context: Context) -> TaskTry:
        """Resolve what this try works on.

        Raises:
            OptionError, NameInvalidError: what was asked for is wrong; Spark was not started.
        """
        check_conf(operator.user_conf())
        _check_partitions(operator, context)
        hook = BookmarkHook(operator.bookmarks_conn_id)
        ti = context["ti"]
        map_index = -1 if ti.map_index is None else ti.map_index
        task_config = operator.task_config()
        store, job = hook.get_conn(), task_config.job_of(ti.dag_id, ti.task_id, map_index)
        resolved = task_config.resolve(job, hook.default_option, partial(key_of, store))
        option = resolved.choice.option
        log.info("bookmark %s: option %s (%s)", resolved.job, option.value, resolved.option_source)
        identity = _identity(context, map_index)
        if option is not Option.DISABLE:
            resolved = replace(resolved, job=key_of(store, resolved.job))  # another name, which a rename gave
        first = min(ti.max_tries - (operator.retries or 0) + 1, ti.try_number)
        whole = Attempt(store, resolved.job, identity, first, RunEnvironment())
        attempt = whole if resolved.share is None else ShardedAttempt(whole, resolved.share)
        settings = _settings(
            resolved, identity, hook.store_uri, operator.bookmark_on_conflict, operator.bookmark_on_unused
        )
        return cls(operator, context, hook, resolved, attempt, settings)

    @property
    def is_enabled(self) -> bool:
        return self.resolved.choice.option is Option.ENABLE

    # ---- before, during and after Spark

    def run(self) -> tuple[dict[str, Any], str]:
        """Submit, unless that isn't needed; return the summary, and the outcome for the metrics."""
        if not self.is_enabled:
            self._submit()
            return self._side_summary(), "side"
        made = self.attempt.finish_earlier()
        if made is None:
            replay, finished = self._cleared()
            if finished is not None:  # others were notified when it was made
                return finished.as_dict(), "skipped"
            made = self._run_enabled(replay)
        return self._told(made)

    def _cleared(self) -> tuple[int | None, Summary | None]:
        """Return what becomes of a task that was cleared; see `Attempt.cleared`.

        Raises:
            AirflowFailException: it can't be replayed: a retry would be refused as well.
        """
        try:
            return self.attempt.cleared(self.operator.bookmark_on_clear)
        except ChangeRefusedError as error:
            raise AirflowFailException(str(error)) from error

    def go_on(self, spark: Callable[[], Any]) -> tuple[dict[str, Any], str]:
        """Do after a deferral what `run` does after the submit; `spark` goes on as the provider's operator does."""

        def folded() -> None:
            with log_group("Spark"):
                spark()

        if not self.is_enabled:
            folded()
            return self._side_summary(), "side"
        return self._told(self._finish_after(folded))

    def _run_enabled(self, replay: int | None) -> Summary:
        operator, attempt = self.operator, self.attempt
        seen = None
        if replay is not None:
            self.settings = replace(self.settings, replay=str(replay))
        elif operator.skip_when_empty or operator.conf_for is not None:
            seen = self.seen = pending(attempt.store, attempt.job)
        attempt.check_free(operator.bookmark_on_conflict)
        if seen is not None and operator.skip_when_empty:
            summary = self._without_spark(seen)
            if summary is not None:
                return summary
        return self._finish_after(lambda: self._submit(seen))

    def _without_spark(self, seen: PendingInput) -> Summary | None:
        """Do what `on_empty` says if nothing is new; None if Spark has to run."""
        attempt = self.attempt
        log_pending(seen)
        if not seen.is_empty or seen.holder is not None or self._reads_more_than(seen) or self._may_let_in(seen):
            return None
        if self.operator.on_empty == "skip":
            raise AirflowSkipException(
                f"bookmark {attempt.job}: nothing is new in {len(seen.contexts)} contexts; Spark was not started, and "
                "no run was made (on_empty='skip')"
            )
        try:
            summary = commit_empty(
                attempt.store, attempt.job, attempt.identity, attempt.environment, self.resolved.manifest_uri
            )
        except JobBusyError:
            if self.operator.bookmark_on_conflict == "fail":
                raise
            return None  # the driver waits
        if summary is not None:
            log.info("bookmark %s: nothing is new; run %s is empty, without Spark", attempt.job, summary.run_number)
        return summary

    def _reads_more_than(self, seen: PendingInput) -> bool:
        """Whether an upstream is declared that the last run did not read: what is new there only Spark can tell."""
        read = {context.plan.edge.job for context in seen.contexts if context.plan and context.plan.edge}
        declared = (key_of(self.attempt.store, job) for job in (*self.resolved.upstream, *self.resolved.until))
        more = sorted({*declared} - read)
        if more:
            log.info("bookmark %s: upstream %s is declared, and the last run did not read it", self.attempt.job, more)
        return bool(more)

    def _may_let_in(self, seen: PendingInput) -> bool:
        """Whether there may be more than the last run tells: options, which may have changed, or no need of input."""
        choices = [f"context {each.ctx}: {each.up_to_script}" for each in seen.contexts if each.up_to_script]
        choices += [seen.up_to_script] if seen.up_to_script else []
        if choices:
            said = "; ".join(choices)
            log.info("bookmark %s: Spark is started, for the script may find more: %s", self.attempt.job, said)
        return bool(choices)

    def _finish_after(self, spark: Callable[[], Any]) -> Summary:
        try:
            spark()
        except BookmarkError:
            raise  # refused before anything was submitted
        except Exception as error:  # whatever a provider raises: the try is fenced, and it is raised again
            summary = self.attempt.settle(error, self.operator.driver_exit_code)
            if summary is None:
                self._push_partitions_left()
                raise
            return summary
        try:
            return self.attempt.finish()
        except NotCommittedError:
            self._push_partitions_left()
            raise

    def _push_partitions_left(self) -> None:
        """Push which partitions of a loop failed: a retry, which reads these alone, removes what is pushed here."""
        try:
            left = self.attempt.partitions_left()
        except BookmarkError as error:  # the task fails by what happened before
            log.warning("bookmark %s: which partitions are left can't be told: %s", self.attempt.job, error)
            return
        count = sum(len(values) for by_column in left.values() for values in by_column.values())
        metrics.measure_partitions(self.attempt.job, self.attempt.store.namespace, count)
        if left:
            log.warning("bookmark %s: partitions are left: %s", self.attempt.job, left)
            self.context["ti"].xcom_push(key=FAILED_PARTITIONS, value=left)

    def _submit(self, seen: PendingInput | None = None) -> None:
        conf = {**(self.operator.user_conf() or {})}
        if self.operator.conf_for is not None:
            conf = {**self._conf_for(seen), **conf}
        if self.operator.glue and not self.operator.has_s3_of_its_own:
            conf = {**S3_IMPLEMENTATION, **conf}  # scripts for AWS Glue say s3://, which plain Spark does not know
        packed = glue_zip if self.operator.glue else runtime_zip
        runtime = packed() if self.operator.ship_runtime else None
        with log_group("Spark"):
            self.operator.submit(self.context, {**conf, **self.settings.to_conf()}, runtime)

    @property
    def added_arguments(self) -> list[str]:
        """What is added to the arguments of a script for AWS Glue; nothing to those of any other."""
        operator = self.operator
        return GlueArguments.of(operator.script_arguments()).added(self.settings) if operator.glue else []

    def _conf_for(self, seen: PendingInput | None) -> dict[str, str]:
        """Return the conf for what is pending; none where Spark reads something else: a window, or a replay."""
        conf_for, job = self.operator.conf_for, self.resolved.job
        if conf_for is None or seen is None:
            log.info("bookmark %s: conf_for is not asked: it is for new input, in enabled runs", job)
            return {}
        conf = conf_for(seen.as_dict())
        if not isinstance(conf, Mapping):
            raise OptionError(f"conf_for returned {conf!r}: expected a dict of Spark conf. Spark was not started.")
        check_conf(conf)
        log.info("bookmark %s: conf_for says %s", job, dict(conf))
        return {str(name): str(value) for name, value in conf.items()}

    def check_place(self, *, is_cluster: bool) -> None:
        """Make sure that the driver can reach the store from its machine.

        Raises:
            OptionError: a store in memory, or an SQLite file with a driver on another machine.
        """
        address = self.hook.address
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

    def _side_summary(self) -> dict[str, Any]:
        attempt, option = self.attempt, self.resolved.choice.option.value
        if isinstance(attempt, ShardedAttempt):
            return attempt.side_summary(option).as_dict()
        return side_summary(attempt.store, attempt.job, attempt.identity, option).as_dict()

    # ---- notifications

    def count(self, outcome: str) -> None:
        """Count this try as ended with `outcome`."""
        metrics.count_task(self.attempt.job, self.attempt.store.namespace, outcome)

    def lineage(self) -> Lineage | None:
        """Return what the run read and wrote; None where none was made."""
        if self.made is None or self.made.run_number is None:
            return None
        return lineage(self.attempt.store, self.attempt.job, self.made.run_number)

    def _told(self, made: Summary) -> tuple[dict[str, Any], str]:
        """Tell others of the run that was made; return its summary, and its outcome for the metrics."""
        self.made = made
        log.info("bookmark %s: committed and published: %s", made.job, made.in_words())
        summary = made.as_dict()
        metrics.measure_run(summary)
        self._measure_last(made)
        if not made.is_empty:
            self._tell(summary)
        return summary, "empty" if made.is_empty else "committed"

    def _measure_last(self, made: Summary) -> None:
        """Send what the run did, beside what is usual. That takes a request, so only if metrics go anywhere."""
        store, first = self.attempt.store, made.first_run_number or made.run_number
        past: list[RunFigures] = []
        if metrics.are_sent() and first is not None and not isinstance(self.attempt, ShardedAttempt):
            try:
                past = past_figures(store, made.job, first)
            except BookmarkError as error:  # what was made is committed and published: the task succeeds
                log.warning("bookmark %s: the run can't be compared with those before it: %s", made.job, error)
        seen = None if self.seen is None else self.seen.count
        metrics.measure_last(made.job, store.namespace, RunFigures.of(made), seen, past)
        metrics.measure_partitions(made.job, store.namespace, 0)

    def _tell(self, summary: dict[str, Any]) -> None:
        """Make the event of the asset, which goes out when the task has succeeded."""
        operator = self.operator
        asset, alias = operator.bookmark_asset, operator.asset_alias
        if asset is None or alias is None:
            return
        events = self.context["outlet_events"]
        if operator.asset_partitions is None:
            events[alias].add(asset, extra=event_extra(summary))
            return
        keys = _partition_keys(operator.asset_partitions(summary), summary)
        if not keys:
            log.info("bookmark %s: asset_partitions names none, so the asset gets no event", summary["job"])
            return
        # Partition keys go with an asset only, not with an alias. It is an outlet of this one try, which has published.
        operator.outlets = [*operator.outlets, asset]
        events[asset].extra.update(summary)
        events[asset].add_partitions(keys)

    # ---- killed

    def fence(self) -> None:
        """Fence this try, if it is one that commits.

        Signal handlers call this. The store is opened anew: the handler may have interrupted the one in use in the
        middle of a request.
        """
        if self.is_enabled:
            self.attempt.fence(self.hook.open_store())

    def fencing(self, trigger: BaseTrigger) -> BaseTrigger:
        """Return the trigger of a deferred task, which from now on is where a kill arrives, with the fence added."""
        from airflow_bookmarks.triggers.submission import Fence, SubmissionTrigger

        if not self.is_enabled:
            return trigger
        if isinstance(self.attempt, ShardedAttempt):
            # A fence is of one job. What outlives a kill here does no harm: a retry takes each shard over at once.
            log.warning("bookmark %s: a kill while the task is deferred does not fence its shards", self.attempt.job)
            return trigger
        identity = self.attempt.identity
        fence = Fence(self.operator.bookmarks_conn_id, self.attempt.job, identity.run_id, identity.attempt)
        return SubmissionTrigger.around(trigger, fence)


def _check_partitions(operator: Submitter, context: Context) -> None:
    if operator.asset_partitions is None or operator.bookmark_asset is None:
        return
    if not takes_partitions(context["outlet_events"][operator.bookmark_asset]):
        raise OptionError(
            "asset_partitions needs Airflow 3.3 or later. Nothing was read or changed; Spark was not started. "
            "Leave it out."
        )


def _partition_keys(given: Any, summary: Mapping[str, Any]) -> list[str]:
    # Text is a sequence too: each letter would be a key.
    if not isinstance(given, list | tuple | set) or not all(isinstance(key, str) and key for key in given):
        raise MisuseError(
            f"asset_partitions returned {given!r}: expected a list of keys, as text. Run {summary['run_number']} of "
            f"job {summary['job']!r} is committed and published; its asset got no event. Mend the function: a retry of "
            "the task makes the event, without Spark."
        )
    return sorted(given) if isinstance(given, set) else list(given)


def _identity(context: Context, map_index: int) -> RunIdentity:
    ti = context["ti"]
    logical_date = context.get("logical_date")
    return RunIdentity(
        run_id=check_run_id(airflow_run_id(ti.dag_id, ti.run_id, ti.task_id, map_index)),
        attempt=ti.try_number,
        dag_id=ti.dag_id,
        task_id=ti.task_id,
        map_index=map_index,
        dag_run_id=ti.run_id,
        logical_date=None if logical_date is None else to_text(logical_date),
        series=ti.max_tries,
    )


def _settings(resolved: Resolved, identity: RunIdentity, store_uri: str, on_conflict: str, on_unused: str) -> Settings:
    dag = {k: v for k, v in asdict(identity).items() if k not in ("run_id", "attempt") and v is not None}
    return Settings(
        job=resolved.job,
        store=store_uri,
        option=resolved.choice.option.value,
        from_run=resolved.choice.from_run,
        to_run=resolved.choice.to_run,
        run_id=identity.run_id,
        attempt=str(identity.attempt),
        upstream=",".join(resolved.upstream) or None,
        upstream_until=json.dumps(resolved.until, sort_keys=True) if resolved.until else None,
        dag=json.dumps(dag, sort_keys=True),
        # "fail" is what the driver does anyway; left unsaid, the script may say otherwise.
        on_conflict=None if on_conflict == "fail" else on_conflict,
        on_unused=None if on_unused == "warn" else on_unused,
        shard=None if resolved.share is None else resolved.share.text,
        manifest_uri=resolved.manifest_uri,
        version=__version__,
    )
