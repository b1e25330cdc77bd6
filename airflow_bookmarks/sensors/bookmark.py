"""The sensor: waits for what another job has published. It evaluates the state itself, never task success or events."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from airflow.configuration import conf
from airflow.sdk import BaseOperatorLink, BaseSensorOperator, PokeReturnValue

from airflow_bookmarks.airflow_compat import (
    AirflowSensorTimeout,
    AirflowSkipException,
    TaskDeferralError,
    triggerer_survives_requests,
)
from airflow_bookmarks.core import errors
from airflow_bookmarks.core.errors import BookmarkError, OptionError, StoreUnavailableError
from airflow_bookmarks.core.text.instant import to_text, utc_now
from airflow_bookmarks.hooks.bookmark import BookmarkHook
from airflow_bookmarks.hooks.connection import DEFAULT_CONNECTION
from airflow_bookmarks.lifecycle.inspect.wait import Wait, WaitAnswer, condition_of
from airflow_bookmarks.lifecycle.inspect.waiting import Memory, evaluate
from airflow_bookmarks.links.bookmark import BookmarkLink
from airflow_bookmarks.triggers.bookmark import BookmarkTrigger
from airflow_bookmarks.triggers.poller import POLL_INTERVAL_S, check_interval

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow.sdk import Context

    from airflow_bookmarks.core.rules.condition import Condition
    from airflow_bookmarks.operators.task.task_config import TaskConfig

log = logging.getLogger(__name__)

_CONDITIONS = ("consumer", "run_number", "upstream_dag_run_id", "upstream_logical_date", "watermark")
# The trigger ends the wait itself, and says where the job stood. Airflow ends it only if no triggerer works.
_TRIGGERER_SLACK = timedelta(minutes=5)
_FALLS_BACK = (
    "bookmark sensor: it is not deferred, because this Airflow's triggerer may end, with all its triggers, when one of "
    "them asks for a connection. It waits in reschedule mode, and looks every %g seconds (poke_interval). Upgrade to "
    "Airflow 3.2.2 or later, or say mode='reschedule' in place of deferrable=True."
)


class Consumer(Protocol):
    """A task that runs a job: `BookmarkSparkSubmitOperator`, or another operator with its mixin."""

    task_id: str

    def task_config(self) -> TaskConfig:
        """Return the task's bookmark arguments."""
        ...

    @property
    def dag_id(self) -> str:
        """The DAG of the task."""
        ...


class BookmarkSensor(BaseSensorOperator):
    """Wait until a job, or each of several jobs, has published what a condition asks for. Give at most one condition.

    A condition that already holds passes at once, without deferral. Reads are strongly consistent; poke, reschedule and
    deferrable mode give the same answer. Returns the summary of the run that satisfied it, a list of them for a list of
    jobs.

    Args:
        job: name of a job, or a list of names. The sensor also waits for a job that does not exist yet. (templated)
        consumer: the downstream job, by name or as the operator that runs it: waits for data that it has not
            consumed. Also passes when the upstream was rewound below what the consumer has read, so that its run can
            report that. (templated)
        run_number: waits for a published run with this number or a higher one. (templated)
        upstream_dag_run_id: waits for the run, empty or not, made by this DAG run of the job's DAG. If no other
            condition is given, it defaults to the id of the sensor's own DAG run. (templated)
        upstream_logical_date: waits for the run, empty or not, made by a DAG run of this logical date: an ISO 8601
            time with a zone. It reads all executions of the job after each of its changes. (templated)
        watermark: waits until the newest published run has a watermark at or above this one: an ISO 8601 time, or a
            whole number. For several jobs the lowest watermark counts. (templated)
        watermark_ctx: the context whose watermark to compare, if the job has several. (templated)
        bookmarks_conn_id: an Airflow connection of the type `bookmarks`.
        deferrable: wait in the triggerer, where all sensors share one poll. Default: Airflow's setting
            `[operators] default_deferrable`. Where the triggerer does not survive that triggers ask for connections
            (Airflow before 3.2.2), the sensor waits in reschedule mode instead, and logs a warning.
        poll_interval: seconds between two polls in deferrable mode. The poll uses the shortest interval of all sensors,
            randomly stretched up to twofold. `poke_interval` is for the other modes.

    Raises:
        OptionError: there are two conditions, or a condition is empty after rendering or invalid.
        AirflowSensorTimeout: names the condition and the state of the job.

    Example:
        BookmarkSensor(task_id="wait", job="flights.clean", consumer="reports.delays", deferrable=True)
    """

    template_fields: Sequence[str] = ("job", *_CONDITIONS, "watermark_ctx")
    operator_extra_links: Collection[BaseOperatorLink] = (BookmarkLink(),)

    def __init__(
        self,
        *,
        job: str | Sequence[str],
        consumer: str | Consumer | None = None,
        run_number: int | str | None = None,
        upstream_dag_run_id: str | None = None,
        upstream_logical_date: str | None = None,
        watermark: int | str | None = None,
        watermark_ctx: str | None = None,
        bookmarks_conn_id: str = DEFAULT_CONNECTION,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        poll_interval: float = POLL_INTERVAL_S,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.job = job
        self.consumer = _job_of(consumer)
        self.run_number = run_number
        self.upstream_dag_run_id = upstream_dag_run_id
        self.upstream_logical_date = upstream_logical_date
        self.watermark = watermark
        self.watermark_ctx = watermark_ctx
        self.bookmarks_conn_id = bookmarks_conn_id
        self.deferrable = deferrable
        self.poll_interval = poll_interval
        given = [name for name in _CONDITIONS if getattr(self, name) is not None]
        if len(given) > 1:
            raise OptionError(f"{' and '.join(given)} are given: a sensor waits for one of them. Leave the others out.")
        if watermark_ctx is not None and watermark is None:
            raise OptionError(
                f"watermark_ctx={watermark_ctx!r} is given without a watermark. Give one, or leave it out."
            )
        # By name: an argument that rendered to None is not the same as one that was left out.
        self._condition_name, self._has_ctx = (given[0] if given else None), watermark_ctx is not None
        check_interval(poll_interval)
        self._waits_for = ""

    @cached_property
    def _hook(self) -> BookmarkHook:
        return BookmarkHook(self.bookmarks_conn_id)

    @cached_property
    def _memory(self) -> Memory:
        return Memory()

    # ---- how it waits

    @cached_property
    def _falls_back(self) -> bool:
        """Whether it waits in reschedule mode because the triggerer would not survive its trigger."""
        return self.deferrable and not triggerer_survives_requests()

    @property
    def reschedule(self) -> bool:
        """Whether Airflow runs it again at each `poke_interval`: also asked by the scheduler, of the serialized DAG."""
        return self.mode == "reschedule" or self._falls_back

    # ---- waiting

    def execute(self, context: Context) -> Any:
        """Wait; see the class."""
        if self._falls_back:
            log.warning(_FALLS_BACK, self.poke_interval)
        elif self.deferrable:
            return self._execute_deferrable(context)
        try:
            return super().execute(context)
        except (AirflowSensorTimeout, AirflowSkipException) as error:
            raise type(error)(f"{error} {self._waits_for}") from error

    def poke(self, context: Context) -> PokeReturnValue:
        """Look once."""
        answer = self._look(context)
        return PokeReturnValue(is_done=answer.is_met, xcom_value=self._found(answer.found) if answer.is_met else None)

    def _execute_deferrable(self, context: Context) -> Any:
        deadline = utc_now() + timedelta(seconds=self.timeout)
        try:
            wait = self._wait(context["ti"].run_id)
            answer = self._look(context)
        except StoreUnavailableError as error:
            # The poller outlasts that, so a wait that begins just now need not fail.
            self.log.warning("bookmark sensor: it waits, though the store did not answer: %s", error)
        except BookmarkError as error:
            raise self._failure(error) from error
        else:
            if answer.is_met:
                return self._found(answer.found)
        trigger = BookmarkTrigger(
            wait=wait.as_dict(),
            bookmarks_conn_id=self.bookmarks_conn_id,
            poll_interval=self.poll_interval,
            deadline=to_text(deadline),
        )
        timeout = timedelta(seconds=self.timeout) + _TRIGGERER_SLACK
        return self.defer(trigger=trigger, method_name="execute_complete", timeout=timeout)

    def execute_complete(self, context: Context, event: Mapping[str, Any] | None) -> Any:
        """End the wait with what the trigger has found."""
        match event:
            case {"status": "met", "found": found, "standing": standing, "warnings": warnings}:
                self.log.info("bookmark sensor: %s", standing)
                self._warn(warnings)
                return self._found(found)
            case {"status": "timed_out", "standing": standing}:
                raise AirflowSensorTimeout(f"Sensor has timed out; it waited for {self.timeout} seconds. {standing}")
            case {"status": "failed", "error": error, "standing": standing}:
                raise self._failure(_error_of(error, standing))
        # As written by a trigger of another version of this package. All versions understand the state.
        return self._after_silence(context, TaskDeferralError(f"its trigger has fired {event!r}, which is no event"))

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context) -> Any:
        """Go on after the wait in the triggerer; if its trigger did not end it, evaluate it and say where it stands."""
        try:
            return super().resume_execution(next_method, next_kwargs, context)
        except (AirflowSensorTimeout, AirflowSkipException, TaskDeferralError) as error:
            if next_method == "execute_complete":
                raise
            return self._after_silence(context, error)

    def _after_silence(self, context: Context, silence: Exception) -> Any:
        """End a wait that no event of its trigger has ended: by the present state, else as `silence` says."""
        try:
            answer = self._look(context)
        except BookmarkError as error:
            raise self._failure(error) from error
        if answer.is_met:
            return self._found(answer.found)
        raise type(silence)(f"{silence}: the wait was not ended by its trigger. {self._waits_for}") from silence

    def _failure(self, error: BookmarkError) -> Exception:
        # As the other modes do: a sensor that never fails is skipped.
        return AirflowSkipException(str(error)) if self.never_fail else error

    # ---- evaluating

    def _look(self, context: Context) -> WaitAnswer:
        wait = self._wait(context["ti"].run_id)
        (answer,) = evaluate(self._hook.get_conn(), [wait], self._memory)
        if answer.error is not None:
            raise answer.error
        self._waits_for = str(answer)
        self.log.info("bookmark sensor: %s", self._waits_for)
        self._warn(answer.warnings)
        return answer

    def _warn(self, warnings: Sequence[str]) -> None:
        for warning in warnings:
            self.log.warning("bookmark %s; the consumer's run decides what to do", warning)

    def _found(self, found: Sequence[Mapping[str, Any]]) -> Any:
        return dict(found[0]) if isinstance(self.job, str) else [dict(one) for one in found]

    def _wait(self, own_dag_run_id: str) -> Wait:
        return Wait(_jobs_of(self.job), self._condition(own_dag_run_id))

    def _condition(self, own_dag_run_id: str) -> Condition:
        if self._condition_name is None:
            return condition_of("upstream_dag_run_id", own_dag_run_id)
        ctx = self._rendered("watermark_ctx") if self._has_ctx else None
        return condition_of(self._condition_name, self._rendered(self._condition_name), ctx)

    def _rendered(self, name: str) -> str:
        value = getattr(self, name)
        text = str(value).strip()
        if text in ("", "None"):
            # Not taken for "not given": the sensor would wait for something else than meant, and perhaps pass.
            raise OptionError(f"{name}={value!r}: its template gave nothing. Nothing was read or changed.")
        return text


def _jobs_of(job: object) -> tuple[str, ...]:
    """Return the names that `job` has once its template is rendered."""
    names = (job,) if isinstance(job, str) else job
    if not isinstance(names, list | tuple) or "None" in names or None in names:
        # A dict would be waited for by its keys, and a template that gave nothing by the name "None".
        raise OptionError(
            f"job={job!r}: expected the name of a job, or a list of names. Nothing was read or changed. What an "
            "operator has pushed is a summary: its name is summary['job']."
        )
    return tuple(names)


def _error_of(name: str, message: str) -> BookmarkError:
    """Return the error that a trigger has named."""
    kind = getattr(errors, name, None)
    if not (isinstance(kind, type) and issubclass(kind, BookmarkError)) or "__init__" in vars(kind):
        return BookmarkError(message)
    return kind(message)


def _job_of(consumer: str | Consumer | None) -> str | None:
    """Return the name of a consumer; that of an operator may be a template."""
    if consumer is None or isinstance(consumer, str):
        return consumer
    if not hasattr(consumer, "task_config"):
        raise OptionError(
            f"consumer={consumer!r} runs no job: expected a job's name, or an operator with bookmark_job, such as "
            "BookmarkSparkSubmitOperator. Of a mapped task give the name: each of its instances is a job of its own."
        )
    task_config = consumer.task_config()
    if task_config.is_sharded:
        raise OptionError(
            f"consumer={consumer!r} has a share of a sharded job, whose virtual shards have each consumed something "
            "else: a sensor can't wait for all of them. Leave consumer out: it waits for its own DAG run then."
        )
    return task_config.job_of(consumer.dag_id, consumer.task_id)
