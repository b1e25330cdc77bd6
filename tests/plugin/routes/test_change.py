"""Changes made from the page: by the rules of the hook, with a trace of who and why."""

from __future__ import annotations

import json
from typing import Any

import pytest
from airflow.models.log import Log
from airflow.utils.session import create_session
from sqlalchemy import select
from sqlalchemy.exc import OperationalError

from airflow_bookmarks.core.errors import FencedError
from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.core.rules.shard import shard_name
from airflow_bookmarks.hooks.bookmark import BookmarkHook
from airflow_bookmarks.lifecycle.changes.change import Change, reset
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.plugin.airflow_database import audit
from airflow_bookmarks.plugin.routes.change import _in_words
from airflow_bookmarks.store.table import Update
from tests.airflow.conftest import World
from tests.plugin.conftest import API, Site, meant, run_of_dag, three_runs

pytestmark = [pytest.mark.airflow, pytest.mark.xdist_group("plugin")]

JOB = "flights.clean"


@pytest.fixture
def job(world: World, dags: object) -> str:
    with create_session() as session:
        for row in session.scalars(select(Log)).all():
            session.delete(row)
    return three_runs(world)


def post(site: Site, user: str, path: str, body: Any, status: int = 200) -> Any:
    answer = site.as_user(user).post(f"{API}/jobs/{path}", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def audited() -> list[tuple[str, str | None, str | None, str | None, dict[str, Any]]]:
    with create_session() as session:
        rows = session.scalars(select(Log).order_by(Log.id)).all()
        return [
            (row.event, row.owner, row.dag_id, row.task_id, json.loads(row.extra or "{}"))
            for row in rows
            if row.event.startswith("bookmark.")
        ]


def stands(world: World, job: str) -> tuple[int, int, int, int]:
    head = world.store.head(job)
    return head.version, head.epoch, head.run_number, len(world.store.events(job))


# ---- preview


@pytest.mark.parametrize(
    ("body", "change"),
    [
        ({"kind": "reset"}, Change("reset")),
        ({"kind": "reset", "clean": True}, Change("reset", clean=True)),
        ({"kind": "reset", "contexts": ["raw"]}, Change("reset", contexts=("raw",))),
        ({"kind": "rewind", "to_run": 2}, Change("rewind", "2")),
        ({"kind": "set", "ctx": "raw", "value": "now"}, Change("set", ctx="raw", value="now")),
        ({"kind": "set-state", "state": "cursor", "value": [1]}, Change("set-state", state="cursor", value="[1]")),
    ],
    ids=str,
)
def test_preview_is_that_of_the_hook_and_changes_nothing(
    site: Site, world: World, job: str, looks: None, body: dict[str, Any], change: Change
) -> None:
    world.shop.run("down", upstream=job)
    before = stands(world, job)

    told = post(site, "uma", f"{job}/preview", body)

    more = {"hidden_consumers": 0, "needs_approval": False, "stands": False}
    assert told == {**BookmarkHook().preview(job, change), **more}
    assert stands(world, job) == before
    assert audited() == []


def test_rewind_is_previewed_to_the_run_that_a_point_names_and_made_by_its_number(
    site: Site, world: World, job: str
) -> None:
    runs = {run.key.number: run for run in world.store.runs(job)}
    execution = runs[2].run_id
    time = runs[2].committed_at
    mark = runs[2].contexts["raw"].watermark

    told = [post(site, "uma", f"{job}/preview", {"kind": "rewind", "to_run": to}) for to in (2, execution, time)]
    told.append(post(site, "uma", f"{job}/preview", {"kind": "rewind", "to_run": f"watermark:{mark}"}))

    assert [each["to_run"] for each in told] == [2, 2, 2, 2]
    assert told.count(told[0]) == len(told)
    refused = post(site, "uma", f"{job}/preview", {"kind": "rewind", "to_run": "1999-01-01T00:00:00Z"}, 404)
    assert refused["error"] == "RunUnknownError"
    meant = {"reason": "asked for", "expected_version": told[0]["version"], "confirm": job}
    for path in ("changes", "requests"):
        post(site, "uma", f"{job}/{path}", {"kind": "rewind", "to_run": time, **meant}, 422)
    post(site, "uma", f"{job}/changes", {"kind": "rewind", "to_run": told[2]["to_run"], **meant})
    assert world.store.head(job).contexts["raw"].run.number == 2


def test_preview_says_that_a_job_stands_there_already(site: Site, world: World, job: str) -> None:
    def says(spec: dict[str, Any]) -> bool:
        return bool(post(site, "uma", f"{job}/preview", spec)["stands"])

    assert says({"kind": "rewind", "to_run": 3})
    assert not says({"kind": "rewind", "to_run": 3, "contexts": ["raw"]}), "only a whole one is compared"
    assert not says({"kind": "reset"})
    reset(world.store, job, reason="anew", who="op")
    assert says({"kind": "reset"})
    assert not says({"kind": "undo"})


# ---- changes


@pytest.mark.parametrize(
    ("kind", "more", "noted"),
    [
        ("reset", {}, {}),
        ("reset", {"clean": True}, {"clean": True, "files_to_clean": 3}),
        ("reset", {"contexts": ["raw"]}, {"contexts": ["raw"]}),
        ("rewind", {"to_run": 2}, {"to_run": "2", "undone_run_count": 1}),
        ("set-state", {"state": "cursor", "value": {"page": 3}}, {"state": "cursor"}),
        ("set", {"ctx": "raw", "value": "2023-11-14T22:13:20Z"}, {"ctx": "raw", "value": "2023-11-14T22:13:20Z"}),
    ],
    ids=str,
)
def test_change_is_made_and_leaves_an_event_and_a_row_in_the_log(
    site: Site, world: World, job: str, looks: None, kind: str, more: dict[str, Any], noted: dict[str, Any]
) -> None:
    version, epoch, _, _ = stands(world, job)

    told = post(site, "uma", f"{job}/changes", meant(world, job, kind, **more))

    assert (told["change"], told["version"]) == (kind, {"before": version, "after": version + 1})
    assert (told["epoch"]["after"], told["audited"]) == (epoch + 1, True)
    assert told["said"].startswith(f"{kind} of job '{job}' is done: ")
    assert world.store.head(job).epoch == epoch + 1
    (event,) = world.store.events(job)
    assert (event["kind"], event["who"], event["why"]) == (kind, "uma", "asked for")
    ((name, owner, dag_id, task_id, details),) = audited()
    assert (name, owner, dag_id, task_id) == (f"bookmark.{kind}", "uma", "flights", "clean")
    assert (details["job"], details["reason"], details["version"]) == (job, "asked for", told["version"])
    assert details.items() >= noted.items()


@pytest.mark.parametrize(
    ("files", "outputs", "said"),
    [
        (0, 0, ""),
        (1, 0, ", 1 file to be removed by the next run"),
        (0, 1, ", rows of 1 output in other sinks to be removed by the next run"),
        (3, 2, ", 3 files and rows of 2 outputs in other sinks to be removed by the next run"),
    ],
)
def test_change_says_what_the_next_run_removes(files: int, outputs: int, said: str) -> None:
    told = {"job": JOB, "change": "reset", "undone_run_count": 2, "files_to_clean": files, "outputs_to_clean": outputs}
    words = _in_words({**told, "epoch": {"before": 1, "after": 2}, "to_run": 0})
    assert words == f"reset of job '{JOB}' is done: 2 runs undone{said}; it stands after run 0, in epoch 2"


def test_change_is_noted_as_by_somebody_logged_in_whichever_process_makes_it(
    site: Site, world: World, job: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = meant(world, job, "set", ctx="raw", value="2023-11-14T22:13:20Z")
    refused = post(site, "uma", f"{job}/changes", looked, status=409)
    assert refused["error"] == "LookRefusedError"  # the child makes it, and this process the reset
    monkeypatch.setenv("AIRFLOW__BOOKMARKS__LOOK_BELOW", str(world.folder))
    post(site, "uma", f"{job}/changes", looked)
    post(site, "uma", f"{job}/changes", meant(world, job, "reset"))

    told = site.as_user("uma").get(f"{API}/jobs/{job}/events").json()["events"]
    assert [(event["kind"], event["who"], event["who_kind"]) for event in told] == [
        ("reset", "uma", "airflow"),
        ("set", "uma", "airflow"),
    ]


def test_undo_takes_the_last_change_back(site: Site, world: World, job: str) -> None:
    before = world.store.head(job).contexts
    post(site, "uma", f"{job}/changes", meant(world, job, "rewind", to_run=1))

    told = post(site, "uma", f"{job}/changes", meant(world, job, "undo"))

    assert (told["change"], told["to_run"]) == ("undo", 3)
    assert world.store.head(job).contexts == before
    assert [row[0] for row in audited()] == ["bookmark.rewind", "bookmark.undo"]
    assert post(site, "uma", f"{job}/changes", meant(world, job, "undo"))["change"] == "undo"


def test_deleted_bookmark_leaves_the_list_and_an_undo_brings_it_back(site: Site, world: World, job: str) -> None:
    told = post(site, "uma", f"{job}/changes", meant(world, job, "delete"))

    assert (told["change"], told["to_run"], told["undone_run_count"]) == ("delete", 0, 3)
    assert job not in [row["job"] for row in site.as_user("uma").get(f"{API}/jobs").json()["jobs"]]
    (event, *_) = site.as_user("uma").get(f"{API}/jobs/{job}/events").json()["events"]
    assert (event["kind"], event["why"]) == ("delete", "asked for")
    assert [row[0] for row in audited()] == ["bookmark.delete"]
    post(site, "uma", f"{job}/changes", meant(world, job, "undo"))
    assert site.as_user("uma").get(f"{API}/jobs/{job}").json()["run_number"] == 3


def test_undo_of_nothing_is_refused(site: Site, world: World, job: str) -> None:
    refused = post(site, "uma", f"{job}/changes", meant(world, job, "undo"), 409)

    assert refused["error"] == "ChangeRefusedError"
    assert audited() == []


def test_second_of_two_people_is_told_what_the_first_one_did(site: Site, world: World, job: str) -> None:
    body = meant(world, job, "reset")
    seen = body["expected_version"]
    post(site, "uma", f"{job}/changes", meant(world, job, "rewind", to_run=1, reason="ten minutes ago"))
    world.shop.put("4.txt", "four", seconds=1_700_000_004)
    run_of_dag(world, "flights", number=4)
    before = stands(world, job)

    refused = post(site, "ada", f"{job}/changes", body, 409)

    assert refused["error"] == "ChangedMeanwhileError"
    difference = refused["difference"]
    assert (difference["version_seen"], difference["version_now"]) == (seen, seen + 2)
    assert [(e["kind"], e["who"], e["why"]) for e in difference["events"]] == [("rewind", "uma", "ten minutes ago")]
    assert [run["number"] for run in difference["runs"]] == [4]
    assert difference["watermarks"]["raw"]["seen"] != difference["watermarks"]["raw"]["now"]
    assert difference["watermarks"]["raw"]["seen"] is not None
    assert stands(world, job) == before
    assert [row[1] for row in audited()] == ["uma"]


def test_difference_names_the_watermark_that_a_change_left(site: Site, world: World, job: str) -> None:
    post(site, "uma", f"{job}/changes", meant(world, job, "rewind", to_run=2))
    body, then = meant(world, job, "reset"), world.store.head(job).contexts["raw"].watermark
    post(site, "uma", f"{job}/changes", meant(world, job, "rewind", to_run=1))

    refused = post(site, "uma", f"{job}/changes", body, 409)

    now = world.store.head(job).contexts["raw"].watermark
    assert refused["difference"]["watermarks"] == {"raw": {"seen": then, "now": now}}
    assert then != now


def test_run_that_holds_the_job_is_fenced_only_when_asked_for(site: Site, world: World, job: str) -> None:
    world.shop.begin(job, run_id="at work")
    fence = world.store.head(job).fence

    refused = post(site, "uma", f"{job}/changes", meant(world, job, "reset"), 409)
    told = post(site, "uma", f"{job}/changes", meant(world, job, "reset", force=True))

    assert refused["error"] == "JobBusyError"
    assert told["change"] == "reset"
    assert world.store.head(job).fence > fence


@pytest.mark.parametrize(
    "wrong",
    [
        {"reason": ""}, {"reason": "   "}, {"reason": "\u200b"}, {"reason": None}, {"reason": "x" * 2001},
        {"confirm": "flights.claen"}, {"confirm": ""}, {"confirm": None},
        {"expected_version": None}, {"expected_version": "3"}, {"expected_version": -1}, {"expected_version": True},
        {"kind": "delete", "contexts": ["raw"]}, {"kind": "unprotect"}, {"kind": ""}, {"kind": None},
        {"who": "somebody else"}, {"request_id": "01"}, {"dag_id": "nights"}, {"conn_id": "other"},
        {"force": "yes"}, {"force": 1}, {"clean": "true"},
        {"contexts": []}, {"contexts": "raw"}, {"contexts": ["no.such"]}, {"contexts": ["raw"], "clean": True},
        {"kind": "rewind"}, {"kind": "rewind", "to_run": 0}, {"kind": "rewind", "to_run": "2"},
        {"kind": "rewind", "to_run": 2.5}, {"kind": "undo", "to_run": 2},
        {"kind": "set", "ctx": "raw"}, {"kind": "set", "ctx": "raw", "value": "yesterday"},
        {"kind": "set-state", "state": "cursor"}, {"kind": "set-state", "state": ".x", "value": 1},
        {"kind": "set-state", "state": "cursor", "value": "x" * 20_000},
        {"kind": "set", "ctx": "no.such", "value": "now"}, {"kind": "set", "ctx": "raw", "value": {"a": 1}},
    ],
    ids=str,
)  # fmt: skip
def test_body_that_is_wrong_moves_nothing(site: Site, world: World, job: str, wrong: dict[str, Any]) -> None:
    before = stands(world, job)

    refused = post(site, "ada", f"{job}/changes", {**meant(world, job, "reset"), **wrong}, 422)

    assert refused["message"]
    assert stands(world, job) == before
    assert audited() == []


def test_wrong_body_is_answered_with_the_errors_of_its_kind_alone(site: Site, world: World, job: str) -> None:
    told = post(site, "ada", f"{job}/changes", {**meant(world, job, "rewind"), "ctx": "raw"}, 422)
    assert {each["where"] for each in told["wrong"]} == {"body.rewind.to_run", "body.rewind.ctx"}

    told = post(site, "ada", f"{job}/preview", {"kind": "set", "ctx": "raw"}, 422)
    assert [each["where"] for each in told["wrong"]] == ["body.set.value"]


def test_kind_that_there_is_not_is_answered_with_those_that_there_are(site: Site, job: str) -> None:
    told = post(site, "ada", f"{job}/preview", {"kind": "reste"}, 422)

    (wrong,) = told["wrong"]
    assert wrong["where"] == "body"
    assert "'reset'" in wrong["what"]


@pytest.mark.parametrize("content", ["", "null", "[]", "{", '"reset"', "{}"])
def test_body_that_is_no_object_is_refused(site: Site, world: World, job: str, content: str) -> None:
    headers = {"Content-Type": "application/json"}

    for path in ("changes", "preview", "protection", "requests", "requests/0/reject"):
        refused = site.as_user("ada").post(f"{API}/jobs/{job}/{path}", content=content, headers=headers)
        assert (path, refused.status_code) == (path, 422)
    assert world.store.events(job) == []


def test_refusal_does_not_repeat_what_was_sent(site: Site, world: World, job: str) -> None:
    body = {**meant(world, job, "reset"), "password": "hunter-22"}

    assert "hunter" not in json.dumps(post(site, "uma", f"{job}/changes", body, 422))


def test_run_that_does_not_exist_is_not_gone_back_to(site: Site, world: World, job: str) -> None:
    refused = post(site, "uma", f"{job}/changes", meant(world, job, "rewind", to_run=9), 404)

    assert refused["error"] == "RunUnknownError"
    assert audited() == []


def test_change_stands_though_the_log_of_airflow_fails(
    site: Site, world: World, job: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> Any:
        raise OperationalError("INSERT", {}, Exception("the database is gone"))

    monkeypatch.setattr(audit, "create_session", broken)

    told = post(site, "uma", f"{job}/changes", meant(world, job, "reset"))

    assert told["audited"] is False
    assert [event["kind"] for event in world.store.events(job)] == ["reset"]


def test_name_in_another_script_is_confirmed_as_it_is_written(site: Site, world: World, dags: object) -> None:
    job = run_of_dag(world, "flights", "поезда.очистка")

    assert post(site, "uma", f"{job}/changes", meant(world, job, "reset"))["job"] == job


def test_job_is_confirmed_by_the_name_that_was_asked_for(site: Site, world: World, job: str) -> None:
    BookmarkHook().rename(job, "lake.flights", reason="moved")
    body = meant(world, job, "reset")

    assert "'lake.flights'" in post(site, "uma", "lake.flights/changes", body, 422)["message"]
    assert post(site, "uma", "lake.flights/changes", {**body, "confirm": "lake.flights"})["job"] == job


def test_row_in_the_log_is_shown_by_airflow_itself(site: Site, world: World, job: str) -> None:
    post(site, "uma", f"{job}/changes", meant(world, job, "reset", reason="a wrong delivery"))

    rows = site.as_user("ada").get("/api/v2/eventLogs", params={"dag_id": "flights"}).json()["event_logs"]

    assert [(row["event"], row["owner"]) for row in rows if row["event"].startswith("bookmark")] == [
        ("bookmark.reset", "uma"),
    ]
    assert "a wrong delivery" in rows[0]["extra"]


# ---- unlock


def test_job_is_taken_from_a_run_whose_driver_is_dead(site: Site, world: World, job: str) -> None:
    run = world.shop.begin(job, run_id="flights/manual__9/clean")
    (held,) = [site.as_user("uma").get(f"{API}/jobs/{job}").json()["holder"]]
    body = {"reason": "its pod is gone", "held_by": held["run_id"], "confirm": job}

    told = post(site, "uma", f"{job}/unlock", body)

    assert told["change"] == "unlock"
    assert "no longer held by 'flights/manual__9/clean'" in told["said"]
    with pytest.raises(FencedError):
        run.commit()
    assert [(row[0], row[1]) for row in audited()] == [("bookmark.unlock", "uma")]
    (event,) = [each for each in world.store.events(job) if each["kind"] == "unlock"]
    assert (event["who"], event["why"]) == ("uma", "its pod is gone")
    assert "nobody holds it" in post(site, "uma", f"{job}/unlock", body, 409)["message"]


def test_job_that_another_run_has_taken_meanwhile_stays_with_it(site: Site, world: World, job: str) -> None:
    world.shop.begin(job, run_id="flights/manual__10/clean")
    body = {"reason": "its pod is gone", "held_by": "flights/manual__9/clean", "confirm": job}

    refused = post(site, "uma", f"{job}/unlock", body, 409)
    unconfirmed = post(site, "uma", f"{job}/unlock", {**body, "confirm": "clean"}, 422)

    assert "is held by 'flights/manual__10/clean' by now" in refused["message"]
    assert "typed out" in unconfirmed["message"]
    lease = world.store.head(job).lease
    assert lease is not None
    assert lease.run_id == "flights/manual__10/clean"


# ---- protection


def test_protected_job_is_changed_when_another_person_approves(site: Site, world: World, job: str) -> None:
    assert post(site, "uma", f"{job}/protection", {"reason": "dear to us"})["protected"] is True
    assert post(site, "uma", f"{job}/preview", {"kind": "reset"})["needs_approval"] is True
    refused = post(site, "uma", f"{job}/changes", meant(world, job, "reset"), 409)
    assert refused["error"] == "ProtectedError"

    asked = post(site, "uma", f"{job}/requests", meant(world, job, "rewind", to_run=1), 201)["request"]

    assert (asked["state"], asked["who"], asked["change"]) == ("open", "uma", {"kind": "rewind", "to_run": "1"})
    assert (asked["may_approve"], asked["preview"]["undone_runs"]) == (False, [2, 3])
    (own,) = site.as_user("uma").get(f"{API}/jobs/{job}").json()["requests"]
    (seen,) = site.as_user("ada").get(f"{API}/jobs/{job}").json()["requests"]
    (looked_at,) = site.as_user("vera").get(f"{API}/jobs/{job}").json()["requests"]
    assert (own["may_approve"], seen["may_approve"], looked_at["may_approve"]) == (False, True, False)
    refused = post(site, "uma", f"{job}/requests/{asked['id']}/approve", {}, 409)
    assert refused["error"] == "ApprovalError"

    told = post(site, "ada", f"{job}/requests/{asked['id']}/approve", {})

    assert (told["change"], told["requested_by"], told["approved_by"]) == ("rewind", "uma", "ada")
    assert world.store.head(job).epoch == 2
    assert [each["state"] for each in site.as_user("ada").get(f"{API}/jobs/{job}").json()["requests"]] == ["done"]
    assert [(row[0], row[1]) for row in audited()] == [
        ("bookmark.protect", "uma"), ("bookmark.request", "uma"), ("bookmark.approve", "ada"),
    ]  # fmt: skip
    kinds = [event["kind"] for event in site.as_user("ada").get(f"{API}/jobs/{job}/events").json()["events"]]
    assert kinds[-1:] == ["protect"]
    assert {"request", "approve", "rewind"} <= set(kinds)


def test_request_is_rejected_and_protection_ends_by_a_request(site: Site, world: World, job: str) -> None:
    post(site, "uma", f"{job}/protection", {"reason": "dear to us"})
    asked = post(site, "uma", f"{job}/requests", meant(world, job, "reset"), 201)["request"]

    rejected = post(site, "ada", f"{job}/requests/{asked['id']}/reject", {"reason": "not now"})
    again = post(site, "ada", f"{job}/requests/{asked['id']}/approve", {}, 409)
    end = post(site, "uma", f"{job}/requests", meant(world, job, "unprotect"), 201)["request"]
    told = post(site, "ada", f"{job}/requests/{end['id']}/approve", {})

    assert (rejected["request"]["state"], rejected["request"]["decided_by"]) == ("rejected", "ada")
    assert again["error"] == "ApprovalError"
    assert (told["protected"], world.store.head(job).protected) == (False, False)
    assert told["said"] == f"job '{job}' is no longer protected"
    kept = site.as_user("vera").get(f"{API}/jobs/{job}").json()["requests"]
    assert [(each["change"]["kind"], each["state"]) for each in kept] == [("reset", "rejected"), ("unprotect", "done")]


def test_request_that_is_void_says_that_the_job_moved(site: Site, world: World, job: str) -> None:
    post(site, "uma", f"{job}/protection", {"reason": "dear to us"})
    body = meant(world, job, "reset")
    asked = post(site, "uma", f"{job}/requests", body, 201)["request"]
    run_of_dag(world, "flights", number=4)

    void = post(site, "ada", f"{job}/requests/{asked['id']}/approve", {}, 409)
    late = post(site, "uma", f"{job}/requests", body, 409)

    assert "void" in void["message"]
    assert [run["number"] for run in late["difference"]["runs"]] == [4]


def test_request_of_another_job_is_not_found(site: Site, world: World, job: str) -> None:
    other = run_of_dag(world, "flights", task_id="other")
    post(site, "uma", f"{job}/protection", {"reason": "dear to us"})
    asked = post(site, "uma", f"{job}/requests", meant(world, job, "reset"), 201)["request"]

    refused = post(site, "ada", f"{other}/requests/{asked['id']}/approve", {}, 404)

    assert refused["error"] == "RequestUnknownError"
    assert world.store.head(job).epoch == 1


def test_job_without_protection_needs_no_request(site: Site, world: World, job: str) -> None:
    refused = post(site, "uma", f"{job}/requests", meant(world, job, "reset"), 409)

    assert refused["error"] == "ChangeRefusedError"


@pytest.mark.parametrize("kind", ["preview", "changes"])
def test_shards_of_another_dag_are_left_alone_by_a_change_of_the_name_that_they_share(
    site: Site, world: World, dags: object, kind: str
) -> None:
    world.shop.put("1.txt", "line")
    shard = run_of_dag(world, "flights", shard_name("nights.big", 3))
    # An earlier version, or who writes items by hand, lets another DAG begin under the name of the whole.
    begun = ActiveRun.begin(world.store, "nights.big", RunIdentity("by hand", 1), world.shop.environment)
    begun.abort("nothing to do")
    world.store.table.transact([Update(world.store.keys("nights.big").index, set={"dag_id": "nights"})])
    before = world.store.head(shard)

    body = meant(world, "nights.big", "reset") if kind == "changes" else {"kind": "reset"}
    answer = site.as_user("nia").post(f"{API}/jobs/nights.big/{kind}", json=body)

    assert answer.status_code == 200
    assert shard not in answer.text
    assert world.store.head(shard) == before
