"""What differs between the versions of Airflow and its providers that this package runs with.

No other module asks which Airflow it has. A feature is found by what can be imported, or by the attributes of what
Airflow hands over, and never by a version number: fixes are backported, and providers have versions of their own.

| feature | first in | without it |
|---|---|---|
| `shows_plugin_pages` | Airflow 3.1 | the routes work, no page and no link to it; the API server logs a warning |
| `triggerer_survives_requests` | Airflow 3.2.2 | `BookmarkSensor(deferrable=True)` reschedules, with a warning |
| `has_pyspark_operator` | the Spark provider 5.5 | `@task.bookmark` is refused when the DAG file is read |
| `event_extra` | Airflow 3.1 | events of assets have `contexts`, `outputs` and `seconds` of the summary as JSON text |
| `deletes_after_deferral` | the Kubernetes provider 10.11 | the operator waits in the worker, with a warning |
| `takes_partitions` | Airflow 3.3 | `asset_partitions` is refused before Spark starts |
| `kill_of` | Airflow 3.3 | a deferred task that is killed is fenced by its next try |
| `resumes_jobs` | Airflow 3.3 | operators get `durable` only where the user names it |
| `state_of` | Airflow 3.3.2 | `BookmarkWatcher` begins at what is published at its start, with a warning |
"""

from __future__ import annotations

import asyncio
import json
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from airflow.sdk import BaseHook
    from airflow.sdk.exceptions import (
        AirflowFailException,
        AirflowNotFoundException,
        AirflowSensorTimeout,
        AirflowSkipException,
        TaskDeferralError,
        TaskDeferred,
    )
    from airflow.sdk.observability.stats import Stats
    from airflow.triggers.base import BaseTrigger
else:
    # Each first where it has moved to: the old places warn, where they are still there.
    try:
        from airflow.sdk import BaseHook
    except ImportError:
        from airflow.hooks.base import BaseHook
    try:
        from airflow.sdk.exceptions import (
            AirflowFailException,
            AirflowNotFoundException,
            AirflowSensorTimeout,
            AirflowSkipException,
            TaskDeferralError,
            TaskDeferred,
        )
    except ImportError:
        from airflow.exceptions import (
            AirflowFailException,
            AirflowNotFoundException,
            AirflowSensorTimeout,
            AirflowSkipException,
            TaskDeferralError,
            TaskDeferred,
        )
    try:
        from airflow.sdk.observability.stats import Stats
    except ImportError:
        from airflow.stats import Stats

__all__ = [
    "AirflowFailException",
    "AirflowNotFoundException",
    "AirflowSensorTimeout",
    "AirflowSkipException",
    "BaseHook",
    "Stats",
    "TaskDeferralError",
    "TaskDeferred",
    "ask_in_thread",
    "deletes_after_deferral",
    "event_extra",
    "has_pyspark_operator",
    "kill_of",
    "resumes_jobs",
    "shows_plugin_pages",
    "state_of",
    "takes_partitions",
    "team_of",
    "triggerer_survives_requests",
]

P = ParamSpec("P")
T = TypeVar("T")


# ---- the UI and its API


def shows_plugin_pages() -> bool:
    """Whether Airflow's UI shows pages of plugins."""
    from airflow.plugins_manager import AirflowPlugin

    return hasattr(AirflowPlugin, "react_apps")


def team_of(dag_id: str) -> dict[str, str | None]:
    """Return the team of a DAG, as an argument of `DagDetails`; empty if this Airflow has no teams."""
    from airflow.models.dag import DagModel

    return {"team_name": DagModel.get_team_name(dag_id)} if hasattr(DagModel, "get_team_name") else {}


# ---- the triggerer


@cache
def triggerer_survives_requests() -> bool:
    """Whether the triggerer goes on when a trigger asks for a connection while another one waits for an answer.

    Without the task that reads the answers for all (`start_reader`), two that read at a time end the triggerer, and
    with it the triggers of everybody.
    """
    from airflow.jobs.triggerer_job_runner import TriggerCommsDecoder

    return hasattr(TriggerCommsDecoder, "start_reader")


async def ask_in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function in a thread, from where it may ask Airflow for a connection.

    A triggerer that does not survive that answers on an event loop of the thread, beside its own. A thread of asgiref's
    takes the request to the triggerer's own loop, where a lock lets one ask at a time.
    """
    if triggerer_survives_requests():
        return await asyncio.to_thread(function, *args, **kwargs)
    from asgiref.sync import sync_to_async

    return await sync_to_async(function, thread_sensitive=False)(*args, **kwargs)


def kill_of(trigger: BaseTrigger) -> Callable[[], Awaitable[None]] | None:
    """Return what a trigger does when its deferred task is killed; None where triggers are not notified."""
    return getattr(trigger, "on_kill", None)


def state_of(trigger: BaseTrigger) -> Any:
    """Return where a watcher can keep its place, None where it can't without blocking the triggerer."""
    state = getattr(trigger, "asset_state_store", None)
    return state if hasattr(state, "aget") else None


# ---- operators


@cache
def has_pyspark_operator() -> bool:
    """Whether the Spark provider has the operator that `@task.bookmark` is built on."""
    return find_spec("airflow.providers.apache.spark.operators.spark_pyspark") is not None


def resumes_jobs(operator: type[Any]) -> bool:
    """Whether an operator can look for the job that an earlier try has submitted, and has the argument `durable`."""
    from airflow import sdk

    resumable: type[Any] | None = getattr(sdk, "ResumableJobMixin", None)
    return resumable is not None and issubclass(operator, resumable)


def durable_argument(provider: type[Any], durable: bool | None) -> dict[str, Any]:
    """Return `durable` for the constructor of a provider's operator: off, unless the user asks for it.

    It says whether a retry looks for the Spark job of an earlier try. Where Airflow remembers no Spark job, an early
    provider does not know the argument, and a later one warns that it has no effect: so it gets none, unless it is
    asked for, and then it is the provider that answers.
    """
    return {"durable": bool(durable)} if durable or resumes_jobs(provider) else {}


def deletes_after_deferral(operator: type[Any]) -> bool:
    """Whether the operator for Kubernetes can delete its application when it goes on after a deferral.

    Where the launcher is an attribute of the object that has submitted, and not of the class, another object has none.
    """
    return hasattr(operator, "launcher")


def event_extra(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the event of an asset carries of a summary.

    An Airflow that has no extra of the asset in an event through an alias puts the values of the event's extra into a
    set, and fails a task that has dicts among them: there they are JSON text.
    """
    from airflow.sdk.definitions.asset import AssetAliasEvent

    if hasattr(AssetAliasEvent, "dest_asset_extra"):
        return dict(summary)
    is_nested = {name: isinstance(value, dict | list) for name, value in summary.items()}
    return {name: json.dumps(value, sort_keys=True) if is_nested[name] else value for name, value in summary.items()}


def takes_partitions(events: Any) -> bool:
    """Whether the events of an asset can be given partition keys; `events` as `outlet_events` has them."""
    return hasattr(events, "add_partitions")
