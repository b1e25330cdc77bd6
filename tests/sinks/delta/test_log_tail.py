"""The end of a Delta table's log, read as files: what is found is there, and whatever is not certain is not told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from deltalake import CommitProperties

from airflow_bookmarks.sinks.delta.log_tail import LogTail
from tests.sources.delta.tables import Table

TOKEN = "airflow_bookmarks/shop/7"


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path / "t")


@pytest.mark.parametrize("newest", [0, 1, 15, 16, 31, 32, 40])
def test_newest_version_is_found_without_a_checkpoint(table: Table, newest: int) -> None:
    for version in range(1, newest + 1):
        table.commit(version)
    assert LogTail(table.path).newest() == newest


def test_newest_version_is_found_where_only_what_follows_the_checkpoint_is_left(table: Table) -> None:
    for number in range(5):
        table.append(number)
    table.checkpoint()
    for number in range(20):
        table.append(number)
    table.clean_before(5)
    assert LogTail(table.path).newest() == table.now.version() == 25


def test_last_checkpoint_may_be_older_than_the_table_and_the_newest_version_itself(table: Table) -> None:
    table.append(1)
    table.checkpoint()
    assert LogTail(table.path).newest() == 1


def _no_table(table: Table) -> str:
    return f"{table.path}-of-nobody"


def _cut(table: Table) -> str:
    for number in range(3):
        table.append(number)
    table.clean_before(2)
    return table.path


def _ahead(table: Table) -> str:
    Path(table.path, "_delta_log", "_last_checkpoint").write_text('{"version": 99, "size": 1}')
    return table.path


def _nonsense(table: Table) -> str:
    Path(table.path, "_delta_log", "_last_checkpoint").write_text("[]")
    return table.path


def _other(table: Table) -> str:
    Path(table.path, "_delta_log", "_last_checkpoint").write_text('{"size": 1}')
    return table.path


def _unreachable(table: Table) -> str:
    return "nowhere://lake/orders"


@pytest.mark.parametrize("place", [_no_table, _cut, _ahead, _nonsense, _other, _unreachable])
def test_newest_version_is_not_told_where_it_is_not_certain(
    table: Table, place: object, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO"):
        assert LogTail(place(table)).newest() is None  # type: ignore[operator]
    said = "Spark is asked for the history" in caplog.text
    assert said is (place in (_nonsense, _other, _unreachable))


def test_commit_is_found_by_its_token_behind_those_of_others(table: Table) -> None:
    table.append(1)
    table.append(2, commit_properties=CommitProperties(custom_metadata={"userMetadata": TOKEN}))
    info = table.actions(2)[0] if "commitInfo" in table.actions(2)[0] else table.actions(2)[-1]
    assert info["commitInfo"]["userMetadata"] == TOKEN
    table.append(3)
    found = LogTail(table.path).commit(TOKEN, 0)
    assert found is not None
    assert (found.version, found.told) == (2, TOKEN)


def test_commit_tells_what_its_writer_has_measured(table: Table) -> None:
    info: dict[str, object] = {
        "operation": "WRITE",
        "userMetadata": TOKEN,
        "operationMetrics": {"numOutputRows": "5", "numFiles": "2"},
    }
    table.log(1).write_text('{"txn": {}}\n' + json.dumps({"commitInfo": info}))
    found = LogTail(table.path).commit(TOKEN, 0)
    assert found is not None
    assert found.figures() == {"version_after": 1, "rows": 5, "files": 2}


def test_commit_is_not_looked_for_before_the_version_that_was_there(table: Table) -> None:
    table.append(1, commit_properties=CommitProperties(custom_metadata={"userMetadata": TOKEN}))
    table.append(2)
    assert LogTail(table.path).commit(TOKEN, 1) is None
    assert LogTail(table.path).commit(TOKEN, 0) is not None


@pytest.mark.parametrize("body", ['no JSON of commitInfo: "commitInfo"', '["commitInfo"]'])
def test_commit_that_can_not_be_read_is_left_to_spark(
    table: Table, body: str, caplog: pytest.LogCaptureFixture
) -> None:
    table.log(1).write_text(body)
    with caplog.at_level("INFO"):
        assert LogTail(table.path).commit(TOKEN, 0) is None
    assert "Spark is asked" in caplog.text


def test_commit_in_a_place_that_is_out_of_reach_is_left_to_spark() -> None:
    assert LogTail("nowhere://lake/orders").commit(TOKEN, 0) is None


def test_number_of_files_is_read_from_the_checksum_file_of_a_version(table: Table) -> None:
    table.log(7).with_suffix(".crc").write_text('{"tableSizeBytes": 10, "numFiles": 12345}')
    assert LogTail(table.path).files(7) == 12345
    assert LogTail(table.path).files(8) is None


@pytest.mark.parametrize("body", ["[]", "no JSON", "{}", '{"numFiles": "many"}', '{"numFiles": null}', ""])
def test_number_of_files_is_not_told_by_a_checksum_file_that_says_nothing(
    table: Table, body: str, caplog: pytest.LogCaptureFixture
) -> None:
    table.log(0).with_suffix(".crc").write_text(body)
    with caplog.at_level("INFO"):
        assert LogTail(table.path).files(0) is None
    assert "is not known" in caplog.text


def test_number_of_files_in_a_place_that_is_out_of_reach_is_not_told() -> None:
    assert LogTail("nowhere://lake/orders").files(0) is None
