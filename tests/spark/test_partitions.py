"""Promise DEP-12 for files: partitions are read one by one, each with a commit of its own."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from airflow_bookmarks.core.errors import MisuseError, OptionError, PartitionsFailedError
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.plan import PlanPart
from airflow_bookmarks.files.local import LocalFileSystem
from airflow_bookmarks.lifecycle.changes.change import rewind
from airflow_bookmarks.lifecycle.inspect.pending import pending
from airflow_bookmarks.lifecycle.state.partitions_left import partitions_left
from airflow_bookmarks.spark import BookmarkedJob
from tests.spark.lake import Lake, lines_of, reader_of
from tests.thorough import mostly_thorough

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def read(lake: Lake, job: BookmarkedJob, **how: Any) -> Any:
    return job.read("raw").files(per_partition=True, **how).text(lake.path("raw"))


def copied(lake: Lake, *failing: str, crash: str | None = None, **job: Any) -> list[list[str]]:
    """Read partition by partition, and copy each; return the lines of each. What has a line in `failing` fails."""
    seen: list[list[str]] = []
    for part in lake.job(**job).partitions("raw"):
        with part:
            frame = read(lake, part)
            lines = sorted(row.value for row in frame.select("value").collect())
            seen.append(lines)
            if crash in lines:
                raise KeyboardInterrupt
            part.write(frame, "copy").partitionBy("region").text(lake.path("copy"))
            if set(lines) & set(failing):
                raise ValueError(f"{lines} is wrong")
    return seen


def in_copy(lake: Lake) -> list[str]:
    return sorted(row.value for row in lake.spark.read.text(lake.path("copy")).select("value").collect())


@pytest.fixture
def filled(lake: Lake) -> Lake:
    """Return a lake with files of three regions."""
    for name in ("asia/a", "eu/a", "eu/b", "us/a"):
        lake.put(f"region={name}.txt", name)
    return lake


def test_each_partition_is_a_run_with_its_own_commit(filled: Lake) -> None:
    assert copied(filled) == [["asia/a"], ["eu/a", "eu/b"], ["us/a"]]
    assert filled.head("copy").run_number == 3
    assert copied(filled) == [[]]
    filled.put("region=us/b.txt", "us/b")
    filled.put("region=africa/a.txt", "africa/a")  # a new one
    assert copied(filled) == [["africa/a"], ["us/b"]]
    assert in_copy(filled) == ["africa/a", "asia/a", "eu/a", "eu/b", "us/a", "us/b"]


@pytest.mark.seldom
@pytest.mark.parametrize("failing", mostly_thorough(["asia/a", "eu/b", "us/a"], "eu/b"))
def test_partition_that_fails_is_named_and_its_retry_reads_it_alone(filled: Lake, failing: str) -> None:
    region = failing.partition("/")[0]
    with pytest.raises(PartitionsFailedError, match=f"partition='region={region}': ValueError"):
        copied(filled, failing, run_id="one", attempt=1)
    assert partitions_left(filled.store, "copy", "one") == {"raw": {"partition": [f"region={region}"]}}
    execution = filled.store.snapshot("copy", "one").execution
    assert execution is not None
    assert (execution.is_finished, filled.head("copy").lease) == (False, None)
    (lines,) = copied(filled, run_id="one", attempt=2)
    assert failing in lines
    assert in_copy(filled) == ["asia/a", "eu/a", "eu/b", "us/a"]
    assert partitions_left(filled.store, "copy", "one") == {}
    assert copied(filled, run_id="two") == [[]]


@pytest.mark.seldom
def test_all_partitions_fail(filled: Lake) -> None:
    with pytest.raises(PartitionsFailedError, match="3 partitions failed"):
        copied(filled, "asia/a", "eu/a", "us/a", run_id="one", attempt=1)
    assert filled.head("copy").run_number == 0
    left = partitions_left(filled.store, "copy", "one")
    assert left == {"raw": {"partition": ["region=asia", "region=eu", "region=us"]}}
    assert len(copied(filled, run_id="one", attempt=2)) == 3


@pytest.mark.seldom
def test_killed_loop_is_taken_over_and_goes_on_where_it_was(filled: Lake) -> None:
    with pytest.raises(KeyboardInterrupt):
        copied(filled, crash="eu/a", run_id="one", attempt=1)
    assert in_copy(filled) == ["asia/a"]
    assert copied(filled, run_id="one", attempt=2) == [["eu/a", "eu/b"], ["us/a"]]
    assert in_copy(filled) == ["asia/a", "eu/a", "eu/b", "us/a"]


@pytest.mark.seldom
def test_partition_that_disappears_is_left_no_longer(filled: Lake) -> None:
    with pytest.raises(PartitionsFailedError):
        copied(filled, "us/a", run_id="one", attempt=1)
    os.remove(filled.path("raw", "region=us", "a.txt"))
    assert copied(filled, run_id="one", attempt=2) == [[]]


@pytest.mark.seldom
def test_rewind_and_replay_are_those_of_any_run(filled: Lake) -> None:
    copied(filled)
    assert copied(filled, replay=2) == [["eu/a", "eu/b"]]
    rewind(filled.store, "copy", 1, reason="a test", who="ada")
    assert copied(filled) == [["eu/a", "eu/b"], ["us/a"]]


@pytest.mark.seldom
def test_pause_and_disable_read_the_same_partitions_and_change_nothing(filled: Lake) -> None:
    for option in ("pause", "disable"):
        seen = []
        for part in filled.job(option=option).partitions("raw"):
            with part:
                seen.append(len(lines_of(read(filled, part).select("value"))))
        assert seen == [1, 2, 1]
    with pytest.raises(PartitionsFailedError, match="region=eu"):
        copied(filled, "eu/a", option="pause")
    assert len(copied(filled)) == 3


@pytest.mark.seldom
def test_consumer_sees_each_commit(filled: Lake) -> None:
    with pytest.raises(PartitionsFailedError):
        copied(filled, "eu/a", run_id="one", attempt=1)

    def consume() -> list[str]:
        with filled.job("after") as job:
            frame = reader_of(job, "in").schema("value STRING, region STRING").upstream("copy")
            return sorted(row.value for row in frame.collect())

    assert consume() == ["asia/a", "us/a"]
    copied(filled, run_id="one", attempt=2)
    assert consume() == ["eu/a", "eu/b"]


@pytest.mark.seldom
def test_pending_counts_what_is_left(filled: Lake) -> None:
    with pytest.raises(PartitionsFailedError):
        copied(filled, "eu/a")
    (waiting,) = pending(filled.store, "copy").contexts
    assert waiting.files == 2


def test_folders_are_listed_once_for_a_loop(filled: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    listings = Counter[str]()
    listed = LocalFileSystem.list

    def counted(files: LocalFileSystem, path: str, **how: Any) -> Any:
        listings.update([path])
        return listed(files, path, **how)

    monkeypatch.setattr(LocalFileSystem, "list", counted)
    for part in filled.job().partitions("raw"):
        with part:
            read(filled, part)
    assert listings[filled.path("raw")] == 1


@pytest.mark.seldom
def test_plan_of_a_partition_is_stored_with_its_name(filled: Lake) -> None:
    copied(filled)
    run = filled.store.committed_run("copy", 2)
    assert run is not None
    plan = FilePlan.decode(filled.store.blobs.get(run.plans["raw"].body))
    assert plan.part == PlanPart("partition", "region=eu")


def in_loop(lake: Lake, do: Callable[[BookmarkedJob], object]) -> None:
    for part in lake.job().partitions("raw"):
        with part:
            do(part)


REFUSED: list[tuple[Callable[[Any, Any], object], str]] = [
    (lambda lake, part: part.read("raw").text(lake.path("raw")), "files without per_partition=True"),
    (lambda lake, part: read(lake, part, late_after=timedelta(1)), "per_partition=True with late_after"),
    (lambda lake, part: read(lake, part, max_files=1), "per_partition=True with max_files"),
    (lambda lake, part: read(lake, part, reread="partition"), "per_partition=True with reread"),
    (
        lambda lake, part: part.read("raw", on_schema_change="reset").files(per_partition=True).text(lake.path("raw")),
        "each part would start all of them over",
    ),
    (lambda lake, part: None, "did not read 'raw'"),
]


@pytest.mark.parametrize("place", range(len(REFUSED)))
def test_what_does_not_go_with_partitions_is_refused(filled: Lake, place: int) -> None:
    wrong, why = REFUSED[place]
    with pytest.raises((OptionError, MisuseError), match=why):
        in_loop(filled, lambda part: wrong(filled, part))


def test_file_in_no_partition_is_refused(lake: Lake) -> None:
    lake.put("a.txt", "a")
    with pytest.raises(OptionError, match="lies in no partition"):
        in_loop(lake, lambda part: read(lake, part))


def test_partitions_outside_of_a_loop_are_refused(lake: Lake) -> None:
    lake.put("region=eu/a.txt", "a")
    with pytest.raises(OptionError, match="per_partition=True reads one part at a time"), lake.job() as job:
        read(lake, job)
