"""Promises of overwrites that remove what living runs published: counted, named, and warned of where rows are lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.errors import SourceChangedError
from airflow_bookmarks.core.selection.bound import Bound
from airflow_bookmarks.lifecycle.changes.change import reset, rewind
from airflow_bookmarks.lifecycle.inspect.runs import history
from airflow_bookmarks.lifecycle.maintenance.doctor.examination import examine
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.sinks.staging import Mode, StagingRequest, collect_staged
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from tests.lifecycle.shop import FILES, Shop


@pytest.fixture
def shop(shop: Shop) -> Shop:
    """Return a shop that replaces partitions."""
    shop.mode = Mode.OVERWRITE_PARTITIONS
    return shop


def one_of_two_corrected(shop: Shop, **options: Any) -> dict[str, Any]:
    """Read two files of one month and one of another, correct one, and return what the output of the next run says."""
    shop.put("month=1/a.txt", "a1", "a2")
    shop.put("month=1/b.txt", "b1")
    shop.put("month=2/c.txt", "c1")
    shop.run(options=FileOptions(**options))
    shop.put("month=1/a.txt", "a3", seconds=1_700_000_900)
    return dict(shop.run(options=FileOptions(**options))[1].as_dict()["outputs"]["out"])


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


def codes(shop: Shop) -> list[str]:
    return [finding.code for finding in examine(shop.store)]


def test_partition_of_which_a_part_was_read_is_told_everywhere(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    said = one_of_two_corrected(shop)
    assert shop.target_lines() == {"a3": 1, "c1": 1}  # the row of b is lost
    assert said["replaced_files"] == 2
    assert said["replaced_runs"] == "1"
    assert said["partly_read"] == ["month=1"]
    assert any("replaces 2 files (rows not known) of run 1" in line for line in caplog.messages)
    assert ["month=1" in line and "'raw'" in line for line in warnings(caplog)] == [True]
    assert history(shop.store, "copy")[-1]["outputs"]["out"]["partly_read"] == ["month=1"]
    assert codes(shop) == ["partition-partly-replaced"]


def test_partition_that_is_read_whole_is_replaced_without_a_warning(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    said = one_of_two_corrected(shop, reread="partition")
    assert shop.target_lines() == {"a3": 1, "b1": 1, "c1": 1}
    assert (said["replaced_files"], "partly_read" in said, warnings(caplog)) == (2, False, [])
    assert codes(shop) == []


def test_partition_that_is_read_whole_later_is_no_finding_any_more(shop: Shop) -> None:
    one_of_two_corrected(shop)
    shop.put("month=1/d.txt", "d1")
    shop.run(options=FileOptions(reread="partition"))
    assert shop.target_lines() == {"a3": 1, "b1": 1, "d1": 1, "c1": 1}
    assert codes(shop) == []


def test_overwrite_of_everything_is_counted_and_no_warning(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    shop.mode = Mode.OVERWRITE
    shop.put("a.txt", "a1", "a2")
    first = shop.run()[1]
    shop.put("b.txt", "b1")
    second = shop.run()[1]
    assert "replaced_files" not in first.outputs["out"]
    assert second.outputs["out"]["replaced_files"] == 1
    assert second.outputs["out"]["replaced_rows"] == 2
    assert "replaces 1 file (2 rows) of run 1" in second.in_words()
    assert (warnings(caplog), codes(shop)) == ([], [])


def test_source_without_partitions_is_a_warning_that_says_may(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    shop.put("a.txt", "a1")
    shop.put("b.txt", "b1")
    shop.run()
    shop.put("a.txt", "a2", "a3")
    said = shop.run()[1].outputs["out"]
    assert ["may have read a part only" in line for line in warnings(caplog)] == [True]
    assert (said["maybe_partly_read"], "partly_read" in said) == (True, False)
    assert codes(shop) == ["published-file-replaced"]


def test_overwrite_of_what_was_appended_is_seen_by_the_doctor(shop: Shop) -> None:
    shop.mode = Mode.APPEND
    shop.put("a.txt", "a1")
    shop.run()
    shop.mode = Mode.OVERWRITE
    shop.put("b.txt", "b1")
    shop.run()
    assert codes(shop) == ["published-file-replaced"]


def test_batch_that_replaces_what_the_batch_before_wrote_is_a_warning(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    shop.put("month=1/a.txt", "a1")
    shop.put("month=1/b.txt", "b1")
    options = FileOptions(bound=Bound(max_files=1))
    assert [shop.run(options=options)[0] for _ in range(2)] == [["a1"], ["b1"]]
    assert ["month=1" in line for line in warnings(caplog)] == [True]


def test_files_of_undone_runs_are_not_counted_as_those_of_living_ones(shop: Shop) -> None:
    shop.put("month=1/a.txt", "a1")
    shop.run()
    reset(shop.store, "copy", reason="a test", who="me")
    assert "replaced_files" not in shop.run()[1].outputs["out"]


@pytest.mark.parametrize(("mode", "warned"), [(Mode.APPEND, True), (Mode.OVERWRITE_PARTITIONS, False)])
def test_consumer_that_replaces_a_partition_of_which_it_reads_the_increment_is_warned(
    shop: Shop, caplog: pytest.LogCaptureFixture, mode: Mode, warned: bool
) -> None:
    for name in ("a", "b"):
        shop.put(f"month=1/{name}.txt", name)
        shop.mode = mode
        shop.run("up", options=FileOptions(reread="partition" if mode is Mode.OVERWRITE_PARTITIONS else None))
        shop.mode = Mode.OVERWRITE_PARTITIONS
        caplog.clear()
        said = shop.run("down", upstream="up")[1].outputs["out"]
    assert said.get("partly_read") == (["month=1"] if warned else None)
    assert ["month=1" in line for line in warnings(caplog)] == [True] * warned
    assert shop.target_lines("down") == ({"b": 1} if mode is Mode.APPEND else {"a": 1, "b": 1})


class Stopped(BaseException):
    """Stands for a process that ended at a point."""


def deleted_for_a_dropped_publish(shop: Shop) -> None:
    """Publish a file, let a run that overwrites it end once it has deleted it, and take that run back."""
    shop.put("month=1/a.txt", "a1")
    shop.run("up")

    def stop(at: Failpoint) -> None:
        if at is Failpoint.PUBLISHED:
            raise Stopped

    shop.put("month=1/a.txt", "a2", "x")
    with pytest.raises(Stopped):
        replace(shop, environment=replace(shop.environment, at=stop)).run("up")
    rewind(shop.store, "up", 1, reason="a test", who="me", force=True)


@pytest.mark.parametrize("mode", [Mode.OVERWRITE, Mode.OVERWRITE_PARTITIONS])
def test_file_that_a_dropped_publish_deleted_is_replaced_once_a_later_run_overwrites_its_place(
    shop: Shop, mode: Mode
) -> None:
    shop.mode = mode
    deleted_for_a_dropped_publish(shop)
    shop.run("up")
    lines, summary = shop.run("down", upstream="up")
    assert (sorted(lines), summary.contexts["raw"]["skipped"]) == (["a2", "x"], {"replaced": 1})
    assert codes(shop) == []


def test_file_that_a_dropped_publish_deleted_is_missed_until_a_later_run_overwrites_its_place(shop: Shop) -> None:
    deleted_for_a_dropped_publish(shop)
    (shop.raw / "month=1/a.txt").unlink()  # so that no run makes its partition again
    shop.put("month=2/b.txt", "b1")
    assert shop.run("up")[0] == ["b1"]
    run = shop.begin("down")
    with pytest.raises(SourceChangedError, match="are gone"):
        shop.copy(run, upstream="up")
    run.abort("a test")


@pytest.mark.parametrize("reread", [None, "partition"])
@pytest.mark.parametrize(
    ("columns", "told"), [("month=1", {"maybe_partly_read": True}), ("day={day}", {}), ("month=1/day={day}", {})]
)
def test_partitions_that_were_not_listed_may_be_part_of_a_coarser_one_that_is_replaced(
    shop: Shop, caplog: pytest.LogCaptureFixture, reread: str | None, columns: str, told: dict[str, bool]
) -> None:
    def write(**options: Any) -> dict[str, Any]:
        run = shop.begin()
        source = FileSource(FILES, [str(shop.raw)], FileOptions(reread=reread, **options))
        plan, target = run.plan("raw", source), str(shop.root / "copy")
        figures = {"format": "text", "mode": shop.mode.value}
        folder = Path(run.place("out", StagingRequest("files", target, stats=figures)))
        for number, path in enumerate(plan.files.paths):
            part = folder / columns.format(day=Path(path).parent.name[4:]) / f"part-{number}.txt"
            part.parent.mkdir(parents=True, exist_ok=True)
            part.write_text(Path(path).read_text())
        made = collect_staged(FILES, str(folder), target, run.file_token, shop.mode, rows=len(plan), schema="{}")
        run.staged("out", made)
        return dict(run.commit().outputs["out"])

    shop.put("day=1/a.txt", "a")
    shop.put("day=2/b.txt", "b")
    write()
    shop.put("day=2/b.txt", "corrected", seconds=1_700_000_900)
    said = write(partition_filter="day = 2")
    assert said["replaced_runs"] == "1"
    assert {name: said[name] for name in ("partly_read", "maybe_partly_read") if name in said} == told
    assert ["may have read a part only" in line for line in warnings(caplog)] == ([True] if told else [])
    assert codes(shop) == (["published-file-replaced"] if told else [])
