"""A job that is run over what arrives: what each run has done, also after a crash at each point of the protocol."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.errors import MisuseError, OptionError, SourceChangedError
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.environment import EnvironmentStore, environment_of, runs_in
from airflow_bookmarks.sources.registry import registered
from airflow_bookmarks.spark import BookmarkedJob
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.testing import (
    Arrival,
    Failpoint,
    RunResults,
    RunSetup,
    assert_each_row_once,
    files,
    memory_store,
    run_over,
)
from airflow_bookmarks.testing.fixtures import bookmark_store
from tests.lifecycle.shop import Shop
from tests.lifecycle.sqlite_keys import KeyKind, KeySource, keys_of, make_table, put

__all__ = ["bookmark_store"]

ARRIVALS = [
    [files.new("a.txt", [{"value": "a1"}, {"value": "a2"}]), files.new("b.txt", [{"value": "b"}])],
    [files.late("late.txt", [{"value": "late"}]), files.tied("tied.txt", [{"value": "tied"}])],
    files.new("c.txt", [{"value": "c"}]),
]
BEFORE_COMMIT = list(Failpoint)[: list(Failpoint).index(Failpoint.COMMITTED)]


def shop_of(run: RunSetup) -> Shop:
    """Return the shop whose raw folder is that of the test, on the machine that the store brings."""
    return Shop(run.folder.parent, run.store, environment_of(run.store, run.attempt))


def copy(run: RunSetup) -> list[str]:
    """Copy the lines of new files, without Spark: the job under test."""
    return shop_of(run).run("copy", run.run_id, run.attempt)[0]


def copied(store: BookmarkStore, folder: Path) -> list[Mapping[str, object]]:
    """Return what lies in the target."""
    return [{"value": line} for line in Shop(folder, store).target_lines().elements()]


def play(store: BookmarkStore, tmp_path: Path, arrivals: Sequence[Any] = ARRIVALS, **kwargs: Any) -> RunResults:
    job: Callable[[RunSetup], object] = kwargs.pop("job", copy)
    return run_over(job, arrivals, store=store, folder=tmp_path / "raw", **kwargs)


# ---- what a run did


def test_each_run_tells_what_it_read_committed_and_published(bookmark_store: BookmarkStore, tmp_path: Path) -> None:
    first, second, third = play(bookmark_store, tmp_path)

    assert [set(run.read["raw"]) for run in (first, second, third)] == [
        {"a.txt", "b.txt"}, {"late.txt", "tied.txt"}, {"c.txt"}
    ]  # fmt: skip
    assert [(run.step, run.attempt) for run in (first, second, third)] == [(1, 1), (2, 1), (3, 1)]
    assert [(run.committed, run.published) for run in (first, second, third)] == [
        ((1,), (1,)), ((2,), (2,)), ((3,), (3,))
    ]  # fmt: skip
    assert first.is_committed
    assert first.is_published
    assert first.rows_written == {"out": 3}
    assert first.rows_read == {"raw": None}
    assert len(first.visible["out"]) == 2
    assert all("run-1." in name for name in first.visible["out"])
    assert sorted(first.returned) == ["a1", "a2", "b"]  # type: ignore[call-overload]


def test_summary_is_that_of_the_job(bookmark_store: BookmarkStore, tmp_path: Path) -> None:
    def job(run: RunSetup) -> dict[str, Any]:
        return shop_of(run).run("copy", run.run_id, run.attempt)[1].as_dict()

    for run in play(bookmark_store, tmp_path, job=job):
        assert run.summary == run.returned


def test_run_with_nothing_new_is_committed_and_reads_nothing(bookmark_store: BookmarkStore, tmp_path: Path) -> None:
    first, second = play(bookmark_store, tmp_path, [ARRIVALS[0], []])
    assert first.summary is not None
    assert second.summary is not None
    assert (first.summary["is_empty"], second.summary["is_empty"]) == (False, True)
    assert (second.read, second.visible, second.is_committed) == ({"raw": ()}, {"out": ()}, True)


def test_rows_that_arrived_and_those_that_are_there_differ_by_what_was_overwritten(
    bookmark_store: BookmarkStore, tmp_path: Path
) -> None:
    results = play(bookmark_store, tmp_path, [ARRIVALS[0], files.overwritten("a.txt", [{"value": "A"}])])

    assert Counter(str(row["value"]) for row in results.arrived_rows) == Counter(["a1", "a2", "b", "A"])
    assert Counter(str(row["value"]) for row in results.current_rows) == Counter(["A", "b"])
    assert_each_row_once(results.arrived_rows, copied(bookmark_store, tmp_path))
    with pytest.raises(AssertionError, match="a1"):
        assert_each_row_once(results.current_rows, copied(bookmark_store, tmp_path))


def test_what_a_run_leaves_out_is_counted(bookmark_store: BookmarkStore, tmp_path: Path) -> None:
    hidden = Arrival("_note.txt", (), lambda folder: (folder / "_note.txt").write_text("no"))
    (run,) = play(bookmark_store, tmp_path, [[hidden, files.new("a.txt", [{"value": "a"}])]])
    assert run.skipped == {"raw": {"hidden": 1}}


def test_pause_reads_and_commits_nothing(bookmark_store: BookmarkStore, tmp_path: Path) -> None:
    def job(run: RunSetup) -> None:
        shop = shop_of(run)
        side = shop.side()
        shop.copy(side)
        side.commit()

    (run,) = play(bookmark_store, tmp_path, [ARRIVALS[0]], job=job)
    assert (run.read, run.rows_written) == ({"raw": ("a.txt", "b.txt")}, {"out": 3})
    assert (run.committed, run.published, run.summary, run.is_published) == ((), (), None, False)


def test_results_are_a_sequence(bookmark_store: BookmarkStore, tmp_path: Path) -> None:
    results = play(bookmark_store, tmp_path)
    assert len(results) == 3
    assert results[-1].step == 3
    assert [run.step for run in results[1:]] == [2, 3]


def test_second_call_goes_on_where_the_first_has_ended(bookmark_store: BookmarkStore, tmp_path: Path) -> None:
    play(bookmark_store, tmp_path, ARRIVALS[:2], crash_at="committed")
    (run,) = play(bookmark_store, tmp_path, ARRIVALS[2:])
    assert run.read == {"raw": ("c.txt",)}


# ---- crashes


@pytest.mark.parametrize("point", Failpoint)
def test_crash_at_each_point_of_each_step_leaves_each_row_once(
    bookmark_store: BookmarkStore, tmp_path: Path, point: Failpoint
) -> None:
    results = play(bookmark_store, tmp_path, crash_at=point)

    assert [(run.step, run.attempt) for run in results] == [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2)]
    assert [run.crashed_at for run in results] == [point, None] * 3
    assert_each_row_once(results.arrived_rows, copied(bookmark_store, tmp_path))
    head = bookmark_store.head("copy")
    assert (head.publishing, head.lease, head.published) == (None, None, head.run_number)


@pytest.mark.parametrize("point", BEFORE_COMMIT)
def test_crash_before_the_commit_commits_nothing_and_the_next_try_reads_the_same(
    bookmark_store: BookmarkStore, tmp_path: Path, point: Failpoint
) -> None:
    crashed, again = play(bookmark_store, tmp_path, ARRIVALS[:1], crash_at=point)
    assert (crashed.committed, crashed.published, crashed.summary) == ((), (), None)
    assert (again.read, again.committed, again.published) == ({"raw": ("a.txt", "b.txt")}, (1,), (1,))


@pytest.mark.parametrize("point", [Failpoint.COMMITTED, Failpoint.PUBLISHING, Failpoint.MOVED, Failpoint.PUBLISHED])
def test_crash_between_commit_and_publish_is_finished_by_the_next_try(
    bookmark_store: BookmarkStore, tmp_path: Path, point: Failpoint
) -> None:
    crashed, again = play(bookmark_store, tmp_path, ARRIVALS[:1], crash_at=point.value)
    assert (crashed.committed, crashed.is_committed, crashed.is_published) == ((1,), True, False)
    assert (again.read, again.committed, again.published) == ({"raw": ()}, (2,), (1, 2))
    assert len(again.visible["out"]) == 2


def test_dead_driver_reaches_its_store_no_more(bookmark_store: BookmarkStore, tmp_path: Path) -> None:
    left: list[str] = []

    def tidies_up(run: RunSetup) -> None:
        try:
            copy(run)
        finally:
            if run.attempt == 1:
                left.append("reached")
                run.store.head("copy")

    crashed, again = play(bookmark_store, tmp_path, ARRIVALS[:1], job=tidies_up, crash_at=Failpoint.STAGED)
    assert (left, crashed.crashed_at, crashed.error) == (["reached"], Failpoint.STAGED, None)
    assert again.committed == (1,)


def test_script_that_handles_all_errors_dies_as_well(bookmark_store: BookmarkStore, tmp_path: Path) -> None:
    def swallows(run: RunSetup) -> None:
        try:
            copy(run)
        except Exception as error:  # noqa: BLE001 - a script that handles all errors is what this is about
            print(error)

    crashed, _ = play(bookmark_store, tmp_path, ARRIVALS[:1], job=swallows, crash_at=Failpoint.STAGED)
    assert (crashed.crashed_at, crashed.committed) == (Failpoint.STAGED, ())


def test_job_of_its_own_run_ids_is_not_held_by_the_dead_try(bookmark_store: BookmarkStore, tmp_path: Path) -> None:
    def job(run: RunSetup) -> None:
        with BookmarkedJob(name="counter", store=run.store) as counter:
            counter.state("runs").set(counter.state("runs").get(0) + 1)

    results = play(bookmark_store, tmp_path, [[], []], job=job, crash_at=Failpoint.BEFORE_COMMIT)
    assert [run.committed for run in results] == [(), (1,), (), (2,)]


def test_crash_that_never_comes_is_an_error(bookmark_store: BookmarkStore, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"'moved': none of the 1 runs came by that point.*let something arrive"):
        play(bookmark_store, tmp_path, [[]], crash_at="moved")


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("point", [Failpoint.BEFORE_COMMIT, Failpoint.MOVED])
def test_history_with_crashes_leaves_each_row_once(
    bookmark_store: BookmarkStore, tmp_path: Path, seed: int, point: Failpoint
) -> None:
    history = files.history(6, lambda number: {"value": f"row {number}"}, seed=seed, suffix=".txt")
    assert_each_row_once(
        play(bookmark_store, tmp_path, history, crash_at=point).arrived_rows, copied(bookmark_store, tmp_path)
    )


# ---- a source of one's own


@pytest.mark.parametrize(
    ("option", "crash_at", "expected"),
    [
        ("enable", None, [[1], [2]]),
        ("enable", Failpoint.BEFORE_COMMIT, [[1], [2]]),
        ("enable", Failpoint.COMMITTED, [[], []]),
        ("pause", None, [[1], [1, 2]]),
        ("disable", None, [[1], [1, 2]]),
    ],
)
def test_job_with_a_source_of_its_own_is_run_over_what_arrives(
    bookmark_store: BookmarkStore, tmp_path: Path, option: str, crash_at: Failpoint | None, expected: list[list[int]]
) -> None:
    database = str(tmp_path / "crm.db")
    make_table(database)

    def job(run: RunSetup) -> list[int]:
        with BookmarkedJob(name="copy", store=run.store, option=option) as job:
            return keys_of(job.active_run.plan("people", KeySource(database)))

    arrivals = [Arrival(str(key), ({"id": key},), lambda folder, key=key: put(database, key)) for key in (1, 2)]  # type: ignore[misc]
    with registered(KeyKind()):
        results = run_over(job, arrivals, store=bookmark_store, folder=tmp_path / "raw", crash_at=crash_at)
    assert [run.returned for run in results if run.crashed_at is None] == expected
    assert {run.read.get("people", ()) for run in results} == {()}


# ---- what vanishes


def test_what_vanished_is_not_there_under_its_former_content_either(
    bookmark_store: BookmarkStore, tmp_path: Path
) -> None:
    steps = [[files.new("a.txt", [{"value": "a"}])], [files.vanishing("a.txt", [{"value": "b"}])]]
    results = play(bookmark_store, tmp_path, steps, on_error="keep")
    assert not (tmp_path / "raw" / "a.txt").exists()
    assert (results.arrived_rows, results.current_rows) == (({"value": "a"},), ())


VANISHING = [files.new("a.txt", [{"value": "a"}]), files.vanishing("gone.txt", [{"value": "gone"}])]


def test_planned_input_that_vanishes_stops_the_run(bookmark_store: BookmarkStore, tmp_path: Path) -> None:
    def reads(run: RunSetup) -> None:
        shop = shop_of(run)
        active = shop.begin("copy", run.run_id, run.attempt)
        try:
            shop.copy(active)
        except FileNotFoundError as error:
            active.abort(str(error))
            raise SourceChangedError("gone") from error
        active.commit()

    failed, after = play(bookmark_store, tmp_path, [VANISHING, []], job=reads, on_error="keep")

    assert failed.read == {"raw": ("a.txt", "gone.txt")}
    assert (type(failed.error), failed.committed) == (SourceChangedError, ())
    assert (after.read, after.committed) == ({"raw": ("a.txt",)}, (1,))


def test_rows_of_what_vanished_did_not_arrive(bookmark_store: BookmarkStore, tmp_path: Path) -> None:
    def plans(run: RunSetup) -> None:
        shop = shop_of(run)
        active = shop.begin("copy", run.run_id, run.attempt)
        with pytest.raises(FileNotFoundError):
            shop.copy(active)
        active.abort("gone")

    results = play(bookmark_store, tmp_path, [VANISHING], job=plans)
    assert results.arrived_rows == results.current_rows == ({"value": "a"},)
    assert not (tmp_path / "raw" / "gone.txt").exists()


# ---- errors and arguments


def fails(run: RunSetup) -> None:
    run.store.jobs()
    raise LookupError("of the script")


def test_error_of_the_job_ends_the_test_or_is_kept(bookmark_store: BookmarkStore, tmp_path: Path) -> None:
    with pytest.raises(LookupError, match="of the script"):
        play(bookmark_store, tmp_path, [[]], job=fails)
    results = play(bookmark_store, tmp_path, [[], []], job=fails, on_error="keep")
    assert [str(run.error) for run in results] == ["of the script"] * 2


def test_job_that_uses_another_store_is_told(bookmark_store: BookmarkStore, tmp_path: Path) -> None:
    def elsewhere(run: RunSetup) -> None:
        with BookmarkedJob(name="counter", store=bookmark_store) as job:
            job.state("runs").set(1)

    with pytest.raises(MisuseError, match=r"did not use the store.*store=run\.store"):
        play(bookmark_store, tmp_path, [[]], job=elsewhere)


def test_job_that_wants_a_session_is_told_that_there_is_none(bookmark_store: BookmarkStore, tmp_path: Path) -> None:
    with pytest.raises(MisuseError, match=r"run_over\(\.\.\., spark=spark\)"):
        play(bookmark_store, tmp_path, [[]], job=lambda run: run.spark)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"crash_at": "half-way"}, "expected one of taken, recovered"),
        ({"on_error": "ignore"}, "on_error"),
        ({"store": "sqlite:///:memory:"}, "expected an open store.*bookmark_store"),
        ({"folder": "s3://bucket/raw"}, "no local folder.*tmp_path"),
        ({"arrivals": ["a.csv"]}, r"no step of arrivals.*files\.new"),
        ({"arrivals": [[files.new("a.txt"), files.empty("a.txt")]]}, "'a.txt' arrives twice before one run"),
    ],
)
def test_argument_that_means_nothing_is_an_error_and_nothing_arrives(
    bookmark_store: BookmarkStore, tmp_path: Path, given: dict[str, Any], said: str
) -> None:
    whole: dict[str, Any] = {"arrivals": ARRIVALS, "store": bookmark_store, "folder": tmp_path / "raw", **given}
    with pytest.raises(OptionError, match=said):
        run_over(copy, whole.pop("arrivals"), **whole)
    assert not (tmp_path / "raw").exists() or list((tmp_path / "raw").iterdir()) == []
    assert bookmark_store.jobs() == []


# ---- the machine that a store brings


def test_store_without_a_machine_runs_on_this_one(bookmark_store: BookmarkStore) -> None:
    assert environment_of(bookmark_store, 1) == RunEnvironment()


def test_store_that_brings_a_machine_holds_the_run() -> None:
    passed: list[Failpoint] = []
    with memory_store() as plain:
        store = EnvironmentStore(plain.table, plain.namespace)
        store.environment = RunEnvironment(at=passed.append)
        with BookmarkedJob(name="counter", store=store) as job:
            job.state("runs").set(1)
    assert Failpoint.BEFORE_COMMIT in passed
    assert passed[-1] is Failpoint.SWEPT


def test_variable_of_the_process_gives_a_run_no_fault(
    bookmark_store: BookmarkStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AIRFLOW_BOOKMARKS_FAULT", "BOOKMARKS_FAULT"):
        monkeypatch.setenv(name, "before_commit")
    assert environment_of(bookmark_store, 1) == RunEnvironment()


def test_script_that_opens_its_store_itself_works_in_the_environment_of_the_block(tmp_path: Path) -> None:
    passed: list[tuple[int, Failpoint]] = []
    uri = f"sqlite:///{tmp_path}/state.db?create=true"

    def environment(attempt: int) -> RunEnvironment:
        return RunEnvironment(at=lambda point: passed.append((attempt, point)))

    with runs_in(environment), BookmarkedJob(name="counter", store=uri, run_id="r", attempt=2) as job:
        job.state("runs").set(1)
    noted = len(passed)
    with BookmarkedJob(name="counter", store=uri) as job:
        job.state("runs").set(2)

    assert (2, Failpoint.BEFORE_COMMIT) in passed
    assert len(passed) == noted


def test_run_over_names_its_executions(bookmark_store: BookmarkStore, tmp_path: Path) -> None:
    seen: list[tuple[str, int]] = []

    def job(run: RunSetup) -> None:
        seen.append((run.run_id, run.attempt))
        copy(run)

    play(bookmark_store, tmp_path, ARRIVALS[:2], job=job, crash_at="planned")
    assert [attempt for _, attempt in seen] == [1, 2, 1, 2]
    assert len({run_id for run_id, _ in seen}) == 2
    assert seen[0][0].startswith("test/1/")
