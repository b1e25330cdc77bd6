"""The hook: from a connection to a store, and plain dicts back."""

from __future__ import annotations

import getpass
import json
import os
from datetime import UTC, datetime

import pytest
from airflow.sdk import DAG, task

from airflow_bookmarks.core.errors import (
    ApprovalError,
    ChangedMeanwhileError,
    ChangeRefusedError,
    JobBusyError,
    JobUnknownError,
    OptionError,
    OwnerError,
    ProtectedError,
    RunUnknownError,
)
from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.core.text.identity import Identity
from airflow_bookmarks.hooks.bookmark import BookmarkHook
from airflow_bookmarks.lifecycle.changes.approval import approve
from airflow_bookmarks.lifecycle.changes.change import Change
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from tests.airflow.conftest import Player, World, connect


def test_connection_leads_to_the_store(world: World) -> None:
    world.shop.run("copy")

    hook = BookmarkHook()

    assert hook.store_uri == world.store_uri
    assert hook.default_option is None
    assert hook.get_conn() is hook.get_conn()
    assert [row["job"] for row in hook.list()] == ["copy"]


def test_missing_connection_says_how_to_make_it() -> None:
    with pytest.raises(OptionError) as raised:
        BookmarkHook("no_such").get_conn()

    assert "airflow connections add no_such --conn-type bookmarks" in str(raised.value)
    assert "AIRFLOW_CONN_NO_SUCH" in str(raised.value)


def test_connection_of_another_type_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_OTHER", json.dumps({"conn_type": "aws"}))

    with pytest.raises(OptionError, match="of type 'aws'"):
        BookmarkHook("other").get_conn()


def test_password_in_the_connection_is_refused_and_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    value = {"conn_type": "bookmarks", "password": "hunter-22", "extra": {"store": "sqlite:////b.db"}}
    monkeypatch.setenv("AIRFLOW_CONN_OTHER", json.dumps(value))

    with pytest.raises(OptionError, match="has a value in password") as raised:
        BookmarkHook("other").get_conn()

    assert "hunter" not in str(raised.value)


def test_owner_and_sharing_are_the_same_by_each_connection_to_a_namespace(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However the connection spells it; and another namespace of the same table has jobs of its own."""
    table = f"sqlite:///{world.folder}/bookmarks.db"
    connect(monkeypatch, "spelled", store=table, namespace="test")
    connect(monkeypatch, "prod", store=table, namespace="prod")
    here, spelled, prod = BookmarkHook(), BookmarkHook("spelled"), BookmarkHook("prod")

    def run(hook: BookmarkHook, dag_id: str, number: int) -> None:
        who = RunIdentity(f"{dag_id}/{number}/clean", dag_id=dag_id, task_id="clean")
        begun = ActiveRun.begin(hook.get_conn(), "copy", who, world.shop.environment)
        world.shop.copy(begun)
        begun.commit()

    run(here, "flights", 1)
    with pytest.raises(OwnerError):
        run(spelled, "nights", 1)
    here.share("copy", "nights", reason="agreed")
    run(spelled, "nights", 2)
    spelled.unshare("copy", "nights", reason="agreed")
    with pytest.raises(OwnerError):
        run(here, "nights", 3)
    spelled.hand_over("copy", "nights", reason="agreed")
    run(here, "nights", 4)
    with pytest.raises(OwnerError):
        run(here, "flights", 5)

    with pytest.raises(JobUnknownError):
        prod.share("copy", "days", reason="agreed")
    run(prod, "flights", 1)
    with pytest.raises(OwnerError):
        run(prod, "nights", 1)


def test_credentials_come_from_the_aws_connection(world: World, monkeypatch: pytest.MonkeyPatch, moto_url: str) -> None:
    aws = {"conn_type": "aws", "login": "AKIAEXAMPLE", "password": "secret-key", "extra": {"region_name": "eu-west-3"}}
    monkeypatch.setenv("AIRFLOW_CONN_AWS_MINE", json.dumps(aws))
    connect(monkeypatch, store=f"dynamodb://hook-{os.getpid()}?endpoint={moto_url}", aws_conn_id="aws_mine")
    hook = BookmarkHook()

    hook.get_conn().init()

    assert hook.credentials_environment() == {
        "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "secret-key",
        "AWS_SESSION_TOKEN": "",
    }
    # The driver has another environment: the region travels, the credentials do not.
    assert "region=eu-west-3" in hook.store_uri
    assert "secret" not in hook.store_uri
    assert hook.test_connection()[0]


def test_aws_connection_that_does_not_exist_is_not_replaced_by_other_credentials(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(monkeypatch, store="dynamodb://bookmarks?region=eu-west-1", aws_conn_id="no_such")

    with pytest.raises(OptionError, match="names the AWS connection 'no_such', which does not exist"):
        BookmarkHook().get_conn()


def test_without_an_aws_connection_there_are_no_credentials_to_hand_on(world: World) -> None:
    assert BookmarkHook().credentials_environment() == {}


def test_button_in_the_ui_says_what_is_wrong(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert BookmarkHook().test_connection() == (True, f"{world.store_uri} answers, and its layout is known")

    connect(monkeypatch, store=f"sqlite:///{world.folder}/absent.db")

    is_fine, said = BookmarkHook().test_connection()
    assert (is_fine, "absent.db" in said) == (False, True)


def test_what_it_tells_of_a_job_is_plain(world: World) -> None:
    world.shop.put("a.txt", "a")
    world.shop.run("copy")
    world.shop.run("copy")
    world.shop.run("down", upstream="copy")
    hook = BookmarkHook()

    told = hook.get("copy")

    assert (told["job"], told["namespace"], told["run_number"], told["published"]) == ("copy", "test", 2, 2)
    assert told["contexts"]["raw"]["kind"] == "files"
    assert (told["lease"], told["consumers"]["down"]["run_number"]) == (None, 2)
    assert json.loads(json.dumps(told)) == told
    assert [row["number"] for row in hook.history("copy")] == [1, 2]
    assert [row["number"] for row in hook.history("copy", limit=1)] == [2]
    assert [row["job"] for row in hook.list()] == ["copy", "down"]


def test_job_that_does_not_exist_is_an_error(world: World) -> None:
    with pytest.raises(JobUnknownError):
        BookmarkHook().get("no.such")


def test_rewind_and_reset_say_what_they_did_and_who_did_it(world: World) -> None:
    world.shop.run("copy")
    world.shop.run("copy")
    hook = BookmarkHook()

    assert (hook.rewind("copy", to_run=1, reason="wrong rows")["undone_run_count"]) == 1
    assert hook.reset("copy", reason="all over", who="ops@example")["epoch"] == {"before": 2, "after": 3}

    events = [(event["kind"], event["who"], event["why"]) for event in world.store.events("copy")]
    assert events == [("rewind", getpass.getuser(), "wrong rows"), ("reset", "ops@example", "all over")]


def test_change_is_refused_while_a_run_holds_the_job_unless_forced(world: World) -> None:
    world.shop.begin("copy")
    hook = BookmarkHook()

    with pytest.raises(JobBusyError):
        hook.reset("copy", reason="now")
    with pytest.raises(RunUnknownError):
        hook.rewind("copy", to_run=7, reason="now", force=True)

    assert hook.reset("copy", reason="now", force=True)["change"] == "reset"


def test_task_that_changes_a_bookmark_is_named_in_its_history(world: World, player: Player) -> None:
    world.shop.run("copy")
    with DAG("ops", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:

        @task
        def go_back() -> None:
            BookmarkHook().reset("copy", reason="asked for")

        go_back()

    played = player.play(dag)

    assert played.state == "success"
    assert world.store.events("copy")[0]["who"] == f"ops/{played.run.run_id}/go_back"


def test_hook_changes_and_undoes_with_the_rules_of_the_command_line(world: World) -> None:
    world.shop.put("a.txt", "a1")
    world.shop.run("copy")
    hook = BookmarkHook()

    seen = hook.preview("copy", Change("reset", clean=True))
    assert (seen["undone_runs"], seen["files_to_clean"], seen["read_again"]["files"]) == ([1], 1, 1)
    with pytest.raises(ChangedMeanwhileError):
        hook.reset("copy", reason="all over", expected_version=seen["version"] + 1)
    assert hook.reset("copy", reason="all over", expected_version=seen["version"])["undone_run_count"] == 1
    assert hook.undo("copy", reason="a mistake")["epoch"] == {"before": 2, "after": 3}
    assert hook.set_position("copy", "raw", "now", reason="skip")["change"] == "set"
    world.shop.begin("copy", run_id="dead")
    assert hook.unlock("copy", reason="it is dead")["held_by"] == "dead"
    assert [event["kind"] for event in world.store.events("copy")] == ["reset", "undo", "set", "unlock"]


def test_run_that_nobody_asks_about_is_not_settled(world: World) -> None:
    world.shop.run("copy")
    with pytest.raises(ChangeRefusedError, match="no run is known to be"):
        BookmarkHook().settle("copy", 2, "committed", reason="a test")


def test_state_is_set_and_hidden_where_the_connection_says_so(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.shop.run("copy")
    change = Change("set-state", state="cursor", value='"secret"')
    assert BookmarkHook().preview("copy", change)["state"] == {"cursor": {"before": None, "after": '"secret"'}}
    BookmarkHook().set_state("copy", "cursor", "secret", reason="a test")
    assert BookmarkHook().get("copy")["state"] == {"cursor": '"secret"'}
    connect(monkeypatch, store=world.store_uri, hide_state="true")
    assert "secret" not in str(BookmarkHook().get("copy"))
    assert BookmarkHook().export(["copy"])["states"] == {"copy": {"cursor": "(hidden)"}}


def test_folder_that_moved_is_told_by_the_hook(world: World) -> None:
    world.shop.put("a.txt", "a")
    world.shop.run("copy")
    moved = world.shop.root / "moved"
    world.shop.raw.rename(moved)
    done = BookmarkHook().relocate("copy", "raw", from_root=str(world.shop.raw), to_root=str(moved), reason="a test")
    assert (done["change"], done["undone_run_count"]) == ("relocate", 0)
    assert BookmarkHook().rename_context("copy", "raw", "flights", reason="a test")["change"] == "rename-context"


def test_argument_that_no_change_has_is_refused_and_nobody_approves_his_own_change(world: World) -> None:
    world.shop.run("copy")
    hook = BookmarkHook()
    hook.protect("copy", reason="it is dear to us")
    for wrong in ({"forse": True}, {"request_id": "01"}):
        with pytest.raises(TypeError, match="unexpected keyword argument"):
            hook.reset("copy", reason="now", **wrong)
    with pytest.raises(TypeError, match="reason"):
        hook.undo("copy")  # type: ignore[call-arg]
    with pytest.raises(ProtectedError):
        hook.reset("copy", reason="now")


def test_what_it_tells_of_the_input_of_jobs_is_plain(world: World) -> None:
    world.shop.put("a.txt", "a")
    world.shop.run("copy")
    world.shop.run("down", upstream="copy")
    world.shop.put("b.txt", "b")
    hook = BookmarkHook()

    pending, lag, graph = hook.pending("copy", with_skipped=True), hook.lag(), hook.graph("down")

    assert (pending["is_empty"], pending["files"], pending["contexts"][0]["skipped_files"]) == (False, 1, [])
    assert hook.pending("no.such")["is_known"] is False
    assert [(row["job"], row["source"], row["state"]) for row in lag] == [("down", "copy", "OK")]
    assert [row["kind"] for row in hook.lag("copy")] == ["files"]
    assert [node["name"] for node in graph["nodes"]][:2] == ["copy", "down"]
    assert hook.graph()["nodes"] == graph["nodes"]
    told = (pending, lag, graph)
    assert json.loads(json.dumps(told)) == list(told)


def test_advice_is_that_of_the_command_line(world: World) -> None:
    world.shop.put("a=1/b=2/c=3/d=4/x.txt", "x")
    world.shop.run("copy")
    hook = BookmarkHook()
    hook.rename("copy", "lake.copy", reason="moved")

    (told,) = hook.advise("lake.copy")

    assert (told["job"], told["runs"], [each["code"] for each in told["advice"]]) == ("copy", 1, ["deep-partitions"])
    assert hook.advise() == [told]
    assert json.loads(json.dumps(told)) == told
    with pytest.raises(JobUnknownError):
        hook.advise("no.such")


def test_any_name_of_a_job_will_do(world: World) -> None:
    world.shop.put("a.txt", "a")
    world.shop.run("copy")
    hook = BookmarkHook()

    assert hook.rename("copy", "lake.copy", reason="moved")["name"] == "lake.copy"
    assert hook.adopt("new.copy", "copy", reason="its DAG has another name")["job"] == "copy"

    for name in ("copy", "lake.copy", "new.copy"):
        assert hook.pending(name)["job"] == "copy"
        assert [row["path"].rpartition("/")[2] for row in hook.files(name, 1)] == ["a.txt"]
        assert hook.replay_settings(name, 1)["conf"]["spark.bookmarks.job"] == "copy"
        assert hook.graph(name)["nodes"][0]["other_names"] == ["lake.copy", "new.copy"]
        assert list(hook.export([name])["jobs"]) == ["copy"]
    assert hook.reset("lake.copy", reason="all over")["job"] == "copy"


def test_bookmark_is_deleted_when_its_name_is_written_out(world: World) -> None:
    world.shop.run("copy")
    hook = BookmarkHook()
    with pytest.raises(OptionError, match="typed out"):
        hook.delete("copy", typed_name="cpoy", reason="not needed")
    assert hook.delete("copy", typed_name="copy", reason="not needed")["change"] == "delete"
    assert hook.list() == []


def test_change_of_a_protected_job_is_asked_for_and_not_approved_by_the_one_who_asked(world: World) -> None:
    world.shop.run("copy")
    hook = BookmarkHook()
    hook.protect("copy", reason="it is dear to us", who="ops/nightly/guard")

    asked = hook.request("copy", Change("reset"), reason="all over")

    assert ([each["id"] for each in hook.requests("copy")], asked["state"]) == ([asked["id"]], "open")
    with pytest.raises(ApprovalError, match="another person"):
        hook.approve("copy", asked["id"])
    approved = approve(world.store, "copy", asked["id"], who=Identity("somebody-else", True, "os"))
    assert approved["requested_by"] == asked["who"]
    again = hook.request("copy", Change("undo"), reason="a mistake")
    assert hook.reject("copy", again["id"], reason="no")["state"] == "rejected"
    assert hook.requests("copy") == []
    assert len(hook.requests("copy", with_closed=True)) == 2
    assert world.store.events("copy")[0]["who"] == "ops/nightly/guard"
