"""What the page is told."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.core.text.identity import Identity
from airflow_bookmarks.hooks.bookmark import BookmarkHook
from airflow_bookmarks.lifecycle.changes.approval import protect, request
from airflow_bookmarks.lifecycle.changes.change import Change
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.plugin.presenters.all_jobs import AllJobs
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.sources.registry import registered
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.codec import item
from airflow_bookmarks.store.table import Attributes, Delete, Key, Put, Update
from tests.airflow.conftest import World
from tests.lifecycle.shop import FILES, short_lease
from tests.lifecycle.sqlite_keys import KeyKind, KeySource, make_table
from tests.lifecycle.sqlite_keys import put as put_key
from tests.plugin.conftest import API, Site, run_of_dag, three_runs
from tests.sources.delta.regions import put, read_by_region

pytestmark = [pytest.mark.airflow, pytest.mark.xdist_group("plugin")]


def get(site: Site, path: str, user: str = "vera", **params: Any) -> Any:
    answer = site.as_user(user).get(f"{API}{path}", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def names(told: Any) -> list[str]:
    return [row["job"] for row in told["jobs"]]


def test_list_says_where_each_job_stands(site: Site, world: World, dags: object) -> None:
    job = three_runs(world)
    world.shop.run("down", upstream=job)
    head = world.store.head(job)

    told = get(site, "/jobs")

    assert (told["total"], told["limit"], told["offset"]) == (2, 50, 0)
    down, flights = told["jobs"]
    assert (down["state"], down["lag"], down["dag_id"]) == ("IDLE", "OK", None)
    assert (flights["state"], flights["lag"], flights["dag_id"], flights["task_id"]) == (
        "IDLE", None, "flights", "clean",
    )  # fmt: skip
    assert (flights["run_number"], flights["published"], flights["epoch"]) == (3, 3, 1)
    assert (flights["version"], flights["protected"], flights["damaged"]) == (head.version, False, None)
    assert flights["watermark"] == {"raw": head.contexts["raw"].watermark}
    assert flights["last_commit_at"] is not None
    assert [(point["number"], point["files"], point["rows"]) for point in flights["runs"]] == [
        (1, 1, None), (2, 1, None), (3, 1, None),
    ]  # fmt: skip


def test_last_runs_of_a_job_have_what_they_read_in_the_unit_of_its_kind(
    site: Site, world: World, dags: object, tmp_path: Path
) -> None:
    database = str(tmp_path / "crm.db")
    make_table(database)
    with registered(KeyKind()):
        for key in (1, 2):
            put_key(database, key)
        identity = RunIdentity("flights/manual__1/clean", 1, dag_id="flights")
        run = ActiveRun.begin(world.store, "flights.clean", identity, world.shop.environment)
        run.plan("people", KeySource(database))
        run.commit()

    ((point,),) = (row["runs"] for row in get(site, "/jobs")["jobs"])

    assert (point["files"], point["amounts"]) == (None, {"keys": 2})


def test_context_says_what_is_missing_in_its_sequence_and_where_it_stands(
    site: Site, world: World, dags: object
) -> None:
    for number in (1, 4):
        world.shop.put(f"part-{number}.csv", "a")
    identity = RunIdentity("flights/manual__1/clean", 1, dag_id="flights", task_id="clean", dag_run_id="manual__1")
    run = ActiveRun.begin(world.store, "flights.clean", identity, world.shop.environment)
    run.plan("raw", FileSource(FILES, [str(world.shop.raw)], FileOptions(sequence=r"part-(?P<seq>\d+)")))
    run.commit()

    (context, *_) = get(site, "/jobs/flights.clean")["contexts"]

    assert context["watermark"] == "4"
    assert context["position"].startswith("every file that was found; the highest is 4, since run ")
    assert context["gaps"]["words"] == "2 of 1 to 4 are missing: 2 to 3"


def test_lag_in_the_list_is_that_of_the_job_itself(site: Site, world: World, dags: object) -> None:
    three_runs(world)
    world.shop.run("down", upstream="flights.clean")
    BookmarkHook().rewind("flights.clean", to_run=1, reason="wrong")
    BookmarkHook().reset("down", reason="wrong")

    told = {row["job"]: row["lag"] for row in get(site, "/jobs")["jobs"]}

    assert told["flights.clean"] is None
    # A reset leaves no context on the head: what it reads says the last run. Which of the two states it is depends on
    # how fast those runs were made.
    assert told["down"] in ("REWOUND", "STOPPED")


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, ["a", "b", "c", "flights.clean"]),
        ({"sort": "-job"}, ["flights.clean", "c", "b", "a"]),
        ({"sort": "-last_commit_at"}, ["flights.clean", "a", "b", "c"]),
        ({"sort": "-run_number"}, ["a", "b", "c", "flights.clean"]),
        ({"sort": "-epoch"}, ["b", "a", "c", "flights.clean"]),
        ({"sort": "dag_id"}, ["flights.clean", "a", "b", "c"]),
        ({"search": "FLIGHT"}, ["flights.clean"]),
        ({"search": "  clean "}, ["flights.clean"]),
        ({"search": "%"}, []),
        ({"limit": 2}, ["a", "b"]),
        ({"limit": 2, "offset": 3}, ["flights.clean"]),
        ({"state": "RUNNING"}, ["c"]),
        ({"state": "IDLE", "limit": 1, "offset": 1}, ["b"]),
        ({"state": "DAMAGED"}, []),
    ],
    ids=str,
)
def test_list_is_searched_sorted_and_cut(
    site: Site, world: World, dags: object, asked: dict[str, Any], found: list[str]
) -> None:
    for job in ("c", "b", "a", "a"):
        world.shop.run(job)
    world.shop.run("a")
    BookmarkHook().reset("b", reason="for its epoch")
    run_of_dag(world, "flights")
    world.shop.begin("c")
    if asked.get("sort") == "-run_number":
        found = ["a", *sorted(found[1:], reverse=True)]

    assert names(get(site, "/jobs", **asked)) == found


def test_total_counts_what_was_asked_for_and_not_the_page(site: Site, world: World) -> None:
    for job in ("a1", "a2", "a3", "b"):
        world.shop.run(job)

    assert get(site, "/jobs", search="a", limit=1)["total"] == 3
    assert get(site, "/jobs", state="IDLE", limit=1)["total"] == 4
    assert site.as_user("vera").get(f"{API}/jobs?limit=201").status_code == 422
    assert site.as_user("vera").get(f"{API}/jobs?state=FINE").status_code == 422


def test_state_of_a_job_in_the_list(site: Site, world: World) -> None:
    world.shop.run("idle")
    world.shop.begin("new")
    world.shop.environment = short_lease()
    world.shop.begin("expired")
    world.shop.put("a.txt", "a")
    world.shop.run("due")
    BookmarkHook().reset("due", clean=True, reason="wrong")

    told = {row["job"]: row["state"] for row in get(site, "/jobs")["jobs"]}

    assert told == {"idle": "IDLE", "new": "RUNNING", "expired": "EXPIRED", "due": "DUE"}


def test_deleted_jobs_and_other_names_are_not_in_the_list(site: Site, world: World) -> None:
    for job in ("copy", "gone"):
        world.shop.run(job)
    hook = BookmarkHook()
    hook.delete("gone", typed_name="gone", reason="not needed")
    hook.rename("copy", "lake.copy", reason="moved")

    assert names(get(site, "/jobs")) == ["copy"]
    assert get(site, "/jobs")["total"] == 1


def test_damaged_job_says_why_and_hides_no_other(site: Site, world: World) -> None:
    for job in ("bad", "fine", "lost"):
        world.shop.run(job)
    world.shop.run("reader", upstream="bad")
    keys = world.store.keys("bad")
    world.store.table.transact([Update(keys.head, set={"epoch": "one"})])
    world.store.table.transact([Delete(world.store.keys("lost").head)])

    for asked in ({}, {"sort": "state"}):
        rows = {row["job"]: row for row in get(site, "/jobs", "otto", **asked)["jobs"]}
        assert [rows[job]["state"] for job in ("bad", "fine", "lost", "reader")] == [
            "DAMAGED", "IDLE", "DAMAGED", "IDLE",
        ]  # fmt: skip
        assert "'epoch'" in rows["bad"]["damaged"]
        assert rows["reader"]["lag"] == "UNKNOWN"
    for job in ("bad", "lost"):
        told = get(site, f"/jobs/{job}", "otto")
        assert (told["state"], told["damaged"]) == ("DAMAGED", rows[job]["damaged"])
        assert (told["contexts"], told["requests"]) == ([], [])
    around = get(site, "/jobs/reader/graph")["nodes"]
    assert {node["name"]: node["is_damaged"] for node in around} == {"bad": True, "reader": False}


def test_jobs_of_a_dag_and_of_a_task(site: Site, world: World, dags: object) -> None:
    for task_id in ("clean", "report"):
        run_of_dag(world, "flights", task_id=task_id)
    run_of_dag(world, "nights")

    assert names(get(site, "/dags/flights/jobs")) == ["flights.clean", "flights.report"]
    assert names(get(site, "/dags/flights/jobs", task_id="report")) == ["flights.report"]
    assert names(get(site, "/dags/no.such/jobs")) == []


def test_job_is_told_in_full(site: Site, world: World, dags: object) -> None:
    job = three_runs(world)
    world.shop.run("down", upstream=job)
    world.shop.side_lines("pause", job=job)
    BookmarkHook().protect(job, reason="dear to us")

    told = get(site, f"/jobs/{job}")
    down = get(site, "/jobs/down")

    (raw,) = told["contexts"]
    assert (raw["ctx"], raw["kind"], raw["run_number"], raw["set_in_epoch"]) == ("raw", "files", 3, None)
    assert raw["position"] == f"every file that was found; the newest is of {raw['watermark']}, since run 3"
    assert down["contexts"][0]["position"] == "up to run 3 of flights.clean, since run 1"
    assert [(each["job"], each["run_number"]) for each in told["consumers"]] == [("down", 3)]
    assert (told["protected"], told["requests"], told["default_option"]) == (True, [], None)
    assert [(side["option"], side["contexts"]["raw"]["files"]) for side in told["side_runs"]] == [("pause", 0)]


@pytest.mark.parametrize(("rule", "order"), [(None, "time"), (r"part-(?P<seq>\d+)", "number"), ("path", "path")])
def test_order_of_watermarks_is_told_with_them(
    site: Site, world: World, dags: object, rule: str | None, order: str
) -> None:
    job = "flights.clean"
    world.shop.put("part-1.csv", "a")
    run = ActiveRun.begin(
        world.store, job, RunIdentity("flights/manual__1/clean", 1, dag_id="flights"), world.shop.environment
    )
    run.plan("raw", FileSource(FILES, [str(world.shop.raw)], FileOptions(sequence=rule)))
    run.commit()

    (listed,), told = get(site, "/jobs")["jobs"], get(site, f"/jobs/{job}")
    (made,) = get(site, f"/jobs/{job}/runs")["runs"]

    assert listed["order"] == told["order"] == made["order"] == {"raw": order}
    assert told["contexts"][0]["order"] == order


def test_order_that_is_not_stored_is_told_as_not_known(site: Site, world: World) -> None:
    job = three_runs(world)
    head = world.store.keys(job).head
    context: Any = world.store.table.get([head])[head]["contexts"]
    stored = {name: value for name, value in context["raw"].items() if name != "order"}
    world.store.table.transact([Update(head, set={"contexts": {"raw": stored}})])

    told = get(site, f"/jobs/{job}")

    assert told["contexts"][0]["order"] is None
    assert told["order"] == {"raw": None}


@pytest.mark.parametrize(("user", "sees_the_item"), [("ada", True), ("vera", False)])
def test_damaged_request_is_named_beside_the_others(
    site: Site, world: World, dags: object, user: str, sees_the_item: bool
) -> None:
    job, who = three_runs(world), Identity("ann", True, "os")
    protect(world.store, job, reason="money", who=who)
    bad, good = (request(world.store, job, Change("reset"), reason="wrong", who=who) for _ in range(2))
    world.store.table.transact([Update(world.store.keys(job).event(bad.id), set={"preview": "x"})])

    told = get(site, f"/jobs/{job}", user)

    assert [each["id"] for each in told["requests"]] == [good.id]
    (damaged,) = told["damaged_requests"]
    assert damaged["id"] == bad.id
    assert ("EVENT" in damaged["why"]) is sees_the_item
    assert damaged["why"].count("Ask for the change anew") == 1


def test_who_holds_a_job_is_told(site: Site, world: World) -> None:
    world.shop.begin("copy", run_id="copy/manual__1/clean", attempt=2)

    told = get(site, "/jobs/copy")

    assert (told["holder"]["run_id"], told["holder"]["attempt"]) == ("copy/manual__1/clean", 2)
    assert told["holder"]["since"] < told["holder"]["until"]


def test_runs_come_newest_first_with_their_task_and_window(site: Site, world: World, dags: object) -> None:
    job = three_runs(world)
    BookmarkHook().rewind(job, to_run=2, reason="wrong")

    told = get(site, f"/jobs/{job}/runs")

    assert [(run["number"], run["state"]) for run in told["runs"]] == [
        (3, "UNDONE"), (2, "PUBLISHED"), (1, "PUBLISHED"),
    ]  # fmt: skip
    newest, older, _ = told["runs"]
    assert newest["task"] == {
        "dag_id": "flights", "dag_run_id": "manual__3", "task_id": "clean", "map_index": -1, "try_number": 1,
    }  # fmt: skip
    assert newest["window"]["raw"] == {"before": older["watermark"]["raw"], "after": newest["watermark"]["raw"]}
    assert (newest["option"], newest["files"], newest["rows_written"]) == ("enable", 1, 1)
    assert told["next"] is None


def test_runs_are_paged_without_a_gap_over_attempts_that_share_a_number(site: Site, world: World) -> None:
    for attempt in (1, 2, 3):
        run = world.shop.begin("copy", run_id="again", attempt=attempt)
        world.shop.put(f"{attempt}.txt", "x")
        world.shop.copy(run)
        if attempt < 3:
            run.abort("no")
        else:
            run.commit()
    world.shop.run("copy")
    whole = get(site, "/jobs/copy/runs")["runs"]

    for limit in (1, 2, 3):
        seen: list[Any] = []
        before: str | None = None
        while True:
            page = get(site, "/jobs/copy/runs", limit=limit, **({"before": before} if before else {}))
            seen += page["runs"]
            before = page["next"]
            if before is None:
                break
            assert len(page["runs"]) == limit
        assert seen == whole
    assert [(run["number"], run["state"]) for run in whole[:2]] == [(2, "PUBLISHED"), (1, "PUBLISHED")]
    assert len(whole) == 4
    assert site.as_user("vera").get(f"{API}/jobs/copy/runs?before=x").status_code == 422


def test_damaged_run_hides_no_other(site: Site, world: World) -> None:
    world.shop.run("copy")
    world.shop.run("copy")
    first = next(iter(world.store.runs("copy")))
    world.store.table.transact([Update(world.store.keys("copy").run(first.key), set={"state": "LOST"})])

    told = get(site, "/jobs/copy/runs", "otto")["runs"]

    assert [run["state"] for run in told] == ["PUBLISHED", "DAMAGED"]
    assert "'state'" in told[1]["error"]


def test_task_of_a_mapped_run_has_its_index() -> None:
    from airflow_bookmarks.core.run import Execution
    from airflow_bookmarks.plugin.presenters.bookmark import task_of

    execution = Execution("d/manual__a/b/t/7", 2, dag_id="d", task_id="t", dag_run_id="manual__a/b")

    task = task_of(execution, 2)

    assert task is not None
    assert (task.dag_run_id, task.task_id, task.map_index, task.try_number) == ("manual__a/b", "t", 7, 2)
    assert task_of(Execution("by hand", 1), 1) is None


def test_files_of_a_run(site: Site, world: World, dags: object) -> None:
    job = three_runs(world)
    for name in ("4.txt", "5.txt", "6.txt"):
        world.shop.put(name, "x")
    run_of_dag(world, "flights", number=4)

    told = get(site, f"/jobs/{job}/runs/4/files", limit=2, offset=1)

    assert (told["total"], told["unlisted"]) == (3, {})
    assert [each["path"].rpartition("/")[2] for each in told["files"]] == ["5.txt", "6.txt"]
    assert {"ctx", "path", "bytes", "modified_at", "state"} == told["files"][0].keys()
    assert site.as_user("vera").get(f"{API}/jobs/{job}/runs/9/files").json()["error"] == "RunUnknownError"
    assert site.as_user("vera").get(f"{API}/jobs/{job}/runs/0/files").status_code == 422


def test_partitions_of_a_job_come_with_those_that_fail_first(site: Site, world: World, tmp_path: Path) -> None:
    job, table = "flights.orders", str(tmp_path / "orders")
    put(table, (1, "eu"), (2, "us"))
    identity = RunIdentity("flights/manual__1/orders", 1, dag_id="flights", task_id="orders")
    read_by_region(world.store, job, table, "us", identity=identity)

    told = get(site, f"/jobs/{job}/partitions")

    assert [(row["partition"], row["error"]) for row in told["partitions"]] == [
        ("region='us'", "us is wrong"),
        ("region='eu'", None),
    ]
    assert [context["reads_parts"] for context in get(site, f"/jobs/{job}")["contexts"]] == [True]


def test_job_that_reads_its_sources_whole_has_no_partitions(site: Site, world: World) -> None:
    job = three_runs(world)
    assert get(site, f"/jobs/{job}/partitions")["partitions"] == []
    assert [context["reads_parts"] for context in get(site, f"/jobs/{job}")["contexts"]] == [False]


def test_events_come_newest_first(site: Site, world: World) -> None:
    world.shop.run("copy")
    hook = BookmarkHook()
    hook.reset("copy", reason="all over", who="ada")
    hook.undo("copy", reason="a mistake", who="otto")

    told = get(site, "/jobs/copy/events")

    assert [(e["kind"], e["who"], e["why"]) for e in told["events"]] == [
        ("undo", "otto", "a mistake"), ("reset", "ada", "all over"),
    ]  # fmt: skip
    reset = told["events"][1]
    assert (reset["epoch_before"], reset["epoch_after"], reset["to_run"]) == (1, 2, 0)
    assert reset["watermarks_after"] == {}
    page = get(site, "/jobs/copy/events", limit=1, offset=1)
    assert ([e["kind"] for e in page["events"]], page["total"]) == (["reset"], 2)


def test_pending_lag_and_graph_are_those_of_the_hook(site: Site, world: World, dags: object, looks: None) -> None:
    job = three_runs(world)
    world.shop.run("down", upstream=job)
    world.shop.put("4.txt", "new")
    run_of_dag(world, "flights", number=4)
    world.shop.put("5.txt", "newer")
    hook = BookmarkHook()

    pending, lag, graph = (get(site, f"/jobs/{job}/{what}") for what in ("pending", "lag", "graph"))

    expected = hook.pending(job)
    assert (pending["files"], pending["is_known"]) == (1, True)
    assert {**pending, "looked_at": ""} | {"contexts": []} == {**expected, "looked_at": ""} | {"contexts": []}
    assert [each["files"] for each in pending["contexts"]] == [1]
    assert [(row["kind"], row["files"]) for row in lag["lags"]] == [("files", 1)]
    assert get(site, "/jobs/down/pending")["contexts"][0]["runs"] == [4]
    assert get(site, "/jobs/down/lag")["lags"][0]["runs"] == 1
    expected = hook.graph(job)
    for read in (*graph["reads"], *expected["reads"]):
        if read["lag"] is not None:
            read["lag"]["seconds"] = None  # it goes on between the two
    assert graph == {**expected, "hidden": 0}


def test_what_the_next_run_leaves_out_is_counted_and_some_of_it_named(site: Site, world: World, looks: None) -> None:
    world.shop.put("new.txt", "new")
    run = world.shop.begin("copy")
    run.plan("raw", FileSource(FILES, [str(world.shop.raw)], FileOptions(late_after=timedelta(hours=1))))
    run.commit()
    for number in range(12):
        world.shop.put(f"{number}.txt", "late", seconds=1_300_000_000)
    world.shop.put(".hidden", "hidden")

    (context,) = get(site, "/jobs/copy/pending")["contexts"]

    assert context["skipped"] == {"late": 12, "hidden": 1}
    assert [each["reason"] for each in context["skipped_files"]] == ["late"] * 10


def test_heads_of_all_jobs_are_read_once_for_some_seconds(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.shop.run("a")
    begun, clock, asked = world.store.now(), [0.0], list[Sequence[str]]()
    monkeypatch.setattr(world.store, "_clock", lambda: begun + timedelta(seconds=clock[0]))
    real = world.store.heads_or_damage

    def counting(jobs: Sequence[str]) -> Any:
        asked.extend([jobs] if jobs else [])
        return real(jobs)

    monkeypatch.setattr(world.store, "heads_or_damage", counting)
    all_jobs = AllJobs(lambda: clock[0])

    assert all_jobs.look(world.store, with_health=True).records.keys() == {"a"}
    world.shop.run("b")
    asked.clear()
    for clock[0] in (1.0, 2.0):
        assert all_jobs.look(world.store, with_health=True).records.keys() == {"a", "b"}
    assert asked == [["b"]]
    clock[0] = 10.5
    all_jobs.look(world.store, with_health=True)
    assert asked == [["b"], ["a"]]


@pytest.mark.parametrize("job", ["zug~fahrten-2.lauf", "поезда.очистка", "列車", "flüge_ä"])
def test_job_with_a_name_in_any_script_is_found(site: Site, world: World, job: str) -> None:
    world.shop.run(job)

    assert get(site, f"/jobs/{job}")["job"] == job
    assert names(get(site, "/jobs", search=job[:3])) == [job]


@pytest.mark.parametrize(
    ("job", "status"),
    [("no.such", 404), ("a%2Fb", 404), ("a/b", 404), ("%2e%2e", 422), ("a%23b", 422), ("a%20b", 422), ("x" * 251, 422),
     ("%00", 422), (".hidden", 422)],
)  # fmt: skip
def test_name_of_no_job_is_refused_and_says_so(site: Site, world: World, job: str, status: int) -> None:
    answer = site.as_user("ada").get(f"{API}/jobs/{job}")

    assert answer.status_code == status
    assert set(answer.json()) >= {"error", "message"}


def test_any_name_of_a_job_will_do(site: Site, world: World) -> None:
    world.shop.run("copy")
    BookmarkHook().rename("copy", "lake.copy", reason="moved")

    assert get(site, "/jobs/lake.copy")["job"] == "copy"
    assert [run["number"] for run in get(site, "/jobs/lake.copy/runs")["runs"]] == [1]


def test_page_of_ten_thousand_jobs_asks_for_the_heads_of_the_page_alone(
    site: Site, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.shop.run("model")
    model = world.store.head("model")
    table = world.store.table
    for start in range(0, 10_000, 50):
        jobs = [f"job.{number:05}" for number in range(start, start + 50)]
        heads = [Put(world.store.keys(job).head, item.head_attributes(model)) for job in jobs]
        index = [Put(world.store.keys(job).index, {"dag_id": None, "run_number": 1}) for job in jobs]
        table.transact([*heads, *index])

    asked: list[int] = []

    class Counting(SqliteTable):
        def get(self, keys: Sequence[Key]) -> dict[Key, Attributes]:
            asked.append(len(keys))
            return super().get(keys)

    monkeypatch.setattr("airflow_bookmarks.store.backends.sqlite.SqliteTable", Counting)

    told = get(site, "/jobs", limit=50, offset=9_900)

    assert asked == [64, 50]  # what is recorded of all jobs, which is nothing yet, and these heads
    assert (told["total"], len(told["jobs"]), told["jobs"][0]["job"]) == (10_001, 50, "job.09900")
    told = get(site, "/jobs", state="IDLE", limit=1)
    while told["unjudged"]:  # reading all heads for the first time may take longer than a request waits for it
        assert told["total"] + told["unjudged"] == 10_001
        told = get(site, "/jobs", state="IDLE", limit=1)
    assert told["total"] == 10_001
