"""A sharded job on the page: one row, one page and one change, for those who may see and change all of its shards."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from airflow_bookmarks.core.rules.shard import shard_name
from airflow_bookmarks.core.text.identity import Identity
from airflow_bookmarks.core.text.instant import to_text, utc_now
from airflow_bookmarks.lifecycle.changes.approval import protect
from airflow_bookmarks.lifecycle.changes.change import apply
from airflow_bookmarks.lifecycle.changes.naming import delete
from airflow_bookmarks.lifecycle.changes.sharing import hand_over
from airflow_bookmarks.lifecycle.inspect.sharded_list import grouped
from airflow_bookmarks.lifecycle.inspect.status import bookmarks
from airflow_bookmarks.store.table import Update
from tests.airflow.conftest import World
from tests.plugin.conftest import API, Site, run_of_dag, three_runs

from .test_change import audited, post

pytestmark = [pytest.mark.airflow, pytest.mark.xdist_group("plugin")]

JOB = "flights.clean"
SHARDS = [shard_name(JOB, number) for number in range(4)]
WHY: dict[str, Any] = {"reason": "agreed", "who": "ada"}
RESET = {"kind": "reset"}


@pytest.fixture
def sharded(world: World, dags: object) -> str:
    """Return a job of the DAG flights of which four virtual shards have made a run each, the first one two."""
    for number, shard in enumerate(SHARDS):
        world.shop.put(f"{number}.txt", f"line {number}", seconds=1_700_000_000 + number)
        run_of_dag(world, "flights", shard, number=number)
    world.shop.put("more.txt", "more", seconds=1_700_000_100)
    run_of_dag(world, "flights", SHARDS[0], number=9)
    return JOB


@pytest.fixture
def mixed(world: World, sharded: str) -> str:
    """Return the same, with one shard that belongs to the DAG nights."""
    hand_over(world.store, SHARDS[2], "nights", renamed=True, **WHY)
    return sharded


def meant(site: Site, job: str, spec: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the body of a change that is meant, after a look at what it would do."""
    version = post(site, "uma", f"{job}/shards/preview", spec)["version"]
    return {**spec, "reason": "asked for", "expected_version": version, "confirm": job, **more}


def rows(site: Site, user: str = "ada", path: str = "jobs", **asked: Any) -> dict[str, dict[str, Any]]:
    answer = site.as_user(user).get(f"{API}/{path}", params=asked).json()
    assert answer["total"] == len(answer["jobs"])
    return {row["job"]: row for row in answer["jobs"]}


def stands(world: World) -> str:
    return json.dumps(sorted((str(key), str(item)) for key, item in world.store.table.scan("test")))


def kinds(world: World) -> list[list[object]]:
    return [[event["kind"] for event in world.store.events(shard)] for shard in SHARDS]


# ---- the list


def test_list_has_a_sharded_job_as_one_row_with_the_fields_of_the_command_line(
    site: Site, world: World, sharded: str
) -> None:
    world.shop.begin(SHARDS[1], run_id="flights/11/clean")
    run_of_dag(world, "flights", "flights.other")

    told = rows(site)

    assert list(told) == [JOB, "flights.other"]
    (listed,) = [row for row in grouped(bookmarks(world.store)) if row["job"] == JOB]
    lease = listed.pop("lease")
    same = {name: value for name, value in listed.items() if name not in ("former_owners", "shared_with")}
    assert told[JOB].items() >= same.items()
    assert told[JOB]["holder"] == lease
    assert (told[JOB]["shards"], told[JOB]["held_shards"], told[JOB]["state"]) == (4, 1, "RUNNING")
    assert (told[JOB]["run_number"], told[JOB]["epoch"], told[JOB]["dag_id"]) == (None, 1, "flights")
    assert told["flights.other"]["shards"] is None


@pytest.mark.parametrize(
    "asked",
    [{"search": "clean"}, {"search": SHARDS[3]}, {"state": "IDLE"}, {"sort": "-state"}, {"sort": "-run_number"},
     {"sort": "last_commit_at"}, {"sort": "dag_id"}, {"sort": "epoch"}],
    ids=str,
)  # fmt: skip
def test_row_is_found_and_sorted_as_any_other(site: Site, world: World, sharded: str, asked: dict[str, str]) -> None:
    world.shop.run("zz")

    told = list(rows(site, **asked))

    assert told[:1] == [JOB] or asked["sort"] in ("-run_number", "last_commit_at", "epoch", "-state")
    assert set(told) == ({JOB} if "search" in asked else {JOB, "zz"})


def test_tab_of_a_dag_has_the_row_and_another_state_does_not(site: Site, sharded: str) -> None:
    assert list(rows(site, path="dags/flights/jobs")) == [JOB]
    assert rows(site, path="dags/nights/jobs") == {}
    assert rows(site, state="DUE") == {}


def test_shards_beside_a_bookmark_of_the_whole_stay_rows_of_their_own(site: Site, world: World, dags: object) -> None:
    three_runs(world)
    run_of_dag(world, "flights", SHARDS[0])

    assert list(rows(site)) == [JOB, SHARDS[0]]
    assert site.as_user("ada").get(f"{API}/jobs/{JOB}").json()["shards"] is None
    assert site.as_user("ada").get(f"{API}/jobs/{SHARDS[0]}").json()["sharded_job"] is None


def test_deleted_bookmark_of_the_whole_makes_room_for_its_shards(site: Site, world: World, dags: object) -> None:
    three_runs(world)
    run_of_dag(world, "flights", SHARDS[0])
    delete(world.store, JOB, typed_name=JOB, **WHY)

    assert rows(site)[JOB]["shards"] == 1
    assert site.as_user("ada").get(f"{API}/jobs/{JOB}").json()["shards"] == 1


def test_deleted_shard_is_left_out(site: Site, world: World, sharded: str) -> None:
    delete(world.store, SHARDS[3], typed_name=SHARDS[3], **WHY)

    assert rows(site)[JOB]["shards"] == 3
    told = site.as_user("ada").get(f"{API}/jobs/{JOB}").json()
    assert [row["job"] for row in told["shard_rows"]] == SHARDS[:3]


def test_damaged_shard_is_counted_and_its_reason_told_to_whom_it_may_be(site: Site, world: World, sharded: str) -> None:
    world.store.table.transact([Update(world.store.keys(SHARDS[1]).head, set={"fence": "no number"})])

    for user, is_told in {"ada": True, "uma": False}.items():
        for told in (rows(site, user)[JOB], site.as_user(user).get(f"{API}/jobs/{JOB}").json()):
            assert (told["state"], told["shards"], told["damaged_shards"]) == ("DAMAGED", 4, 1)
            assert told["damaged"].startswith(f"{SHARDS[1]}: ")
            assert ("fence" in told["damaged"]) == is_told


# ---- one job


def test_page_of_a_sharded_job_names_its_shards(site: Site, world: World, sharded: str) -> None:
    told = site.as_user("flo").get(f"{API}/jobs/{JOB}").json()

    assert (told["job"], told["shards"], told["may_change"]) == (JOB, 4, True)
    assert [(row["job"], row["run_number"], row["state"]) for row in told["shard_rows"]] == [
        (SHARDS[0], 2, "IDLE"), *((shard, 1, "IDLE") for shard in SHARDS[1:]),
    ]  # fmt: skip
    shard = site.as_user("flo").get(f"{API}/jobs/{SHARDS[1]}").json()
    assert (shard["sharded_job"], shard["shards"], shard["shard_rows"]) == (JOB, None, [])
    assert site.as_user("vera").get(f"{API}/jobs/{JOB}").json()["may_change"] is False


def test_export_of_the_whole_has_each_shard(site: Site, world: World, sharded: str) -> None:
    answer = site.as_user("flo").get(f"{API}/jobs/{sharded}/export")

    assert answer.status_code == 200, answer.text
    assert sorted(answer.json()["jobs"]) == sorted(SHARDS)
    assert site.as_user("nia").get(f"{API}/jobs/{sharded}/export").status_code == 404


def test_what_each_shard_has_for_itself_is_refused_for_the_whole(site: Site, world: World, sharded: str) -> None:
    before, client = stands(world), site.as_user("ada")

    for part in ("runs", "runs/1/files", "events", "pending", "lag", "graph"):
        refused = client.get(f"{API}/jobs/{JOB}/{part}")
        assert (refused.status_code, refused.json()["error"]) == (404, "JobUnknownError")
        assert f"is sharded: it has no bookmark of its own but 4 of its virtual shards, '{SHARDS[0]}'" in refused.text
    sure = {"reason": "asked for", "expected_version": 5, "confirm": JOB}
    for path, body in {"preview": RESET, "changes": {**RESET, **sure}, "requests": {**RESET, **sure}}.items():
        assert "Nothing was read or changed" in post(site, "ada", f"{JOB}/{path}", body, 404)["message"]
    post(site, "ada", f"{JOB}/protection", {"reason": "asked for"}, 404)
    assert stands(world) == before


# ---- who may


def test_job_with_a_shard_of_another_dag_is_shown_to_who_may_see_both(site: Site, world: World, mixed: str) -> None:
    of_flights = [SHARDS[0], SHARDS[1], SHARDS[3]]
    expected = {"flo": of_flights, "nia": [SHARDS[2]], "uma": [JOB], "vera": [JOB], "none": []}

    assert {user: list(rows(site, user)) for user in expected} == expected
    by_heads = {user: sorted(rows(site, user, sort="-state")) for user in expected}
    assert by_heads == {user: sorted(names) for user, names in expected.items()}
    assert list(rows(site, "flo", "dags/flights/jobs")) == of_flights
    told = site.as_user("flo").get(f"{API}/jobs/{SHARDS[0]}").json()
    assert (told["sharded_job"], told["shard_rows"]) == (None, [])


@pytest.mark.parametrize("user", ["flo", "nia", "none"])
def test_job_with_a_hidden_shard_is_answered_as_one_that_is_not_there(
    site: Site, world: World, mixed: str, user: str
) -> None:
    from tests.plugin.test_access import BODIES, _address

    before, client = stands(world), site.as_user(user)
    for method, path in [(method, path) for method, path in site.routes() if "{job}" in path]:
        body = BODIES.get(path.removeprefix("/api/v1")) if method == "POST" else None
        told = {job: client.request(method, _address(path, job), json=body) for job in (JOB, "no.such")}
        said = {(each.status_code, each.text.replace(job, "?")) for job, each in told.items()}
        assert {status for status, _ in said} == {404}
        assert len(said) == 1, (method, path, said)
    assert stands(world) == before


@pytest.mark.parametrize("setting", ["all_dags", "assets"])
def test_shard_of_a_dag_that_is_gone_takes_the_rights_for_it_too(
    site: Site, world: World, sharded: str, setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__BOOKMARKS__JOBS_OF_UNKNOWN_DAGS", setting)
    hand_over(world.store, SHARDS[2], "gone", renamed=True, **WHY)

    is_open = setting == "assets"
    assert (JOB in rows(site, "flo")) is is_open
    assert site.as_user("flo").get(f"{API}/jobs/{JOB}").status_code == (200 if is_open else 404)
    assert site.as_user("uma").get(f"{API}/jobs/{JOB}").json()["may_change"] is not is_open


def test_shard_of_no_dag_takes_the_right_on_assets_too(site: Site, world: World, sharded: str) -> None:
    world.shop.run(shard_name(JOB, 9))

    told = {user: site.as_user(user).get(f"{API}/jobs/{JOB}").json()["may_change"] for user in ("otto", "uma", "flo")}

    assert told == {"otto": True, "uma": False, "flo": False}
    post(site, "uma", f"{JOB}/shards/preview", RESET, 403)


def test_owner_that_the_whole_or_a_deleted_shard_had_is_asked_too(site: Site, world: World, dags: object) -> None:
    run_of_dag(world, "nights", JOB)
    delete(world.store, JOB, typed_name=JOB, **WHY)
    world.shop.put("1.txt", "line")
    run_of_dag(world, "nights", SHARDS[0])
    hand_over(world.store, SHARDS[0], "flights", renamed=True, **WHY)

    for user, is_seen in {"flo": False, "nia": False, "uma": True}.items():
        assert (rows(site, user).get(JOB) is not None) is is_seen
        assert site.as_user(user).get(f"{API}/jobs/{JOB}").status_code == (200 if is_seen else 404)


def test_shard_whose_index_item_is_damaged_takes_a_right_over_all_dags(site: Site, world: World, sharded: str) -> None:
    world.store.table.transact([Update(world.store.keys(SHARDS[1]).index, set={"alias_of": 7})])

    for user, is_seen in {"flo": False, "uma": True}.items():
        assert (JOB in rows(site, user)) is is_seen
        assert site.as_user(user).get(f"{API}/jobs/{JOB}").status_code == (200 if is_seen else 404)


# ---- preview and change


def test_preview_has_the_sums_and_each_shard_and_changes_nothing(site: Site, world: World, sharded: str) -> None:
    world.shop.run("reader.of", upstream=SHARDS[0])
    before, noted = stands(world), audited()

    told = post(site, "uma", f"{JOB}/shards/preview", RESET)

    versions = sum(world.store.head(shard).version for shard in SHARDS)
    assert (told["version"], told["shards"], told["unchanged_shards"]) == (versions, 4, 0)
    assert (told["undone_run_count"], told["read_again"]["files"]) == (5, sum(
        each["read_again"]["files"] for each in told["by_shard"].values()
    ))  # fmt: skip
    assert list(told["by_shard"]) == SHARDS
    assert (told["consumers"], told["hidden_consumers"]) == ({"reader.of": 2}, 0)
    assert stands(world) == before
    assert audited() == noted


def test_consumer_that_one_may_not_see_is_counted_in_the_preview(site: Site, world: World, sharded: str) -> None:
    from airflow_bookmarks.core.job import RunIdentity
    from airflow_bookmarks.lifecycle.run.enabled import ActiveRun

    identity = RunIdentity("nights/1/down", 1, dag_id="nights", task_id="down", dag_run_id="1")
    run = ActiveRun.begin(world.store, "nights.down", identity, world.shop.environment)
    world.shop.copy(run, upstream=SHARDS[1])
    run.commit()

    hidden, seen = (post(site, user, f"{JOB}/shards/preview", RESET) for user in ("flo", "uma"))

    assert (hidden["consumers"], hidden["hidden_consumers"]) == ({}, 1)
    assert "nights" not in json.dumps(hidden)
    assert seen["consumers"] == {"nights.down": 1}


def test_reset_takes_all_shards_back_each_with_its_event_and_one_row_in_the_log(
    site: Site, world: World, sharded: str
) -> None:
    told = post(site, "flo", f"{JOB}/shards/changes", meant(site, JOB, RESET))

    assert (told["change"], told["shards"], told["undone_run_count"], told["audited"]) == ("reset", 4, 5, True)
    assert told["said"] == f"reset of sharded job '{JOB}' is done in 4 of its virtual shards: 5 runs undone"
    assert kinds(world) == [["reset"]] * 4
    assert {event["who"] for shard in SHARDS for event in world.store.events(shard)} == {"flo"}
    name, owner, dag_id, _, details = audited()[-1]
    assert (name, owner, dag_id) == ("bookmark.reset", "flo", "flights")
    assert details.items() >= {"job": JOB, "reason": "asked for", "shards": 4, "undone_run_count": 5}.items()


def test_rewind_goes_to_a_time_and_leaves_alone_what_stands_there(site: Site, world: World, sharded: str) -> None:
    between = max(run.committed_at or "" for shard in SHARDS[1:] for run in world.store.runs(shard))
    spec = {"kind": "rewind", "to": between}

    told = post(site, "uma", f"{JOB}/shards/changes", meant(site, JOB, spec))

    assert (told["shards"], told["unchanged_shards"], told["undone_run_count"]) == (1, 3, 1)
    assert kinds(world) == [["rewind"], [], [], []]
    assert world.store.head(SHARDS[0]).contexts["raw"].run.number == 1


@pytest.mark.parametrize(
    ("to", "status", "said"),
    [("1", 422, "is another one in each"), ("watermark:2", 422, "have a watermark each"), ("2026-01-01", 422, "zone"),
     ("flights/no/clean", 404, "has no committed run")],
)  # fmt: skip
def test_point_that_is_none_of_all_shards_is_refused(
    site: Site, world: World, sharded: str, to: str, status: int, said: str
) -> None:
    before = stands(world)

    refused = post(site, "uma", f"{JOB}/shards/preview", {"kind": "rewind", "to": to}, status)

    assert said in refused["message"]
    assert "othing was read or changed" in refused["message"]
    assert stands(world) == before


def test_job_that_ran_since_it_was_looked_at_is_left_alone(site: Site, world: World, sharded: str) -> None:
    body = meant(site, JOB, RESET)
    world.shop.put("late.txt", "late", seconds=1_700_000_200)
    run_of_dag(world, "flights", SHARDS[1], number=12)

    refused = post(site, "uma", f"{JOB}/shards/changes", body, 409)

    assert refused["error"] == "ChangedMeanwhileError"
    assert "Nothing was changed" in refused["message"]
    assert kinds(world) == [[]] * 4


def test_shard_that_a_run_holds_keeps_all_from_being_changed_unless_it_is_fenced(
    site: Site, world: World, sharded: str
) -> None:
    world.shop.begin(SHARDS[1], run_id="flights/11/clean")
    body = meant(site, JOB, RESET)
    assert post(site, "uma", f"{JOB}/shards/preview", RESET)["holders"] == {SHARDS[1]: "flights/11/clean"}

    refused = post(site, "uma", f"{JOB}/shards/changes", body, 409)

    assert refused["error"] == "ShardsBusyError"
    assert "Nothing was changed in any shard" in refused["message"]
    assert kinds(world) == [[]] * 4
    assert post(site, "uma", f"{JOB}/shards/changes", {**body, "force": True})["shards"] == 4


def test_protected_shard_keeps_all_from_being_changed(site: Site, world: World, sharded: str) -> None:
    protect(world.store, SHARDS[3], reason="money", who=Identity("ada", True, "airflow"))

    refused = post(site, "uma", f"{JOB}/shards/changes", meant(site, JOB, RESET), 409)

    assert refused["error"] == "ProtectedError"
    assert "Nothing was changed in any shard" in refused["message"]


def test_shard_that_is_refused_half_way_is_named_and_what_was_made_is_noted(
    site: Site, world: World, sharded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = meant(site, JOB, RESET)

    def meanwhile(store: Any, job: str, *given: Any, **more: Any) -> Any:
        if job == SHARDS[2]:
            world.shop.begin(job, run_id="flights/11/clean")
        return apply(store, job, *given, **more)

    monkeypatch.setattr("airflow_bookmarks.lifecycle.changes.sharded_change.apply", meanwhile)

    refused = post(site, "uma", f"{JOB}/shards/changes", body, 409)

    assert refused["error"] == "ShardsLeftError"
    assert f"was made in 3 of its virtual shards, and not in 1: {SHARDS[2]}" in refused["message"]
    assert kinds(world) == [["reset"], ["reset"], [], ["reset"]]
    name, _, _, _, details = audited()[-1]
    assert (name, details["in_part"], details["left"]) == ("bookmark.reset", True, [SHARDS[2]])
    assert details["done"] == [SHARDS[0], SHARDS[1], SHARDS[3]]


@pytest.mark.parametrize(
    "wrong",
    [{"reason": ""}, {"confirm": SHARDS[0]}, {"kind": "undo"}, {"to_run": 1}, {"contexts": ["other"]}, {"force": 1}],
    ids=str,
)
def test_wrong_request_changes_nothing(site: Site, world: World, sharded: str, wrong: dict[str, Any]) -> None:
    body = meant(site, JOB, RESET)

    told = post(site, "uma", f"{JOB}/shards/changes", {**body, **wrong}, 422)

    assert "othing was" in told["message"]
    assert kinds(world) == [[]] * 4


def test_other_site_changes_no_shard(site: Site, world: World, sharded: str) -> None:
    body = meant(site, JOB, RESET)

    for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        refused = site.as_user("uma").post(f"{API}/jobs/{JOB}/shards/changes", json=body, headers=headers)
        assert (refused.status_code, refused.json()["error"]) == (403, "ForbiddenError")
    assert kinds(world) == [[]] * 4


def test_job_that_is_not_sharded_is_told_so(site: Site, world: World, dags: object) -> None:
    three_runs(world)

    refused = post(site, "uma", f"{JOB}/shards/preview", RESET, 409)

    assert "is not sharded. Nothing was read or changed." in refused["message"]


# ---- whose it is


def test_all_shards_are_shared_and_handed_over_as_one(site: Site, world: World, sharded: str) -> None:
    for spec in ({"kind": "share", "dag": "nights"}, {"kind": "hand-over", "dag": "nights", "renamed": False}):
        seen = post(site, "uma", f"{JOB}/ownership/preview", spec)
        assert (seen["shards"], seen["seen"]["owner"]) == (4, "flights")
        expected = {f"expected_{name}": value for name, value in seen["seen"].items()}
        body = {**spec, **expected, "reason": "asked for", "confirm": JOB}
        assert post(site, "uma", f"{JOB}/ownership", body)["shards"] == 4

    assert {world.store.head(shard).owner for shard in SHARDS} == {"nights"}
    assert kinds(world) == [["share", "hand-over"]] * 4
    assert JOB not in rows(site, "nia")


def test_shared_job_that_is_looked_at_late_is_left_alone(site: Site, world: World, sharded: str) -> None:
    spec = {"kind": "share", "dag": "nights"}
    seen = post(site, "uma", f"{JOB}/ownership/preview", spec)["seen"]
    hand_over(world.store, SHARDS[0], "days", **WHY)
    expected = {f"expected_{name}": value for name, value in seen.items()}

    refused = post(site, "uma", f"{JOB}/ownership", {**spec, **expected, "reason": "why", "confirm": JOB}, 409)

    assert refused["error"] == "ChangedMeanwhileError"
    assert [head.shared_with for head in map(world.store.head, SHARDS)] == [()] * 4


def test_protected_shard_keeps_all_from_being_shared(site: Site, world: World, sharded: str) -> None:
    protect(world.store, SHARDS[3], reason="money", who=Identity("ada", True, "airflow"))

    refused = post(site, "uma", f"{JOB}/ownership/preview", {"kind": "share", "dag": "nights"}, 409)

    assert (refused["error"], SHARDS[3] in refused["message"]) == ("ProtectedError", True)


def test_time_ahead_takes_nothing_back(site: Site, world: World, sharded: str) -> None:
    ahead = to_text(utc_now() + timedelta(days=365))

    told = post(site, "uma", f"{JOB}/shards/preview", {"kind": "rewind", "to": ahead})

    assert (told["shards"], told["unchanged_shards"]) == (0, 4)
