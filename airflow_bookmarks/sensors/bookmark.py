"""The sensor: waits for what another job has published. On the state itself, never on task success or events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from airflow.sdk import BaseSensorOperator, PokeReturnValue
from airflow.sdk.exceptions import AirflowSensorTimeout

from airflow_bookmarks.core.condition import (
    UNKNOWN,
    Verdict,
    dag_run_done,
    newest_published,
    news_for_consumer,
    rewound_below,
    run_reached,
)
from airflow_bookmarks.core.edge import lowest_replayed
from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.job import airflow_run_id, check_name, check_run_id
from airflow_bookmarks.core.line import Ancestry
from airflow_bookmarks.hooks.bookmark import DEFAULT_CONNECTION, BookmarkHook
from airflow_bookmarks.lifecycle.naming import key_of
from airflow_bookmarks.lifecycle.summary import Summary

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_bookmarks.core.edge import Edge
    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.run import Execution, Run
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

_CONDITIONS = ("consumer", "run_number", "upstream_dag_run_id")


class BookmarkSensor(BaseSensorOperator):
    """Wait until a job, or each of several, has published what one condition asks for; at most one may be given.

    What is there already passes at once. Reads are strongly consistent; poke and reschedule mode give the same answer.
    Returns the summary of the run that satisfied it, a list of them for a list of jobs.

    Args:
        job: name of a job, or a list of names. A job that does not exist yet is waited for. (templated)
        consumer: name of the job that comes after: waits for data that it has not consumed, and is satisfied as well
            when the upstream went back below what it has consumed, so that its run can say so. (templated)
        run_number: waits for a published run with this number or a later one. (templated)
        upstream_dag_run_id: waits for the run, empty or not, that this DAG run of the job's DAG made; default, when no
            other condition is given: the id of the sensor's own DAG run. (templated)
        bookmarks_conn_id: an Airflow connection of the type `bookmarks`.

    Raises:
        OptionError: two conditions, a condition that is empty once its template is rendered, or no number.
        AirflowSensorTimeout: with what it waited for, and where the job stood.

    Example:
        BookmarkSensor(task_id="wait", job="flights.clean", consumer="reports.delays", mode="reschedule")
    """

    template_fields: Sequence[str] = ("job", *_CONDITIONS)

    def __init__(
        self,
        *,
        job: str | Sequence[str],
        consumer: str | None = None,
        run_number: int | str | None = None,
        upstream_dag_run_id: str | None = None,
        bookmarks_conn_id: str = DEFAULT_CONNECTION,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.job = job
        self.consumer = consumer
        self.run_number = run_number
        self.upstream_dag_run_id = upstream_dag_run_id
        self.bookmarks_conn_id = bookmarks_conn_id
        given = [name for name in _CONDITIONS if getattr(self, name) is not None]
        if len(given) > 1:
            raise OptionError(f"{' and '.join(given)} are given: a sensor waits for one of them. Leave the others out.")
        self._waits_for = ""

    @cached_property
    def _hook(self) -> BookmarkHook:
        return BookmarkHook(self.bookmarks_conn_id)

    def execute(self, context: Context) -> Any:
        """Wait; see the class."""
        try:
            return super().execute(context)
        except AirflowSensorTimeout as error:
            raise AirflowSensorTimeout(f"{error} {self._waits_for}") from error

    def poke(self, context: Context) -> PokeReturnValue:
        """Look once."""
        store = self._hook.get_conn()
        jobs = [self.job] if isinstance(self.job, str) else list(self.job)
        if not jobs:
            raise OptionError("job=[]: a sensor waits for at least one job.")
        condition = self._condition(context["ti"].run_id)
        looks = [_Look(store, key_of(store, check_name("job", job))) for job in jobs]
        verdicts = [condition.verdict(look) for look in looks]
        standings = [f"{look.job!r}: {verdict.standing}" for look, verdict in zip(looks, verdicts, strict=True)]
        self._waits_for = f"It waits for {condition}. Where it stands: {'; '.join(standings)}."
        self.log.info("bookmark sensor: %s", self._waits_for)
        for look, verdict in zip(looks, verdicts, strict=True):
            if verdict.rewound_to is not None:
                self.log.warning("bookmark %s: %s; the consumer's run decides what to do", look.job, verdict.standing)
        if not all(verdict.is_met for verdict in verdicts):
            return PokeReturnValue(is_done=False)
        found = [look.summary(verdict.run) for look, verdict in zip(looks, verdicts, strict=True)]
        return PokeReturnValue(is_done=True, xcom_value=found[0] if isinstance(self.job, str) else found)

    def _condition(self, own_dag_run_id: str) -> _Condition:
        for name in _CONDITIONS:
            value = getattr(self, name)
            if value is None:
                continue
            text = str(value).strip()
            if text in ("", "None"):
                # Not taken for "not given": the sensor would wait for something else than meant, and perhaps pass.
                raise OptionError(f"{name}={value!r}: its template gave nothing. Nothing was read or changed.")
            match name:
                case "consumer":
                    return _News(check_name("job", text))
                case "run_number":
                    return _Number(_number(text))
                case _:
                    return _DagRun(text)
        return _DagRun(own_dag_run_id)


def _number(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise OptionError(f"run_number={text!r}: expected a number from 1. Nothing was read or changed.")
    return int(text)


class _Look:
    """One look at a job: its head first, all else against that."""

    def __init__(self, store: BookmarkStore, job: str) -> None:
        self.store, self.job = store, job
        self.head: Head | None = store.look(job).head

    @cached_property
    def living(self) -> Ancestry:
        return self.store.ancestry(self.job, self.head.epoch) if self.head is not None else Ancestry.of(1, [])

    def newest(self, *, after: int = 0, with_data: bool = False) -> Run | None:
        """Return the newest published living run above `after`."""
        if self.head is None or self.head.published <= after:
            return None
        runs = self.store.runs(self.job, after=after, until=self.head.published, reverse=True)
        return newest_published(runs, self.living, with_data=with_data)

    def replayed(self, edge: Edge | None) -> Run | None:
        """Return the lowest run that a consumer has read and that was replayed since."""
        if edge is None or self.head is None or edge.changes == self.head.changes:
            return None
        return lowest_replayed(self.store.runs(self.job, until=edge.highest), edge.changes)

    def last_run(self, execution: Execution | None) -> Run | None:
        if execution is None or execution.last_run is None:
            return None
        runs = self.store.runs(self.job, after=execution.last_run - 1, until=execution.last_run)
        return next((run for run in runs if run.state.is_committed), None)

    def summary(self, run: Run | None) -> dict[str, Any]:
        """Return the summary of a run; without one (the job went back to its beginning) of the job as it is now."""
        if run is not None:
            return Summary.of(run, self.store.namespace, self.job).as_dict()
        head = self.head
        epoch, version = (None, None) if head is None else (head.epoch, head.version)
        return Summary(self.job, self.store.namespace, "", "enable", epoch=epoch, version=version).as_dict()


class _Condition(Protocol):
    """What is waited for: `str()` says it in words."""

    def verdict(self, look: _Look) -> Verdict: ...


@dataclass(frozen=True)
class _News:
    consumer: str

    def __str__(self) -> str:
        return f"something that {self.consumer!r} has not consumed"

    def verdict(self, look: _Look) -> Verdict:
        if look.head is None:
            return UNKNOWN
        edge = look.store.edge(look.job, key_of(look.store, self.consumer))
        has_moved = edge is not None and edge.epoch != look.head.epoch
        rewound_to = rewound_below(edge, look.head, look.store.lines(look.job)) if has_moved else None
        after = 0 if edge is None or rewound_to is not None else edge.run_number
        newest = look.newest(after=after, with_data=True) if look.head.data_run_number > after else None
        return news_for_consumer(self.consumer, look.head, edge, newest, rewound_to, look.replayed(edge))


@dataclass(frozen=True)
class _Number:
    number: int

    def __str__(self) -> str:
        return f"run {self.number} or a later one"

    def verdict(self, look: _Look) -> Verdict:
        return run_reached(self.number, look.head, look.newest(after=self.number - 1))


@dataclass(frozen=True)
class _DagRun:
    dag_run_id: str

    def __str__(self) -> str:
        return f"the run of DAG run {self.dag_run_id!r}"

    def verdict(self, look: _Look) -> Verdict:
        if look.head is None:
            return UNKNOWN
        made_by: Mapping[str, Any] = look.store.index_entry(look.job) or {}
        if made_by.get("dag_id") is None:
            return Verdict(False, "it was not made by a task of a DAG")
        map_index = made_by.get("map_index", -1)
        run_id = airflow_run_id(made_by["dag_id"], self.dag_run_id, made_by["task_id"], map_index)
        execution = look.store.execution(look.job, check_run_id(run_id))
        return dag_run_done(run_id, execution, look.last_run(execution), look.living)
