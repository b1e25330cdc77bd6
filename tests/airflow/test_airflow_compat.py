"""What is taken from Airflow wherever it lies, and the features that are found by what Airflow has."""

from __future__ import annotations

import asyncio
import importlib
import threading
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.jobs.triggerer_job_runner import TriggerCommsDecoder
from airflow.models.dag import DagModel
from airflow.plugins_manager import AirflowPlugin
from airflow.providers.amazon.aws.hooks.base_aws import AwsGenericHook
from airflow.providers.amazon.aws.operators.glue import GlueJobOperator
from airflow.providers.cncf.kubernetes.operators.spark_kubernetes import SparkKubernetesOperator
from airflow.sdk import BaseSensorOperator
from airflow.sdk.definitions.asset import AssetAliasEvent
from airflow.sdk.execution_time import task_runner

from airflow_bookmarks import airflow_compat
from airflow_bookmarks.triggers.watcher import BookmarkWatcher

pytestmark = pytest.mark.airflow

_PINS = (Path(__file__).parents[2] / "constraints.txt").read_text().splitlines()


# ---- names that have moved


def test_hook_is_the_one_that_providers_build_on() -> None:
    assert issubclass(AwsGenericHook, airflow_compat.BaseHook)


@pytest.mark.parametrize(
    "name", ["AirflowFailException", "AirflowSkipException", "AirflowSensorTimeout", "TaskDeferred"]
)
def test_exception_is_the_one_that_airflow_catches(name: str) -> None:
    modules = (
        task_runner,
        importlib.import_module(BaseSensorOperator.__module__),
        importlib.import_module("airflow.exceptions"),
    )
    caught = [getattr(module, name) for module in modules if hasattr(module, name)]

    assert caught
    assert all(each is getattr(airflow_compat, name) for each in caught)


def test_stats_count_measure_and_time() -> None:
    assert all(callable(getattr(airflow_compat.Stats, name)) for name in ("incr", "gauge", "timing"))


# ---- features


def test_each_feature_is_found_where_airflow_has_it() -> None:
    try:
        importlib.import_module("airflow.providers.apache.spark.operators.spark_pyspark")
        has_operator = True
    except ImportError:
        has_operator = False

    assert airflow_compat.has_pyspark_operator() == has_operator
    assert airflow_compat.shows_plugin_pages() == hasattr(AirflowPlugin, "react_apps")
    assert airflow_compat.triggerer_survives_requests() == hasattr(TriggerCommsDecoder, "start_reader")


def test_newest_airflow_has_every_feature() -> None:
    """An attribute that a new version renames would switch its feature off without a word."""
    if f"apache-airflow=={version('apache-airflow')}" not in _PINS:
        pytest.skip("this Airflow is not the one of constraints.txt")

    assert airflow_compat.has_pyspark_operator()
    assert airflow_compat.shows_plugin_pages()
    assert airflow_compat.triggerer_survives_requests()
    assert airflow_compat.resumes_jobs(GlueJobOperator)
    assert airflow_compat.deletes_after_deferral(SparkKubernetesOperator)
    assert hasattr(AssetAliasEvent, "dest_asset_extra")
    assert hasattr(DagModel, "get_team_name")
    assert hasattr(BookmarkWatcher("up"), "asset_state_store")


def test_operator_that_looks_for_no_earlier_job_does_not_resume_one() -> None:
    assert not airflow_compat.resumes_jobs(BaseSensorOperator)


def test_event_carries_the_summary_as_it_is_where_airflow_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    summary = {"job": "shop.copy", "is_empty": False, "run_number": None, "contexts": {"raw": {"files": 1}}, "ids": [1]}
    monkeypatch.setattr(AssetAliasEvent, "dest_asset_extra", {}, raising=False)
    assert airflow_compat.event_extra(summary) == summary

    monkeypatch.delattr(AssetAliasEvent, "dest_asset_extra")

    flat = {**summary, "contexts": '{"raw": {"files": 1}}', "ids": "[1]"}
    assert airflow_compat.event_extra(summary) == flat
    assert len(frozenset(flat.items())) == len(summary)


def test_trigger_without_state_or_kill_has_none() -> None:
    trigger: Any = SimpleNamespace(asset_state_store=object())

    assert airflow_compat.state_of(trigger) is None
    assert airflow_compat.kill_of(trigger) is None


@pytest.mark.usefixtures("airflow_database")
def test_team_is_asked_for_only_where_there_are_teams(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = {"team_name": None} if hasattr(DagModel, "get_team_name") else {}
    assert airflow_compat.team_of("shop") == expected

    monkeypatch.delattr(DagModel, "get_team_name", raising=False)

    assert airflow_compat.team_of("shop") == {}


@pytest.mark.parametrize("survives", [True, False])
def test_what_may_ask_airflow_runs_in_a_thread_of_its_own(survives: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(airflow_compat, "triggerer_survives_requests", lambda: survives)

    async def scene() -> tuple[int, int]:
        return threading.get_ident(), await airflow_compat.ask_in_thread(threading.get_ident)

    loop, other = asyncio.run(scene())

    assert loop != other


def test_frail_triggerer_is_asked_on_its_own_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """It bridges from a thread by asgiref, which makes a loop of its own in a thread that it does not know."""
    from asgiref.sync import async_to_sync

    async def loop_id() -> int:
        return id(asyncio.get_running_loop())

    async def scene() -> tuple[int, int]:
        return await loop_id(), await airflow_compat.ask_in_thread(lambda: async_to_sync(loop_id)())

    monkeypatch.setattr(airflow_compat, "triggerer_survives_requests", lambda: False)

    own, answering = asyncio.run(scene())

    assert own == answering
