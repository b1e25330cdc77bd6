"""Quarantine in the protocol: the reduced plan is the stored one, and the record goes wherever the position goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.errors import OptionError, QuarantineFullError
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.core.ledger import quarantine
from airflow_bookmarks.core.position import Greatest
from airflow_bookmarks.core.selection.bound import Bound
from airflow_bookmarks.lifecycle.changes.change import Change, reset, rewind, set_position, undo
from airflow_bookmarks.lifecycle.changes.preview import preview
from airflow_bookmarks.lifecycle.inspect.pending import pending
from airflow_bookmarks.lifecycle.maintenance.doctor import examine
from airflow_bookmarks.lifecycle.maintenance.transfer.exporting import export
from airflow_bookmarks.lifecycle.maintenance.transfer.importing import import_
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.empty import commit_empty
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.lifecycle.state.quarantine import quarantined_files
from airflow_bookmarks.sinks.registry import SINKS
from airflow_bookmarks.sinks.sink import CommittingSink, StoredOutput
from airflow_bookmarks.sinks.staging import Staged, StagingRequest
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.lifecycle.shop import FILES, Shop


def read(shop: Shop, run: ActiveRun, broken: Sequence[str] = (), options: FileOptions | None = None) -> list[str]:
    """Plan, find out that files of these names can't be parsed, and return the names of the others."""
    plan = run.plan("raw", FileSource(FILES, [str(shop.raw)], options or FileOptions()))
    found = {path: "it is broken" for path in plan.files.paths if Path(path).name in broken}
    if found:
        plan = run.quarantine("raw", found)
    return [Path(path).name for path in plan.files.paths]


def run(shop: Shop, *broken: str, options: FileOptions | None = None) -> list[str]:
    """Make one whole run that finds out that files of these names can't be parsed; return the names it read."""
    driver = shop.begin()
    names = read(shop, driver, broken, options)
    driver.commit()
    return names


def held(store: BookmarkStore) -> list[str]:
    return [Path(row["path"]).name for row in quarantined_files(store, "copy")]


def test_run_of_nothing_but_broken_files_counts_as_empty_and_keeps_their_record(shop: Shop) -> None:
    shop.put("b.txt", "b")

    assert run(shop, "b.txt") == []

    [done] = shop.store.runs("copy")
    assert done.is_empty
    assert shop.store.head("copy").data_run_number == 0
    assert held(shop.store) == ["b.txt"]
    assert run(shop) == []
    assert held(shop.store) == ["b.txt"]


def test_doctor_finds_nothing_to_say_of_such_runs(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.put("b.txt", "b")
    run(shop, "b.txt")
    shop.put("c.txt", "c")
    run(shop, "c.txt")
    set_position(shop.store, "copy", "raw", "retry:*", reason="r", who="ada")
    run(shop)

    assert examine(shop.store, jobs=["copy"]) == []


def test_driver_that_dies_with_the_reduced_plan_leaves_nothing_behind(shop: Shop) -> None:
    shop.put("b.txt", "b")
    dead = shop.begin(run_id="task")
    read(shop, dead, ["b.txt"])

    heir = shop.begin(run_id="task", attempt=2)

    assert read(shop, heir) == ["b.txt"]
    heir.commit()
    assert held(shop.store) == []


class _Landed(CommittingSink):
    """A sink that commits by itself, in which every run's rows are found."""

    kind = "rows"

    def burn(self, output: StoredOutput, fence: int) -> None:
        """Do nothing."""

    def landed(self, output: StoredOutput) -> bool:
        return True


def test_run_that_is_taken_over_keeps_what_it_could_not_parse_and_the_watermark_of_a_column(shop: Shop) -> None:
    shop.put("a.txt", "a")
    first = shop.begin(run_id="first")
    read(shop, first)
    first.set_greatest("raw", Greatest("event_time", "2013-01-31"))
    first.commit()
    shop.put("b.txt", "b")
    shop.put("c.txt", "c")
    dead = shop.begin(run_id="task")
    read(shop, dead, ["b.txt"])
    dead.place("out", StagingRequest("rows", str(shop.root / "rows")))
    sinks = SINKS.extended(_Landed())

    heir = shop.begin(run_id="task", attempt=2, sinks=sinks)

    state = shop.store.head("copy").contexts["raw"]
    assert (state.run.number, state.watermark, state.watermark_column) == (2, "2013-01-31", "event_time")
    assert held(shop.store) == ["b.txt"]
    assert read(shop, heir) == []
    heir.commit()


@pytest.mark.parametrize("point", [Failpoint.COMMITTED, Failpoint.PUBLISHED, Failpoint.MARKED])
def test_record_is_there_from_the_commit_on(shop: Shop, point: Failpoint) -> None:
    class KilledError(BaseException):
        pass

    def at(reached: Failpoint) -> None:
        if reached is point:
            raise KilledError

    shop.put("b.txt", "b")
    dead = replace(shop, environment=replace(RunEnvironment(), at=at)).begin(run_id="task")
    read(shop, dead, ["b.txt"])
    with pytest.raises(KilledError):
        dead.commit()
    dead._leased.renewer.stop()

    heir = shop.begin(run_id="task", attempt=2)

    assert held(shop.store) == ["b.txt"]
    assert read(shop, heir) == []


def test_too_many_broken_files_stop_the_run_before_anything_is_stored(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quarantine, "MAX_FILES", 1)
    shop.put("a.txt", "a")
    run(shop, "a.txt")
    shop.put("b.txt", "b")
    driver = shop.begin()

    with pytest.raises(QuarantineFullError):
        read(shop, driver, ["b.txt"])
    driver.abort("too many")

    assert held(shop.store) == ["a.txt"]
    assert shop.store.head("copy").run_number == 1


def test_record_goes_with_reset_undo_and_rewind(shop: Shop) -> None:
    shop.put("a.txt", "a")
    run(shop)
    shop.put("b.txt", "b")
    run(shop, "b.txt")

    reset(shop.store, "copy", reason="r", who="ada")
    assert held(shop.store) == []
    undo(shop.store, "copy", reason="r", who="ada")
    assert held(shop.store) == ["b.txt"]
    rewind(shop.store, "copy", 1, reason="r", who="ada")
    assert held(shop.store) == []


def test_record_goes_with_export_and_import(shop: Shop, tmp_path: Path) -> None:
    shop.put("b.txt", "b")
    run(shop, "b.txt")
    other = BookmarkStore(SqliteTable(tmp_path / "other.db"), "test")
    other.init()

    import_(other, export(shop.store, ["copy"]), who="ada", reason="r")

    assert held(other) == ["b.txt"]


def test_retry_is_previewed_by_the_files_that_it_lets_out_and_audited(shop: Shop) -> None:
    shop.put("a.txt", "a")
    broken = shop.put("b.txt", "b")
    run(shop, "b.txt")
    value = f"retry:{broken}"

    seen = preview(shop.store, "copy", Change("set", ctx="raw", value=value))
    set_position(shop.store, "copy", "raw", value, reason="mended", who="ada", expected_version=seen.version)

    assert (seen.files, seen.bytes, seen.undone, seen.twice) == (1, 2, (), ())
    assert [event["value"] for event in shop.store.events("copy")] == [value]
    assert pending(shop.store, "copy").contexts[0].files == 1
    assert run(shop) == ["b.txt"]


def test_retry_leaves_the_watermark_of_a_column(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.put("b.txt", "b")
    driver = shop.begin()
    read(shop, driver, ["b.txt"])
    driver.set_greatest("raw", Greatest("event_time", "2013-01-31"))
    driver.commit()

    set_position(shop.store, "copy", "raw", "retry:*", reason="r", who="ada")

    state = shop.store.head("copy").contexts["raw"]
    assert (state.watermark, state.watermark_column) == ("2013-01-31", "event_time")


def test_set_to_now_counts_them_as_read_like_all_that_is_there(shop: Shop) -> None:
    shop.put("b.txt", "b")
    run(shop, "b.txt")

    set_position(shop.store, "copy", "raw", "now", reason="r", who="ada")

    assert held(shop.store) == []
    assert run(shop) == []


def test_retry_with_an_empty_quarantine_says_so(shop: Shop) -> None:
    shop.put("a.txt", "a")
    run(shop)

    with pytest.raises(OptionError, match="nothing of this context is in quarantine"):
        set_position(shop.store, "copy", "raw", "retry:*", reason="r", who="ada")


def test_worker_commits_an_empty_run_though_broken_files_are_listed(shop: Shop) -> None:
    shop.put("b.txt", "b")
    run(shop, "b.txt")

    assert pending(shop.store, "copy").is_empty
    assert commit_empty(shop.store, "copy", RunIdentity("worker", 1), RunEnvironment()) is not None
    assert held(shop.store) == ["b.txt"]


def test_record_of_what_the_ledger_forgets_is_forgotten(shop: Shop) -> None:
    day = 24 * 3600
    bounded = FileOptions(late_after=timedelta(days=1))
    shop.put("a.txt", "a", seconds=1_700_000_001)
    shop.put("b.txt", "b", seconds=1_700_000_000)
    run(shop, "b.txt", options=bounded)
    shop.put("c.txt", "c", seconds=1_700_000_000 + 10 * day)
    assert run(shop, options=bounded) == ["c.txt"]
    shop.put("d.txt", "d", seconds=1_700_000_000 + 11 * day)

    assert run(shop, options=bounded) == ["d.txt"]

    assert held(shop.store) == []


def test_plan_of_the_run_names_what_it_left_out(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.put("b.txt", "b")
    run(shop, "b.txt")

    [done] = shop.store.runs("copy")
    plan = FilePlan.decode(shop.store.blobs.get(done.plans["raw"].body))
    assert [(Path(file.path).name, file.error, file.run_number) for file in plan.quarantined] == [
        ("b.txt", "it is broken", 1)
    ]
    assert done.metrics["contexts"]["raw"]["quarantined"] == 1


def test_output_of_a_run_without_the_broken_file_is_published(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.put("b.txt", "b")
    driver = shop.begin()
    assert read(shop, driver, ["b.txt"]) == ["a.txt"]
    folder = Path(driver.place("out", StagingRequest("files", str(shop.root / "copy"))))
    (folder / "part-0.txt").parent.mkdir(parents=True)
    (folder / "part-0.txt").write_text("a\n")
    driver.staged(
        "out",
        Staged(((str(folder / "part-0.txt"), str(shop.root / "copy" / f"{driver.file_token}-part-0.txt")),), rows=1),
    )
    driver.commit()

    assert shop.target_lines() == {"a": 1}
    assert shop.store.head("copy").data_run_number == 1


def test_overwrite_that_is_in_quarantine_is_none_that_stops_a_run(shop: Shop) -> None:
    shop.put("a.txt", "a")
    run(shop)
    shop.put("a.txt", "broken now", seconds=2_000_000_000)
    run(shop, "a.txt")

    refusing = FileSource(FILES, [str(shop.raw)], FileOptions(on_overwrite="error"))
    driver = shop.begin()
    assert len(driver.plan("raw", refusing)) == 0
    driver.commit()
    assert held(shop.store) == ["a.txt"]


def test_file_that_is_let_out_is_read_however_late_it_is(shop: Shop) -> None:
    day = timedelta(days=1)
    shop.environment = replace(shop.environment, clock=lambda: datetime(2023, 11, 30, tzinfo=UTC))
    options = FileOptions(late_after=day)

    def ran(*broken: str, **more: Any) -> list[str]:
        driver = shop.begin()
        source = FileSource(FILES, [str(shop.raw)], replace(options, **more), clock=shop.environment.clock)
        plan = driver.plan("raw", source)
        found = {path: "it is broken" for path in plan.files.paths if Path(path).name in broken}
        plan = driver.quarantine("raw", found) if found else plan
        driver.commit()
        return [Path(path).name for path in plan.files.paths]

    shop.put("broken.txt", "b")
    shop.put("late.txt", "l")
    assert ran("broken.txt") == ["late.txt"]
    shop.put("2.txt", "n", seconds=1_700_000_000 + 2 * 86_400)
    assert ran() == ["2.txt"]
    set_position(shop.store, "copy", "raw", "retry:*", reason="mended", who="me")
    shop.put("6.txt", "n", seconds=1_700_000_000 + 6 * 86_400)

    assert ran(bound=Bound(max_files=1)) == ["broken.txt"]
    assert ran() == ["6.txt"]
    assert held(shop.store) == []
    assert not examine(shop.store)
