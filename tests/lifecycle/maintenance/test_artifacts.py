"""Folders that belong to positions: kept while anything refers to them, then collected, and named by an export."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import cast

import pytest

from airflow_bookmarks.core.errors import ChangeRefusedError, MisuseError, OptionError, StateCorruptError
from airflow_bookmarks.core.option import Choice
from airflow_bookmarks.core.position import Position
from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.core.text.instant import utc_now
from airflow_bookmarks.lifecycle.changes.change import reset, rewind, set_position, undo
from airflow_bookmarks.lifecycle.maintenance.retention import collect
from airflow_bookmarks.lifecycle.maintenance.transfer.exporting import export
from airflow_bookmarks.lifecycle.maintenance.transfer.importing import import_
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.detached import DetachedRun
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.sources.registry import registered
from airflow_bookmarks.sources.source import PlanInput
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.lifecycle.maintenance.test_retention import of
from tests.lifecycle.shop import Shop
from tests.lifecycle.sqlite_keys import KeyKind, KeyPlan, KeySource, make_table, put

JOB, CTX = "people", "rows"


@dataclass(frozen=True)
class SnapshotPlan(KeyPlan):
    """Rows of a table, and the folder with the keys that were there when it was planned."""

    folder: str = ""

    def encode(self) -> bytes:
        return json.dumps([super().encode().decode(), self.folder]).encode()

    def position(self) -> Position:
        return Position(str(self.until).encode(), str(self.until), artifacts=(self.folder,))


class SnapshotSource(KeySource):
    """Keeps a snapshot with each position; `folder` makes it use one that was not made for it."""

    kind = "snapshots"

    def __init__(self, database: str, folder: str | None = None) -> None:
        super().__init__(database)
        self.folder = folder

    def plan(self, found: PlanInput) -> SnapshotPlan:
        plan = super().plan(found)
        folder = found.new_artifact() if self.folder is None else self.folder
        Path(folder).mkdir(parents=True)
        (Path(folder) / "keys.json").write_text(str(plan.until))
        return SnapshotPlan(plan.database, plan.after, plan.until, plan.count, plan.skipped, folder=folder)

    def advance(self, plan: KeyPlan) -> Position | None:
        return cast("SnapshotPlan", plan).position() if plan.count else None


class SnapshotKind(KeyKind):
    name = SnapshotSource.kind

    def decode(self, body: bytes) -> SnapshotPlan:
        rows, folder = json.loads(body)
        plan = super().decode(rows.encode())
        return SnapshotPlan(plan.database, plan.after, plan.until, plan.count, plan.skipped, folder=folder)

    def advance(self, plan: KeyPlan, found: PlanInput) -> Position | None:
        return SnapshotSource(plan.database).advance(plan)

    def seek(self, store: object, found: PlanInput, plan: KeyPlan, value: str) -> Position:
        return replace(cast("SnapshotPlan", plan).position(), body=value.encode(), watermark=value)


@pytest.fixture(autouse=True)
def known() -> Iterator[None]:
    with registered(SnapshotKind()):
        yield


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    store = BookmarkStore(SqliteTable(tmp_path / "bookmarks.db"), "test", state_uri=str(tmp_path / "state"))
    store.init()
    return Shop(tmp_path, store)


@pytest.fixture
def database(tmp_path: Path) -> str:
    database = str(tmp_path / "crm.db")
    make_table(database)
    return database


def source(database: str, folder: str | None = None) -> SnapshotSource:
    return SnapshotSource(database, folder)


def in_days(days: int) -> Callable[[], datetime]:
    at = utc_now() + timedelta(days=days)
    return lambda: at


def read(shop: Shop, database: str, *keys: int, folder: str | None = None) -> Path:
    """Make a run over new keys; return the folder of its snapshot."""
    put(database, *keys)
    run = shop.begin(JOB)
    plan = run.plan(CTX, source(database, folder))
    run.commit()
    return Path(plan.folder)


def test_artifact_lies_under_state_uri_and_is_named_by_head_and_run(shop: Shop, database: str, tmp_path: Path) -> None:
    folder = read(shop, database, 1)

    below = folder.relative_to(tmp_path / "state" / "test" / "artifacts")
    assert below.parts[1] == JOB
    run = shop.store.committed_run(JOB, 1)
    assert run is not None
    assert shop.store.head(JOB).contexts[CTX].artifacts == run.contexts[CTX].artifacts == (str(folder),)


def test_artifact_of_the_position_and_of_runs_that_are_left_stays_and_older_ones_go(shop: Shop, database: str) -> None:
    folders = [read(shop, database, number) for number in (1, 2, 3)]

    young = collect(shop.store, clock=in_days(80))
    assert (young.artifacts, [folder.exists() for folder in folders]) == ((), [True, True, True])

    would_go = collect(shop.store, clock=in_days(100), dry_run=True)
    assert all(folder.exists() for folder in folders)
    gone = collect(shop.store, clock=in_days(100))

    assert set(gone.artifacts) == set(would_go.artifacts) == {str(folders[0]), str(folders[1])}
    assert [folder.exists() for folder in folders] == [False, False, True]
    assert gone.as_dict()["artifacts"] == list(gone.artifacts)


def test_artifact_that_an_undo_goes_back_to_stays(shop: Shop, database: str) -> None:
    first, second = read(shop, database, 1), read(shop, database, 2)
    rewind(shop.store, JOB, "1", who="anna", reason="wrong")

    collect(shop.store, clock=in_days(100))

    assert (first.exists(), second.exists()) == (True, True)
    undo(shop.store, JOB, who="anna", reason="it was right")
    assert shop.store.head(JOB).contexts[CTX].artifacts == (str(second),)


def test_set_keeps_what_its_position_says(shop: Shop, database: str) -> None:
    first = read(shop, database, 1)
    set_position(shop.store, JOB, CTX, "0", who="anna", reason="again")

    assert shop.store.head(JOB).contexts[CTX].artifacts == (str(first),)


def test_what_a_crashed_driver_made_goes_when_no_run_can_name_it_any_more(shop: Shop, database: str) -> None:
    put(database, 1)
    left = Path(shop.begin(JOB, "night").plan(CTX, source(database)).folder)
    kept = Path((again := shop.begin(JOB, "night", 2)).plan(CTX, source(database)).folder)
    again.commit()

    collect(shop.store, clock=in_days(6))
    assert left.exists()
    collect(shop.store, clock=in_days(100))
    assert (left.exists(), kept.exists()) == (False, True)


def test_what_an_open_run_has_made_stays_for_whom_takes_it_over(shop: Shop, database: str) -> None:
    put(database, 1)
    run = shop.begin(JOB)
    folder = Path(run.plan(CTX, source(database)).folder)
    run.abort("the driver died")

    collect(shop.store, clock=in_days(100))

    assert [run.state for run in shop.store.runs(JOB)] == [RunState.FAILED]
    assert folder.exists()


def test_driver_with_a_late_clock_that_begins_during_the_collection_keeps_its_folder(
    shop: Shop, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read(shop, database, 1)
    put(database, 2)
    slow = BookmarkStore(shop.store.table, "test", clock=in_days(-30), state_uri=shop.store.blobs.state_uri)
    begun: list[tuple[ActiveRun, str]] = []

    def begin() -> None:
        environment = RunEnvironment(clock=in_days(-30))
        run = ActiveRun.begin(slow, JOB, shop.identity(), environment)
        begun.append((run, run.plan(CTX, source(database)).folder))

    jobs = shop.store.artifacts.jobs

    def listed() -> Sequence[str]:
        found = jobs()
        begin()
        return found

    monkeypatch.setattr(shop.store.artifacts, "jobs", listed)
    collect(shop.store)
    ((run, folder),) = begun
    run.commit()

    assert shop.store.head(JOB).contexts[CTX].artifacts == (folder,)
    assert Path(folder).exists()


def test_collection_goes_on_where_it_may_not_list_artifacts(
    shop: Shop, database: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for number in (1, 2, 3):
        read(shop, database, number)

    def refused(folder: str) -> Sequence[str]:
        raise PermissionError("AccessDenied")

    monkeypatch.setattr(shop.store.blobs.files, "folders", refused)
    gone = collect(shop.store, clock=in_days(100))

    assert (gone.artifacts, len(of(gone, JOB).runs)) == ((), 2)
    assert "can't be listed: AccessDenied. None was removed. The next collection tries again." in caplog.text


def test_artifact_goes_once_no_undo_leads_back_to_it_and_folders_of_others_stay(shop: Shop, database: str) -> None:
    folder = read(shop, database, 1)
    foreign = folder.parent / "notes"
    foreign.mkdir()
    reset(shop.store, JOB, who="anna", reason="anew")
    for number in (2, 3):
        read(shop, database, number)

    collect(shop.store, clock=in_days(100))
    assert folder.exists()
    read(shop, database, 4)
    rewind(shop.store, JOB, "3", who="anna", reason="wrong")
    read(shop, database)
    collect(shop.store, clock=in_days(200))

    assert (folder.exists(), foreign.exists()) == (False, True)


def test_nothing_goes_while_a_job_can_not_be_read(shop: Shop, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [read(shop, database, number) for number in (1, 2, 3)]
    read_runs = shop.store.runs

    def damaged(job: str, **kwargs: int) -> object:
        raise StateCorruptError("a run can't be read")

    monkeypatch.setattr(shop.store, "runs", damaged)
    assert collect(shop.store, clock=in_days(100)).artifacts == ()
    monkeypatch.setattr(shop.store, "runs", read_runs)
    assert all(folder.exists() for folder in folders)


def test_folder_that_was_not_made_for_the_job_is_refused_at_the_commit(
    shop: Shop, database: str, tmp_path: Path
) -> None:
    with pytest.raises(MisuseError, match=r"names the artifact '.*/mine', which was not made for it"):
        read(shop, database, 1, folder=str(tmp_path / "mine"))

    assert shop.store.head(JOB).contexts == {}


def test_store_without_a_state_uri_has_no_place_for_artifacts(tmp_path: Path, database: str) -> None:
    store = BookmarkStore(SqliteTable(tmp_path / "other.db"), "test")
    store.init()
    with pytest.raises(OptionError, match="the store has no state_uri for them"):
        read(Shop(tmp_path, store), database, 1)


def test_what_a_pause_made_stays_as_long_as_a_run_lasts_and_then_goes(shop: Shop, database: str) -> None:
    kept = read(shop, database, 1)
    put(database, 2)
    run = DetachedRun.begin(shop.store, JOB, shop.identity(), Choice.of("pause", None, None), RunEnvironment())
    folder = Path(run.plan(CTX, source(database)).folder)
    run.commit()

    collect(shop.store, clock=in_days(6))
    assert folder.exists()
    collect(shop.store, clock=in_days(100))
    assert (folder.exists(), kept.exists()) == (False, True)


def test_look_makes_none(shop: Shop, database: str) -> None:
    put(database, 1)
    with pytest.raises(OptionError, match="may keep no files beside its position"):
        source(database).plan(PlanInput())


def test_export_names_them_and_only_a_move_brings_them(shop: Shop, database: str, tmp_path: Path) -> None:
    folder = read(shop, database, 1)
    document = export(shop.store)
    assert document["artifacts"] == {JOB: [str(folder)]}

    there = BookmarkStore(SqliteTable(tmp_path / "there.db"), "test", state_uri=str(tmp_path / "there"))
    there.init()
    with pytest.raises(ChangeRefusedError, match=r"1 folder\(s\) belong to its positions"):
        import_(there, document, who="anna", reason="a copy")
    assert there.index_entry(JOB) is None

    import_(there, document, who="anna", reason="it moves", move=True)
    moved = Shop(tmp_path, there)
    read(moved, database)
    assert there.head(JOB).contexts[CTX].artifacts == (str(folder),)
    later = read(moved, database, 2)
    collect(there, clock=in_days(100))
    assert (folder.exists(), later.exists()) == (True, True)


def test_document_whose_folders_are_gone_is_not_imported_again(shop: Shop, database: str) -> None:
    folder = read(shop, database, 1)
    document = export(shop.store)
    for number in (2, 3):
        read(shop, database, number)
    collect(shop.store, clock=in_days(100))
    assert not folder.exists()

    with pytest.raises(ChangeRefusedError, match=r"1 folder\(s\) that belong to its position are gone"):
        import_(shop.store, document, who="anna", reason="back", overwrite=True)
    assert shop.store.head(JOB).run_number == 3


def test_export_without_artifacts_says_so(shop: Shop) -> None:
    shop.raw.mkdir()
    shop.put("a.txt", "a")
    shop.run()
    assert export(shop.store)["artifacts"] == {}
