"""Who may look at a job, and who may change it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sqlalchemy import select
from starlette.staticfiles import StaticFiles

from airflow_bookmarks.core.errors import OwnerError
from airflow_bookmarks.lifecycle.changes.sharing import hand_over, share
from airflow_bookmarks.plugin.bundle import BUNDLE, STATIC
from tests.airflow.compat import needs_bearer_login
from tests.airflow.conftest import World

from .conftest import API, Site, meant, run_of_dag, three_runs

pytestmark = [pytest.mark.airflow, pytest.mark.xdist_group("plugin")]

# A body for every route that takes one: what is refused is refused for who asks, and not for how.
_REASON = {"reason": "asked for"}
_SURE = {**_REASON, "expected_version": 3, "confirm": "flights.clean"}
_SHARE = {"kind": "share", "dag": "days"}
BODIES: dict[str, dict[str, Any]] = {
    "/jobs/{job}/preview": {"kind": "reset"},
    "/jobs/{job}/changes": {"kind": "reset", **_SURE},
    "/jobs/{job}/protection": _REASON,
    "/jobs/{job}/backfill/preview": {},
    "/jobs/{job}/backfill": {**_REASON, "expected_versions": {}, "confirm": "flights.clean"},
    "/jobs/{job}/unlock": {**_REASON, "held_by": "flights/manual__1/clean", "confirm": "flights.clean"},
    "/jobs/{job}/ownership/preview": _SHARE,
    "/jobs/{job}/shards/preview": {"kind": "reset"},
    "/jobs/{job}/shards/changes": {"kind": "reset", **_SURE},
    "/jobs/{job}/ownership": {**_SHARE, **_SURE, "expected_owner": "flights", "expected_shared_with": []},
    "/jobs/{job}/requests": {"kind": "undo", **_SURE},
    "/jobs/{job}/requests/{id}/approve": {},
    "/jobs/{job}/requests/{id}/reject": _REASON,
}


def _address(path: str, job: str = "flights.clean", dag_id: str = "flights") -> str:
    return f"/bookmarks{path}".format(job=job, number=1, id="0", dag_id=dag_id)


def _ask(site: Site, user: str | None, method: str, path: str, job: str = "flights.clean") -> int:
    body = BODIES.get(path.removeprefix("/api/v1")) if method == "POST" else None
    return int(site.as_user(user).request(method, _address(path, job), json=body).status_code)


def _state(world: World) -> str:
    rows = world.store.table.scan("test")
    return json.dumps(sorted((str(key), str(item)) for key, item in rows))


def test_every_route_asks_for_a_login(site: Site) -> None:
    routes = site.routes()

    assert len(routes) == 27
    assert {_ask(site, None, method, path) for method, path in routes} == {401}


def test_every_route_is_in_the_document_and_has_a_body_here(site: Site) -> None:
    documented = {(verb.upper(), path) for path, verbs in site.app.openapi()["paths"].items() for verb in verbs}

    assert set(site.routes()) == documented
    assert {path.removeprefix("/api/v1") for method, path in site.routes() if method == "POST"} == BODIES.keys()
    assert {method for method, _ in site.routes()} == {"GET", "POST"}


def test_only_files_of_the_page_are_public(site: Site) -> None:
    (mount,) = site.mounts()
    nobody = site.as_user(None)

    assert mount.path == STATIC
    assert isinstance(mount.app, StaticFiles)
    assert mount.app.directory == BUNDLE.parent
    for file in BUNDLE.parent.iterdir():
        assert nobody.get(f"/bookmarks{STATIC}/{file.name}").content == file.read_bytes()
    for path in ("/", "/%2e%2e/package.json", "/%2e%2e%2fpackage.json", "/..%2f..%2fplugin.py", "//etc/passwd"):
        assert nobody.get(f"/bookmarks{STATIC}{path}").status_code == 404


@pytest.mark.parametrize("path", ["/docs", "/redoc", "/openapi.json", "/api/v1/openapi.json"])
def test_the_document_is_not_served(site: Site, path: str) -> None:
    assert site.as_user("ada").get(f"/bookmarks{path}").status_code == 404


def test_login_is_that_of_airflow(site: Site) -> None:
    nobody = site.as_user(None)

    assert nobody.get(f"{API}/me", headers={"Authorization": "Bearer no.such.token"}).status_code == 403
    assert nobody.get(f"{API}/me").json()["error"] == "Unauthorized"
    assert site.as_user("vera").get(f"{API}/me").json()["name"] == "vera"


@needs_bearer_login
def test_login_may_be_a_cookie_as_browsers_have_it(site: Site) -> None:
    nobody = site.as_user(None)

    assert nobody.get(f"{API}/me", headers={"Cookie": f"_token={site.tokens['vera']}"}).json()["name"] == "vera"


def test_no_cache_keeps_what_one_person_may_see(site: Site) -> None:
    for name in ("ada", None):
        assert site.as_user(name).get(f"{API}/me").headers["Cache-Control"] == "no-store"


def test_me_says_who_and_what(site: Site) -> None:
    told = {name: site.as_user(name).get(f"{API}/me").json() for name in ("ada", "otto", "uma", "vera", "none")}
    may = {name: each["may"] for name, each in told.items()}

    assert [name for name, each in may.items() if each["read_jobs_without_dag"]] == ["ada", "otto", "uma", "vera"]
    assert [name for name, each in may.items() if each["change_jobs_without_dag"]] == ["ada", "otto"]
    assert not any(each["may_look"] for each in told.values())


def test_viewer_looks_at_all_and_changes_nothing(site: Site, world: World, dags: object) -> None:
    three_runs(world)
    before = _state(world)

    answers = {(method, path): _ask(site, "vera", method, path) for method, path in site.routes()}

    export = answers.pop(("GET", "/api/v1/jobs/{job}/export"))  # for those who may change the job
    assert {status for (method, _), status in answers.items() if method == "GET"} == {200}
    assert export == 403
    assert {status for (method, _), status in answers.items() if method == "POST"} == {403}
    assert _state(world) == before
    assert site.as_user("vera").get(f"{API}/jobs/flights.clean").json()["may_change"] is False
    assert site.as_user("uma").get(f"{API}/jobs/flights.clean").json()["may_change"] is True


def test_user_without_a_role_sees_nothing(site: Site, world: World, dags: object) -> None:
    three_runs(world)

    assert site.as_user("none").get(f"{API}/jobs").json()["jobs"] == []
    assert site.as_user("none").get(f"{API}/dags/flights/jobs").json()["jobs"] == []
    with_job = [(method, path) for method, path in site.routes() if "{job}" in path]
    assert {_ask(site, "none", method, path) for method, path in with_job} == {404}


def test_each_sees_and_changes_the_jobs_of_their_dags(site: Site, world: World, dags: object) -> None:
    three_runs(world, "flights")
    run_of_dag(world, "nights")
    flo, nia = site.as_user("flo"), site.as_user("nia")

    assert [row["job"] for row in flo.get(f"{API}/jobs").json()["jobs"]] == ["flights.clean"]
    assert flo.get(f"{API}/jobs").json()["total"] == 1
    assert [row["job"] for row in nia.get(f"{API}/jobs").json()["jobs"]] == ["nights.clean"]
    assert flo.get(f"{API}/dags/nights/jobs").json()["total"] == 0
    with_job = [(method, path) for method, path in site.routes() if "{job}" in path]
    assert {_ask(site, "flo", method, path, job="nights.clean") for method, path in with_job} == {404}
    assert nia.post(f"{API}/jobs/nights.clean/changes", json=meant(world, "nights.clean", "reset")).status_code == 200


def test_dag_is_that_of_the_record_whatever_the_request_says(site: Site, world: World, dags: object) -> None:
    # Its name says another DAG than the one that runs it.
    job = run_of_dag(world, "nights", "flights.stolen")
    flo = site.as_user("flo")
    body = meant(world, job, "reset")

    spoofed = flo.post(f"{API}/jobs/{job}/changes", json=body, params={"dag_id": "flights"})
    assert spoofed.status_code == 404
    assert flo.post(f"{API}/jobs/{job}/changes", json={**body, "dag_id": "flights"}).status_code == 422
    assert flo.get(f"{API}/dags/flights/jobs").json()["total"] == 0
    assert world.store.events(job) == []
    assert site.as_user("nia").post(f"{API}/jobs/{job}/changes", json=body).status_code == 200


def test_another_name_of_a_job_is_no_way_around(site: Site, world: World, dags: object) -> None:
    from airflow_bookmarks.hooks.bookmark import BookmarkHook

    run_of_dag(world, "nights")
    BookmarkHook().rename("nights.clean", "flights.clean", reason="moved")

    assert site.as_user("flo").get(f"{API}/jobs/flights.clean").status_code == 404
    told = site.as_user("nia").get(f"{API}/jobs/flights.clean")
    assert told.json()["job"] == "nights.clean"


def _statuses(site: Site, world: World, job: str, *names: str) -> dict[str, int]:
    body = meant(world, job, "reset")
    return {name: site.as_user(name).post(f"{API}/jobs/{job}/changes", json=body).status_code for name in names}


def test_job_of_no_dag_follows_the_permission_on_assets(site: Site, world: World) -> None:
    job = world.shop.run("copy")[1].job

    # A user reads assets, and may not edit them; an op may.
    assert [row["job"] for row in site.as_user("flo").get(f"{API}/jobs").json()["jobs"]] == [job]
    expected = {"none": 404, "vera": 403, "uma": 403, "flo": 403, "otto": 200}
    assert _statuses(site, world, job, *expected) == expected


def test_job_of_a_dag_that_is_gone_takes_a_right_over_all_dags(site: Site, world: World, dags: object) -> None:
    job = run_of_dag(world, "gone")

    # Who reads assets, and one DAG, learns nothing of it.
    assert site.as_user("flo").get(f"{API}/jobs").json()["jobs"] == []
    assert [row["job"] for row in site.as_user("vera").get(f"{API}/jobs").json()["jobs"]] == [job]
    expected = {"none": 404, "flo": 404, "vera": 403, "uma": 200}
    assert _statuses(site, world, job, *expected) == expected


def test_setting_opens_jobs_of_dags_that_are_gone(
    site: Site, world: World, dags: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__BOOKMARKS__JOBS_OF_UNKNOWN_DAGS", "assets")
    job = run_of_dag(world, "gone")

    assert [row["job"] for row in site.as_user("flo").get(f"{API}/jobs").json()["jobs"]] == [job]
    expected = {"none": 404, "flo": 403, "uma": 403, "otto": 200}
    assert _statuses(site, world, job, *expected) == expected


def test_setting_that_says_something_else_opens_nothing(
    site: Site, world: World, dags: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__BOOKMARKS__JOBS_OF_UNKNOWN_DAGS", "everybody")
    job = run_of_dag(world, "gone")

    answer = site.as_user("ada").get(f"{API}/jobs/{job}")

    assert answer.status_code == 503
    assert "expected one of all_dags, assets" in answer.json()["message"]


# ---- owners


def test_run_of_another_dag_gives_its_people_no_right(site: Site, world: World, dags: object) -> None:
    job = three_runs(world, "flights")

    with pytest.raises(OwnerError):
        run_of_dag(world, "nights", job)

    assert _statuses(site, world, job, "nia", "flo") == {"nia": 404, "flo": 200}


def test_shared_job_stays_its_owners(site: Site, world: World, dags: object) -> None:
    job = three_runs(world, "flights")
    share(world.store, job, "nights", reason="agreed", who="ada")

    run_of_dag(world, "nights", job)

    told = site.as_user("flo").get(f"{API}/jobs/{job}").json()
    assert (told["dag_id"], told["task_id"], told["shared_with"]) == ("flights", "clean", ["nights"])
    assert _statuses(site, world, job, "nia", "flo") == {"nia": 404, "flo": 200}


def test_rights_are_asked_of_every_dag_that_ever_owned_a_job(site: Site, world: World, dags: object) -> None:
    job = three_runs(world, "flights")
    hand_over(world.store, job, "nights", reason="agreed", who="ada")

    told = site.as_user("uma").get(f"{API}/jobs/{job}").json()
    listed = {name: site.as_user(name).get(f"{API}/jobs").json()["total"] for name in ("flo", "nia", "uma")}

    assert (told["dag_id"], told["former_owners"]) == ("nights", ["flights"])
    assert listed == {"flo": 0, "nia": 0, "uma": 1}
    events = site.as_user("uma").get(f"{API}/jobs/{job}/events").json()["events"]
    assert [(each["kind"], each["owner_before"], each["owner_after"]) for each in events] == [
        ("hand-over", "flights", "nights")
    ]
    assert _statuses(site, world, job, "flo", "nia", "uma") == {"flo": 404, "nia": 404, "uma": 200}


def test_owner_under_a_new_name_keeps_its_rights(site: Site, world: World, dags: object) -> None:
    job = run_of_dag(world, "evenings")
    hand_over(world.store, job, "nights", renamed=True, reason="it is called nights now", who="ada")

    assert _statuses(site, world, job, "flo", "nia") == {"flo": 404, "nia": 200}


# ---- what is told of jobs that somebody may not see, and of failures


@pytest.mark.parametrize("user", ["flo", "none"])
def test_hidden_job_is_answered_as_one_that_is_not_there(site: Site, world: World, dags: object, user: str) -> None:
    run_of_dag(world, "nights")
    run_of_dag(world, "gone")
    client = site.as_user(user)
    for method, path in [(method, path) for method, path in site.routes() if "{job}" in path]:
        body = BODIES.get(path.removeprefix("/api/v1")) if method == "POST" else None
        told = {
            job: client.request(method, _address(path, job), json=body)
            for job in ("nights.clean", "gone.clean", "no.such")
        }
        said = {(each.status_code, each.text.replace(job, "?")) for job, each in told.items()}
        assert len(said) == 1, (method, path, said)
        assert {each.status_code for each in told.values()} == {404}


def test_failure_tells_nothing_of_the_store_to_who_may_not_see_connections(
    site: Site, world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run_of_dag(world, "flights")
    (world.folder / "bookmarks.db").unlink()

    told = {name: site.as_user(name).get(f"{API}/jobs") for name in ("vera", "uma", "otto")}

    assert {each.status_code for each in told.values()} == {503}
    assert {each.json()["error"] for each in told.values()} == {"TableMissingError"}
    assert str(world.folder) in told["otto"].json()["message"]
    for name in ("vera", "uma"):
        assert str(world.folder) not in told[name].text
        assert "The log of the API server says more." in told[name].json()["message"]
    assert str(world.folder) in caplog.text


def test_readers_that_somebody_may_not_look_at_are_counted_and_not_named(
    site: Site, world: World, dags: object
) -> None:
    from airflow_bookmarks.core.job import RunIdentity
    from airflow_bookmarks.lifecycle.run.enabled import ActiveRun

    job = three_runs(world, "flights")
    identity = RunIdentity("nights/1/down", 1, dag_id="nights", task_id="down", dag_run_id="1")
    run = ActiveRun.begin(world.store, "nights.down", identity, world.shop.environment)
    world.shop.copy(run, upstream=job)
    run.commit()

    for name, shown in {"flo": [], "ada": ["nights.down"]}.items():
        client = site.as_user(name)
        told = client.get(f"{API}/jobs/{job}").json()
        preview = client.post(f"{API}/jobs/{job}/preview", json={"kind": "reset"}).json()
        graph = client.get(f"{API}/jobs/{job}/graph").json()
        assert [each["job"] for each in told["consumers"]] == shown
        assert list(preview["consumers"]) == shown
        assert [node["name"] for node in graph["nodes"] if node["kind"] == "job"] == [job, *shown]
        hidden = 1 - len(shown)
        assert (told["hidden_consumers"], preview["hidden_consumers"], graph["hidden"]) == (hidden, hidden, hidden)
        assert ("nights" in json.dumps([told, preview, graph])) == bool(shown)


def test_other_site_changes_nothing(site: Site, world: World, dags: object) -> None:
    job = three_runs(world)
    before = _state(world)
    client, body = site.as_user("uma"), meant(world, job, "reset")

    foreign = [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://[::1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Origin": "http://airflow.example"},
        {"Sec-Fetch-Site": "same-origin", "Origin": "http://evil.example"},
        {"Origin": "http://airflow.example.evil.example"},
    ]
    for headers in foreign:
        refused = client.post(f"{API}/jobs/{job}/changes", json=body, headers=headers)
        assert (headers, refused.status_code) == (headers, 403)
        assert refused.json()["error"] == "ForbiddenError"
    assert _state(world) == before
    own = {"Origin": "http://airflow.example", "Sec-Fetch-Site": "same-origin"}
    assert client.post(f"{API}/jobs/{job}/changes", json=body, headers=own).status_code == 200


def test_site_behind_a_proxy_is_the_configured_one(
    site: Site, world: World, dags: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = three_runs(world)
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://data.example/airflow")

    headers = {"Origin": "https://data.example"}
    answer = site.as_user("uma").post(f"{API}/jobs/{job}/preview", json={"kind": "reset"}, headers=headers)

    assert answer.status_code == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_form_of_another_site_is_no_change(site: Site, world: World, dags: object, kind: str) -> None:
    job = three_runs(world)
    content = json.dumps(meant(world, job, "reset"))

    refused = site.as_user("uma").post(f"{API}/jobs/{job}/changes", content=content, headers={"Content-Type": kind})

    assert refused.status_code == 422
    assert world.store.events(job) == []


def test_reading_writes_no_row_in_the_log(site: Site, world: World, dags: object) -> None:
    from airflow.models.log import Log
    from airflow.utils.session import create_session

    job = three_runs(world)
    with create_session() as session:
        before = len(session.scalars(select(Log.id)).all())

    site.as_user("vera").post(f"{API}/jobs/{job}/changes", json=meant(world, job, "reset"))
    site.as_user("vera").get(f"{API}/jobs/{job}")

    with create_session() as session:
        assert len(session.scalars(select(Log.id)).all()) == before
