"""Promise GLUE-12: what a script for AWS Glue gets from its task, and what its arguments say by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_bookmarks.airflow_compat import AirflowFailException
from airflow_bookmarks.core.errors import NotCommittedError, OptionError
from airflow_bookmarks.core.settings import Settings
from airflow_bookmarks.operators.spark_submit import BookmarkSparkSubmitOperator
from airflow_bookmarks.operators.task.glue_arguments import GlueArguments
from airflow_bookmarks.operators.task.task_config import TaskConfig
from tests.airflow.conftest import World, connect
from tests.airflow.operators.test_operator import Submits, context, operator, submits

__all__ = ["submits"]

SETTINGS = Settings(job="nightly~20orders", option="enable", run_id="shop/1/copy")


def config(*arguments: str, **given: Any) -> TaskConfig:
    return GlueArguments.of(arguments).config(TaskConfig(**given))


def submitting(submits: Submits, **given: Any) -> BookmarkSparkSubmitOperator:
    """Return an operator of a script that commits nothing."""
    return BookmarkSparkSubmitOperator(task_id="copy", application=submits.script(commits=False), **given)


# ---- what is added


def test_arguments_of_the_job_are_added_by_the_names_that_the_script_knows() -> None:
    assert GlueArguments.of([]).added(SETTINGS) == [
        *("--JOB_NAME", "nightly orders"),
        *("--JOB_RUN_ID", "shop/1/copy"),
        *("--job-bookmark-option", "job-bookmark-enable"),
    ]


def test_window_and_folder_are_added_where_there_are_any() -> None:
    settings = Settings(job="a", option="pause", run_id="r", from_run="1", to_run="3", manifest_uri="s3://lake/tmp")
    added = GlueArguments.of(["--day", "1"]).added(settings)
    assert dict(zip(added[::2], added[1::2], strict=True)) == {
        "--JOB_NAME": "a",
        "--JOB_RUN_ID": "r",
        "--TempDir": "s3://lake/tmp",
        "--job-bookmark-option": "job-bookmark-pause",
        "--job-bookmark-from": "1",
        "--job-bookmark-to": "3",
    }


@pytest.mark.parametrize("form", [["--JOB_NAME", "x"], ["--JOB_NAME=x"]], ids=["two words", "one word"])
def test_argument_by_hand_is_not_added_again(form: list[str]) -> None:
    assert "--JOB_NAME" not in GlueArguments.of([*form, "--JOB_RUN_ID", "jr_1"]).added(SETTINGS)
    assert "--JOB_RUN_ID" not in GlueArguments.of([*form, "--JOB_RUN_ID", "jr_1"]).added(SETTINGS)


def test_former_spelling_of_the_option_counts_as_given() -> None:
    arguments = GlueArguments.of(["--continuation-option", "continuation-readonly"])
    assert "--job-bookmark-option" not in arguments.added(SETTINGS)
    assert arguments.config(TaskConfig()).option == "pause"


# ---- what is given by hand


def test_argument_by_hand_says_what_the_operator_does_not() -> None:
    found = config(
        *("--JOB_NAME", "nightly orders", "--job-bookmark-option", "job-bookmark-pause", "--TempDir", "s3://lake/tmp"),
        *("--job-bookmark-from", "1", "--job-bookmark-to", "2"),
    )
    assert found == TaskConfig(
        job="nightly~20orders",
        option="job-bookmark-pause",
        from_run="1",
        to_run="2",
        manifest_uri="s3://lake/tmp",
    )


def test_same_in_both_places_is_no_contradiction() -> None:
    found = config("--job-bookmark-option", "job-bookmark-enable", "--JOB_NAME", "a", option="enable", job="a")
    assert (found.option, found.job) == ("job-bookmark-enable", "a")


@pytest.mark.parametrize(
    ("arguments", "given", "why"),
    [
        (["--job-bookmark-option", "job-bookmark-disable"], {"option": "enable"}, "bookmark_option='enable'"),
        (["--JOB_NAME", "a"], {"job": "b"}, "bookmark_job='b'"),
        (["--job-bookmark-from", "1"], {"from_run": 2}, "bookmark_from=2"),
    ],
    ids=["option", "job", "from"],
)
def test_contradiction_is_an_error(arguments: list[str], given: dict[str, Any], why: str) -> None:
    with pytest.raises(OptionError, match=f"{why}.*Spark was not started"):
        config(*arguments, **given)


def test_template_is_compared_when_it_is_rendered() -> None:
    assert config("--job-bookmark-option", "{{ params.o }}", option="enable").option == "{{ params.o }}"


# ---- the operator


def test_script_is_submitted_with_its_arguments_and_the_zip_for_glue(world: World, submits: Submits) -> None:
    task = submitting(submits, glue=True, application_args=["--day", "1"])
    with pytest.raises(NotCommittedError):
        task.execute(context())

    (call,) = submits.calls
    end = call["arguments"][call["arguments"].index(task.application) + 1 :]
    assert end[:4] == ["--day", "1", "--JOB_NAME", "shop.copy"]
    assert end[-1] == "job-bookmark-enable"
    (shipped,) = (each for each in call["arguments"] if each.endswith(".zip"))
    assert "airflow_bookmarks_glue-" in shipped
    assert call["conf"]["spark.hadoop.fs.s3.impl"] == "org.apache.hadoop.fs.s3a.S3AFileSystem"
    assert task.application_args == ["--day", "1"]


@pytest.mark.seldom
def test_file_system_of_the_user_stays(world: World, submits: Submits) -> None:
    own = {"spark.hadoop.fs.s3.impl": "a.b.C", "spark.bookmarks.glue.catalog": "hive"}
    task = submitting(submits, glue=True, conf=own)
    with pytest.raises(NotCommittedError):
        task.execute(context())
    assert own.items() <= submits.calls[0]["conf"].items()


def test_name_by_hand_is_the_name_of_the_job(world: World, submits: Submits) -> None:
    task = submitting(submits, glue=True, application_args=["--JOB_NAME", "a b"])
    with pytest.raises(NotCommittedError):
        task.execute(context())
    assert submits.calls[0]["conf"]["spark.bookmarks.job"] == "a~20b"


@pytest.mark.seldom
def test_option_of_the_connection_goes_to_the_script(
    world: World, submits: Submits, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(monkeypatch, store=world.store_uri, default_option="disable")
    submitting(submits, glue=True).execute(context())
    assert submits.calls[0]["arguments"][-1] == "job-bookmark-disable"


def test_contradiction_shows_when_the_file_is_read_or_before_spark(world: World, submits: Submits) -> None:
    by_hand = ["--job-bookmark-option", "job-bookmark-pause"]
    with pytest.raises(OptionError, match="Leave one of them out"):
        operator(glue=True, bookmark_option="enable", application_args=by_hand)
    task = operator(glue=True, bookmark_option="enable")
    task.application_args = by_hand  # as a template is rendered
    with pytest.raises(AirflowFailException, match="Leave one of them out"):
        task.execute(context())
    assert submits.calls == []


def test_shards_are_refused() -> None:
    with pytest.raises(OptionError, match="no loop over shards"):
        operator(glue=True, bookmark_shard="0/2")


def test_other_scripts_get_no_arguments(world: World, submits: Submits) -> None:
    task = submitting(submits)
    with pytest.raises(NotCommittedError):
        task.execute(context())
    assert "--JOB_NAME" not in json.dumps(submits.calls)
    assert "airflow_bookmarks_glue" not in json.dumps(submits.calls)
