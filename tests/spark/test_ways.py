"""Promises FILE-8, FILE-10, FILE-14, RUN-2: by paths and by directory give the planned files, and the same columns."""

# ruff: noqa: PT012 - what raises here is often the end of a block

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from airflow_bookmarks.core.errors import SchemaChangedError, SourceChangedError
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.selection.listing import FileInfo, Listing
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.environment import runs_in
from airflow_bookmarks.spark.readers.files import Way, choose_way, paths_by_root
from airflow_bookmarks.spark.readers.format import Format
from tests.spark.lake import Lake, columns_of, lines_of, reader_of, rows_of

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

WAYS: tuple[Way, ...] = ("paths", "directory")
ODD_NAMES = [
    "a b.txt",
    "é.txt",
    "日本.txt",
    "emoji😀.txt",
    "non-breaking\u00a0space.txt",
    "p%25.txt",
    "p%20x.txt",
    "a+b.txt",
    "[x].txt",
    "{y}.txt",
    "c,d.txt",
    "h#i.txt",
    "k=v.txt",
    "q'uote.txt",
    'dou"ble.txt',
    "back\\slash.txt",
    "question?.txt",
    "st*r.txt",
    "a;b&c$d!~@.txt",
    "caret^`|<>.txt",
]


def read(lake: Lake, source: str = "text", schema: str | None = None, **kwargs: Any) -> tuple[Any, Any]:
    """Read what is new, in a paused run each way; return columns and rows, which both ways agree on."""
    seen = []
    for way in lake.ways:
        with lake.job(option="pause") as job:
            reader = reader_of(job, "raw", read_by=way, **kwargs).format(source).option("header", True)
            frame = (reader if schema is None else reader.schema(schema)).load(lake.path("raw"))
            seen.append((columns_of(frame), rows_of(frame)))
    assert seen[0] == seen[-1]
    return seen[0]


@pytest.mark.parametrize("way", WAYS)
def test_odd_file_names_are_read_and_left_out_exactly(lake: Lake, way: Way) -> None:
    for i, name in enumerate(ODD_NAMES):
        lake.put(name, f"old {i}")
    with lake.job() as job:
        assert lines_of(lake.read(job, read_by=way)) == sorted(f"old {i}" for i in range(len(ODD_NAMES)))
    for i, name in enumerate(ODD_NAMES):
        lake.put(f"new {name}", f"new {i}")
    with lake.job() as job:
        assert lines_of(lake.read(job, read_by=way)) == sorted(f"new {i}" for i in range(len(ODD_NAMES)))


@pytest.mark.seldom
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("folder", ["a b", "[x]", "{y}", "é", "%20", "#", "co:lon", "back\\slash", "k=v", "_hidden"])
def test_odd_folder_names_are_read_exactly(lake: Lake, way: Way, folder: str) -> None:
    lake.put("m=1/a.txt", "a", folder=folder)
    with lake.job() as job:
        assert rows_of(lake.read(job, folder, read_by=way)) == [("a", 1)]
    lake.put("m=1/b.txt", "b", folder=folder)
    with lake.job() as job:
        assert rows_of(lake.read(job, folder, read_by=way)) == [("b", 1)]


@pytest.mark.parametrize("way", WAYS)
def test_file_that_came_after_the_frame_was_made_is_in_neither(lake: Lake, way: Way) -> None:
    lake.put("a.txt", "a")
    with lake.job() as job:
        frame = lake.read(job, read_by=way)
        lake.put("b.txt", "b")
        assert lines_of(frame) == ["a"]
    assert lake.run() == ["b"]


@pytest.mark.seldom
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("folder", ["raw", "raw/m=1"])
def test_file_that_comes_when_the_session_refreshes_the_folder_of_a_cached_frame_is_read_by_the_next_run(
    lake: Lake, way: Way, folder: str
) -> None:
    lake.put("a.txt", "a", folder=folder)
    with lake.job() as job:
        frame = lake.read(job, read_by=way).cache()
        assert lines_of(frame) == ["a"]
        lake.put("old.txt", "dated before the plan", folder=folder)
        os.utime(lake.path(folder, "old.txt"), (1_000_000_000, 1_000_000_000))
        lake.spark.createDataFrame([("appended",)], "value STRING").write.mode("append").text(lake.path(folder))
        lake.spark.catalog.refreshByPath(lake.path("raw"))
        assert lines_of(frame) == ["a"]
        assert lines_of(frame.where("value <> ''")) == ["a"]
    frame.unpersist()
    assert lake.run() == ["appended", "dated before the plan"]


def test_partition_columns_have_the_settled_types_either_way(lake: Lake) -> None:
    null = "__HIVE_DEFAULT_PARTITION__"
    lake.put(f"year=2013/month=01/day=2013-01-31/word=a%2Fb/maybe={null}/a.txt", "a")
    lake.put(f"year=2013/month=02/day=2013-02-01/word={null}/maybe=7/b.txt", "b")
    columns, rows = read(lake)
    assert [(name, kind) for name, kind, _ in columns] == [
        ("value", "string"),
        ("year", "int"),
        ("month", "int"),
        ("day", "date"),
        ("word", "string"),
        ("maybe", "int"),
    ]
    assert [(r[0], r[2], str(r[3]), r[4], r[5]) for r in rows] == [
        ("a", 1, "2013-01-31", "a/b", None),
        ("b", 2, "2013-02-01", None, 7),
    ]


def test_schema_that_names_a_partition_column_keeps_its_text(lake: Lake) -> None:
    lake.put("month=01/a.csv", "carrier,delay", "AA,1")
    columns, rows = read(lake, "csv", "MONTH STRING, carrier STRING, delay INT")
    assert columns == [("carrier", "string", True), ("delay", "int", True), ("MONTH", "string", True)]
    assert rows == [("AA", 1, "01")]


def test_types_stay_where_fewer_values_are_seen(lake: Lake) -> None:
    first = lake.put("k=abc/a.txt", "a")
    lake.run()
    lake.put("k=1/b.txt", "b")
    first.unlink()
    columns, rows = read(lake)
    assert (columns[1], rows) == (("k", "string", True), [("b", "1")])


def test_settled_type_stays_where_only_nulls_are_left(lake: Lake) -> None:
    first = lake.put("k=7/a.txt", "a")
    lake.run()
    lake.put("k=__HIVE_DEFAULT_PARTITION__/b.txt", "b")
    first.unlink()
    columns, rows = read(lake)
    assert (columns[1], rows) == (("k", "int", True), [("b", None)])


def test_value_that_does_not_fit_the_settled_type_is_an_error_until_the_schema_names_the_column(lake: Lake) -> None:
    lake.put("month=01/a.txt", "a")
    lake.run()
    before = lake.state()
    lake.put("month=1st/b.txt", "b")
    with pytest.raises(SchemaChangedError, match=r"'1st'.*Name the column in the schema"), lake.job() as job:
        lake.read(job)
    assert lake.state() == before
    _, rows = read(lake, "text", "value STRING, month STRING")
    assert rows == [("b", "1st")]


@pytest.mark.seldom
@pytest.mark.parametrize("source", ["parquet", "json"])
def test_columns_inside_and_outside_of_files_come_in_one_order(lake: Lake, source: str) -> None:
    frame = lake.spark.createDataFrame([("AA", 1, "x"), ("BA", 2, "y")], "carrier STRING, delay INT, b STRING")
    frame.write.mode("append").partitionBy("b", "delay").format(source).save(lake.path("raw"))
    columns, rows = read(lake, source)
    assert [name for name, _, _ in columns] == ["carrier", "b", "delay"]
    assert rows == [("AA", "x", 1), ("BA", "y", 2)]


def test_user_column_that_hides_sparks_metadata_does_no_harm(lake: Lake) -> None:
    lake.put("old.json", '{"_metadata": 1}')
    with lake.job() as job:
        rows_of(job.read("raw").json(lake.path("raw")))
    lake.put("new.json", '{"_metadata": 2}')
    assert read(lake, "json")[1] == [(2,)]


@pytest.mark.parametrize("way", WAYS)
def test_folders_that_are_no_partition_are_counted_and_not_read(lake: Lake, way: Way) -> None:
    lake.put("m=1/a.txt", "a")
    lake.put("m=1/deeper/b.txt", "b")
    lake.put("beside/c.txt", "c")
    with lake.job() as job:
        assert lines_of(lake.read(job, read_by=way)) == ["a"]
    assert job.summary is not None
    assert job.summary["contexts"]["raw"]["skipped"] == {"nested": 2}


@pytest.mark.parametrize("way", WAYS)
def test_folder_that_comes_between_plan_and_read_is_not_read(lake: Lake, way: Way) -> None:
    lake.put("m=1/a.txt", "a")
    with after_the_plan(lambda: lake.put("beside/c.txt", "c")), lake.job() as job:
        assert lines_of(lake.read(job, read_by=way)) == ["a"]


@pytest.mark.parametrize("way", WAYS)
def test_recursive_lookup_reads_all_folders_and_takes_none_for_a_partition(lake: Lake, way: Way) -> None:
    lake.put("m=1/deeper/a.txt", "a")
    lake.put("b.txt", "b")
    with lake.job() as job:
        frame = job.read("raw").files(read_by=way).option("recursiveFileLookup", "True").text(lake.path("raw"))
        assert rows_of(frame) == [("a",), ("b",)]
    lake.put("beside/c.txt", "c")
    with lake.job() as job:
        frame = job.read("raw").files(read_by=way).text(lake.path("raw"), recursiveFileLookup=True)
        assert rows_of(frame) == [("c",)]


@pytest.mark.parametrize("way", WAYS)
def test_several_roots_are_read_as_one_and_each_file_once(lake: Lake, way: Way) -> None:
    lake.put("m=1/a.json", '{"a": 1}', folder="one")
    lake.put("m=2/b.json", '{"a": 2, "b": "x"}', folder="two")
    lake.put("m=3/c.json", '{"a": 3}', folder="two")
    roots = [lake.path("one"), lake.path("two"), lake.path("two"), f"file://{lake.path('one')}/"]

    def rows() -> Any:
        with lake.job() as job:
            return rows_of(job.read("raw").files(read_by=way).json(roots))

    assert rows() == [(1, None, 1), (2, "x", 2), (3, None, 3)]
    lake.put("m=2/d.json", '{"a": 4, "b": "y"}', folder="two")
    assert rows() == [(4, "y", 2)]


@pytest.mark.parametrize("way", WAYS)
def test_roots_that_lie_within_each_other_read_each_file_once(lake: Lake, way: Way) -> None:
    lake.put("a.txt", "a")
    lake.put("deeper/b.txt", "b")
    with lake.job() as job:
        frame = job.read("raw").files(read_by=way).text([lake.path("raw"), lake.path("raw", "deeper")])
        assert lines_of(frame) == ["a", "b"]


@pytest.mark.parametrize("way", WAYS)
def test_roots_may_be_files(lake: Lake, way: Way) -> None:
    one, two = lake.put("a.json", '{"a": 1}'), lake.put("k=v/b.json", '{"a": 2}')
    lake.put("c.json", '{"a": 3}')
    with lake.job() as job:
        assert rows_of(job.read("raw").files(read_by=way).json([str(one), str(two)])) == [(1,), (2,)]


@pytest.mark.parametrize(
    ("planned", "listed", "lists_once", "plan_way"),
    [
        (500, 500, True, "paths"),
        (501, 1_001, True, "directory"),
        (501, 1_003, True, "paths"),
        (100_000, 100_000, True, "directory"),
        (100_000, 100_000, False, "paths"),
    ],
)
def test_plan_that_is_large_and_most_of_its_folder_is_read_by_directory(
    planned: int, listed: int, lists_once: bool, plan_way: Way
) -> None:
    files = Listing([f"/d/{i}" for i in range(planned)], np.zeros(planned, np.int64), np.zeros(planned, np.int64))
    assert choose_way(FilePlan(files, ("/d",), listed, 0), lists_once) == plan_way


class Counted(tuple[str, ...]):
    """Roots that count how often they are gone through."""

    passes = 0

    def __iter__(self) -> Iterator[str]:
        Counted.passes += 1
        return super().__iter__()


def test_many_files_that_are_named_are_not_compared_with_each_other() -> None:
    paths = [f"/raw/{number}.txt" for number in range(100)]
    plan = FilePlan(Listing.of([FileInfo(path, 1, 1) for path in paths]), Counted(paths), 100, 0)

    assert paths_by_root(plan, Format("copy", "text", {}, None)) == {path: [path] for path in paths}
    assert Counted.passes == 1


# ---- files that go or change while they are read


def after_the_plan(happens: Callable[[], object]) -> AbstractContextManager[None]:
    """Let something happen when a job of the block has its plan stored and nothing is read yet."""

    def hook(point: Failpoint) -> None:
        if point is Failpoint.PLANNED:
            happens()

    return runs_in(lambda _: RunEnvironment(at=hook))


def two_files(lake: Lake) -> Path:
    lake.put("a.txt", "a")
    return lake.put("b.txt", "b")


@pytest.mark.parametrize("way", WAYS)
def test_planned_file_that_goes_before_it_is_read_stops_the_run(lake: Lake, way: Way) -> None:
    happens = after_the_plan(two_files(lake).unlink)
    with happens, pytest.raises(SourceChangedError, match=r"b\.txt.*Nothing was .*plans anew"), lake.job() as job:
        job.write(lake.read(job, read_by=way), "out").text(lake.path("copy"))
    assert (lake.head().run_number, lake.visible()) == (0, [])


@pytest.mark.parametrize("way", WAYS)
def test_planned_file_that_goes_before_it_is_read_is_left_out_and_counted_when_asked(lake: Lake, way: Way) -> None:
    gone = two_files(lake)
    with after_the_plan(lambda: gone.unlink(missing_ok=True)), lake.job() as job:
        frame: DataFrame = lake.read(job, read_by=way, on_missing="skip")
        assert lines_of(frame) == ["a"]
    assert job.summary is not None
    assert job.summary["contexts"]["raw"]["skipped"] == {"missing": 1}
    lake.put("b.txt", "b again")
    assert lake.run() == ["b again"]


@pytest.mark.needs("kept plans")
@pytest.mark.parametrize("way", WAYS)
def test_planned_file_that_goes_before_the_first_action_is_left_out_and_counted_when_asked(
    lake: Lake, way: Way
) -> None:
    gone = two_files(lake)
    with lake.job() as job:
        frame = lake.read(job, read_by=way, on_missing="skip")
        gone.unlink()
        assert lines_of(frame) == ["a"]
    assert job.summary is not None
    assert job.summary["contexts"]["raw"]["skipped"] == {"missing": 1}


def test_file_that_goes_before_the_first_action_is_an_error_also_where_the_session_would_leave_it_out(
    lake: Lake,
) -> None:
    lake.spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    gone = two_files(lake)
    with pytest.raises((PySparkException, Py4JError), match=r"b\.txt"), lake.job() as job:
        frame = lake.read(job)
        gone.unlink()
        lines_of(frame)
    assert lake.head().run_number == 0


def test_file_overwritten_under_the_run_stops_it_or_is_the_next_runs(lake: Lake) -> None:
    changed = two_files(lake)
    with pytest.raises(SourceChangedError, match=r"b\.txt.*Nothing was committed.*Run it again"), lake.job() as job:
        job.write(lake.read(job), "out").text(lake.path("copy"))
        lake.put(changed.name, "b", "c")
    assert (lake.head().run_number, lake.visible()) == (0, [])
    with lake.job() as job:
        lines_of(lake.read(job, on_missing="skip"))
        lake.put(changed.name, "b", "c", "d")
    assert lake.run() == ["b", "c", "d"]
