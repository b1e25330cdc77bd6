"""Whose a job is, changed from the page: shared, taken back, handed over, by the rules of the command line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_bookmarks.core.rules.owner import owners_in
from airflow_bookmarks.core.text.identity import Identity
from airflow_bookmarks.lifecycle.changes.approval import protect
from airflow_bookmarks.lifecycle.changes.change import rewind
from airflow_bookmarks.lifecycle.changes.sharing import hand_over, share
from tests.airflow.conftest import World
from tests.plugin.conftest import API, Site, run_of_dag, three_runs

from .test_change import audited, job, post

__all__ = ["job"]  # a fixture

pytestmark = [pytest.mark.airflow, pytest.mark.xdist_group("plugin")]

JOB = "flights.clean"
SHARE = {"kind": "share", "dag": "nights"}
UNSHARE = {"kind": "unshare", "dag": "nights"}
HAND_OVER = {"kind": "hand-over", "dag": "nights", "renamed": False}
RENAME = {**HAND_OVER, "renamed": True}
WHY: dict[str, Any] = {"reason": "agreed", "who": "ada"}


def meant(site: Site, spec: dict[str, Any], user: str = "uma") -> dict[str, Any]:
    """Return the body of a change of an owner that is meant, after a look at what it would do."""
    seen = post(site, user, f"{JOB}/ownership/preview", spec)["seen"]
    expected = {f"expected_{name}": value for name, value in seen.items()}
    return {**spec, **expected, "reason": "asked for", "confirm": JOB}


def stands(world: World) -> str:
    """Return all that the store holds."""
    return json.dumps(sorted((str(key), str(item)) for key, item in world.store.table.scan("test")))


# ---- preview


@pytest.mark.parametrize(
    ("spec", "after"),
    [
        (SHARE, {"owner": "flights", "shared_with": ["days", "nights"], "asked_of_after": ["flights"]}),
        ({**UNSHARE, "dag": "days"}, {"owner": "flights", "shared_with": [], "asked_of_after": ["flights"]}),
        (HAND_OVER, {"owner": "nights", "shared_with": ["days"], "asked_of_after": ["nights", "flights"]}),
        (RENAME, {"owner": "nights", "shared_with": ["days"], "asked_of_after": ["nights"]}),
    ],
    ids=str,
)
def test_preview_says_whose_the_job_would_be_and_changes_nothing(
    site: Site, world: World, job: str, spec: dict[str, Any], after: dict[str, Any]
) -> None:
    share(world.store, job, "days", **WHY)
    before = stands(world)

    told = post(site, "uma", f"{job}/ownership/preview", spec)

    assert told.items() >= after.items()
    assert told["seen"] == {"version": world.store.head(job).version, "owner": "flights", "shared_with": ["days"]}
    assert (told["change"], told["asked_of"], told["shards"]) == (spec["kind"], ["flights"], None)
    assert (told["needs_approval"], told["may_change_after"]) == (False, True)
    assert stands(world) == before
    assert audited() == []


def test_preview_says_what_the_change_then_does(site: Site, world: World, job: str) -> None:
    for spec in (SHARE, HAND_OVER):
        told = post(site, "uma", f"{job}/ownership/preview", spec)
        post(site, "uma", f"{job}/ownership", meant(site, spec))

        head = world.store.head(job)
        assert (head.owner, list(head.shared_with)) == (told["owner"], told["shared_with"])
        assert list(owners_in(world.store.index_entry(job))) == told["asked_of_after"]


def test_preview_tells_who_would_lose_the_job_by_it(site: Site, job: str) -> None:
    assert post(site, "flo", f"{job}/ownership/preview", SHARE)["may_change_after"] is True
    assert post(site, "flo", f"{job}/ownership/preview", HAND_OVER)["may_change_after"] is False


@pytest.mark.parametrize("setting", ["all_dags", "assets"])
@pytest.mark.parametrize("spec", [SHARE, HAND_OVER, RENAME], ids=str)
def test_dag_that_one_may_not_look_at_is_told_as_one_that_is_not_there(
    site: Site, job: str, spec: dict[str, Any], setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__BOOKMARKS__JOBS_OF_UNKNOWN_DAGS", setting)
    hidden = json.dumps(post(site, "flo", f"{job}/ownership/preview", spec))
    absent = json.dumps(post(site, "flo", f"{job}/ownership/preview", {**spec, "dag": "no.such"}))

    assert hidden.replace("nights", "?") == absent.replace("no.such", "?")
    assert post(site, "uma", f"{job}/ownership/preview", spec)["is_seen"] is True
    assert post(site, "uma", f"{job}/ownership/preview", {**spec, "dag": "no.such"})["is_seen"] is False


# ---- changes


@pytest.mark.parametrize(
    ("spec", "owner", "shared", "owners"),
    [
        (SHARE, "flights", ["days", "nights"], ("flights",)),
        ({**UNSHARE, "dag": "days"}, "flights", [], ("flights",)),
        (HAND_OVER, "nights", ["days"], ("nights", "flights")),
        (RENAME, "nights", ["days"], ("nights",)),
    ],
    ids=str,
)
def test_change_is_made_and_leaves_an_event_and_a_row_in_the_log(
    site: Site, world: World, job: str, spec: dict[str, Any], owner: str, shared: list[str], owners: tuple[str, ...]
) -> None:
    share(world.store, job, "days", **WHY)

    told = post(site, "uma", f"{job}/ownership", meant(site, spec))

    assert (told["change"], told["owner"], told["shared_with"], told["audited"]) == (spec["kind"], owner, shared, True)
    assert told["said"].startswith(f"job '{job}' belongs to DAG '{owner}'")
    head = world.store.head(job)
    assert (head.owner, sorted(head.shared_with)) == (owner, shared)
    assert owners_in(world.store.index_entry(job)) == owners
    event = world.store.events(job)[-1]
    assert (event["kind"], event["dag"], event["who"], event["why"]) == (
        spec["kind"], spec["dag"], "uma", "asked for",
    )  # fmt: skip
    ((name, who, dag_id, task_id, details),) = audited()
    assert (name, who, dag_id, task_id) == (f"bookmark.{spec['kind']}", "uma", "flights", "clean")
    assert details.items() >= {"job": job, "dag": spec["dag"], "owner_before": "flights", "reason": "asked for"}.items()
    assert details.get("renamed", False) is spec.get("renamed", False)


def test_share_gives_no_right_on_the_page(site: Site, job: str) -> None:
    post(site, "flo", f"{job}/ownership", meant(site, SHARE, "flo"))

    post(site, "nia", f"{job}/ownership/preview", UNSHARE, 404)
    assert post(site, "flo", f"{job}/ownership", meant(site, UNSHARE, "flo"))["shared_with"] == []


def test_who_handed_a_job_over_does_not_get_it_back_alone(site: Site, world: World, job: str) -> None:
    body = meant(site, HAND_OVER, "flo")
    post(site, "flo", f"{job}/ownership", body)
    before = stands(world)

    # Rights are asked of everybody who ever owned it: neither has those of the other.
    for user in ("flo", "nia"):
        post(site, user, f"{job}/ownership/preview", {**HAND_OVER, "dag": "flights"}, 404)
        post(site, user, f"{job}/ownership", {**body, "dag": "flights"}, 404)

    assert stands(world) == before
    post(site, "uma", f"{job}/ownership", meant(site, {**HAND_OVER, "dag": "flights"}))
    assert world.store.head(job).owner == "flights"


@pytest.mark.parametrize("meanwhile", [("days", share), ("days", hand_over)], ids=lambda each: each[1].__name__)
@pytest.mark.parametrize("spec", [SHARE, HAND_OVER], ids=str)
def test_job_whose_owner_moved_since_it_was_looked_at_is_left_alone(
    site: Site, world: World, job: str, spec: dict[str, Any], meanwhile: Any
) -> None:
    body = meant(site, spec)
    dag, change = meanwhile
    change(world.store, job, dag, **WHY)  # neither moves the version
    before = stands(world)

    refused = post(site, "uma", f"{job}/ownership", body, 409)

    assert refused["error"] == "ChangedMeanwhileError"
    assert "Nothing was changed. Look again" in refused["message"]
    assert [(each["kind"], each["dag"], each["who"]) for each in refused["difference"]["events"]] == [
        (change.__name__.replace("_", "-"), "days", "ada")
    ]
    assert stands(world) == before


def test_job_that_ran_since_it_was_looked_at_is_left_alone(site: Site, world: World, job: str) -> None:
    body = meant(site, HAND_OVER)
    world.shop.put("4.txt", "line 4", seconds=1_700_000_004)
    run_of_dag(world, "flights", number=4)

    refused = post(site, "uma", f"{job}/ownership", body, 409)

    assert [run["number"] for run in refused["difference"]["runs"]] == [4]
    assert world.store.head(job).owner == "flights"


def test_job_that_a_run_holds_is_not_handed_over_and_shared_all_the_same(site: Site, world: World, job: str) -> None:
    bodies = {kind: meant(site, spec) for kind, spec in (("share", SHARE), ("hand-over", HAND_OVER))}
    world.shop.begin(job, run_id="flights/9/clean")

    for path, body in ((f"{job}/ownership/preview", HAND_OVER), (f"{job}/ownership", bodies["hand-over"])):
        refused = post(site, "uma", path, body, 409)
        assert refused["error"] == "JobBusyError"
        assert "Nothing was read or changed" in refused["message"]

    assert post(site, "uma", f"{job}/ownership", bodies["share"])["shared_with"] == ["nights"]
    assert world.store.head(job).owner == "flights"


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({**SHARE, "dag": "flights"}, "may run it already"),
        (UNSHARE, "does not share it"),
        ({**HAND_OVER, "dag": "flights"}, "owns it already"),
    ],
    ids=str,
)
def test_what_is_so_already_is_refused_by_preview_and_change(
    site: Site, world: World, job: str, spec: dict[str, Any], said: str
) -> None:
    body = {**meant(site, SHARE), **spec}
    body = body if "renamed" in spec else {name: value for name, value in body.items() if name != "renamed"}
    before = stands(world)

    for path, sent in ((f"{job}/ownership/preview", spec), (f"{job}/ownership", body)):
        refused = post(site, "uma", path, sent, 409)
        assert refused["error"] == "ChangeRefusedError"
        assert said in refused["message"]
        assert "Nothing was changed" in refused["message"]

    assert stands(world) == before


def test_job_of_no_dag_is_handed_over_and_not_shared(site: Site, world: World, dags: object) -> None:
    world.shop.run("copy")

    refused = post(site, "otto", "copy/ownership/preview", SHARE, 409)
    told = post(site, "otto", "copy/ownership/preview", HAND_OVER)

    assert "belongs to no DAG" in refused["message"]
    assert (told["seen"]["owner"], told["asked_of"], told["asked_of_after"]) == (None, [], ["nights"])


@pytest.mark.parametrize(
    "wrong",
    [
        {"reason": ""},
        {"confirm": "flights"},
        {"dag": ""},
        {"dag": " nights"},
        {"dag": "nights\u202e"},
        {"dag": "x" * 251},
        {"renamed": "no"},
        {"expected_version": "3"},
        {"expected_shared_with": None},
        {"force": True},
        {"kind": "delete"},
    ],
    ids=str,
)
def test_wrong_request_changes_nothing(site: Site, world: World, job: str, wrong: dict[str, Any]) -> None:
    body = meant(site, HAND_OVER)
    before = stands(world)

    told = post(site, "uma", f"{job}/ownership", {**body, **wrong}, 422)

    assert "othing was" in told["message"]
    assert stands(world) == before


@pytest.mark.parametrize("left_out", ["renamed", "expected_owner", "expected_shared_with", "expected_version"])
def test_nothing_is_assumed_that_was_not_said(site: Site, world: World, job: str, left_out: str) -> None:
    body = {name: value for name, value in meant(site, HAND_OVER).items() if name != left_out}

    post(site, "uma", f"{job}/ownership", body, 422)

    assert world.store.head(job).owner == "flights"


def test_other_site_changes_no_owner(site: Site, world: World, job: str) -> None:
    body = meant(site, SHARE)
    client = site.as_user("uma")

    for path in ("ownership", "ownership/preview"):
        for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
            refused = client.post(f"{API}/jobs/{job}/{path}", json=body, headers=headers)
            assert (refused.status_code, refused.json()["error"]) == (403, "ForbiddenError")
        plain = {"Content-Type": "text/plain"}
        assert client.post(f"{API}/jobs/{job}/{path}", content=json.dumps(body), headers=plain).status_code == 422
    assert world.store.head(job).shared_with == ()


# ---- two people


@pytest.mark.parametrize("spec", [SHARE, HAND_OVER, RENAME], ids=str)
def test_protected_job_takes_two_people(site: Site, world: World, job: str, spec: dict[str, Any]) -> None:
    protect(world.store, job, reason="money", who=Identity("ada", True, "airflow"))
    assert post(site, "uma", f"{job}/ownership/preview", spec)["needs_approval"] is True
    refused = post(site, "uma", f"{job}/ownership", meant(site, spec), 409)
    assert (refused["error"], world.store.head(job).owner) == ("ProtectedError", "flights")

    made = post(site, "uma", f"{job}/requests", meant(site, spec), 201)
    approval = f"{job}/requests/{made['request']['id']}/approve"
    post(site, "uma", approval, {}, 409)
    told = post(site, "ada", approval, {})

    assert made["said"].startswith(f"a {spec['kind']} of job '{job}' is requested")
    assert (told["change"], told["requested_by"], told["approved_by"]) == (spec["kind"], "uma", "ada")
    head = world.store.head(job)
    assert (head.owner, head.shared_with) == (("flights", ("nights",)) if spec is SHARE else ("nights", ()))
    assert [row[0] for row in audited()] == ["bookmark.request", "bookmark.approve"]
    assert audited()[0][4].items() >= {"change": spec["kind"], "dag": "nights"}.items()


def test_request_for_an_owner_that_moved_is_not_made(site: Site, world: World, job: str) -> None:
    protect(world.store, job, reason="money", who=Identity("ada", True, "airflow"))
    body = {**meant(site, SHARE), "expected_shared_with": ["days"]}

    refused = post(site, "uma", f"{job}/requests", body, 409)

    assert refused["error"] == "ChangedMeanwhileError"
    assert site.as_user("uma").get(f"{API}/jobs/{job}").json()["requests"] == []


def test_protected_job_is_taken_back_by_one_person(site: Site, world: World, job: str) -> None:
    share(world.store, job, "nights", **WHY)
    protect(world.store, job, reason="money", who=Identity("ada", True, "airflow"))

    assert post(site, "uma", f"{job}/ownership/preview", UNSHARE)["needs_approval"] is False
    assert post(site, "uma", f"{job}/ownership", meant(site, UNSHARE))["shared_with"] == []


def test_other_name_of_a_job_leads_to_the_same_owner(site: Site, world: World, dags: object) -> None:
    from airflow_bookmarks.hooks.bookmark import BookmarkHook

    three_runs(world)
    BookmarkHook().rename(JOB, "lake.clean", reason="moved")
    body = {**meant(site, SHARE), "confirm": "lake.clean"}

    assert post(site, "uma", "lake.clean/ownership", body)["job"] == JOB
    assert world.store.head(JOB).shared_with == ("nights",)


def test_refusal_has_the_watermarks_also_of_a_version_that_a_rewind_made(site: Site, world: World, job: str) -> None:
    rewind(world.store, job, "2", **WHY)
    body = meant(site, SHARE)
    share(world.store, job, "days", **WHY)

    told = post(site, "uma", f"{job}/ownership", body, 409)["difference"]

    mark = world.store.head(job).contexts["raw"].watermark
    assert (told["version_seen"], told["watermarks"]) == (told["version_now"], {"raw": {"seen": mark, "now": mark}})
