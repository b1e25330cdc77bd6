"""Promises FILE-18, FILE-11: columns that change between runs are seen, and nothing is lost without a word."""

# ruff: noqa: PT012 - what raises here is often the end of a block

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from airflow_bookmarks.core.errors import MisuseError, OptionError, SchemaChangedError, SourceError
from airflow_bookmarks.lifecycle.changes.change import reset
from airflow_bookmarks.spark.readers import schema as readers_schema
from tests.spark.lake import Lake, columns_of, reader_of, rows_of
from tests.thorough import mostly_thorough

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def put(lake: Lake, name: str, *rows: dict[str, Any]) -> None:
    lake.put(f"{name}.json", *(json.dumps(row) for row in rows))


def put_parquet(lake: Lake, name: str, ddl: str, *rows: tuple[Any, ...]) -> None:
    folder = lake.root / f"{name}.tmp"
    lake.spark.createDataFrame(list(rows), ddl).coalesce(1).write.parquet(str(folder))
    (part,) = folder.glob("part-*.parquet")
    part.rename(lake.root / "raw" / f"{name}.parquet")


def run(lake: Lake, source: str = "json", schema: str | None = None, **kwargs: Any) -> tuple[Any, Any]:
    """Make one whole run; return the columns as (name, type), and the rows."""
    options = {"header": True, "inferSchema": True} if source == "csv" else {}
    with lake.job() as job:
        reader = reader_of(job, "raw", **kwargs).format(source).options(**options)
        frame = (reader if schema is None else reader.schema(schema)).load(lake.path("raw"))
        return [(name, kind) for name, kind, _ in columns_of(frame)], rows_of(frame)


def change(lake: Lake) -> Any:
    """Return what the last run recorded of a change of columns."""
    last = lake.store.committed_run("copy", lake.head().run_number)
    assert last is not None
    return last.metrics["contexts"]["raw"].get("schema_change")


# ---- what passes


@pytest.mark.parametrize("source", mostly_thorough(["json", "csv", "parquet"], "csv"))
def test_added_column_passes_and_is_on_the_record(lake: Lake, source: str, caplog: pytest.LogCaptureFixture) -> None:
    frames = [("a INT", (1,)), ("a INT, b STRING", (2, "x")), ("a INT, b STRING", (3, "y"))]
    for ddl, row in frames[:2]:
        frame = lake.spark.createDataFrame([row], ddl).coalesce(1)
        frame.write.mode("append").format(source).option("header", True).save(lake.path("raw"))
        with caplog.at_level(logging.INFO, "airflow_bookmarks"):
            columns, rows = run(lake, source)
    assert [name for name, _ in columns] == ["a", "b"]
    assert rows == [(2, "x")]
    assert change(lake) == {"added": ["b: not there -> string"]}
    assert "the columns have changed: added b: not there -> string" in caplog.text
    frame = lake.spark.createDataFrame([frames[2][1]], frames[2][0])
    frame.write.mode("append").format(source).option("header", True).save(lake.path("raw"))
    assert run(lake, source) == (columns, [(3, "y")])
    assert change(lake) is None


def test_added_field_of_a_struct_passes(lake: Lake) -> None:
    put(lake, "a", {"s": {"x": 1}, "l": [{"y": 1}]})
    run(lake)
    put(lake, "b", {"s": {"x": 1, "n": "new"}, "l": [{"y": 1, "m": True}]})
    columns, _ = run(lake)
    assert columns == [("l", "array<struct<y:bigint,m:boolean>>"), ("s", "struct<x:bigint,n:string>")]
    assert change(lake) == {"added": ["l.element.m: not there -> boolean", "s.n: not there -> string"]}


@pytest.mark.seldom
@pytest.mark.needs("wider types")
def test_wider_type_passes_and_a_narrower_one_is_read_as_the_wider(lake: Lake) -> None:
    put_parquet(lake, "a", "a INT, f FLOAT", (1, 1.5))
    run(lake, "parquet")
    put_parquet(lake, "b", "a BIGINT, f DOUBLE", (2**40, 2.5))
    assert run(lake, "parquet")[0] == [("a", "bigint"), ("f", "double")]
    assert change(lake) == {"widened": ["a: int -> bigint", "f: float -> double"]}
    put_parquet(lake, "c", "a INT, f FLOAT", (3, 3.5))
    assert run(lake, "parquet") == ([("a", "bigint"), ("f", "double")], [(3, 3.5)])
    assert change(lake) is None


def test_field_that_no_value_sets_is_null_and_is_no_change(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    put(lake, "a", {"a": 1, "b": 1.5, "s": {"x": "u", "y": 1}})
    columns, _ = run(lake)
    put(lake, "b", {"a": 2, "s": {"x": "v"}})
    with caplog.at_level(logging.INFO, "airflow_bookmarks"):
        found, rows = run(lake)
    assert (found, [row[:2] for row in rows], change(lake)) == (columns, [(2, None)], None)
    assert "2 columns are null in all files" in caplog.text


def test_one_field_that_no_value_sets_is_counted_as_one(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    put(lake, "a", {"a": 1, "b": 1})
    run(lake)
    put(lake, "b", {"a": 2})
    with caplog.at_level(logging.INFO, "airflow_bookmarks"):
        run(lake)
    assert "1 column is null in all files: b" in caplog.text


@pytest.mark.parametrize("source", ["json", "csv"])
def test_values_that_look_narrower_are_read_in_the_recorded_type(lake: Lake, source: str) -> None:
    def add(name: str, d: float, s: str, n: int | None) -> None:
        if source == "json":
            put(lake, name, {"d": d, "s": s, "n": n})
        else:
            lake.put(f"{name}.csv", "d,n,s", f"{d},{'' if n is None else n},{s}")

    add("a", 1.5, "word", 1)
    columns, _ = run(lake, source)
    add("b", 2, "7", None)
    found, rows = run(lake, source)
    assert (found, rows, change(lake)) == (columns, [(2.0, None, "7")], None)


# ---- what does not


@pytest.mark.seldom
@pytest.mark.parametrize(
    ("source", "first", "then", "difference"),
    [
        pytest.param(
            "parquet",
            ("a INT, b STRING", (1, "x")),
            ("a INT", (2,)),
            r"removed b: string -> not there",
            marks=pytest.mark.thorough,
        ),
        ("parquet", ("a INT", (1,)), ("a STRING", ("x",)), r"changed a: int -> string"),
        ("orc", ("s STRUCT<x: INT>", ((1,),)), ("s STRUCT<x: STRING>", (("u",),)), r"changed s\.x: int -> string"),
        pytest.param(
            "json", ("a INT", (1,)), ("a STRING", ("x",)), r"changed a: bigint -> string", marks=pytest.mark.thorough
        ),
        ("csv", ("a INT, b STRING", (1, "x")), ("a INT", (2,)), r"removed b: string -> not there"),
        pytest.param(
            "csv", ("a INT", (1,)), ("a STRING", ("x",)), r"changed a: int -> string", marks=pytest.mark.thorough
        ),
    ],
)
def test_incompatible_change_fails_with_each_column_and_commits_nothing(
    lake: Lake, source: str, first: Any, then: Any, difference: str
) -> None:
    for ddl, row in (first, then):
        frame = lake.spark.createDataFrame([row], ddl).coalesce(1)
        frame.write.mode("append").format(source).option("header", True).save(lake.path("raw"))
        if ddl == first[0]:
            run(lake, source)
    before = lake.state()
    with pytest.raises(SchemaChangedError, match=rf"'raw'.*{difference}.*Nothing was committed.*'accept'.*'reset'"):
        run(lake, source)
    assert lake.state() == before
    columns, rows = run(lake, source, on_schema_change="accept")
    assert (len(rows), change(lake)) == (1, {difference.split()[0]: [difference.partition(" ")[2].replace("\\", "")]})
    assert run(lake, source) == (columns, [])


def test_schema_that_the_script_changes_follows_the_same_words(lake: Lake) -> None:
    put(lake, "a", {"a": 1, "b": 1})
    run(lake, schema="a INT, b INT")
    put(lake, "b", {"a": 2, "b": 2})
    with pytest.raises(SchemaChangedError, match="removed b: int -> not there"):
        run(lake, schema="a INT")
    assert run(lake, schema="a BIGINT, b INT")[1] == [(2, 2)]
    assert change(lake) == {"widened": ["a: int -> bigint"]}


def test_error_that_is_caught_does_not_let_the_run_commit(lake: Lake) -> None:
    put(lake, "a", {"a": 1})
    run(lake)
    put(lake, "b", {"a": "x"})
    before = lake.state()
    refusal = r"'raw' was planned and not read: SchemaChangedError.*[^.]\. Nothing was committed: what"
    with pytest.raises(MisuseError, match=refusal), lake.job() as job, pytest.raises(SchemaChangedError):
        job.read("raw").json(lake.path("raw"))
    assert lake.state() == before
    assert run(lake, on_schema_change="accept")[1] == [("x",)]


def test_reset_reads_all_from_the_beginning_with_the_new_columns(lake: Lake) -> None:
    put(lake, "a", {"a": 1})
    run(lake)
    put(lake, "b", {"a": "x"})
    assert run(lake, on_schema_change="reset") == ([("a", "string")], [("1",), ("x",)])
    assert change(lake) == {"changed": ["a: bigint -> string"]}
    (last,) = lake.store.runs("copy", after=1)
    entry = last.plans["raw"]
    assert (entry.stats["files"], entry.stats["starts_over"]) == (2, True)
    assert run(lake, on_schema_change="reset") == ([("a", "string")], [])
    put(lake, "c", {"a": 3})
    assert run(lake, on_schema_change="reset") == ([("a", "string")], [("3",)])


def test_reset_without_a_change_reads_only_what_is_new(lake: Lake) -> None:
    put(lake, "a", {"a": 1})
    run(lake, on_schema_change="reset")
    put(lake, "b", {"a": 2, "b": 1})
    assert run(lake, on_schema_change="reset")[1] == [(2, 1)]


def test_reset_that_fails_leaves_the_bookmark_where_it_was(lake: Lake) -> None:
    put(lake, "a", {"a": 1})
    run(lake)
    put(lake, "b", {"a": "x"})
    before = lake.state()
    with pytest.raises(InterruptedError), lake.job() as job:
        assert job.read("raw", on_schema_change="reset").json(lake.path("raw")).count() == 2
        raise InterruptedError
    assert lake.state() == before
    assert run(lake, on_schema_change="reset")[1] == [("1",), ("x",)]


def test_reset_that_finds_nothing_new_and_fails_does_not_let_the_run_commit(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(job: Any, schema: str) -> Any:
        reader = job.read("raw", on_schema_change="reset").files(on_corrupt="quarantine")
        return rows_of(reader.schema(schema).csv(lake.path("raw")))

    def refuse(*_: object) -> None:
        raise PermissionError("denied")

    lake.put("a.csv", "1")
    with lake.job() as job:
        read(job, "a INT")
    before = lake.state()
    with monkeypatch.context() as patch:
        patch.setattr("airflow_bookmarks.spark.contexts.files.find_corrupt", refuse)
        refused = pytest.raises(MisuseError, match="'raw' was planned and not read: PermissionError")
        with refused, lake.job() as job, pytest.raises(PermissionError):
            read(job, "a STRING")
    assert lake.state() == before
    with lake.job() as job:
        assert read(job, "a STRING") == [("1",)]


@pytest.mark.seldom
def test_reset_in_bounded_runs_would_never_end_and_is_refused_before_anything_is_read(lake: Lake) -> None:
    put_parquet(lake, "a", "a INT, b INT", (1, 1))
    run(lake, "parquet")
    put_parquet(lake, "b", "a INT, c INT", (2, 2))
    before = lake.state()
    with pytest.raises(OptionError, match=r"with a bound \(max_files.*Nothing was read"):
        run(lake, "parquet", on_schema_change="reset", max_files=1)
    with pytest.raises(OptionError, match=r"with a bound \(max_files"):
        for batch in lake.job().batches(max_files=1):
            with batch:
                batch.read("raw", on_schema_change="reset").parquet(lake.path("raw"))
    assert lake.state() == before


def test_source_that_was_reset_by_hand_is_drained_in_bounded_runs(lake: Lake) -> None:
    for i in range(3):
        put(lake, f"a{i}", {"a": i})
    run(lake)
    put(lake, "b", {"a": "x"})
    reset(lake.store, "copy", reason="r", who="ada")
    seen = []
    for batch in lake.job().batches(max_files=2):
        with batch:
            seen += rows_of(batch.read("raw").schema("a STRING").json(lake.path("raw")))
    assert seen == [("0",), ("1",), ("2",), ("x",)]


@pytest.mark.seldom
@pytest.mark.parametrize("option", ["pause", "disable"])
def test_paused_run_follows_the_words_and_changes_nothing(lake: Lake, option: str) -> None:
    put(lake, "a", {"a": 1})
    run(lake)
    put(lake, "b", {"a": "x"})
    before = lake.state()
    counts = {}
    for choice in ("accept", "reset"):
        with lake.job(option=option) as job:
            counts[choice] = job.read("raw", on_schema_change=choice).json(lake.path("raw")).count()
    assert counts == ({"accept": 1, "reset": 2} if option == "pause" else {"accept": 2, "reset": 2})
    if option == "pause":
        with pytest.raises(SchemaChangedError), lake.job(option=option) as job:
            job.read("raw").json(lake.path("raw"))
    assert lake.state() == before


def test_another_source_is_not_held_against_the_columns_of_the_one_before(lake: Lake) -> None:
    put(lake, "a", {"a": 1})
    run(lake)
    lake.put("b.json", '{"z": "x"}', folder="other")
    with lake.job() as job:
        frame = job.read("raw", on_source_change="reset").json(lake.path("other"))
        assert (frame.columns, rows_of(frame)) == (["z"], [("x",)])


@pytest.mark.parametrize("is_loop", [False, True], ids=["of the read", "of the loop"])
def test_starting_over_in_parts_of_an_upstream_is_refused(lake: Lake, is_loop: bool) -> None:
    lake.put("a.txt", "a")
    lake.copy("up")
    job = next(iter(lake.job("down").batches(max_files=1))) if is_loop else lake.job("down")
    with pytest.raises(OptionError, match=r"on_schema_change='reset' with a bound \(max_files"), job:
        job.read("up", on_schema_change="reset").upstream("up", max_files=None if is_loop else 1)
    assert lake.head("down").run_number == 0


@pytest.mark.seldom
def test_columns_of_an_upstream_follow_the_same_words(lake: Lake) -> None:
    def publish(*columns: str) -> None:
        lake.put(f"{len(list((lake.root / 'raw').iterdir()))}.txt", "1")
        with lake.job("up") as job:
            job.write(lake.read(job).selectExpr(*columns), "out").parquet(lake.path("up"))

    def consume(**kwargs: Any) -> Any:
        with lake.job("down") as job:
            return rows_of(job.read("up", **kwargs).upstream("up"))

    publish("cast(value AS INT) AS a")
    assert consume() == [(1,)]
    publish("concat('x', value) AS a")
    with pytest.raises(SchemaChangedError, match="changed a: int -> string"):
        consume()
    assert consume(on_schema_change="accept") == [("x1",)]
    publish("concat('y', value) AS a", "1 AS b")
    assert consume() == [("y1", 1)]


@pytest.mark.seldom
def test_reset_reads_all_that_the_upstream_has_published(lake: Lake) -> None:
    def publish(*columns: str) -> None:
        lake.put(f"{len(list((lake.root / 'raw').iterdir()))}.txt", "1")
        with lake.job("up") as job:
            job.write(lake.read(job).selectExpr(*columns), "out").parquet(lake.path("up"))

    def consume() -> Any:
        with lake.job("down") as job:
            return rows_of(job.read("up", on_schema_change="reset").upstream("up"))

    publish("1 AS a", "'x' AS b")
    assert consume() == [(1, "x")]
    publish("2 AS a")
    assert consume() == [(1,), (2,)]
    assert consume() == []
    publish("3 AS a")
    assert consume() == [(3,)]


# ---- partition columns


def test_partition_column_follows_the_words(lake: Lake) -> None:
    lake.put("k=1/a.txt", "a")
    run(lake, "text")
    lake.put("k=one/b.txt", "b")
    with pytest.raises(SchemaChangedError, match=r"'one' is none.*'accept'.*'reset'"):
        run(lake, "text")
    with lake.job(option="pause") as job:
        assert rows_of(job.read("raw", on_schema_change="reset").text(lake.path("raw"))) == [("a", "1"), ("b", "one")]
    assert run(lake, "text", on_schema_change="accept") == ([("value", "string"), ("k", "string")], [("b", "one")])
    assert change(lake) == {"changed": ["k: int -> string"]}
    lake.put("k=2/c.txt", "c")
    assert run(lake, "text")[1] == [("c", "2")]


# ---- files of one run


@pytest.mark.seldom
@pytest.mark.parametrize("way", ["paths", "directory"])
def test_column_that_only_a_later_file_has_is_not_lost(lake: Lake, way: Any) -> None:
    put_parquet(lake, "a", "a INT", (1,))
    put_parquet(lake, "b", "a INT, b STRING", (2, "x"))
    columns, rows = run(lake, "parquet", read_by=way)
    assert columns == [("a", "int"), ("b", "string")]
    assert rows == [(1, None), (2, "x")]


@pytest.mark.needs("wider types")
@pytest.mark.parametrize("way", ["paths", "directory"])
def test_files_of_several_widths_are_read_as_the_widest(lake: Lake, way: Any) -> None:
    put_parquet(lake, "a", "a INT", (1,))
    put_parquet(lake, "b", "a INT, b STRING", (2, "x"))
    put_parquet(lake, "c", "a BIGINT", (2**40,))
    columns, rows = run(lake, "parquet", read_by=way)
    assert columns == [("a", "bigint"), ("b", "string")]
    assert rows == [(1, None), (1099511627776, None), (2, "x")]


@pytest.fixture
def without_wider_types(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Spark not read a type as a wider one, as PySpark 3.5 reads Parquet."""
    monkeypatch.setattr("airflow_bookmarks.spark.readers.schema.reads_as", lambda *_: False)


@pytest.mark.usefixtures("without_wider_types")
def test_files_of_several_widths_are_an_error_where_spark_does_not_widen(lake: Lake) -> None:
    put_parquet(lake, "a", "a INT", (1,))
    put_parquet(lake, "b", "a BIGINT", (2**40,))
    with pytest.raises(
        SchemaChangedError, match=r"a: int -> bigint.*a\.parquet.*Nothing was committed. Run the job with"
    ):
        run(lake, "parquet")
    assert lake.state()[1] == 0


@pytest.mark.seldom
@pytest.mark.usefixtures("without_wider_types")
def test_narrower_type_is_a_change_where_spark_does_not_widen(lake: Lake) -> None:
    put_parquet(lake, "a", "a BIGINT", (2**40,))
    run(lake, "parquet")
    put_parquet(lake, "b", "a INT", (1,))
    with pytest.raises(SchemaChangedError, match="changed a: bigint -> int"):
        run(lake, "parquet")
    assert run(lake, "parquet", on_schema_change="accept") == ([("a", "int")], [(1,)])


@pytest.mark.seldom
def test_files_that_can_not_be_read_together_are_an_error_that_names_one_of_each(lake: Lake) -> None:
    put_parquet(lake, "a", "a INT", (1,))
    put_parquet(lake, "b", "a STRING", ("x",))
    with pytest.raises(
        SchemaChangedError,
        match=r"^job 'copy', context 'raw': .*a: int -> string.*a\.parquet.*b\.parquet.*Nothing was committed",
    ):
        run(lake, "parquet")
    assert lake.state()[1] == 0


@pytest.mark.seldom
def test_merging_that_the_script_switches_off_is_off(lake: Lake) -> None:
    put_parquet(lake, "a", "a INT", (1,))
    put_parquet(lake, "b", "a INT, b STRING", (2, "x"))
    with lake.job() as job:
        assert job.read("raw").parquet(lake.path("raw"), mergeSchema=False).columns == ["a"]


def test_csv_column_added_at_the_end_within_a_run_is_read(lake: Lake) -> None:
    lake.put("a.csv", "a,b", "1,x")
    lake.put("b.csv", "a,b,c", "2,y,2013-01-01")
    columns, rows = run(lake, "csv")
    assert columns == [("a", "int"), ("b", "string"), ("c", "date")]
    assert [tuple(map(str, row)) for row in rows] == [("1", "x", "None"), ("2", "y", "2013-01-01")]


def test_csv_columns_in_another_order_within_a_run_are_an_error(lake: Lake) -> None:
    lake.put("a.csv", "a,b", "1,x")
    lake.put("b.csv", "b,a", "y,2")
    with pytest.raises(SchemaChangedError, match="by position, so values would end up under the wrong name"):
        run(lake, "csv")
    assert lake.state()[1] == 0


def test_csv_headers_that_differ_are_told_with_the_job_and_a_file_of_each(lake: Lake) -> None:
    lake.put("a.csv", "a", "1")
    lake.put("b.csv", "a,b", "1,x")
    lake.put("c.csv", "a,b", "1,x")
    lake.put("d.csv", "a,c", "1,x")
    named = (
        r"^job 'copy', context 'raw': .*'b' in some and 'c' in others.*some is '[^']*/b\.csv'.*others '[^']*/d\.csv'"
    )
    with pytest.raises(SchemaChangedError, match=named):
        run(lake, "csv")


# ---- how many files are looked at


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return how many files Spark was given, each time that it was asked for columns."""
    asked: list[int] = []
    seen = readers_schema._SchemaScan._seen

    def counted(self: Any, paths: Any, **options: str) -> Any:
        asked.append(len(paths))
        return seen(self, paths, **options)

    monkeypatch.setattr(readers_schema._SchemaScan, "_seen", counted)
    return asked


@pytest.mark.seldom
def test_columns_of_many_files_come_from_a_sample_that_the_log_names(
    lake: Lake, looks: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    for i in range(250):
        put(lake, f"{i:03}", {"a": i} | ({"first": 1} if i == 0 else {}) | ({"last": 1} if i == 249 else {}))
    with caplog.at_level(logging.INFO, "airflow_bookmarks"):
        columns, rows = run(lake)
    assert (looks, len(rows)) == ([100], 250)
    assert [name for name, _ in columns] == ["a", "first", "last"]
    assert "columns found in 100 of 250 files" in caplog.text
    assert "infer_schema='all'" in caplog.text


def put_csv(lake: Lake, count: int, header: str, odd: str) -> None:
    """Write so many CSV files of one header, and one, which a sample of 2 does not look at, of another."""
    for i in range(count):
        lake.put(f"{i}.csv", odd if i == 1 else header, "2,1")


@pytest.fixture
def small_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let only 2 files be looked at for columns."""
    monkeypatch.setattr(readers_schema, "MOST_CONTENTS", 2)


@pytest.mark.seldom
@pytest.mark.usefixtures("small_sample")
def test_csv_that_the_sample_leaves_out_is_not_read_under_the_wrong_names(lake: Lake) -> None:
    put_csv(lake, 4, "dep,arr", odd="arr,dep")
    with pytest.raises(Exception, match="CSV header does not conform"):
        run(lake, "csv")
    assert lake.state()[1] == 0


@pytest.mark.seldom
@pytest.mark.usefixtures("small_sample")
def test_csv_headers_that_spark_can_not_compare_are_read_of_all_files(lake: Lake) -> None:
    put_csv(lake, 4, ",arr", odd="arr,")
    with pytest.raises(SchemaChangedError, match=r"different headers.*[01]\.csv'.*[01]\.csv'"):
        run(lake, "csv")
    lake.put("1.csv", ",arr", "3,1")
    assert run(lake, "csv") == ([("_c0", "int"), ("arr", "int")], [(2, 1), (2, 1), (2, 1), (3, 1)])


@pytest.mark.seldom
@pytest.mark.usefixtures("small_sample")
def test_csv_column_that_the_sample_shows_in_some_files_alone_is_held_against_all(lake: Lake) -> None:
    for i, header in enumerate(["dep,arr", "dep,arr", "dep,arr,on"]):
        lake.put(f"{i}.csv", header, "2,1" if i < 2 else "2,1,3")
    assert run(lake, "csv")[1] == [(2, 1, 3), (2, 1, None), (2, 1, None)]
    put_csv(lake, 2, "dep,arr", odd="arr,dep")
    lake.put("4.csv", "dep,arr,on", "2,1,3")
    with pytest.raises(SchemaChangedError, match="different headers"):
        run(lake, "csv")


@pytest.mark.seldom
def test_all_files_are_looked_at_where_asked(lake: Lake, looks: list[int]) -> None:
    for i in range(101):
        put(lake, f"{i:03}", {"a": i} if i != 77 else {"a": i, "b": 1})
    assert [name for name, _ in run(lake, infer_schema="all")[0]] == ["a", "b"]
    assert looks == [101]


def test_columns_of_the_last_run_are_taken_without_a_look(lake: Lake, looks: list[int]) -> None:
    put(lake, "a", {"a": 1})
    columns, _ = run(lake, infer_schema="last")
    put(lake, "b", {"a": 2, "b": 2})
    assert run(lake, infer_schema="last") == (columns, [(2,)])
    assert looks == [1]


def test_csv_by_the_columns_of_the_last_run_is_held_against_its_header(lake: Lake) -> None:
    lake.put("a.csv", "a,b", "1,x")
    run(lake, "csv")
    lake.put("b.csv", "b,a", "y,2")
    with pytest.raises(Exception, match=r"CSV header|header"):
        run(lake, "csv", infer_schema="last")
    assert lake.state()[1] == 1


def test_sample_without_content_is_no_reason_to_look_no_further(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers_schema, "MOST_CONTENTS", 2)
    monkeypatch.setattr("airflow_bookmarks.spark.readers.files.MOST_CONTENTS", 2)
    lake.put("a.json", "")
    put(lake, "b", {"a": 1})
    lake.put("c.json", "")
    assert run(lake) == ([("a", "bigint")], [(1,)])


def test_schema_that_is_given_needs_no_look(lake: Lake, looks: list[int]) -> None:
    put(lake, "a", {"a": 1})
    run(lake, schema="a INT")
    assert looks == []


def test_corrupt_record_of_one_run_is_no_column_of_the_next(lake: Lake) -> None:
    lake.put("a.json", '{"a": 1}', "{broken")
    assert [name for name, _ in run(lake)[0]] == ["_corrupt_record", "a"]
    put(lake, "b", {"a": 2})
    assert run(lake)[0] == [("a", "bigint")]


@pytest.mark.parametrize("wrong", [{"on_schema_change": "allow"}, {"infer_schema": "none"}])
def test_unknown_words_are_refused(lake: Lake, wrong: Any) -> None:
    put(lake, "a", {"a": 1})
    with pytest.raises(OptionError, match="expected one of"):
        run(lake, **wrong)


def test_error_of_spark_stays_what_it_is(lake: Lake) -> None:
    put(lake, "a", {"a": 1})
    with pytest.raises(AnalysisException), lake.job() as job:
        job.read("raw").json(lake.path("raw"), mode="NONSENSE").select("nothing").collect()


def test_column_of_csv_that_folders_give_as_well_shifts_no_values(lake: Lake) -> None:
    lake.put("month=1/a.csv", "id,month,v", "7,99,x")
    with pytest.raises(SourceError, match=r"of \['month'\]"):
        run(lake, "csv")
    assert run(lake, "csv", "id INT, month_inside INT, v STRING")[1] == [(7, 99, "x", 1)]


def test_columns_of_the_last_run_may_have_names_that_spark_made_up(lake: Lake) -> None:
    def read(**kwargs: Any) -> Any:
        with lake.job() as job:
            frame = reader_of(job, "raw", **kwargs).option("header", True).csv(lake.path("raw"))
            return frame.columns, rows_of(frame)

    lake.put("a.csv", "carrier,,delay", "AA,x,1")
    read()
    lake.put("b.csv", "carrier,,delay", "BA,y,2")
    assert read(infer_schema="last") == (["carrier", "_c1", "delay"], [("BA", "y", "2")])
    lake.put("c.csv", "delay,,carrier", "3,z,CA")
    with pytest.raises(SchemaChangedError, match=r"c\.csv"):
        read(infer_schema="last")
