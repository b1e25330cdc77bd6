"""Promises TABLE-1 and TABLE-3: what a run reads of a Delta table, planned over tables that delta-rs wrote."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from airflow_bookmarks.core.errors import (
    OptionError,
    SourceError,
    SourceMissingError,
    SourceSwitchedError,
    StateCorruptError,
)
from airflow_bookmarks.core.rules.start import Start
from airflow_bookmarks.core.selection.bound import Bound
from airflow_bookmarks.files.local import LocalFileSystem
from airflow_bookmarks.sources.delta.checkpoint import ReadParquet, arrow
from airflow_bookmarks.sources.delta.commit import Action, commit_of, rows_of
from airflow_bookmarks.sources.delta.kind import DeltaKind
from airflow_bookmarks.sources.delta.log import DeltaLog
from airflow_bookmarks.sources.delta.looks import DeltaLooks
from airflow_bookmarks.sources.delta.position import Added, DeltaPlan, DeltaPosition, DeltaRecipe
from airflow_bookmarks.sources.delta.snapshot import snapshot_at
from airflow_bookmarks.sources.delta.source import DeltaSource
from airflow_bookmarks.sources.source import PlanInput
from airflow_bookmarks.sources.tables.versioned import RowsChangedError, VersionGoneError, VersionOptions
from tests.sources.delta.tables import FEED, Table, ids_of

_ARROW = arrow()


class Runs:
    """Runs over one table, each from where the last one has left the position."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.position: bytes | None = None
        self.looks: DeltaLooks | None = None

    def plan(
        self, *, read: ReadParquet | None = _ARROW, on: Any = "error", start: str = "beginning", **how: Any
    ) -> Any:
        found = PlanInput(self.position, start=Start.of(start))
        recipe = DeltaRecipe(self.table.path, "orders", VersionOptions(**how))
        self._source = DeltaSource(recipe, "here", read, on, "j", "c", self.looks)
        return self._source.plan(found)

    def run(self, **how: Any) -> DeltaPlan:
        plan: DeltaPlan = self.plan(**how)
        after = self._source.advance(plan)
        self.position = self.position if after is None else after.body
        return plan

    def ids(self, **how: Any) -> list[int]:
        return ids_of(self.run(**how))


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path / "orders")


@pytest.fixture
def runs(table: Table) -> Runs:
    return Runs(table)


# ---- amounts


def test_amounts_come_from_the_log(table: Table, runs: Runs) -> None:
    table.append(1, 2, 3)
    first = runs.run()
    table.append(4)
    second = runs.run()

    sizes = [int(table.add_of(version)["size"]) for version in (1, 2)]
    assert [(plan.amount.count, plan.amount.bytes, plan.amount.rows) for plan in (first, second)] == [
        (1, sizes[0], 3), (1, sizes[1], 1)
    ]  # fmt: skip
    assert first.summary() == "processing 1 file of the table as of version 1"
    assert second.summary() == "processing 1 file of versions (1, 2]"
    assert second.stats() == {
        "files": 1, "bytes": sizes[1], "planned_rows": 1, "skipped": {}, "version_after": 1, "version_until": 2,
        "table": "orders",
    }  # fmt: skip


def test_plan_holds_no_values_of_rows(table: Table, runs: Runs) -> None:
    runs.run()
    table.append(7654321)
    piece = runs.run().pieces[0]
    assert "7654321" in table.log(1).read_text()
    assert isinstance(piece, Added)
    assert json.loads(piece.files[0]["stats"]) == {"numRecords": 1}


def test_rows_that_a_deletion_vector_marks_are_not_counted() -> None:
    vector = {"storageType": "u", "pathOrInlineDv": "x", "offset": 1, "cardinality": 2}
    assert rows_of({"path": "a", "stats": '{"numRecords":10}', "deletionVector": vector}) == 8
    assert rows_of({"path": "a", "stats": '{"nullCount":{}}'}) is None
    assert rows_of({"path": "a"}) is None


# ---- checkpoints, and logs that were cleaned


def test_table_is_the_same_by_checkpoint_and_by_commits(table: Table) -> None:
    for number in range(4):
        table.append(number)
    table.now.delete("id = 2")
    log = DeltaLog.open(table.path)
    by_commits = snapshot_at(log, log.latest, arrow())
    table.checkpoint()
    table.append(9)
    table.clean_before(log.latest)
    log = DeltaLog.open(table.path)

    by_checkpoint = snapshot_at(log, log.latest - 1, arrow())

    assert by_checkpoint.state.metadata["id"] == by_commits.state.metadata["id"]
    assert [file["path"] for file in by_checkpoint.files] == [file["path"] for file in by_commits.files]
    assert [rows_of(file) for file in by_checkpoint.files] == [1, 1, 1]
    assert ids_of(Runs(table).run(bound=Bound(max_files=9))) == [0, 1, 3, 9]


def test_checkpoint_of_several_parts_counts_when_all_are_there(table: Table) -> None:
    table.append(1)
    table.checkpoint()
    table.append(2)
    folder = Path(table.path, "_delta_log")
    whole = folder / f"{1:020}.checkpoint.parquet"
    parts = [folder / f"{1:020}.checkpoint.{part:010}.{2:010}.parquet" for part in (1, 2)]
    parts[0].write_bytes(whole.read_bytes())
    whole.unlink()
    table.clean_before(2)
    with pytest.raises(VersionGoneError, match="without a checkpoint before it"):
        Runs(table).run()
    parts[1].write_bytes(parts[0].read_bytes())
    assert [file["path"] for file in snapshot_at(DeltaLog.open(table.path), 2, arrow()).files][1:] == [
        table.add_of(2)["path"]
    ]


def test_checkpoint_with_sidecars_is_read_with_them(table: Table) -> None:
    table.append(1)
    table.checkpoint()
    table.append(2)
    folder = Path(table.path, "_delta_log")
    whole = folder / f"{1:020}.checkpoint.parquet"
    (folder / "_sidecars").mkdir()
    whole.rename(folder / "_sidecars" / "part.parquet")
    top = [{"checkpointMetadata": {"version": 1}}, {"sidecar": {"path": "part.parquet", "sizeInBytes": 1}}]
    unique = folder / f"{1:020}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"
    unique.write_text("".join(json.dumps(action) + "\n" for action in top))
    table.clean_before(2)
    assert len(snapshot_at(DeltaLog.open(table.path), 2, arrow()).files) == 2


def test_without_pyarrow_a_log_from_the_beginning_is_enough_and_else_the_extra_is_named(
    table: Table, runs: Runs
) -> None:
    table.append(1)
    table.checkpoint()
    assert runs.ids(read=None) == [1]
    table.append(2)
    table.clean_before(1)
    assert runs.ids(read=None) == [2]
    runs.position = None
    with pytest.raises(OptionError, match=r"airflow-provider-bookmarks\[delta\]"):
        runs.run(read=None)


def test_position_just_before_a_cleaned_log_goes_on_if_it_is_the_same_table(table: Table, runs: Runs) -> None:
    table.append(1)
    runs.run()
    table.append(2)
    table.checkpoint()
    table.clean_before(2)
    assert runs.ids() == [2]


def test_versions_that_went_are_an_error_and_reload_reads_anew(table: Table, runs: Runs) -> None:
    table.append(1)
    runs.run()
    for number in (2, 3):
        table.append(number)
    table.checkpoint()
    table.clean_before(3)
    with pytest.raises(VersionGoneError, match=r"version 2 of the Delta table .* position is version 1"):
        runs.run()
    plan = runs.run(on_change="reload")
    assert (ids_of(plan), plan.is_anew, plan.read_again) == ([1, 2, 3], True, 3)


# ---- what commits are


def test_delete_update_and_overwrite_are_changes(table: Table, runs: Runs) -> None:
    table.append(1, 2)
    runs.run()
    for change in (
        lambda: table.now.delete("id = 1"),
        lambda: table.now.update(updates={"id": "7"}, predicate="id = 2"),
        lambda: table.overwrite(5),
    ):
        change()
        with pytest.raises(RowsChangedError, match="on_change='ignore'"):
            runs.plan()
        plan = runs.run(on_change="ignore")
        assert plan.is_empty
        assert plan.skipped["removed"] == 1


def test_ignore_reads_appends_before_and_after_a_change(table: Table, runs: Runs) -> None:
    table.append(1)
    runs.run()
    table.append(2)
    table.now.delete("id = 1")
    table.append(3)
    plan = runs.run(on_change="ignore")
    assert (ids_of(plan), dict(plan.skipped)) == ([2, 3], {"removed": 1})


def test_reload_counts_what_was_read_before(table: Table, runs: Runs) -> None:
    table.append(1)
    table.append(2)
    runs.run()
    table.now.delete("id = 1")
    table.append(3)
    plan = runs.run(on_change="reload")
    assert (ids_of(plan), plan.read_again, plan.after) == ([2, 3], 1, 2)
    assert plan.summary() == "processing 2 files of the table as of version 4 anew, because it was changed"


def test_commit_that_replaces_the_table_is_a_change_though_it_only_adds(table: Table, runs: Runs) -> None:
    runs.run()  # nothing is there to be removed
    metadata = next(action["metaData"] for action in table.actions(0) if "metaData" in action)
    table.append(1)
    add = table.add_of(1)
    table.commit(1, {"metaData": {**metadata, "id": "another"}}, {"add": add}, operation="CREATE OR REPLACE TABLE")
    with pytest.raises(RowsChangedError, match="CREATE OR REPLACE TABLE"):
        runs.run()
    assert runs.run(on_change="ignore").is_empty
    table.append(2)
    assert runs.ids() == [2]


def test_restore_tells_where_it_leads() -> None:
    def said(**details: Any) -> str:
        info = {"commitInfo": {"operation": "RESTORE", "operationParameters": details}}
        return commit_of(9, json.dumps(info).encode()).in_words(5)

    assert said(version=7) == "version 9 (RESTORE to version 7)"
    assert "below the position 5" in said(version="3")
    assert said(timestamp="2013-01-31") == "version 9 (RESTORE to 2013-01-31)"


def test_commit_without_data_moves_the_position_and_is_no_news(table: Table, runs: Runs) -> None:
    table.append(1)
    table.append(2)
    runs.run()
    table.now.optimize.compact()
    plan = runs.run()
    assert plan.is_empty
    assert runs.position is not None
    assert DeltaPosition.decode(runs.position).version == 3


def test_line_of_a_commit_that_is_no_action_is_an_error_of_the_source(table: Table, runs: Runs) -> None:
    runs.run()
    table.append(1)
    for wrong in ("{", "[]", '{"add": {"path": "x"}}'):
        table.log(1).write_text(wrong)
        with pytest.raises(SourceError, match="not what the protocol of Delta says"):
            runs.run()


def test_table_whose_catalog_keeps_its_commits_is_refused(table: Table, runs: Runs) -> None:
    runs.run()
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["catalogManaged"]}
    table.append(1)
    add = table.add_of(1)
    table.commit(1, {"protocol": protocol}, {"add": add})
    for position in (runs.position, None):
        runs.position = position
        with pytest.raises(SourceError, match="kept by a catalog"):
            runs.run()


# ---- files that went


@pytest.mark.parametrize("how", [{}, {"max_versions": 1}])
def test_file_that_was_compacted_and_vacuumed_before_it_was_read_is_an_error(
    table: Table, runs: Runs, how: dict[str, Any]
) -> None:
    runs.run()
    table.append(1)
    table.append(2)
    table.now.optimize.compact()
    Path(table.path, table.add_of(1)["path"]).unlink()
    with pytest.raises(VersionGoneError, match=r"1 file.* removed by a VACUUM"):
        runs.run(**how)
    assert runs.ids(on_change="reload", **how) == [1, 2]


def test_file_of_a_first_read_in_parts_that_went_meanwhile_is_an_error(table: Table, runs: Runs) -> None:
    table.append(1)
    table.append(2)
    assert runs.ids(bound=Bound(max_files=1)) == [1]
    Path(table.path, table.add_of(2)["path"]).unlink()
    with pytest.raises(VersionGoneError, match=r"1 file.* removed by a VACUUM"):
        runs.run(bound=Bound(max_files=1))


def test_first_read_in_parts_whose_files_went_begins_anew_where_the_script_says_reload(
    table: Table, runs: Runs
) -> None:
    table.append(1)
    table.append(2)
    before = [table.add_of(number)["path"] for number in (1, 2)]
    assert runs.ids(bound=Bound(max_files=1), on_change="reload") == [1]
    table.now.optimize.compact()
    for path in before:
        Path(table.path, path).unlink()
    plan = runs.run(bound=Bound(max_files=1), on_change="reload")
    assert (sorted(ids_of(plan)), plan.is_anew) == ([1, 2], True)
    assert runs.run(bound=Bound(max_files=1), on_change="reload").is_empty


def test_look_before_the_commit_finds_files_and_versions_that_went(table: Table, runs: Runs) -> None:
    table.append(1)
    whole = runs.run()
    table.append(2)
    added = runs.run()
    source = DeltaSource(DeltaRecipe(table.path, "orders"), "here", arrow())
    assert [source.recheck(plan).missing for plan in (whole, added)] == [(), ()]
    file = Path(table.path, table.add_of(2)["path"])
    file.unlink()
    assert source.recheck(added).missing == (str(file),)
    table.append(3)
    table.checkpoint()
    table.clean_before(3)
    gone = source.recheck(whole)
    assert gone.moved == "version 1 of the Delta table 'orders' went from its log"
    assert gone.missing == (gone.moved,)


def test_file_that_a_clone_names_by_its_uri_is_looked_for_there(table: Table, runs: Runs, tmp_path: Path) -> None:
    runs.run()
    elsewhere = Table(tmp_path / "a b")
    elsewhere.append(1)
    file = elsewhere.add_of(1)
    table.commit(1, {"add": {**file, "path": f"file://{tmp_path}/a%20b/{file['path']}"}})
    plan = runs.run()
    assert ids_of(plan) == [1]
    source = DeltaSource(DeltaRecipe(table.path, "orders"), "here", arrow())
    assert source.recheck(plan).missing == ()
    Path(elsewhere.path, file["path"]).unlink()
    assert source.recheck(plan).missing != ()


# ---- another table


def made_again(table: Table, *ids: int) -> Table:
    """Drop a table and make it again."""
    folder = Path(table.path)
    folder.rename(folder.with_name("former"))
    again = Table(folder)
    for number in ids:
        again.append(number)
    return again


@pytest.mark.parametrize("ids", [[], [3], [3, 4, 5]])
def test_table_that_was_made_again_is_another_source_however_far_it_is(
    table: Table, runs: Runs, ids: list[int]
) -> None:
    table.append(1)
    table.append(2)
    runs.run()
    runs.table = made_again(table, *ids)
    with pytest.raises(SourceSwitchedError, match=r"at version 2.*reset"):
        runs.run()
    assert runs.ids(on="reset") == ids


def test_folder_without_a_log_is_said_to_be_no_table(table: Table, runs: Runs) -> None:
    runs.run()
    for file in Path(table.path, "_delta_log").glob("*"):
        file.unlink()
    with pytest.raises(SourceMissingError, match="no Delta table"):
        runs.run()


# ---- bounds


def test_bound_takes_whole_versions_and_counts_what_is_left(table: Table, runs: Runs) -> None:
    runs.run()
    for number in (1, 2, 3):
        table.append(number)
    plan = runs.run(max_versions=2)
    assert (ids_of(plan), plan.has_more, dict(plan.skipped)) == ([1, 2], True, {"over_bound": 1})
    plan = runs.run(max_versions=2)
    assert (ids_of(plan), plan.has_more, dict(plan.skipped)) == ([3], False, {})


def test_version_larger_than_a_bound_is_read_alone(table: Table, runs: Runs) -> None:
    runs.run()
    table.append(1, 2)
    table.append(3)
    assert [runs.ids(bound=Bound(max_bytes=1)) for _ in range(3)] == [[1, 2], [3], []]


def test_first_read_in_parts_stays_at_its_version_and_its_files(table: Table, runs: Runs) -> None:
    for number in (1, 2, 3):
        table.append(number)
    found = [runs.ids(bound=Bound(max_bytes=1))]
    assert runs.position is not None
    assert DeltaPosition.decode(runs.position).position().watermark is None
    table.append(4)
    table.now.delete("id = 2")
    found += [runs.ids(bound=Bound(max_bytes=1), on_change="ignore") for _ in range(4)]
    assert found == [[1], [2], [3], [4], []]


def test_batches_read_each_commit_once_and_know_another_table_again(
    table: Table, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        table.append(number)
    runs.run(bound=Bound(max_files=2))
    runs.looks = DeltaLooks()
    table.append(4)
    opened: list[str] = []
    original = LocalFileSystem.open

    def noted(files: LocalFileSystem, path: str) -> Any:
        opened.append(path.rpartition("/")[2])
        return original(files, path)

    monkeypatch.setattr(LocalFileSystem, "open", noted)
    assert [runs.ids(bound=Bound(max_files=1)) for _ in range(4)] == [[2], [3], [4], []]
    assert opened.count(f"{2:020}.json") == 1
    assert opened.count(f"{5:020}.json") == 2  # it is the position of the last run, and looked at as such
    runs.table = made_again(table, *range(9))
    with pytest.raises(SourceSwitchedError):
        runs.run()
    assert runs.ids(on="reset") == list(range(9))


# ---- start, set


def test_start_now_counts_what_is_there_as_read(table: Table, runs: Runs) -> None:
    table.append(1)
    plan = runs.run(start="now")
    assert (ids_of(plan), dict(plan.skipped)) == ([], {"before_start": 1})
    table.append(2)
    assert runs.ids(start="now") == [2]


@pytest.fixture
def timed(table: Table) -> list[datetime]:
    """Make three versions whose commits are an hour apart, and return their times."""
    times = [datetime(2013, 1, 31, hour, tzinfo=UTC) for hour in range(4)]
    for number in (1, 2, 3):
        table.append(number)
    for version, time in enumerate(times):
        stamped(table.log(version), time)
    return times


def stamped(file: Path, time: datetime) -> None:
    os.utime(file, (time.timestamp(), time.timestamp()))


def test_start_at_a_time_reads_versions_from_then_on(table: Table, runs: Runs, timed: list[datetime]) -> None:
    assert runs.ids(start=timed[2].isoformat()) == [2, 3]
    runs.position = None
    assert runs.ids(start=(timed[2] + timedelta(seconds=1)).isoformat()) == [3]
    runs.position = None
    assert runs.ids(start=(timed[0] - timedelta(days=1)).isoformat()) == [1, 2, 3]
    table.checkpoint()
    table.clean_before(3)
    runs.position = None
    with pytest.raises(SourceError, match="goes back to version 3"):
        runs.ids(start=timed[0].isoformat())


def test_set_goes_to_versions_and_times(table: Table, runs: Runs, timed: list[datetime]) -> None:
    plan, kind = runs.run(), DeltaKind()

    def at(value: str) -> int:
        position = kind.seek(None, PlanInput(runs.position), plan, value)  # type: ignore[arg-type]  # asks no store
        return DeltaPosition.decode(position.body).version

    assert [at(value) for value in ("0", "2", "now", timed[1].isoformat(), "2099-01-01T00:00:00Z")] == [0, 2, 3, 0, 3]
    for value in ("4", "-1", "x", "beginning", timed[0].isoformat(), "2013-01-31"):
        with pytest.raises(OptionError, match="Nothing was changed"):
            at(value)


def test_times_in_commits_come_before_those_of_files(table: Table) -> None:
    table.append(1)
    table.log(1).write_text(json.dumps({"commitInfo": {"operation": "WRITE", "inCommitTimestamp": 5}}) + "\n")
    assert DeltaLog.open(table.path).time_ms(1) == 5


# ---- the change feed


def test_change_feed_is_refused_where_the_table_has_none(table: Table, runs: Runs) -> None:
    with pytest.raises(OptionError, match=r"ALTER TABLE orders SET TBLPROPERTIES \(delta.enableChangeDataFeed = true"):
        runs.run(changes=True)


def test_change_feed_that_was_off_meanwhile_is_an_error_that_names_the_version(tmp_path: Path) -> None:
    table = Table(tmp_path / "orders", FEED)
    runs = Runs(table)
    runs.run(changes=True)
    metadata = next(action["metaData"] for action in table.actions(0) if "metaData" in action)
    for version, is_on in ((1, "false"), (3, "true")):
        table.commit(version, {"metaData": {**metadata, "configuration": {"delta.enableChangeDataFeed": is_on}}})
        table.append(version)
    with pytest.raises(SourceError, match=r"was off at version 2 \(WRITE\).* Set the context to 2"):
        runs.run(changes=True)


def test_change_feed_counts_the_files_that_hold_it(tmp_path: Path) -> None:
    table = Table(tmp_path / "orders", FEED)
    runs = Runs(table)
    table.append(1, 2)
    assert runs.ids(changes=True) == [1, 2]
    table.now.delete("id = 1")
    plan = runs.run(changes=True)
    assert (ids_of(plan), plan.is_empty, plan.rows) == ([1], False, None)
    assert plan.summary().endswith("of the change feed of versions (1, 2]")
    table.append(3)
    table.now.optimize.compact()
    assert runs.ids(changes=True) == [3]
    table.append(4)
    table.append(5)
    assert [runs.ids(changes=True, max_versions=1) for _ in range(3)] == [[4], [5], []]


# ---- as stored


def test_plan_and_position_of_the_first_version_are_read() -> None:
    folder = Path(__file__).parent / "stored"
    plan = DeltaPlan.decode((folder / "plan_1.bin").read_bytes())
    assert (plan.after, plan.files, plan.size_bytes, plan.rows) == (3, 2, 20, None)
    assert (dict(plan.skipped), plan.has_more, plan.read_again, plan.is_anew) == ({"removed": 1}, True, 4, True)
    assert plan.recipe == DeltaRecipe(
        "/lake/orders", "shop.orders",
        VersionOptions(on_change="ignore", max_versions=5, bound=Bound(max_files=6, max_bytes=7)),
    )  # fmt: skip
    names = [type(piece).__name__ for piece in plan.pieces]
    assert names == ["Whole", "Added", "Feed"]
    assert DeltaPlan.decode(plan.encode()) == plan
    position = DeltaPosition.decode((folder / "position_1.bin").read_bytes())
    assert position == plan.leads_to
    assert (position.version, position.fingerprint, position.state.id, position.files_read) == (9, "ab12", "t1", 8)
    assert DeltaPosition.decode(position.encode()) == position


@pytest.mark.parametrize("body", [b"", b"x", b"{}"])
def test_bytes_that_are_no_plan_are_said_to_be_none(body: bytes) -> None:
    for decode in (DeltaPlan.decode, DeltaPosition.decode):
        with pytest.raises(StateCorruptError):
            decode(body)


def test_union_reads_one_after_the_other(table: Table, runs: Runs) -> None:
    plans = []
    for number in (1, 2, 3):
        table.append(number)
        plans.append(runs.run())
    plans.insert(1, runs.run())
    whole = DeltaKind().union(plans)
    assert (ids_of(whole), whole.files, whole.rows, whole.after) == ([1, 2, 3], 3, 3, None)
    assert [type(piece).__name__ for piece in whole.pieces] == ["Whole", "Added"]
    assert ids_of(DeltaKind().union(plans[2:])) == [2, 3]


def test_position_of_another_table_knows_nothing_of_a_plan(table: Table, runs: Runs) -> None:
    table.append(1)
    plan = runs.run()
    kind = DeltaKind()
    assert kind.knows(PlanInput(runs.position), plan)
    assert runs.position is not None
    position = DeltaPosition.decode(runs.position)
    metadata: Action = {**position.state.metadata, "id": "another"}
    other = replace(position, state=replace(position.state, metadata=metadata))
    assert not kind.knows(PlanInput(other.encode()), plan)


def test_places_are_the_folder_of_the_table(table: Table, runs: Runs) -> None:
    plan = runs.run()
    source = DeltaSource(plan.recipe, "here", arrow())
    assert (DeltaKind().locations(plan, source.ref()), DeltaKind().roots_of(source.ref())) == (
        (table.path,), (table.path,)
    )  # fmt: skip
    assert DeltaTable(table.path).version() == 0
