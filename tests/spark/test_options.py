"""Promises OPT-1 to OPT-8, OPT-10, OPT-11: enable, pause and disable by argument and by conf; nothing is guessed."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from airflow_bookmarks.core.errors import NameInvalidError, OptionError, RunUnknownError
from airflow_bookmarks.spark import BookmarkedJob
from airflow_bookmarks.store.bookmark_store import open_store
from tests.spark.lake import Lake, lines_of

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def by_conf(lake: Lake, **settings: str) -> BookmarkedJob:
    """Make a job that gets its settings as the operator sends them."""
    session = lake.another_session()
    for name, value in settings.items():
        session.conf.set(f"spark.bookmarks.{name.rstrip('_')}", value)
    return BookmarkedJob(session)


def store_uri(lake: Lake) -> str:
    uri = f"sqlite:///{lake.root.parent}/bookmarks.db?namespace=test"
    assert open_store(uri).namespace == "test"
    return uri


def read(lake: Lake, how: str, **settings: str) -> list[str]:
    """Make one whole run whose settings come by argument or by conf."""
    if how == "conf":
        job = by_conf(lake, job="copy", store=store_uri(lake), **settings)
    else:
        names = {"from_": "from_run", "to": "to_run"}
        job = lake.job(**{names.get(name, name): value for name, value in settings.items()})
    with job:
        return lines_of(lake.read(job))


@pytest.mark.parametrize(("how", "prefix"), [("argument", ""), ("conf", "job-bookmark-")])
def test_enable_moves_the_bookmark_pause_and_disable_do_not(lake: Lake, how: str, prefix: str) -> None:
    lake.put("a.txt", "a")
    assert read(lake, how, option=f"{prefix}enable") == ["a"]
    lake.put("b.txt", "b")
    before = lake.head()
    assert read(lake, how, option=f"{prefix}pause") == ["b"]
    assert read(lake, how, option=f"{prefix}pause") == ["b"]
    assert read(lake, how, option=f"{prefix}disable") == ["a", "b"]
    assert lake.head() == before
    assert read(lake, how) == ["b"]
    assert read(lake, how) == []


@pytest.mark.seldom
@pytest.mark.parametrize("how", ["argument", "conf"])
def test_paused_window_reads_between_two_runs(lake: Lake, how: str) -> None:
    for name in "abcd":
        lake.put(f"{name}.txt", name)
        lake.run(run_id=f"run-{name}")
    assert read(lake, how, option="pause", from_="1", to="3") == ["b", "c"]
    assert read(lake, how, option="pause", from_="run-a", to="run-c") == ["b", "c"]
    assert read(lake, how, option="pause", from_="2", to="2") == []
    with pytest.raises(RunUnknownError, match="'never'"):
        read(lake, how, option="pause", from_="run-a", to="never")
    assert lake.run() == []


@pytest.mark.parametrize("how", ["argument", "conf"])
@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"option": "pause", "from_": "1"}, "'from' is given and 'to' is not"),
        ({"option": "pause", "to": "1"}, "'to' is given and 'from' is not"),
        ({"from_": "1", "to": "2"}, "option 'pause' only, not with 'enable'"),
        ({"option": "disable", "from_": "1", "to": "2"}, "option 'pause' only, not with 'disable'"),
        ({"option": "enabled"}, "valid are 'enable', 'pause', 'disable'"),
        ({"on_conflict": "later"}, "expected one of 'fail', 'wait'"),
        ({"attempt": "0"}, "expected a number from 1"),
        ({"attempt": "x"}, "expected a number from 1"),
    ],
)
def test_wrong_settings_are_an_error_before_anything_is_read(
    lake: Lake, how: str, settings: dict[str, str], says: str
) -> None:
    lake.put("a.txt", "a")
    with pytest.raises(OptionError, match=says) as caught:
        read(lake, how, **settings)
    assert "Nothing was read or" in str(caught.value)
    assert lake.store.jobs() == []


@pytest.mark.parametrize("how", ["argument", "conf"])
def test_run_id_that_can_be_none_is_an_error(lake: Lake, how: str) -> None:
    with pytest.raises(NameInvalidError, match="can't be a run id"):
        read(lake, how, run_id="a#b")


def test_unknown_setting_is_an_error_that_names_the_known_ones(lake: Lake) -> None:
    with pytest.raises(OptionError, match=r"unknown setting spark\.bookmarks\.optoin; known are job, store, option"):
        by_conf(lake, job="copy", store=store_uri(lake), optoin="pause")


def test_empty_text_counts_as_unset(lake: Lake) -> None:
    lake.put("a.txt", "a")
    with by_conf(
        lake, job="copy", store=store_uri(lake), option="", from_="", to="", run_id="", attempt="", dag="", upstream=""
    ) as job:
        assert job.option == "enable"
        assert lines_of(lake.read(job)) == ["a"]


def test_setting_at_run_time_is_the_next_jobs(lake: Lake) -> None:
    lake.spark.conf.set("spark.bookmarks.option", "pause")
    assert lake.job().option == "pause"
    lake.spark.conf.unset("spark.bookmarks.option")
    assert lake.job().option == "enable"


@pytest.mark.parametrize(
    ("setting", "travelled", "argument"),
    [
        ("job", "other", {"name": "copy"}),
        ("option", "pause", {"option": "enable"}),
        ("run_id", "a", {"run_id": "b"}),
        ("attempt", "2", {"attempt": 1}),
        ("store", "sqlite:////x/a.db", {"store": "sqlite:////x/b.db"}),
        ("on_conflict", "wait", {"on_conflict": "fail"}),
    ],
)
def test_script_and_operator_that_contradict_each_other_are_an_error(
    lake: Lake, setting: str, travelled: str, argument: dict[str, Any]
) -> None:
    lake.spark.conf.set(f"spark.bookmarks.{setting}", travelled)
    with pytest.raises(OptionError, match=r"the script says .* and the operator .*Leave one of them out"):
        BookmarkedJob(lake.spark, **{"name": "copy", "store": lake.store, **argument})


def test_script_and_operator_that_agree_are_good(lake: Lake) -> None:
    lake.spark.conf.set("spark.bookmarks.job", "copy")
    lake.spark.conf.set("spark.bookmarks.attempt", "3")
    with lake.job(attempt=3) as job:
        assert job.name == "copy"


def test_option_in_the_spelling_of_glue_is_the_same_option(lake: Lake) -> None:
    lake.spark.conf.set("spark.bookmarks.option", "pause")
    assert lake.job(option="job-bookmark-pause").option == "pause"


def test_open_store_beside_that_of_the_operator_is_told(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    lake.spark.conf.set("spark.bookmarks.store", "sqlite:////x/a.db")
    assert lake.job().store is lake.store
    assert "the script gives an open store, of namespace 'test'; the one of the operator" in caplog.text


def test_window_ends_may_come_one_by_argument_and_one_by_conf(lake: Lake) -> None:
    for name in "ab":
        lake.put(f"{name}.txt", name)
        lake.run()
    lake.spark.conf.set("spark.bookmarks.from", "1")
    with lake.job(option="pause", to_run=2) as job:
        assert lines_of(lake.read(job)) == ["b"]


@pytest.mark.parametrize(("option", "said"), [(None, "enable (default)"), ("disable", "disable (given)")])
def test_log_says_which_option_is_in_force_and_why(
    lake: Lake, option: str | None, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "airflow_bookmarks"):
        lake.job(option=option)
    assert f"bookmark copy: option {said}" in caplog.messages


def test_side_run_leaves_a_record_and_publishes_under_a_name_of_its_own(lake: Lake) -> None:
    lake.put("a.txt", "a")
    lake.copy()
    lake.put("b.txt", "b")
    paused = lake.copy(option="pause")
    assert (paused["option"], paused["run_number"], paused["outputs"]["out"]["files"]) == ("pause", None, 1)
    (record,) = lake.store.sides("copy")
    assert record["option"] == "pause"
    assert {name.partition("-")[0] for name in lake.visible()} == {"run", "side"}
    assert lines_of(lake.spark.read.text(lake.path("copy"))) == ["a", "b"]
    assert lake.staged("copy/_bookmarks") == []
    assert lake.run() == ["b"]


def test_no_job_and_no_store_are_errors_that_say_how_to_give_them(lake: Lake) -> None:
    with pytest.raises(OptionError, match=r"no job.*spark\.bookmarks\.job"):
        BookmarkedJob(lake.spark, store=lake.store)
    with pytest.raises(OptionError, match=r"no store.*spark\.bookmarks\.store.*dynamodb://"):
        BookmarkedJob(lake.spark, "copy")
