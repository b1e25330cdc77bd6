"""UI-10: the API server looks at nothing that a driver wrote; what it shows of files is what runs have recorded."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.selection.bound import Bound
from airflow_bookmarks.core.text.identity import Identity
from airflow_bookmarks.core.text.instant import from_text
from airflow_bookmarks.hooks.bookmark import BookmarkHook
from airflow_bookmarks.lifecycle.changes.approval import request
from airflow_bookmarks.lifecycle.changes.change import Change
from airflow_bookmarks.plugin.scan import child
from airflow_bookmarks.plugin.scan.child import Limits
from airflow_bookmarks.sources.files.options import FileOptions
from tests.airflow.conftest import World
from tests.hostile.watch import Witness, opened_files, record_run, witness
from tests.plugin.conftest import API, Site, meant, three_runs

pytestmark = [pytest.mark.airflow, pytest.mark.xdist_group("plugin")]

JOB = "flights.clean"
RUNS_AWAY = r"(?P<seq>(?:a+)+)\d$"


@pytest.fixture
def internal() -> Iterator[Witness]:
    with witness() as found:
        yield found


def get(site: Site, path: str, user: str = "vera") -> Any:
    answer = site.as_user(user).get(f"{API}/jobs/{JOB}{path}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def post(site: Site, path: str, body: Any, status: int, user: str = "ada") -> Any:
    answer = site.as_user(user).post(f"{API}/jobs/{JOB}{path}", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def ask_for_everything(site: Site, world: World) -> None:
    """Ask for all that might lead to a file, as a viewer and as an admin."""
    for user in ("vera", "ada"):
        for path in ("", "/pending", "/lag", "/graph", "/runs", "/events", "/runs/1/files"):
            site.as_user(user).get(f"{API}/jobs/{JOB}{path}")
        site.as_user(user).get(f"{API}/jobs")
    specs: list[dict[str, Any]] = [
        {"kind": "set", "ctx": "raw", "value": value} for value in ("now", "2013-01-31T00:00:00Z")
    ]
    specs += [{"kind": kind, "clean": clean} for kind in ("reset", "delete") for clean in (False, True)]
    specs += [{"kind": "rewind", "to_run": 1, "clean": True}]
    for spec in specs:
        site.as_user("ada").post(f"{API}/jobs/{JOB}/preview", json=spec)
        if spec["kind"] == "set":
            for path in ("changes", "requests"):
                site.as_user("ada").post(f"{API}/jobs/{JOB}/{path}", json=meant(world, JOB, **spec))


@pytest.mark.parametrize("scheme", ["webhdfs", "hdfs", "swebhdfs"])
def test_address_that_a_driver_recorded_is_asked_by_no_route(
    site: Site, world: World, dags: object, internal: Witness, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HADOOP_USER_NAME", "somebody")
    record_run(world, f"{scheme}://{internal.address}/latest/meta-data", "credentials")

    ask_for_everything(site, world)

    assert internal.asked == []
    (row,) = get(site, "/pending")["contexts"]
    assert (row["recorded_by"], row["files"]) == (1, 0)
    assert "was not looked at" in row["unknown"]


@pytest.mark.parametrize("spelled", ["{}", "file://{}", "file:{}"])
def test_folder_of_the_api_server_is_opened_by_no_route(
    site: Site, world: World, dags: object, tmp_path: Path, spelled: str
) -> None:
    private = tmp_path / "private"
    private.mkdir()
    (private / "shadow").write_text("secret")
    record_run(world, spelled.format(private), "known")

    with opened_files() as opened:
        ask_for_everything(site, world)

    assert [path for path in opened if "private" in path] == []
    for path in ("/pending", "/lag"):
        assert "shadow" not in str(get(site, path))


def test_pattern_that_runs_away_is_run_by_no_route(site: Site, world: World, dags: object) -> None:
    name = "a" * 64
    (world.shop.raw / name).write_text("x")
    record_run(world, str(world.shop.raw), "known", claims={"sequence": RUNS_AWAY})

    ask_for_everything(site, world)  # or this test never ends

    assert get(site, "/pending")["is_known"] is False


def test_what_a_run_left_waiting_is_told_with_its_time_and_never_as_all(site: Site, world: World, dags: object) -> None:
    root = str(world.shop.raw)
    record_run(world, root, "1", "2", "3", options=FileOptions(bound=Bound.of(max_files=1)))
    run = world.store.committed_run(JOB, 1)
    assert run is not None

    pending, lag = get(site, "/pending"), get(site, "/lag")

    (row,) = pending["contexts"]
    assert (row["files"], row["bytes"], row["recorded_by"]) == (2, 14, 1)
    assert from_text(row["recorded_at"]) == from_text(run.planned_at)
    assert row["oldest"] == "2023-11-14T22:13:20.000000Z"
    assert (pending["files"], pending["is_known"], pending["is_empty"]) == (None, False, False)
    (behind,) = lag["lags"]
    assert (behind["state"], behind["files"], behind["bytes"], behind["recorded_by"]) == ("UNKNOWN", 2, 14, 1)
    assert lag["looked_at"] is not None


def test_what_settles_is_told_as_waiting(site: Site, world: World, dags: object) -> None:
    options = FileOptions(settle=timedelta(days=36500))
    record_run(world, str(world.shop.raw), "1", "2", options=options)

    (row,) = get(site, "/pending")["contexts"]

    assert (row["files"], row["bytes"], row["recorded_by"]) == (2, 14, 1)


def test_what_was_recorded_before_a_change_tells_nothing_of_the_next_run(
    site: Site, world: World, dags: object
) -> None:
    three_runs(world)
    BookmarkHook().rewind(JOB, to_run=1, reason="wrong")

    (row,) = get(site, "/pending")["contexts"]
    (behind,) = get(site, "/lag")["lags"]

    for told in (row, behind):
        assert (told["files"], told["bytes"], told["recorded_by"], told["recorded_at"]) == (None, None, None, None)
    assert behind["seconds"] is None


def test_output_of_another_job_is_counted_from_what_its_runs_recorded(site: Site, world: World, dags: object) -> None:
    world.shop.put("1.txt", "one", "two")
    world.shop.run("up")
    world.shop.run(JOB, upstream="up")
    world.shop.put("2.txt", "three", "four")
    world.shop.run("up")

    with opened_files() as opened:
        (row,) = get(site, "/pending")["contexts"]
        (behind,) = get(site, "/lag")["lags"]
        skipped = post(site, "/preview", {"kind": "set", "ctx": "raw", "value": "now"}, 200)["never_read"]

    assert (row["upstream"], row["runs"], row["files"], row["bytes"], row["recorded_by"]) == ("up", [2], 1, 11, None)
    assert (behind["runs"], behind["files"], behind["recorded_by"]) == (1, 1, None)
    assert (skipped["files"], skipped["bytes"], skipped["runs"]) == (1, 11, [2])
    assert [path for path in opened if str(world.folder / "up") in path] == []


@pytest.mark.parametrize(
    ("below", "may_look"), [("", False), (" , ", False), ("s3://lake/raw/", True), ("relative", True)]
)
def test_page_is_told_whether_it_may_look_and_so_what_to_offer(
    site: Site, world: World, dags: object, monkeypatch: pytest.MonkeyPatch, below: str, may_look: bool
) -> None:
    """Where the setting is wrong it offers all: the refusal of a look then says what is wrong."""
    three_runs(world)
    monkeypatch.setenv("AIRFLOW__BOOKMARKS__LOOK_BELOW", below)
    assert site.as_user("uma").get(f"{API}/jobs/{JOB}").json()["may_look"] is may_look


@pytest.mark.parametrize("value", ["now", "2013-01-31T00:00:00Z"])
def test_set_that_takes_a_look_is_refused_with_the_way_to_make_it(
    site: Site, world: World, dags: object, value: str
) -> None:
    three_runs(world)
    spec = {"kind": "set", "ctx": "raw", "value": value}

    for path, body in (("/preview", spec), ("/changes", meant(world, JOB, **spec))):
        refused = post(site, path, body, 409)
        assert refused["error"] == "LookRefusedError"
        assert "not known" in refused["message"]
        assert "--dry-run" in refused["message"]
    assert world.store.head(JOB).epoch == 1


@pytest.mark.parametrize("more", [{"kind": "reset"}, {"kind": "rewind", "to_run": 1}, {"kind": "delete"}])
def test_clean_that_takes_a_look_is_refused_and_fences_nobody(
    site: Site, world: World, dags: object, more: dict[str, Any]
) -> None:
    three_runs(world)
    before = world.store.head(JOB)

    with opened_files() as opened:
        assert post(site, "/preview", {**more, "clean": True}, 409)["error"] == "LookRefusedError"
        assert post(site, "/changes", meant(world, JOB, clean=True, **more), 409)["error"] == "LookRefusedError"

    assert [path for path in opened if str(world.folder / JOB) in path] == []
    assert world.store.head(JOB) == before


def test_files_that_undone_runs_left_are_not_known_and_not_none(site: Site, world: World, dags: object) -> None:
    three_runs(world)
    BookmarkHook().rewind(JOB, to_run=2, reason="wrong")

    told = post(site, "/preview", {"kind": "reset"}, 200)

    assert told["files_left_by_undone_runs"] is None


def test_request_that_takes_a_look_is_not_approved_where_it_can_not_be_carried_out(
    site: Site, world: World, dags: object
) -> None:
    three_runs(world)
    BookmarkHook().protect(JOB, reason="dear to us")
    asked = request(
        world.store, JOB, Change("set", ctx="raw", value="now"), reason="all is read", who=Identity("otto", True, "aws")
    )

    refused = post(site, f"/requests/{asked.id}/approve", {}, 409)

    assert refused["error"] == "LookRefusedError"
    assert [each["state"] for each in get(site, "")["requests"]] == ["open"]


# ---- where the deployment lets it look: a child process does


def limited(site: Site, monkeypatch: pytest.MonkeyPatch, limits: Limits) -> None:
    monkeypatch.setattr(site.app.state, "backstage", replace(site.app.state.backstage, limits=limits))


@pytest.mark.seldom
def test_listed_folder_is_looked_at_by_another_process(
    site: Site, world: World, dags: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    three_runs(world)
    world.shop.put("4.txt", "new")
    monkeypatch.setenv("AIRFLOW__BOOKMARKS__LOOK_BELOW", f"s3://elsewhere/raw, {world.shop.raw}/")

    with opened_files() as opened:
        pending, lag = get(site, "/pending"), get(site, "/lag")
        preview = post(site, "/preview", {"kind": "set", "ctx": "raw", "value": "now"}, 200)

    assert (pending["files"], pending["is_known"], pending["contexts"][0]["recorded_by"]) == (1, True, None)
    assert (lag["lags"][0]["files"], lag["lags"][0]["recorded_by"]) == (1, None)
    assert preview["never_read"]["files"] == 1
    assert [path for path in opened if str(world.shop.raw) in path] == []


def test_change_that_the_api_server_can_make_itself_is_made_once(
    site: Site, world: World, dags: object, looks: None
) -> None:
    three_runs(world)
    BookmarkHook().rewind(JOB, to_run=2, reason="wrong")  # what it left lies where the page may look
    BookmarkHook().protect(JOB, reason="dear to us")

    post(site, "/requests", meant(world, JOB, "reset"), 201)

    assert len(get(site, "")["requests"]) == 1


@pytest.mark.parametrize("listed", ["{raw}er", "{raw}/deeper", "s3://lake/raw"])
def test_folder_below_no_listed_prefix_is_not_looked_at(
    site: Site, world: World, dags: object, monkeypatch: pytest.MonkeyPatch, listed: str
) -> None:
    three_runs(world)
    monkeypatch.setenv("AIRFLOW__BOOKMARKS__LOOK_BELOW", listed.format(raw=world.shop.raw))

    assert get(site, "/pending")["contexts"][0]["recorded_by"] == 3


@pytest.mark.parametrize(
    "listed", ["/", "raw", "s3://", "file:///", "s3://lake/*", "S3://lake", "s3://me:hunter2@lake"]
)
def test_prefix_that_is_none_or_everything_is_refused(
    site: Site, world: World, dags: object, monkeypatch: pytest.MonkeyPatch, listed: str
) -> None:
    three_runs(world)
    monkeypatch.setenv("AIRFLOW__BOOKMARKS__LOOK_BELOW", listed)

    answer = site.as_user("ada").get(f"{API}/jobs/{JOB}/pending")

    assert answer.status_code == 503
    assert "hunter2" not in answer.text
    assert "look_below" in answer.text
    assert site.as_user("ada").get(f"{API}/jobs/{JOB}").status_code == 200


def test_server_that_is_listed_sends_nobody_to_another_one(
    site: Site, world: World, dags: object, internal: Witness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HADOOP_USER_NAME", "somebody")
    with witness() as listed:
        listed.answer = lambda path: (307, {"Location": f"http://{internal.address}/latest/meta-data"}, b"")
        record_run(world, f"webhdfs://{listed.address}/raw", "known")
        monkeypatch.setenv("AIRFLOW__BOOKMARKS__LOOK_BELOW", f"webhdfs://{listed.address}/raw")

        told = get(site, "/pending")

    assert listed.asked != []
    assert internal.asked == []
    assert (told["files"], told["is_known"]) == (None, False)


@pytest.mark.slow
@pytest.mark.seldom  # half a minute
def test_look_that_does_not_end_is_ended_and_others_are_answered_meanwhile(
    site: Site, world: World, dags: object, internal: Witness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HADOOP_USER_NAME", "somebody")
    is_asked, goes_on = threading.Event(), threading.Event()

    def silent(path: str) -> tuple[int, dict[str, str], bytes]:
        is_asked.set()
        goes_on.wait()
        return 503, {}, b""

    internal.answer = silent
    record_run(world, f"webhdfs://{internal.address}/raw", "known")
    monkeypatch.setenv("AIRFLOW__BOOKMARKS__LOOK_BELOW", f"webhdfs://{internal.address}/")
    limited(site, monkeypatch, Limits(life_s=30))
    try:
        with ThreadPoolExecutor(1) as hanging:
            asked = hanging.submit(site.as_user("ada").get, f"{API}/jobs/{JOB}/pending")
            assert is_asked.wait(60)
            meanwhile = [site.as_user("vera").get(f"{API}/jobs{path}") for path in ("", f"/{JOB}", f"/{JOB}/runs")]
            assert [answer.status_code for answer in meanwhile] == [200, 200, 200]
            assert not asked.done()
            ended = asked.result()
    finally:
        goes_on.set()

    assert (ended.status_code, ended.json()["error"]) == (502, "LookFailedError")


def test_pattern_that_runs_away_ends_its_process_alone(
    site: Site, world: World, dags: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    (world.shop.raw / ("a" * 64)).write_text("x")
    record_run(world, str(world.shop.raw), "known", claims={"sequence": RUNS_AWAY, "on_unmatched": "skip"})
    monkeypatch.setenv("AIRFLOW__BOOKMARKS__LOOK_BELOW", str(world.shop.raw))
    limited(site, monkeypatch, Limits(life_s=60, processor_s=3))

    answer = site.as_user("ada").get(f"{API}/jobs/{JOB}/pending")

    # Where the pattern is refused, or matched in linear time, nothing has to be ended.
    if answer.status_code != 200:
        assert (answer.status_code, answer.json()["error"]) == (502, "LookFailedError")
        assert "runs away" in answer.json()["message"]


@pytest.mark.parametrize("limits", [Limits(answer=10), Limits(memory=64 << 20)])
def test_child_that_takes_or_tells_too_much_is_ended(
    site: Site, world: World, dags: object, monkeypatch: pytest.MonkeyPatch, limits: Limits
) -> None:
    three_runs(world)
    monkeypatch.setenv("AIRFLOW__BOOKMARKS__LOOK_BELOW", str(world.shop.raw))
    limited(site, monkeypatch, replace(limits, life_s=60))

    answer = site.as_user("ada").get(f"{API}/jobs/{JOB}/pending")

    assert (answer.status_code, answer.json()["error"]) == (502, "LookFailedError")


def test_child_that_dies_before_it_reads_its_errand_has_said_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Dead(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)  # its pipe has no reader now

    monkeypatch.setattr(child, "_MODULE", "airflow_bookmarks.plugin.no_such_module")
    monkeypatch.setattr(subprocess, "Popen", Dead)

    assert child._exchanged(b"{}", child.LIMITS) == b""


STARTS_SOMEBODY = """
import fcntl, os, signal, sys

alive, told = sys.path[0] + "/alive", os.pipe()
if os.fork() == 0:
    os.setsid()  # not killed with its parent, whose pipes it has
    signal.alarm(60)
    lock = open(alive, "w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.write(told[1], b".")
    signal.pause()
os.read(told[0], 1)
print('{"answer": 1}', flush=True)
"""


def is_alive(lock: Path) -> bool:
    """Whether somebody still holds the lock that a process takes for as long as it lives."""
    with lock.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@pytest.mark.parametrize("errand", [b"{}", b"x" * (1 << 20)], ids=["short", "longer than a pipe"])
def test_what_a_child_has_started_keeps_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, errand: bytes
) -> None:
    (tmp_path / "starts_somebody.py").write_text(STARTS_SOMEBODY)
    lock = tmp_path / "alive"
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(child, "_MODULE", "starts_somebody")
    looks = count()

    def now() -> float:
        """Say that time is up once the other process is there; not at the first look, which says when it began."""
        return 1e9 if next(looks) and lock.exists() and is_alive(lock) else 0.0

    monkeypatch.setattr(child, "monotonic", now)

    child._exchanged(errand, Limits(life_s=20))

    assert is_alive(lock)  # it ends by itself


def test_child_takes_no_module_from_the_folder_in_which_it_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "tells_its_path.py").write_text("import json, sys; print(json.dumps(sys.path))")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(child, "_MODULE", "tells_its_path")

    said = child._exchanged(b"{}", Limits(life_s=600))

    assert json.loads(said)[0] == str(tmp_path)
