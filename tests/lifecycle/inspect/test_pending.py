"""Promises OBS-2 and `pending --skipped` of FILE-12: what the next run would read, without a run."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_bookmarks.core.errors import RunUnknownError, SourceError
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.files.listed_partitions import ListedPartitions
from airflow_bookmarks.lifecycle.changes.change import reset, rewind, set_position, undo, unlock
from airflow_bookmarks.lifecycle.inspect.pending import PendingContext, PendingInput, pending
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.run.empty import commit_empty
from airflow_bookmarks.sinks.staging import Mode
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.sources.files.recorded_plan import left_out
from airflow_bookmarks.sources.upstream.source import UpstreamSource
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.store.table import Update
from tests.lifecycle.shop import FILES, Shop

NOON = datetime(2013, 1, 31, 12, tzinfo=UTC)
WHY: dict[str, Any] = {"reason": "a test", "who": "me"}


class Stopped(BaseException):
    """Stands for a process that ended at a point."""


def stopping_at(shop: Shop, point: Failpoint) -> Shop:
    def stop(at: Failpoint) -> None:
        if at is point:
            raise Stopped

    return replace(shop, environment=replace(shop.environment, at=stop))


def die(shop: Shop, point: Failpoint, job: str = "copy") -> None:
    """Begin a run whose process ends at a point, and whose lease somebody has taken away since."""
    with pytest.raises(Stopped):
        stopping_at(shop, point).run(job)
    unlock(shop.store, job, **WHY)


def names(found: PendingInput, ctx: str = "raw") -> list[str]:
    plan = next(context.plan for context in found.contexts if context.ctx == ctx)
    assert isinstance(plan, FilePlan)
    return [Path(path).name for path in plan.files.paths]


# ---- files


def test_what_arrived_since_the_last_run_is_pending(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    shop.put("b.txt", "b", seconds=1_700_000_100)
    shop.put("c.txt", "cc", seconds=1_700_000_200)

    found = pending(shop.store, "copy").as_dict()

    assert (found["is_empty"], found["is_known"], found["files"], found["bytes"]) == (False, True, 2, 5)
    context = found["contexts"][0]
    assert (context["oldest"], context["newest"]) == ("2023-11-14T22:15:00.000000Z", "2023-11-14T22:16:40.000000Z")
    assert context["source"] == f"files:{shop.raw}"
    assert json.loads(json.dumps(found)) == found


def test_nothing_is_pending_after_a_run_that_read_all(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    assert pending(shop.store, "copy").is_empty


def test_look_takes_no_lease_and_writes_nothing(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    shop.put("b.txt", "b")
    before = dict(shop.store.table.query(shop.store.keys("copy").partition))

    pending(shop.store, "copy")

    assert dict(shop.store.table.query(shop.store.keys("copy").partition)) == before


def test_after_a_reset_everything_is_pending_from_the_folders_of_the_last_run(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    reset(shop.store, "copy", **WHY)
    found = pending(shop.store, "copy")
    assert (names(found), found.is_known) == (["a.txt"], True)


def test_after_a_rewind_what_undone_runs_read_is_pending(shop: Shop) -> None:
    for name in "abc":
        shop.put(f"{name}.txt", name)
        shop.run()
    rewind(shop.store, "copy", 1, **WHY)
    assert names(pending(shop.store, "copy")) == ["b.txt", "c.txt"]


def test_context_that_was_set_is_pending_from_there(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    shop.put("b.txt", "b")
    set_position(shop.store, "copy", "raw", "now", **WHY)
    assert pending(shop.store, "copy").is_empty
    shop.put("c.txt", "c")
    assert names(pending(shop.store, "copy")) == ["c.txt"]


def test_folder_that_is_gone_is_said_and_never_taken_for_nothing_new(shop: Shop) -> None:
    shop.run()
    shop.raw.rmdir()
    found = pending(shop.store, "copy")
    assert (found.is_empty, found.is_known) == (False, False)
    assert "does not exist" in str(found.contexts[0].unknown)


def test_late_files_are_listed_by_name(shop: Shop) -> None:
    at = int(NOON.timestamp())
    shop.put("new.txt", "new", seconds=at)
    read(shop, late_after=timedelta(hours=2))
    shop.put("late.txt", "late", seconds=at - 3 * 3600)

    found = pending(shop.store, "copy")

    assert (found.is_empty, found.contexts[0].as_dict()["skipped"]) == (True, {"late": 1})
    assert "skipped_files" not in found.contexts[0].as_dict()
    assert found.as_dict(with_skipped=True)["contexts"][0]["skipped_files"] == [
        {
            "ctx": "raw",
            "reason": "late",
            "path": str(shop.raw / "late.txt"),
            "bytes": 5,
            "modified_at": "2013-01-31T09:00:00.000000Z",
        }
    ]


def test_files_that_are_very_late_or_ignored_are_listed_as_well(shop: Shop) -> None:
    at = int(NOON.timestamp())
    for name, hours in (("oldest", 20), ("old", 10), ("a", 0)):
        shop.put(f"{name}.txt", "a", seconds=at - hours * 3600)
        read(shop, late_after=timedelta(hours=2), on_overwrite="ignore")
    (shop.raw / "oldest.txt").unlink()
    shop.put("a.txt", "another version", seconds=at)
    shop.put("very_late.txt", "late", seconds=at - 21 * 3600)
    found = pending(shop.store, "copy").contexts[0].skipped_files()
    listed = [(file["reason"], Path(file["path"]).name) for file in found]
    assert listed == [("overwritten", "a.txt"), ("expired", "very_late.txt")]
    assert pending(shop.store, "copy").contexts[0].as_dict()["skipped"] == {"overwritten": 1, "expired": 1}


def test_examples_of_what_is_left_out_are_counted_by_reason(shop: Shop) -> None:
    at = int(NOON.timestamp())
    shop.put("new.txt", "new", seconds=at)
    read(shop, late_after=timedelta(hours=2), settle=timedelta(hours=1))
    for name in "abc":
        shop.put(f"{name}.txt", "late", seconds=at - 3 * 3600)
    shop.put("young.txt", "young", seconds=int(shop.store.now().timestamp()))

    (context,) = pending(shop.store, "copy").as_dict(with_skipped=True, examples=2)["contexts"]

    assert context["skipped"] == {"late": 3, "settling": 1}
    listed = sorted((file["reason"], Path(file["path"]).name) for file in context["skipped_files"])
    assert listed == [("late", "a.txt"), ("late", "b.txt"), ("settling", "young.txt")]


def read(shop: Shop, *, named: Sequence[str] = (), **options: Any) -> FilePlan:
    """Make one run that reads the raw folder with these options; return its plan."""
    run = shop.begin()
    source = FileSource(FILES, [str(shop.raw)], FileOptions(**options), named=named, clock=shop.store.now)
    plan = run.plan("raw", source)
    run.commit()
    return plan


ARRIVALS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c", "d=1/a", "d=2/a", "deep/a", "_hidden"]),
        st.integers(0, 12),  # half hours before noon
        st.integers(1, 3),  # its length: another one is another version
    ),
    max_size=6,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    batches=st.lists(ARRIVALS, min_size=2, max_size=4),
    late_after=st.sampled_from([None, timedelta(hours=2)]),
    settle=st.sampled_from([None, timedelta(minutes=45)]),
    on_overwrite=st.sampled_from(["reprocess", "ignore"]),
    recursive=st.booleans(),
    back_to=st.sampled_from([None, None, 0, 1]),
)
def test_what_is_pending_is_what_the_next_run_plans(
    batches: list[list[tuple[str, int, int]]],
    late_after: timedelta | None,
    settle: timedelta | None,
    on_overwrite: str,
    recursive: bool,
    back_to: int | None,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = BookmarkStore(SqliteTable(":memory:"), "test", clock=lambda: NOON)
        store.init()
        shop = Shop(Path(folder), store)
        shop.raw.mkdir()
        options: dict[str, Any] = {"late_after": late_after, "settle": settle, "on_overwrite": on_overwrite}
        options["recursive"] = recursive
        if not recursive:  # Spark takes a folder with partitions and files beside them for a mistake
            batches = [[(n, t, s) for n, t, s in batch if "=" not in n] for batch in batches]
        for number, batch in enumerate(batches):
            for name, age, length in batch:
                shop.put(name, "x" * length, seconds=int(NOON.timestamp()) - age * 1800)
            if number == 2 and back_to is not None:
                _ = reset(store, "copy", **WHY) if back_to == 0 else rewind(store, "copy", back_to, **WHY)
            seen = pending(store, "copy") if number else None
            plan = read(shop, **options)
            if seen is None:
                continue
            told = seen.contexts[0].plan
            assert isinstance(told, FilePlan)
            assert list(told.files) == list(plan.files)
            assert (told.listed, told.known, told.skipped) == (plan.listed, plan.known, plan.skipped)
            assert {k: list(v) for k, v in told.unread.items()} == {k: list(v) for k, v in plan.unread.items()}
            named = {reason: count for reason, count in plan.skipped.items() if reason not in ("hidden", "nested")}
            assert {reason: len(files) for reason, files in left_out(told).items()} == named
            assert seen.is_empty == plan.is_empty


def test_partition_that_the_schema_names_is_planned_as_by_the_run(shop: Shop) -> None:
    shop.put("month=1/a.txt", "a")
    read(shop, named=["MONTH", "other"])
    shop.put("month=x/b.txt", "b")
    assert names(pending(shop.store, "copy")) == ["b.txt"]
    read(shop, named=["month"])


# ---- what a run reads from other jobs


def test_runs_of_an_upstream_are_pending(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run("up")
    shop.run("down", upstream="up")
    for name in "bc":
        shop.put(f"{name}.txt", name, "second")
        shop.run("up")
    shop.run("up")

    context = pending(shop.store, "down").contexts[0]

    assert (context.runs, context.files, context.rows) == ((2, 3, 4), 2, 4)
    assert context.as_dict()["upstream"] == "up"
    shop.run("down", upstream="up")
    assert pending(shop.store, "down").is_empty


STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["publish", "empty", "consume", "reset down", "reset up", "die"]), st.just(0)),
        st.tuples(st.sampled_from(["rewind up", "rewind down"]), st.integers(1, 4)),
    ),
    min_size=2,
    max_size=9,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS)
def test_what_is_pending_of_an_upstream_is_what_the_next_run_plans(steps: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = BookmarkStore(SqliteTable(":memory:"), "test")
        store.init()
        shop = Shop(Path(folder), store)
        shop.raw.mkdir()
        for job, upstream in (("up", None), ("down", "up")):
            shop.put("first.txt", "a")
            shop.run(job, upstream=upstream)
        for number, (step, run_number) in enumerate(steps):
            step_of(shop, step, run_number, f"{number}.txt")

        (told,) = pending(store, "down").contexts
        run, source = shop.begin("down"), UpstreamSource(store, "down", "up")
        if told.plan is None:
            with pytest.raises(SourceError) as raised:
                run.plan("raw", source)
            assert told.unknown == str(raised.value)
        else:
            plan = run.plan("raw", source)
            assert isinstance(told.plan, FilePlan)
            assert list(told.plan.files) == list(plan.files)
            assert list(told.runs) == plan.stats()["upstream"]["runs"]
        run.abort("a test")


def step_of(shop: Shop, step: str, run_number: int, name: str) -> None:
    """Do one thing to the upstream or the consumer; what can't be done now is left."""
    what, _, job = step.partition(" ")
    if what in ("publish", "empty"):
        if what == "publish":
            shop.put(name, "a line")
        shop.run("up")
    elif what == "die":
        shop.put(name, "a line")
        die(shop, Failpoint.COMMITTED, "up")
    elif what == "consume":
        run = shop.begin("down")
        run.plan("raw", UpstreamSource(shop.store, "down", "up", on_rewind="ignore"))
        run.commit()
    elif what == "reset":
        reset(shop.store, job, force=True, **WHY)
    else:
        with contextlib.suppress(RunUnknownError):
            rewind(shop.store, job, run_number, force=True, **WHY)


def test_empty_runs_of_an_upstream_are_nothing_new(shop: Shop) -> None:
    shop.run("up")
    shop.run("down", upstream="up")
    shop.run("up")
    assert pending(shop.store, "down").is_empty


def test_rows_are_not_made_up_where_some_were_replaced(shop: Shop) -> None:
    shop.mode = Mode.OVERWRITE_PARTITIONS
    shop.run("up")
    shop.run("down", upstream="up")
    for lines in (["a"], ["a", "b"]):
        shop.put("a.txt", *lines)
        shop.run("up")
    context = pending(shop.store, "down").contexts[0]
    assert (context.files, context.rows, context.as_dict()["skipped"]) == (1, None, {"replaced": 1})


def test_upstream_that_went_back_is_said(shop: Shop) -> None:
    for name in "ab":
        shop.put(f"{name}.txt", name)
        shop.run("up")
        shop.run("down", upstream="up")
    rewind(shop.store, "up", 1, **WHY)
    found = pending(shop.store, "down")
    assert found.is_empty is False
    assert str(found.contexts[0].unknown).startswith("REWOUND")


# ---- what is not known


def test_job_that_has_never_run_is_not_known_rather_than_empty(shop: Shop) -> None:
    found = pending(shop.store, "no.such")
    assert (found.is_empty, found.is_known) == (False, False)
    assert "never run" in str(found.unknown)


def test_job_whose_first_run_failed_shows_what_it_planned_and_that_there_may_be_more(shop: Shop) -> None:
    shop.put("a.txt", "a")
    run = shop.begin()
    shop.copy(run)
    run.abort("a test")
    found = pending(shop.store, "copy")
    assert (names(found), found.is_known, found.is_empty) == (["a.txt"], False, False)
    assert "none has committed" in str(found.unknown)


def test_context_that_always_was_empty_is_looked_at_as_well(shop: Shop) -> None:
    shop.run()
    assert pending(shop.store, "copy").is_empty
    shop.put("a.txt", "a")
    assert names(pending(shop.store, "copy")) == ["a.txt"]


def test_context_that_the_last_run_left_out_is_still_looked_at(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    shop.begin().commit()
    shop.put("b.txt", "b")
    assert names(pending(shop.store, "copy")) == ["b.txt"]


def test_run_that_read_nothing_under_a_bookmark_says_nothing_of_the_next(shop: Shop) -> None:
    shop.begin().commit()
    assert pending(shop.store, "copy").is_empty is False


def test_source_whose_options_were_not_recorded_is_not_known(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    run = shop.store.committed_run("copy", 1)
    assert run is not None
    key = shop.store.keys("copy").run(run.key)
    value: Any = shop.store.table.get([key])[key]["plan:raw"]
    del value["facts"]["options"]
    shop.store.table.transact([Update(key, set={"plan:raw": value})])
    found = pending(shop.store, "copy")
    assert (found.is_empty, "did not record" in str(found.contexts[0].unknown)) == (False, True)


def test_source_that_the_last_run_switched_to_is_the_one_that_is_looked_at(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    other = shop.root / "other"
    other.mkdir()
    (other / "b.txt").write_text("b")
    run = shop.begin()
    run.plan("raw", FileSource(FILES, [str(other)]), on_source_change="reset")
    run.abort("a test")
    assert names(pending(shop.store, "copy")) == ["b.txt"]


def test_switch_that_no_run_has_decided_on_is_an_error_as_in_the_run(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    reset(shop.store, "copy", **WHY)
    other = shop.root / "other"
    other.mkdir()
    run = shop.begin()
    run.plan("raw", FileSource(FILES, [str(other)]))
    run.abort("a test")
    undo(shop.store, "copy", **WHY)
    assert "on_source_change" in str(pending(shop.store, "copy").contexts[0].unknown)


# ---- what is due


def test_publish_that_is_due_is_pending(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    shop.put("b.txt", "b")
    die(shop, Failpoint.COMMITTED)
    found = pending(shop.store, "copy")
    assert (found.is_empty, found.as_dict()["due_run_number"], found.contexts[0].files) == (False, 2, 0)
    shop.run()
    assert pending(shop.store, "copy").is_empty


def test_run_that_a_dead_driver_left_open_is_pending(shop: Shop) -> None:
    shop.run()
    die(shop, Failpoint.PLANNED)
    found = pending(shop.store, "copy")
    assert (found.is_empty, len(found.left_open), found.holder) == (False, 1, None)
    shop.run()
    assert pending(shop.store, "copy").is_empty


def test_run_that_is_at_work_is_named_and_not_taken_for_dead(shop: Shop) -> None:
    shop.run()
    shop.put("a.txt", "a")
    run = shop.begin(run_id="at work")
    shop.copy(run)
    found = pending(shop.store, "copy")
    assert (found.holder, found.left_open, found.contexts[0].files) == ("at work", (), 1)
    run.commit()


def test_run_whose_lease_has_run_out_is_taken_for_dead(tmp_path: Path) -> None:
    clock = [NOON]
    store = BookmarkStore(SqliteTable(":memory:"), "test", clock=lambda: clock[0])
    store.init()
    shop = Shop(tmp_path, store)
    shop.put("a.txt", "a")
    run = shop.begin(run_id="at work")
    shop.copy(run)
    assert (pending(store, "copy").holder, pending(store, "copy").left_open) == ("at work", ())
    clock[0] += timedelta(hours=1)
    assert (pending(store, "copy").holder, len(pending(store, "copy").left_open)) == (None, 1)
    run.abort("a test")


def test_clean_that_is_due_is_pending(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    reset(shop.store, "copy", clean=True, **WHY)
    (shop.raw / "a.txt").unlink()
    found = pending(shop.store, "copy")
    assert (found.is_empty, found.is_cleaning, found.contexts[0].files) == (False, True, 0)


# ---- what is up to the script


def read_by(shop: Shop, options: FileOptions = FileOptions(), globs: Sequence[str] = ()) -> None:  # noqa: B008
    run = shop.begin()
    run.plan("raw", FileSource(FILES, [] if globs else [str(shop.raw)], options, globs=globs))
    run.commit()


def test_pattern_is_up_to_the_script_though_nothing_new_matches_it(shop: Shop) -> None:
    shop.put("a-1.txt", "a")
    read_by(shop, globs=[f"{shop.raw}/a-*"])
    shop.put("b-1.txt", "b")

    found = pending(shop.store, "copy")

    assert found.is_empty
    assert "it reads by pattern" in str(found.contexts[0].up_to_script)
    assert commit_empty(shop.store, "copy", shop.identity(), shop.environment) is None


def test_partitions_that_a_catalog_lists_are_known_to_the_script_alone(shop: Shop) -> None:
    shop.put("day-1/a.txt", "a")
    listed = ListedPartitions({"day": "string"}, {f"{shop.raw}/day-1": ("1",)})
    run = shop.begin()
    run.plan("raw", FileSource(FILES, [str(shop.raw)], listed=listed))
    run.commit()
    shop.put("day-2/b.txt", "b")  # of a partition that the catalog has got since

    found = pending(shop.store, "copy")

    [context] = found.contexts
    assert (found.is_empty, found.is_known, context.plan) == (False, False, None)
    assert context.unknown == "a catalog lists its partitions, and only the script, in Spark, asks it for new ones"
    assert context.as_dict()["recorded_by"] == 1
    assert commit_empty(shop.store, "copy", shop.identity(), shop.environment) is None
    assert shop.store.head("copy").run_number == 1


def test_partitions_that_are_too_old_are_not_up_to_the_script(shop: Shop) -> None:
    by_age = FileOptions(partition_time="dt", late_after=timedelta(days=2))
    for day in (1, 20):
        shop.put(f"dt=2023-11-{day:02}/a.txt", "a")
    read_by(shop, by_age)

    found = pending(shop.store, "copy")

    [context] = found.contexts
    assert isinstance(context.plan, FilePlan)
    assert context.plan.partitions is not None
    assert (context.plan.partitions.pruned, context.up_to_script) == (1, None)
    assert commit_empty(shop.store, "copy", shop.identity(), shop.environment) is not None


def test_file_that_is_left_out_after_the_first_look_is_up_to_the_script(shop: Shop) -> None:
    shop.put("a.txt", "a")
    read_by(shop, FileOptions(exclusions=["*.bak"]))
    assert pending(shop.store, "copy").contexts[0].up_to_script is None
    shop.put("b.bak", "b")

    assert commit_empty(shop.store, "copy", shop.identity(), shop.environment) is None

    [failed] = [run for run in shop.store.runs("copy") if run.error]
    assert "1 files are excluded, which the script decides" in str(failed.error)
    assert shop.store.head("copy").lease is None


def test_job_whose_filter_is_made_from_the_day_reads_each_day(shop: Shop) -> None:
    for day in ("2026-11-01", "2026-11-02", "2026-11-03"):
        shop.put(f"dt={day}/a.txt", day)
        if shop.store.snapshot("copy").head is not None:
            assert commit_empty(shop.store, "copy", shop.identity(), shop.environment) is None
        run = shop.begin()
        options = FileOptions(partition_filter=f"dt = '{day}'")
        plan = run.plan("raw", FileSource(FILES, [str(shop.raw)], options))
        run.commit()
        assert [Path(path).parent.name for path in plan.files.paths] == [f"dt={day}"]


# ---- what is not known


def test_amount_that_is_not_known_is_not_said_to_be_nothing(shop: Shop) -> None:
    context = PendingContext("raw", "files", f"files:{shop.raw}", unknown="no run is left that says how it was read")
    assert (context.files, context.amount, context.amount_in_words) == (None, None, "not known")


def test_job_that_keeps_state_alone_is_said_to_do_so(shop: Shop) -> None:
    run = shop.begin("poll")
    run.state("cursor").set("7")
    run.commit()

    found = pending(shop.store, "poll")

    assert (found.is_known, found.is_empty, found.contexts) == (False, False, ())
    assert found.unknown == "the job has only job.state and no contexts: what it would read only its script knows"
