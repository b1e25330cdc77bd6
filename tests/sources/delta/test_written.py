"""What a run of an upstream has written to a Delta table, by the log of tables that delta-rs writes: without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, write_deltalake

from airflow_bookmarks.core.errors import SourceError
from airflow_bookmarks.core.rules.territory import Territory
from airflow_bookmarks.core.run import OutputEntry, RunKey
from airflow_bookmarks.sinks.delta.token import DeltaToken
from airflow_bookmarks.sources.delta.written import DeltaRuns
from tests.sources.delta.tables import IDS, Table

UP = Territory("shop", "up")


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path / "t")


def token(number: int, fence: int = 1, job: Territory = UP) -> str:
    return str(DeltaToken.of_run(job, "out", RunKey(number, fence)))


def put(table: Table, told: str, *ids: int) -> int:
    """Append under a token; return the version."""
    table.append(*ids, commit_properties=CommitProperties(custom_metadata={"userMetadata": told}))
    return table.now.version()


def entry(table: Table, number: int, version: int | None, **stats: Any) -> OutputEntry:
    known = {} if version is None else {"version_after": version}
    return OutputEntry("delta", table.path, token(number), {**known, **stats})


def test_files_are_those_of_the_own_commit(table: Table) -> None:
    first = put(table, token(1), 1)
    table.append(2)
    second = put(table, token(2), 3)
    logs = DeltaRuns("job reads upstream")
    found = [set(logs.files(number, entry(table, number, version))) for number, version in ((1, first), (2, second))]
    written = {str(path) for path in Path(table.path).glob("*.parquet")}
    assert [len(each) for each in found] == [1, 1]
    assert found[0] | found[1] < written
    assert found[0].isdisjoint(found[1])


def test_commit_under_an_earlier_fence_of_the_run_is_its_own(table: Table) -> None:
    version = put(table, token(1, fence=3), 1)
    assert len(DeltaRuns("x").files(1, entry(table, 1, version))) == 1


OTHERS = [token(2), token(1, job=Territory("shop", "other")), "no token", '{"airflow_bookmarks": 1}']


@pytest.mark.parametrize("told", OTHERS)
def test_commit_of_somebody_else_is_not_read(table: Table, told: str) -> None:
    version = put(table, told, 1)
    with pytest.raises(SourceError, match=r"reads x: run 1 wrote .* as version 1, which another writer has made now"):
        DeltaRuns("reads x").files(1, entry(table, 1, version))


@pytest.mark.parametrize(
    ("number", "version", "stats", "words"),
    [
        (1, None, {}, "as which version is not known.*Nothing was read or changed"),
        (1, 1, {}, "version 1 of the Delta table .* is no longer in its log.*Nothing was read or changed"),
        (3, 3, {"upsert_keys": ["id"]}, "by key.*Nothing was read or changed.*changes=True"),
    ],
)
def test_run_whose_rows_can_not_be_told_is_refused(
    table: Table, number: int, version: int | None, stats: dict[str, Any], words: str
) -> None:
    for each in (1, 2, 3):
        put(table, token(each), each)
    table.checkpoint()
    table.clean_before(3)
    with pytest.raises(SourceError, match=words):
        DeltaRuns("reads x").files(number, entry(table, number, version, **stats))


def test_overwrite_tells_what_it_took_out(table: Table) -> None:
    first = put(table, token(1), 1)
    told = CommitProperties(custom_metadata={"userMetadata": token(2)})
    write_deltalake(table.path, pa.table({"id": [2]}, IDS), mode="overwrite", commit_properties=told)
    logs = DeltaRuns("x")
    assert set(logs.removed(2, entry(table, 2, first + 1))) == set(logs.files(1, entry(table, 1, first)))


def test_only_files_that_are_wanted_are_read_with_the_newest_columns(table: Table) -> None:
    runs = [(number, entry(table, number, put(table, token(number), number))) for number in (1, 2)]
    logs = DeltaRuns("x")
    (wanted,) = logs.files(1, runs[0][1])
    added = logs.added(runs, {wanted}, None)
    assert added.version == 2
    assert [f"{table.path}/{file['path']}" for file in added.files] == [wanted]
