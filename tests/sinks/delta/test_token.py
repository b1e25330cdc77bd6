"""Tokens, targets and what is stored of an output in a Delta table: all that needs no Spark."""

from __future__ import annotations

import pytest

from airflow_bookmarks.core.errors import SourceError
from airflow_bookmarks.core.rules.mode import Mode
from airflow_bookmarks.core.rules.territory import Territory
from airflow_bookmarks.core.run import OutputEntry, RunKey
from airflow_bookmarks.sinks.delta.sink import DeltaSink
from airflow_bookmarks.sinks.delta.tables import TableCommit
from airflow_bookmarks.sinks.delta.target import DeltaOutput, DeltaTarget
from airflow_bookmarks.sinks.delta.token import DeltaToken, number_of_burn, number_of_write
from airflow_bookmarks.sinks.registry import SINKS
from airflow_bookmarks.sinks.staging import StagingRequest
from airflow_bookmarks.store.blobs import BlobStore
from airflow_bookmarks.testing.memory import memory_store
from airflow_bookmarks.testing.sink_ground import JOB, NAME, stored_output

PATH = DeltaTarget("/lake/orders", is_path=True)


def entry_of(output: DeltaOutput, target: DeltaTarget = PATH) -> OutputEntry:
    request = StagingRequest(DeltaSink.kind, target.name, stats=output.stats(target))
    return DeltaSink().place(JOB, RunKey(2, 7), NAME, request)


def blobs() -> BlobStore:
    with memory_store() as store:
        return store.blobs


def test_burn_comes_after_every_older_write_and_before_the_own_one() -> None:
    numbers = [number for fence in range(1, 5) for number in (number_of_burn(fence), number_of_write(fence))]
    assert numbers == sorted(set(numbers))


def test_place_is_the_token_of_the_run_and_names_it() -> None:
    token = DeltaToken.parse(entry_of(DeltaOutput(Mode.APPEND, 3)).place)
    assert token == DeltaToken("test/job/out", 14, "run 2.7")


@pytest.mark.parametrize(
    "text", ["", "mine", "{}", '{"airflow_bookmarks": 1}', '{"airflow_bookmarks": {"run": "a"}}', "[]"]
)
def test_text_of_another_writer_is_no_token(text: str) -> None:
    assert DeltaToken.parse(text) is None


def test_pause_and_disable_runs_have_tokens_of_their_own() -> None:
    territory = Territory("prod", "orders")
    tokens = [DeltaToken.aside(territory, "out", run) for run in ("A", "B")]
    assert len({token.application for token in (*tokens, DeltaToken.of_run(territory, "out", RunKey(1, 1)))}) == 3


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("orders", DeltaTarget("orders", is_path=False)),
        ("main.sales.orders", DeltaTarget("main.sales.orders", is_path=False)),
        ("s3a://lake/orders", DeltaTarget("s3a://lake/orders", is_path=True)),
        ("delta.`/lake/my``orders`", DeltaTarget("/lake/my`orders", is_path=True)),
    ],
)
def test_what_a_script_names_is_a_path_or_a_table(text: str, target: DeltaTarget) -> None:
    assert DeltaTarget.parse(text) == target


@pytest.mark.parametrize("target", [PATH, DeltaTarget("spark_catalog.sales.orders", is_path=False)])
def test_what_is_stored_leads_back_to_the_table(target: DeltaTarget) -> None:
    output = DeltaOutput(Mode.OVERWRITE, 5, ("day",), ("id",), replaces_part=True, folder="/lake/orders")
    entry = entry_of(output, target)
    assert (DeltaTarget.of_entry(entry), DeltaOutput.of_stats(entry.stats)) == (target, output)


@pytest.mark.parametrize(
    ("output", "once"),
    [
        (DeltaOutput(Mode.APPEND), False),
        (DeltaOutput(Mode.APPEND, keys=("id",)), True),
        (DeltaOutput(Mode.OVERWRITE), True),
        (DeltaOutput(Mode.OVERWRITE, replaces_part=True), False),
        (DeltaOutput(Mode.OVERWRITE_PARTITIONS), False),
    ],
)
def test_preview_knows_which_tables_would_hold_rows_twice(output: DeltaOutput, once: bool) -> None:
    assert SINKS.holds_rows_once(entry_of(output)) is once


def test_clean_and_replay_are_refused_with_the_reason() -> None:
    entry = entry_of(DeltaOutput(Mode.APPEND))
    assert "Delta table (/lake/orders)" in str(SINKS.why_not_clean(entry))
    assert "can't take rows back" in str(SINKS.why_not_replay(entry))


def test_process_without_spark_says_that_it_can_not_settle() -> None:
    output = stored_output(entry_of(DeltaOutput(Mode.APPEND)), RunKey(2, 7), blobs())
    assert "no Spark session" in str(DeltaSink().why_not_here())
    with pytest.raises(SourceError, match="Run the job"):
        DeltaSink().burn(output, 8)
    with pytest.raises(SourceError, match="Run the job"):
        DeltaSink().landed(output)


def test_figures_of_an_append_and_of_a_merge_have_the_same_names() -> None:
    appended = TableCommit(4, None, {"numOutputRows": "3", "numFiles": "1", "numOutputBytes": "90"})
    merged = TableCommit(
        5,
        None,
        {
            "numOutputRows": "9",
            "numTargetRowsInserted": "2",
            "numTargetRowsUpdated": "1",
            "numTargetRowsDeleted": "4",
            "numTargetFilesAdded": "1",
            "numTargetBytesAdded": "70",
        },
    )
    assert appended.figures() == {"version_after": 4, "rows": 3, "files": 1, "bytes": 90}
    assert merged.figures() == {"version_after": 5, "rows": 3, "files": 1, "bytes": 70, "removed_keys": 4}
    assert TableCommit(6).figures() == {"version_after": 6, "rows": None}
