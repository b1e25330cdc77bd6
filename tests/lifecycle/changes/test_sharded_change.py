"""Promises of changes of a sharded job: looked at and asked for as one, made shard by shard, each with its event."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.cli.output.change_preview import in_lines
from airflow_bookmarks.core.errors import (
    ChangedMeanwhileError,
    JobUnknownError,
    OptionError,
    ProtectedError,
    RunUnknownError,
    ShardsBusyError,
    ShardsLeftError,
)
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.rules.shard import shard_name, shard_names, shards
from airflow_bookmarks.core.text.identity import Identity
from airflow_bookmarks.lifecycle.changes.approval import protect
from airflow_bookmarks.lifecycle.changes.change import Change, ChangeOutcome, reset
from airflow_bookmarks.lifecycle.changes.sharded_change import (
    ShardedChanged,
    ShardedChangePreview,
    change_job,
    preview_job,
)
from airflow_bookmarks.lifecycle.history.shards import shards_of
from airflow_bookmarks.lifecycle.inspect.runs import history
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.sinks.registry import SINKS
from airflow_bookmarks.sinks.staging import Staged, StagingRequest
from tests.lifecycle.parcels import Parcels
from tests.lifecycle.run.test_shards import JOB, Task, numbers_of, put
from tests.lifecycle.shop import Shop

ASKED: dict[str, Any] = {"reason": "wrong delivery", "who": "ada"}
RESET = Change("reset")


BEGUN = 12
NAMES = [shard_name(JOB, number) for number in range(BEGUN)]
RANGE = f"0:{BEGUN}"


def sharded(shop: Shop) -> tuple[Task, Counter[str]]:
    """Copy 40 files by the first shards, of which some find nothing; return the task and the lines that were read."""
    task = Task(shop)
    put(shop, [f"f{i}" for i in range(40)])
    return task, Counter(task.run(RANGE))


def test_lines_of_a_preview_are_escaped(shop: Shop) -> None:
    sharded(shop)
    seen = preview_job(shop.store, JOB, RESET).as_dict()
    seen |= {"consumers": {"report\x1b[2J\nbookmark copy: reset": 1}, "holders": {NAMES[0]: "/a\u202eb"}}
    lines = in_lines("test", seen, RESET)
    assert any("report" in line for line in lines)
    assert all(line.isprintable() for line in lines)


def kinds(shop: Shop, number: int) -> list[str]:
    return [str(event["kind"]) for event in shop.store.events(shard_name(JOB, number))]


def look(shop: Shop, change: Change = RESET) -> ShardedChangePreview:
    seen = preview_job(shop.store, JOB, change)
    assert isinstance(seen, ShardedChangePreview)
    return seen


def make(shop: Shop, change: Change = RESET, **terms: Any) -> ShardedChanged:
    done = change_job(shop.store, JOB, change, **{**ASKED, **terms})
    assert isinstance(done, ShardedChanged)
    return done


# ---- reset


def test_reset_of_a_sharded_job_takes_all_of_its_shards_back(shop: Shop) -> None:
    task, lines = sharded(shop)

    done = make(shop)

    assert list(done.shards) == NAMES
    assert all(kinds(shop, number) == ["reset"] for number in range(BEGUN))
    assert Counter(task.run(RANGE)) == lines


def test_preview_of_a_sharded_job_has_the_sums_and_each_shard(shop: Shop) -> None:
    _, lines = sharded(shop)

    seen = look(shop).as_dict()

    assert (seen["shards"], seen["undone_run_count"], seen["read_again"]["files"]) == (BEGUN, BEGUN, lines.total())
    by_number = Counter(numbers_of(shop, [f"f{i}" for i in range(40)]))
    files = {shard: each["read_again"]["files"] for shard, each in seen["by_shard"].items()}
    assert files == {shard_name(JOB, number): by_number[number] for number in range(BEGUN)}
    assert seen["written_twice"] == [str(shop.root / JOB)]
    assert seen["version"] == sum(head.version for head in shop.store.heads(NAMES).values())


def test_preview_of_a_sharded_job_sums_what_is_not_counted_in_files_by_its_unit(shop: Shop) -> None:
    sharded(shop)
    seen = look(shop)
    amounts: list[dict[str, int | None]] = [{"keys": 2}, {"keys": 3, "messages": None}, *[{} for _ in range(BEGUN - 2)]]
    shards = {shard: replace(each, amounts=of) for (shard, each), of in zip(seen.shards.items(), amounts, strict=True)}

    told = replace(seen, shards=shards).as_dict()

    assert told["read_again"]["amounts"] == {"keys": 5, "messages": None}


def test_reset_again_changes_nothing(shop: Shop) -> None:
    sharded(shop)
    make(shop)

    again = make(shop)

    assert (again.shards, len(again.unchanged)) == ({}, BEGUN)
    assert kinds(shop, 5) == ["reset"]


def test_reset_with_clean_removes_what_the_shards_published(shop: Shop) -> None:
    task, lines = sharded(shop)

    done = make(shop, Change("reset", clean=True))

    assert done.as_dict()["files_to_clean"] == lines.total()
    assert done.as_dict()["outputs_to_clean"] == 0
    assert Counter(task.run(RANGE)) == lines == shop.target_lines()


def test_reset_with_clean_takes_what_a_reset_without_it_has_left(shop: Shop) -> None:
    task, lines = sharded(shop)
    make(shop)

    make(shop, Change("reset", clean=True))

    assert Counter(task.run(RANGE)) == lines == shop.target_lines()


def test_reset_with_clean_takes_what_a_reset_without_it_has_left_in_other_sinks(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parcels = Parcels(tmp_path / "parcels.db")
    monkeypatch.setitem(SINKS.sinks, Parcels.kind, parcels)

    class ToParcels(Task):
        def copy(self, run: ActiveRun, number: int, plan: FilePlan) -> list[str]:
            rows = [line for path in plan.files.paths for line in Path(path).read_text().splitlines()]
            parcels.put(run.place("out", StagingRequest(Parcels.kind, "dw.clean")), rows)
            run.staged("out", Staged((), rows=len(rows)))
            return rows

    task = ToParcels(shop)
    lines = put(shop, [f"f{i}" for i in range(40)])
    task.run("0:64")
    change_job(shop.store, JOB, RESET, **ASKED)

    done = make(shop, Change("reset", clean=True)).as_dict()

    assert (done["files_to_clean"], done["outputs_to_clean"]) == (0, done["shards"])
    task.run("0:64")
    assert Counter(parcels.visible()) == lines


def test_shard_that_a_run_holds_keeps_all_of_them_from_being_changed(shop: Shop) -> None:
    sharded(shop)
    run = shop.begin(shard_name(JOB, 7))

    with pytest.raises(
        ShardsBusyError, match=r"a run holds one of its virtual shards: 'copy~07'.*Nothing was changed in any shard"
    ):
        make(shop)

    assert [kinds(shop, number) for number in (0, 7, 11)] == [[], [], []]
    run.abort("over")


def test_force_fences_the_runs_that_hold_shards(shop: Shop) -> None:
    sharded(shop)
    shop.begin(shard_name(JOB, 7))
    assert look(shop).as_dict()["holders"] == {"copy~07": f"manual/{BEGUN + 1}"}

    assert len(make(shop, force=True).shards) == BEGUN


def test_protected_shard_keeps_all_of_them_from_being_changed(shop: Shop) -> None:
    sharded(shop)
    protect(shop.store, shard_name(JOB, 3), reason="careful", who=Identity("ada", True, "os"))

    with pytest.raises(ProtectedError, match=r"copy~03 is protected.*Nothing was changed in any shard"):
        make(shop)

    assert kinds(shop, 0) == []


def test_sharded_job_that_moved_since_the_preview_is_not_changed(shop: Shop) -> None:
    task, _ = sharded(shop)
    version = look(shop).version
    task.run(f"{BEGUN}:{BEGUN + 1}")  # a shard that had not begun

    with pytest.raises(ChangedMeanwhileError, match="Look again"):
        make(shop, expected_version=version)

    assert len(make(shop, expected_version=look(shop).version).shards) == BEGUN + 1


class Meddler:
    """Lets somebody take a shard between the look at it and its change."""

    def __init__(self, shop: Shop, number: int) -> None:
        self.shop, self.number, self.begin_timeline = shop, number, shop.store.begin_timeline

    def __call__(self, job: str, *args: Any, **kwargs: Any) -> Any:
        if job == shard_name(JOB, self.number - 1):
            self.shop.begin(shard_name(JOB, self.number))
        return self.begin_timeline(job, *args, **kwargs)


def test_shard_that_is_refused_half_way_is_named_and_taken_by_the_next_call(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    sharded(shop)
    with monkeypatch.context() as patch:
        patch.setattr(shop.store, "begin_timeline", Meddler(shop, 5))
        with pytest.raises(ShardsLeftError, match=r"made in 11 of its virtual shards, and not in 1: copy~05") as raised:
            make(shop)
    assert (raised.value.left, len(raised.value.done)) == (("copy~05",), BEGUN - 1)

    again = make(shop, force=True)

    assert list(again.shards) == ["copy~05"]
    assert [kinds(shop, number) for number in (4, 5, 6)] == [["reset"], ["reset"], ["reset"]]


def test_reset_of_a_context_takes_the_shards_that_have_it(shop: Shop) -> None:
    task, lines = sharded(shop)

    with_files = {number for number in numbers_of(shop, [f"f{i}" for i in range(40)]) if number < BEGUN}

    assert set(make(shop, Change("reset", contexts=("raw",))).shards) == {shard_name(JOB, i) for i in with_files}
    assert Counter(task.run(RANGE)) == lines
    with pytest.raises(OptionError, match="none of its shards has a context 'other'"):
        make(shop, Change("reset", contexts=("other",)))


def test_job_that_is_whole_is_changed_as_before(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run(JOB)

    done = change_job(shop.store, JOB, RESET, **ASKED)

    assert isinstance(done, ChangeOutcome)
    assert shop.run(JOB)[0] == ["a"]
    with pytest.raises(JobUnknownError):
        preview_job(shop.store, "never", RESET)


def test_whole_that_was_reset_gives_way_to_shards_that_have_read(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run(JOB)
    reset(shop.store, JOB, **ASKED)
    assert shards_of(shop.store, JOB) == []

    Task(shop).run_all(shards(1))

    assert shards_of(shop.store, JOB) == shard_names(JOB)
    make(shop)
    assert shards_of(shop.store, JOB) == []  # nothing of either is left, and the whole was there first


# ---- rewind


def twice(shop: Shop) -> tuple[Task, Counter[str]]:
    """Copy 40 files and 40 more by the first shards, in two DAG runs of two mapped tasks; return the later lines."""
    task = Task(shop)
    put(shop, [f"a{i}" for i in range(40)])
    of_dag_run(task, "monday")
    put(shop, [f"b{i}" for i in range(40)])
    return task, of_dag_run(task, "tuesday")


def of_dag_run(task: Task, dag_run: str) -> Counter[str]:
    lines: list[str] = []
    for number in range(BEGUN):
        run = task.shop.begin(shard_name(JOB, number), f"ops/{dag_run}/copy/{number % 2}")
        lines += task.copy(run, number, run.plan("raw", task.source(number)))
        run.commit()
    return Counter(lines)


def to(point: str) -> Change:
    return Change("rewind", to_run=point)


def test_rewind_to_a_dag_run_keeps_what_its_mapped_tasks_committed_in_each_shard(shop: Shop) -> None:
    task, later = twice(shop)
    task.run("3:4")  # one shard has a run more, so numbers differ

    seen = look(shop, to("ops/monday/copy")).as_dict()
    done = make(shop, to("ops/monday/copy"))

    assert seen["undone_run_count"] == BEGUN + 1
    assert {each.kept for each in done.shards.values()} == {1}
    assert Counter(task.run(RANGE)) == later


def test_rewind_to_a_time_keeps_what_each_shard_had_committed_by_then(shop: Shop) -> None:
    task, later = twice(shop)
    at = max(run["committed_at"] for name in NAMES for run in history(shop.store, name)[:1])
    more = Counter(task.run(f"{BEGUN}:{BEGUN + 1}"))  # began after that time

    done = make(shop, to(at))

    assert {shard: each.kind for shard, each in done.shards.items() if each.kind != "rewind"} == {"copy~12": "reset"}
    assert Counter(task.run(f"0:{BEGUN + 1}")) == later + more
    with pytest.raises(RunUnknownError, match="no virtual shard has a run at or before"):
        make(shop, to("2013-01-31T00:00:00Z"))


def test_rewind_again_changes_nothing(shop: Shop) -> None:
    twice(shop)
    make(shop, to("ops/monday/copy"))

    assert make(shop, to("ops/monday/copy")).shards == {}


def test_rewind_to_a_run_number_or_watermark_of_a_sharded_job_is_refused(shop: Shop) -> None:
    sharded(shop)

    with pytest.raises(OptionError, match="run 1 is another one in each of its virtual shards"):
        look(shop, to("1"))
    with pytest.raises(OptionError, match="have a watermark each"):
        look(shop, to("watermark:2013-01-31T00:00:00Z"))


def test_rewind_to_one_of_several_mapped_tasks_names_the_shards_that_it_did_not_work_on(shop: Shop) -> None:
    twice(shop)

    with pytest.raises(RunUnknownError, match="no run in 6 of 12 virtual shards: copy~01, copy~03"):
        look(shop, to("ops/monday/copy/0"))
    with pytest.raises(RunUnknownError, match="no committed run 'ops/sunday/copy'"):
        look(shop, to("ops/sunday/copy"))
    assert kinds(shop, 0) == []
