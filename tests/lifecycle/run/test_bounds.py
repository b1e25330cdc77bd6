"""Promises of bounds on the age of files: `late_after` (FILE-12) and `settle` (FILE-13)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.ledger.file_ledger import Ledger
from airflow_bookmarks.core.rules.start import Start
from airflow_bookmarks.core.run import Run
from airflow_bookmarks.core.selection.bound import Bound
from airflow_bookmarks.core.selection.reason import LATE
from airflow_bookmarks.lifecycle.state.summary import Summary
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from tests.lifecycle.shop import FILES, Shop

NOON = datetime(2013, 1, 31, 12, tzinfo=UTC)
HOUR = 3600
LATE_AFTER = timedelta(hours=2)


def put(shop: Shop, name: str, seconds: int) -> None:
    """Write a file that is dated so many seconds after noon."""
    shop.put(name, name, seconds=int(NOON.timestamp()) + seconds)


def run(shop: Shop, at: int = 0, **kwargs: Any) -> tuple[list[str], Summary]:
    """Make one run at so many seconds after noon; return the names of the files read, and the summary."""
    shop.environment = replace(shop.environment, clock=lambda: NOON + timedelta(seconds=at))
    begun = shop.begin()
    source = FileSource(FILES, [str(shop.raw)], FileOptions(**kwargs), clock=shop.environment.clock)
    plan = begun.plan("raw", source)
    return [path.rpartition("/")[2] for path in plan.files.paths], begun.commit()


def skipped(summary: Summary) -> dict[str, int]:
    return dict(summary.contexts["raw"]["skipped"])


def ledger(shop: Shop) -> Ledger:
    """Return the ledger that the head names."""
    key = shop.store.head("copy").contexts["raw"].run
    holder = shop.store.run("copy", key)
    assert holder is not None
    return Ledger.from_root(shop.store.blobs.get(holder.positions["raw"]), shop.store.blobs.get_named)


# ---- late


def test_file_older_than_the_newest_that_was_read_by_more_than_the_bound_is_not_read_but_counted(shop: Shop) -> None:
    put(shop, "read", 0)
    run(shop, late_after=LATE_AFTER)
    put(shop, "on_time", -2 * HOUR)
    put(shop, "late", -2 * HOUR - 1)
    names, summary = run(shop, late_after=LATE_AFTER)
    assert names == ["on_time"]
    assert skipped(summary) == {"late": 1}
    assert (summary.contexts["raw"]["listed"], summary.contexts["raw"]["known"]) == (3, 1)


def test_what_came_during_an_outage_is_backlog_and_never_late(shop: Shop) -> None:
    put(shop, "before", 0)
    run(shop, late_after=LATE_AFTER)
    for day in range(1, 6):
        put(shop, f"outage{day}", day * 24 * HOUR)
    put(shop, "late", -3 * HOUR)

    names, summary = run(shop, 5 * 24 * HOUR, late_after=LATE_AFTER)

    assert names == [f"outage{day}" for day in range(1, 6)]
    assert skipped(summary) == {"late": 1}
    assert run(shop, 5 * 24 * HOUR)[0] == ["late"]  # and nothing has expired


def test_backlog_that_a_bound_reads_in_parts_is_never_late(shop: Shop) -> None:
    put(shop, "before", 0)
    run(shop, late_after=LATE_AFTER)
    for day in range(1, 6):
        put(shop, f"outage{day}", day * 24 * HOUR)

    read = [run(shop, 5 * 24 * HOUR, late_after=LATE_AFTER, bound=Bound(max_files=2)) for _ in range(4)]

    assert [names for names, _ in read] == [["outage1", "outage2"], ["outage3", "outage4"], ["outage5"], []]
    assert all("late" not in skipped(summary) for _, summary in read)


def test_first_run_has_read_nothing_so_nothing_is_late_and_nothing_expires(shop: Shop) -> None:
    put(shop, "history", -9_000 * HOUR)
    put(shop, "new", 0)
    assert run(shop, late_after=LATE_AFTER, bound=Bound(max_files=1))[0] == ["history"]
    names, summary = run(shop, late_after=LATE_AFTER)
    assert (names, skipped(summary)) == (["new"], {})


def test_files_before_the_start_count_as_read_for_the_line(shop: Shop) -> None:
    put(shop, "before", 0)
    begun = shop.begin(start=Start.of("now"))
    begun.plan("raw", FileSource(FILES, [str(shop.raw)], FileOptions(late_after=LATE_AFTER), clock=lambda: NOON))
    begun.commit()
    put(shop, "late", -3 * HOUR)
    put(shop, "on_time", -HOUR)
    names, summary = run(shop, late_after=LATE_AFTER)
    assert (names, skipped(summary)) == (["on_time"], {"late": 1})


@pytest.mark.parametrize("fast_runs", [[1], [1, 2], [2], [2, 3]])
def test_file_dated_in_the_future_moves_no_line_for_good_though_clocks_were_ahead(
    shop: Shop, fast_runs: list[int]
) -> None:
    ahead = 9_000 * HOUR
    put(shop, "before", 0)
    run(shop, late_after=LATE_AFTER)
    put(shop, "future", ahead - HOUR)
    for number in (1, 2, 3):
        put(shop, f"on_time{number}", number)
        run(shop, ahead if number in fast_runs else number, late_after=LATE_AFTER)
    put(shop, "after", 4)

    read_last, summary = run(shop, 4, late_after=LATE_AFTER)

    assert "after" in read_last
    assert skipped(summary) == {}
    assert [path for path in shop.raw.iterdir() if path.name not in read_names(shop)] == []


def read_names(shop: Shop) -> set[str]:
    """Return the names of the files that committed runs have read."""
    plans = [run.plans["raw"] for _, run in shop.store.runs_or_damage("copy") if isinstance(run, Run)]
    return {
        path.rpartition("/")[2]
        for plan in plans
        for path in FilePlan.decode(shop.store.blobs.get(plan.body)).files.paths
    }


def test_newest_file_that_was_read_counts_also_when_it_is_gone(shop: Shop) -> None:
    put(shop, "new", 0)
    run(shop, late_after=LATE_AFTER)
    (shop.raw / "new").unlink()
    put(shop, "late", -3 * HOUR)
    names, summary = run(shop, late_after=LATE_AFTER)
    assert (names, skipped(summary)) == ([], {"late": 1})


def test_file_that_a_bound_has_left_over_is_not_late_when_its_turn_comes(shop: Shop) -> None:
    bounded: dict[str, Any] = {"late_after": LATE_AFTER, "bound": Bound(max_files=1)}
    for hour in (0, 1, 2):
        put(shop, f"waits{hour}", hour * HOUR)
    assert run(shop, **bounded)[0] == ["waits0"]
    put(shop, "new", 30 * HOUR)
    put(shop, "late", -3 * HOUR)
    read = [run(shop, 30 * HOUR, **bounded) for _ in range(3)]
    assert [names for names, _ in read] == [["waits1"], ["waits2"], ["new"]]
    assert skipped(read[0][1]) == {"late": 1, "over_bound": 2}
    assert run(shop, 30 * HOUR, late_after=LATE_AFTER)[0] == []


def test_late_files_are_listed_on_the_stored_plan(shop: Shop) -> None:
    put(shop, "new", 0)
    run(shop, late_after=LATE_AFTER)
    put(shop, "late", -3 * HOUR)
    run(shop, late_after=LATE_AFTER)
    stored = shop.store.committed_run("copy", 2)
    assert stored is not None
    plan = FilePlan.decode(shop.store.blobs.get(stored.plans["raw"].body))
    assert [file.path for file in plan.unread[LATE]] == [str(shop.raw / "late")]


@pytest.mark.parametrize(("seconds", "late"), [(5 * 60, {"late": 1}), (5 * 60 + 1, {})])
def test_file_dated_in_the_future_is_read_and_does_not_make_others_late(
    shop: Shop, seconds: int, late: dict[str, int]
) -> None:
    put(shop, "future", seconds)
    assert run(shop, late_after=LATE_AFTER)[0] == ["future"]
    put(shop, "old", -2 * HOUR + 1)
    _, summary = run(shop, late_after=LATE_AFTER)
    assert skipped(summary) == late
    put(shop, "older", -2 * HOUR + 2)
    _, summary = run(shop, late_after=LATE_AFTER)
    assert skipped(summary) == ({"late": 2} if late else {})


def test_overwritten_file_counts_by_its_new_time(shop: Shop) -> None:
    put(shop, "a", 0)
    put(shop, "b", -1)
    run(shop, late_after=LATE_AFTER)
    shop.put("a", "another version", seconds=int(NOON.timestamp()) - 3 * HOUR)
    shop.put("b", "another version", seconds=int(NOON.timestamp()) - HOUR)
    names, summary = run(shop, late_after=LATE_AFTER)
    assert (names, skipped(summary)) == (["b"], {"late": 1})


def test_ledger_does_not_grow_with_history_under_a_bound(shop: Shop) -> None:
    for hour in range(20):
        put(shop, f"{hour:02}", hour * HOUR)
        names, _ = run(shop, hour * HOUR, late_after=LATE_AFTER)
        assert names == [f"{hour:02}"]
    assert len(ledger(shop)) == 6  # twice two hours back from what was read before, that, and the newest


def test_what_the_ledger_forgot_is_never_read_again_also_without_the_bound(shop: Shop) -> None:
    for hour in range(10):
        put(shop, f"{hour:02}", hour * HOUR)
        run(shop, hour * HOUR, late_after=LATE_AFTER)
    _, summary = run(shop, 10 * HOUR, late_after=LATE_AFTER)
    assert (summary.contexts["raw"]["known"], skipped(summary)) == (6, {"expired": 4})
    names, summary = run(shop, 10 * HOUR)
    assert (names, skipped(summary)) == ([], {"expired": 4})


def test_new_file_that_was_read_together_with_old_ones_is_not_forgotten(shop: Shop) -> None:
    put(shop, "old", -9 * HOUR)
    put(shop, "new", 0)
    assert run(shop)[0] == ["old", "new"]
    put(shop, "newer", 1)
    assert run(shop, late_after=LATE_AFTER)[0] == ["newer"]
    assert run(shop)[0] == []


def test_late_files_are_told_from_read_ones_for_twice_the_bound(shop: Shop) -> None:
    for hour in range(3):
        put(shop, f"{hour}", hour * 5 * HOUR)
        run(shop, hour * 5 * HOUR, late_after=LATE_AFTER)
    put(shop, "late", 5 * HOUR)
    put(shop, "forgotten_with", 0)
    _, summary = run(shop, 10 * HOUR, late_after=LATE_AFTER)
    assert skipped(summary) == {"late": 1, "expired": 2}


def test_only_what_the_ledger_has_left_out_expires(shop: Shop) -> None:
    for hour in (5, 10):
        put(shop, f"{hour}", hour * HOUR)
        run(shop, hour * HOUR, late_after=LATE_AFTER)
    put(shop, "between", 5 * HOUR + 1)
    put(shop, "newer", 11 * HOUR)
    assert run(shop, 11 * HOUR, late_after=LATE_AFTER)[0] == ["newer"]
    assert run(shop, 11 * HOUR, late_after=6 * LATE_AFTER)[0] == ["between"]


def test_late_file_is_read_after_all_once_the_bound_is_wider(shop: Shop) -> None:
    put(shop, "new", 0)
    run(shop, late_after=LATE_AFTER)
    put(shop, "late", -3 * HOUR)
    assert run(shop, late_after=LATE_AFTER)[0] == []
    assert run(shop, late_after=timedelta(hours=4))[0] == ["late"]


# ---- settling


def test_file_younger_than_the_bound_is_left_to_a_later_run(shop: Shop) -> None:
    put(shop, "settled", -60)
    put(shop, "young", -59)
    names, summary = run(shop, settle=timedelta(minutes=1))
    assert (names, skipped(summary)) == (["settled"], {"settling": 1})
    assert run(shop, 1, settle=timedelta(minutes=1))[0] == ["young"]


def test_file_that_is_written_again_while_it_settles_is_read_once(shop: Shop) -> None:
    put(shop, "a", 0)
    assert run(shop, 30, settle=timedelta(minutes=1))[0] == []
    shop.put("a", "more of it", seconds=int(NOON.timestamp()) + 40)
    assert run(shop, 90, settle=timedelta(minutes=1))[0] == []
    assert run(shop, 100, settle=timedelta(minutes=1))[0] == ["a"]
    assert run(shop, 200, settle=timedelta(minutes=1))[0] == []


# ---- what is refused


@pytest.mark.parametrize(
    "bounds",
    [
        {"late_after": timedelta(0)},
        {"late_after": timedelta(hours=-1)},
        {"settle": timedelta(microseconds=1)},
        {"settle": 60},
        {"late_after": "1h"},
    ],
)
def test_bound_that_is_no_positive_time_is_refused(bounds: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match="expected a positive timedelta"):
        FileOptions(**bounds)


def test_file_that_would_be_late_before_it_has_settled_is_refused() -> None:
    with pytest.raises(OptionError, match="late before it has settled"):
        FileOptions(late_after=timedelta(minutes=5), settle=timedelta(minutes=5))
