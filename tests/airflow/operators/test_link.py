"""The link from a task to the page of its bookmark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.amazon.aws.operators.emr import EmrAddStepsOperator
from airflow.sdk import DAG, BaseOperator

from airflow_bookmarks.airflow_compat import shows_plugin_pages
from airflow_bookmarks.links.bookmark import BookmarkLink, page_url
from airflow_bookmarks.operators.change import BookmarkResetOperator
from airflow_bookmarks.operators.emr import BookmarkEmrAddStepsOperator
from airflow_bookmarks.operators.spark_submit import BookmarkSparkSubmitOperator
from airflow_bookmarks.plugin.plugin import ROUTE
from airflow_bookmarks.sensors.bookmark import BookmarkSensor
from tests.airflow.compat import DagSerialization, needs_pages
from tests.airflow.conftest import Player, World

pytestmark = pytest.mark.airflow

KEY = SimpleNamespace(dag_id="shop", task_id="copy", map_index=-1)
MAPPED = SimpleNamespace(dag_id="shop", task_id="copy", map_index=3)


def link(operator: BaseOperator, key: Any = KEY) -> str:
    return BookmarkLink().get_link(operator, ti_key=key)


def submit(**kwargs: Any) -> BookmarkSparkSubmitOperator:
    return BookmarkSparkSubmitOperator(task_id="copy", application="copy.py", **kwargs)


@needs_pages
def test_link_of_a_task_leads_to_the_job_that_it_runs() -> None:
    assert link(submit()).endswith("/plugin/bookmarks?job=shop.copy")
    assert link(submit(), MAPPED).endswith("?job=shop.copy.3")
    assert link(submit(bookmark_job="käse.~kopie")).endswith("?job=k%C3%A4se.~kopie")


@needs_pages
def test_link_of_a_script_for_aws_glue_leads_to_the_job_of_its_arguments() -> None:
    named = submit(glue=True, application_args=["--JOB_NAME", "nightly"])
    assert link(named).endswith("?job=nightly")

    named.bookmark_job = "another"  # as a template that the arguments contradict is rendered
    assert link(named).endswith("/plugin/bookmarks")


@needs_pages
def test_link_of_a_task_whose_template_for_the_job_gave_nothing_leads_to_its_own() -> None:
    assert link(submit(bookmark_job="None")).endswith("?job=shop.copy")


def test_there_is_no_link_where_airflow_shows_no_pages_of_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (link(submit()) != "") == shows_plugin_pages()

    monkeypatch.setattr("airflow_bookmarks.links.bookmark.shows_plugin_pages", lambda: False)

    assert link(submit()) == ""
    assert link(BookmarkSensor(task_id="wait", job="raw")) == ""


@needs_pages
def test_link_of_a_shard_leads_to_all_shards() -> None:
    assert link(submit(bookmark_shard="1/4"), MAPPED).endswith("?search=shop.copy")


@needs_pages
def test_link_of_a_sensor_or_a_change_leads_to_the_job_that_it_names() -> None:
    assert link(BookmarkSensor(task_id="wait", job="raw")).endswith("?job=raw")
    assert link(BookmarkSensor(task_id="wait", job=["raw", "other"])).endswith("/plugin/bookmarks")
    assert link(BookmarkResetOperator(task_id="reset", job="raw", reason="why")).endswith("?job=raw")


def test_link_is_below_the_address_of_this_airflow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://data.example/airflow/")

    assert page_url(job="raw") == f"https://data.example/airflow/plugin/{ROUTE}?job=raw"


def test_links_of_the_provider_stay() -> None:
    expected = [type(each) for each in EmrAddStepsOperator.operator_extra_links]

    assert [type(each) for each in BookmarkEmrAddStepsOperator.operator_extra_links] == [*expected, BookmarkLink]


def test_airflow_knows_the_link_of_each_task_from_its_file() -> None:
    with DAG("linked") as dag:
        submit()
        BookmarkSparkSubmitOperator.partial(task_id="mapped").expand(application=["a.py", "b.py"])
        BookmarkSensor(task_id="wait", job="raw")

    tasks = DagSerialization.from_dict(DagSerialization.to_dict(dag)).tasks

    assert {task.task_id: [each.name for each in task.operator_extra_links] for task in tasks} == {
        "copy": ["Bookmark"],
        "mapped": ["Bookmark"],
        "wait": ["Bookmark"],
    }


@needs_pages
def test_airflow_keeps_the_link_of_a_task_that_ran(player: Player, world: World) -> None:
    world.shop.put("a.txt", "a")
    world.shop.run("copy", "copy/1")
    with DAG("waits") as dag:
        BookmarkSensor(task_id="wait", job="copy", run_number=1)

    played = player.play(dag)

    assert played.xcom("wait", BookmarkLink().xcom_key).endswith("/plugin/bookmarks?job=copy")
