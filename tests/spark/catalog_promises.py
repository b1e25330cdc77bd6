"""Promise SINK-9: files of a run are in the tables of a catalog: a Hive metastore, and the Glue Data Catalog.

`test_catalog.py` runs these in a process of its own: a Spark has its metastore from the start.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import boto3.session
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_bookmarks.core.errors import OptionError, PublishError, SourceError
from airflow_bookmarks.core.job import DEFAULT_NAMESPACE
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.environment import runs_in
from airflow_bookmarks.sinks.files.catalog import CatalogPartition
from airflow_bookmarks.sinks.files.glue import GlueCatalog
from airflow_bookmarks.spark import BookmarkedJob
from airflow_bookmarks.spark.features import SPARK_ERRORS
from airflow_bookmarks.spark.tables.catalog import SparkCatalog
from airflow_bookmarks.spark.writer import BookmarkedWriter
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.testing.crash import SimulatedCrash
from tests.quick_spark import JAVA_OPTIONS
from tests.spark.drivers import dies_at
from tests.spark.lake import Lake
from tests.spark.statements import statements_of
from tests.thorough import each_once, mostly_thorough

pytestmark = pytest.mark.spark


@pytest.fixture(scope="session")
def more_conf(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """Give Spark a metastore of Hive in a folder, as a cluster has one in a database."""
    folder = tmp_path_factory.mktemp("metastore")
    return {
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/db;create=true",
        "spark.driver.extraJavaOptions": f"{JAVA_OPTIONS} -Dderby.stream.error.file={folder}/derby.log",
        "spark.hadoop.hive.exec.scratchdir": str(folder / "scratch"),
    }


@pytest.fixture
def table(lake: Lake) -> str:
    """Name a table that is not there."""
    return f"default.orders_{lake.root.parent.name.replace('-', '_')}_{lake.root.name.replace('-', '_')}".lower()


def orders(lake: Lake, job: BookmarkedJob) -> DataFrame:
    """Return the lines read, "<id>,<day>", as a table of orders has them."""
    parts = F.split("value", ",")
    return lake.read(job).select(parts[0].cast("int").alias("id"), parts[1].alias("day"))


def run(lake: Lake, write: Callable[[BookmarkedWriter], object], **given: Any) -> None:
    with lake.job(**given) as job:
        write(job.write(orders(lake, job), "out"))


def saved(table: str) -> Callable[[BookmarkedWriter], object]:
    return lambda writer: writer.partitionBy("day").saveAsTable(table)


def partitions(lake: Lake, table: str) -> list[str]:
    return sorted(row[0] for row in lake.spark.sql(f"SHOW PARTITIONS {table}").collect())


def rows(lake: Lake, table: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in lake.spark.sql(f"SELECT id, day FROM {table}").collect())


# ---- Spark's catalog


@pytest.mark.often
def test_table_is_made_and_has_each_row_and_partition_once(lake: Lake, table: str) -> None:
    lake.put("a.txt", "1,2026-01-01", "2,2026-01-02")
    run(lake, saved(table))
    lake.put("b.txt", "3,2026-01-02", "4,2026-01-03")
    run(lake, saved(table))
    assert partitions(lake, table) == ["day=2026-01-01", "day=2026-01-02", "day=2026-01-03"]
    assert [row[0] for row in rows(lake, table)] == [1, 2, 3, 4]
    assert lake.head().published == 2


def test_append_looks_at_the_table_thrice_and_at_its_partitions_before_and_after_it_adds_some(
    lake: Lake, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.put("a.txt", "1,x")
    run(lake, saved(table))
    lake.put("b.txt", "2,y")
    asked = statements_of(lake, monkeypatch, lambda: run(lake, saved(table)))
    assert asked == [*["DESCRIBE TABLE EXTENDED"] * 3, "SHOW PARTITIONS", "SHOW PARTITIONS"]
    assert [row[0] for row in rows(lake, table)] == [1, 2]


def test_nothing_of_a_run_is_in_the_table_before_the_commit(lake: Lake, table: str) -> None:
    lake.put("a.txt", "1,x")
    with lake.job() as job:
        job.write(orders(lake, job), "out").partitionBy("day").saveAsTable(table)
        assert (partitions(lake, table), rows(lake, table)) == ([], [])
    assert (partitions(lake, table), rows(lake, table)) == (["day=x"], [(1, "x")])


def test_table_of_hive_gets_rows_by_their_places_in_its_own_types(lake: Lake, table: str) -> None:
    lake.spark.sql(f"CREATE TABLE {table} (id BIGINT) PARTITIONED BY (day DATE) STORED AS PARQUET")
    lake.put("a.txt", "1,2026-01-01")
    with lake.job() as job:
        frame = orders(lake, job).toDF("number", "when")
        job.write(frame.withColumn("when", F.to_date("when")), "out").insertInto(table)
    frame = lake.spark.table(table)
    assert [field.dataType.simpleString() for field in frame.schema] == ["bigint", "date"]
    assert [(row["id"], str(row["day"])) for row in frame.collect()] == [(1, "2026-01-01")]
    assert partitions(lake, table) == ["day=2026-01-01"]


def test_columns_of_a_table_are_found_by_name(lake: Lake, table: str) -> None:
    lake.spark.sql(f"CREATE TABLE {table} (ID BIGINT, note STRING, day STRING) USING orc PARTITIONED BY (day)")
    lake.put("a.txt", "1,x")
    with lake.job() as job:
        frame = orders(lake, job).select("day", F.lit("n").alias("NOTE"), "id")
        job.write(frame, "out").saveAsTable(table)
    assert [tuple(row) for row in lake.spark.table(table).collect()] == [(1, "n", "x")]


def test_text_of_a_length_is_held_to_it(lake: Lake, table: str) -> None:
    lake.spark.sql(f"CREATE TABLE {table} (id INT, day VARCHAR(3)) USING parquet")
    lake.put("a.txt", "1,abc")
    run(lake, lambda writer: writer.insertInto(table))
    lake.put("b.txt", "2,abcd")
    with pytest.raises(SPARK_ERRORS, match="takes 3 characters at most, and not: abcd"):
        run(lake, lambda writer: writer.insertInto(table))
    assert rows(lake, table) == [(1, "abc")]


def test_table_without_partitions_is_seen_anew(lake: Lake, table: str) -> None:
    for number in (1, 2):
        lake.put(f"{number}.txt", f"{number},x")
        run(lake, lambda writer: writer.saveAsTable(table))
        assert len(rows(lake, table)) == number


def test_values_of_partitions_may_be_anything(lake: Lake, table: str) -> None:
    values = ["it's", "a/b=c", "50%", "back\\slash", "", "ü"]
    lake.put("a.txt", *(f"{number},{value}" for number, value in enumerate(values)))
    run(lake, lambda writer: saved(table)(writer))
    found = {row[0]: row[1] for row in lake.spark.sql(f"SELECT id, day FROM {table}").collect()}
    assert found == {number: value or None for number, value in enumerate(values)}  # Spark reads '' of a folder as NULL
    assert len(partitions(lake, table)) == len(values)


@pytest.mark.parametrize("overwrite", mostly_thorough(["static", "dynamic"], "dynamic"))
def test_overwrite_keeps_the_table_and_replaces_its_files(lake: Lake, table: str, overwrite: str) -> None:
    lake.put("a.txt", "1,x", "2,y")
    run(lake, saved(table))
    lake.put("b.txt", "3,x")
    run(lake, lambda writer: writer.option("partitionOverwriteMode", overwrite).insertInto(table, overwrite=True))
    assert rows(lake, table) == ([(2, "y"), (3, "x")] if overwrite == "dynamic" else [(3, "x")])
    assert partitions(lake, table) == ["day=x", "day=y"]  # one without files stays, and has no rows


@pytest.mark.often
def test_publish_that_died_before_the_partitions_is_finished_by_the_next_run(lake: Lake, table: str) -> None:
    lake.put("a.txt", "1,x", "2,y")
    with pytest.raises(SimulatedCrash), runs_in(lambda _: RunEnvironment(at=dies_at(Failpoint.MOVED, 2))):
        run(lake, saved(table))
    assert partitions(lake, table) == []
    run(lake, saved(table))
    assert partitions(lake, table) == ["day=x", "day=y"]
    assert rows(lake, table) == [(1, "x"), (2, "y")]


@pytest.mark.parametrize("error", [SourceError("the metastore is down"), OptionError("there is no table")])
def test_publish_stays_due_while_the_catalog_takes_no_partitions(
    lake: Lake, table: str, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refuse(self: SparkCatalog, name: str, folder: str, new: Sequence[CatalogPartition]) -> None:
        raise error

    lake.put("a.txt", "1,x")
    with monkeypatch.context() as patch:
        patch.setattr(SparkCatalog, "add", refuse)
        with pytest.raises(PublishError, match=f"files are published, and its partitions are not .*{error}.*stays due"):
            run(lake, saved(table))
    assert (lake.head().published, partitions(lake, table)) == (0, [])
    run(lake, saved(table))
    assert (lake.head().published, partitions(lake, table)) == (2, ["day=x"])


def test_table_that_lies_elsewhere_at_the_publish_gets_nothing(lake: Lake, table: str) -> None:
    lake.put("a.txt", "1,x")
    run(lake, saved(table))
    lake.put("b.txt", "2,y")
    job = lake.job().begin()
    saved(table)(job.write(orders(lake, job), "out"))
    lake.spark.sql(f"ALTER TABLE {table} SET LOCATION '{lake.path('elsewhere')}'")
    with pytest.raises(PublishError, match=r"lies in .*elsewhere.*stays due"):
        job.commit()
    assert partitions(lake, table) == ["day=x"]


@pytest.mark.parametrize(
    "how", mostly_thorough(["USING parquet PARTITIONED BY (Day)", "PARTITIONED BY (Day STRING) STORED AS PARQUET"])
)
def test_partition_that_is_there_takes_more_rows_whatever_its_value(lake: Lake, table: str, how: str) -> None:
    columns = "id INT, Day STRING" if how.startswith("USING") else "id INT"
    lake.spark.sql(f"CREATE TABLE {table} ({columns}) {how}")
    odd = ["a/b", "x y", "100%", "ü", "it's", "a=b:c", "back\\slash"]
    for number in range(2):
        lake.put(f"{number}.txt", *(f"{number},{value}" for value in odd))
        run(lake, lambda writer: writer.saveAsTable(table))
    assert lake.head().published == 2
    assert rows(lake, table) == sorted((number, value) for number in range(2) for value in odd)


@pytest.mark.parametrize(
    ("value", "key"), each_once(["2026-01-01", "__HIVE_DEFAULT_PARTITION__"], ["day STRING", "day DATE"])
)
def test_partition_that_lies_elsewhere_is_no_place_to_publish_to(lake: Lake, table: str, key: str, value: str) -> None:
    lake.spark.sql(f"CREATE TABLE {table} (id INT) PARTITIONED BY ({key}) STORED AS PARQUET")
    spec = "day = NULL" if value.startswith("__") else f"day = '{value}'"
    lake.spark.sql(f"ALTER TABLE {table} ADD PARTITION ({spec}) LOCATION '{lake.path('elsewhere')}'")
    lake.put("a.txt", "1," if value.startswith("__") else f"1,{value}", "2,2026-01-02")

    def write(writer: BookmarkedWriter) -> None:
        writer.saveAsTable(table)

    def insert() -> None:
        with lake.job() as job:
            day = F.col("day") if key == "day STRING" else F.expr("try_cast(day AS DATE)")
            frame = orders(lake, job).withColumn("day", F.when(F.col("day") != "", day))
            write(job.write(frame, "out"))

    with pytest.raises(PublishError, match=r"has a partition 'day=.*elsewhere'.*It was left as it is.*stays due"):
        insert()
    assert (lake.head().published, rows(lake, table)[1:]) == (0, [])
    lake.spark.sql(f"ALTER TABLE {table} DROP PARTITION ({spec})")
    insert()
    assert [row[0] for row in lake.spark.sql(f"SELECT id FROM {table} ORDER BY id").collect()] == [1, 2]


@pytest.mark.parametrize(("column", "kind"), [("DAY", "STRING"), ("day", "INT")])
def test_partition_lies_where_its_files_are_however_the_catalog_spells_it(
    lake: Lake, table: str, column: str, kind: str
) -> None:
    lake.spark.sql(
        f"CREATE TABLE {table} (id INT, day {kind}) USING parquet PARTITIONED BY (day) LOCATION '{lake.path('out')}'"
    )
    for name, lines in (("a.txt", ["1,01", "2,02"]), ("b.txt", ["3,02", "4,03"])):
        lake.put(name, *lines)
        with lake.job() as job:
            writer = job.write(orders(lake, job).withColumnRenamed("day", column), "out").partitionBy(column)
            writer.in_catalog(f"spark:{table}").parquet(lake.path("out"))
    assert lake.head().published == 2
    days = ["01", "02", "02", "03"]
    assert rows(lake, table) == [(number, int(day) if kind == "INT" else day) for number, day in enumerate(days, 1)]


def test_two_folders_that_are_one_partition_to_the_catalog_are_no_place_to_publish_to(
    lake: Lake, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("airflow_bookmarks.spark.tables.catalog._AT_ONCE", 1)  # the metastore refuses both at once
    lake.spark.sql(
        f"CREATE TABLE {table} (id INT, day INT) USING parquet PARTITIONED BY (day) LOCATION '{lake.path('out')}'"
    )
    lake.put("a.txt", "1,01", "2,1")
    with pytest.raises(PublishError, match=r"has a partition 'day=1' already that lies in .*day=01'.*stays due"):
        run(lake, lambda w: w.partitionBy("day").in_catalog(f"spark:{table}").parquet(lake.path("out")))


def test_partition_columns_of_a_table_are_taken_in_its_own_case(lake: Lake, table: str) -> None:
    lake.spark.sql(f"CREATE TABLE {table} (id INT, day STRING) USING parquet PARTITIONED BY (day)")
    lake.put("a.txt", "1,x", "2,y")
    run(lake, lambda writer: writer.saveAsTable(table))
    lake.put("b.txt", "3,x")
    with lake.job() as job:
        frame = orders(lake, job).withColumnRenamed("day", "DAY")
        writer = job.write(frame, "out").mode("overwrite").option("partitionOverwriteMode", "dynamic")
        writer.partitionBy("DAY").saveAsTable(table)
    assert rows(lake, table) == [(2, "y"), (3, "x")]
    assert partitions(lake, table) == ["day=x", "day=y"]


@pytest.mark.parametrize("verb", ["saveAsTable", "insertInto", "in_catalog"])
def test_overwrite_of_a_table_with_a_partition_outside_of_its_folder_is_refused(
    lake: Lake, table: str, verb: str
) -> None:
    out, elsewhere = lake.path("out"), lake.path("elsewhere")
    lake.spark.sql(f"CREATE TABLE {table} (id INT, day STRING) USING parquet PARTITIONED BY (day) LOCATION '{out}'")
    lake.spark.sql(f"ALTER TABLE {table} ADD PARTITION (day = 'a/b') LOCATION '{elsewhere}'")
    lake.spark.sql(f"INSERT INTO {table} PARTITION (day = 'a/b') VALUES (1)")
    lake.put("a.txt", "2,x")

    def write(writer: BookmarkedWriter) -> None:
        if verb == "in_catalog":
            writer.mode("overwrite").partitionBy("day").in_catalog(f"spark:{table}").parquet(out)
        else:
            getattr(writer.mode("overwrite"), verb)(table)

    outside = r"a partition 'day=a%2Fb' that lies in '.*elsewhere', outside .*Drop it.*Nothing was written or committed"
    with pytest.raises(OptionError, match=outside):
        run(lake, write)
    assert rows(lake, table) == [(1, "a/b")]
    lake.spark.sql(f"ALTER TABLE {table} DROP PARTITION (day = 'a/b')")
    run(lake, write)
    assert rows(lake, table) == [(2, "x")]


@pytest.mark.parametrize("option", mostly_thorough(["pause", "disable"]))
def test_run_that_moves_nothing_adds_its_partitions(lake: Lake, table: str, option: str) -> None:
    lake.put("a.txt", "1,x")
    run(lake, saved(table))
    lake.put("b.txt", "2,y")
    run(lake, saved(table), option=option)
    assert partitions(lake, table) == ["day=x", "day=y"]


def test_run_without_new_input_touches_no_table(lake: Lake, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.put("a.txt", "1,x")
    run(lake, saved(table))
    monkeypatch.setattr(SparkCatalog, "add", None)  # a call would fail
    run(lake, saved(table))
    assert rows(lake, table) == [(1, "x")]


def _columns(writer: BookmarkedWriter, lake: Lake, table: str) -> None:
    lake.spark.sql(f"CREATE TABLE {table} (id INT, more INT, day STRING) USING parquet PARTITIONED BY (day)")
    writer.saveAsTable(table)


def _places(writer: BookmarkedWriter, lake: Lake, table: str) -> None:
    lake.spark.sql(f"CREATE TABLE {table} (id INT) USING parquet")
    writer.insertInto(table)


def _types(writer: BookmarkedWriter, lake: Lake, table: str) -> None:
    lake.spark.sql(f"CREATE TABLE {table} (id INT, day DATE) USING parquet")
    writer.insertInto(table)


def _view(writer: BookmarkedWriter, lake: Lake, table: str) -> None:
    lake.spark.sql(f"CREATE VIEW {table} AS SELECT 1 AS id, 'x' AS day")
    writer.insertInto(table)


def _buckets(writer: BookmarkedWriter, lake: Lake, table: str) -> None:
    lake.spark.sql(f"CREATE TABLE {table} (id INT, day STRING) USING parquet CLUSTERED BY (id) INTO 2 BUCKETS")
    writer.insertInto(table)


def _text(writer: BookmarkedWriter, lake: Lake, table: str) -> None:
    lake.spark.sql(f"CREATE TABLE {table} (id INT, day STRING) USING csv OPTIONS (header 'true')")
    writer.insertInto(table)


def _rows_of_text(writer: BookmarkedWriter, lake: Lake, table: str) -> None:
    lake.spark.sql(f"CREATE TABLE {table} (id INT, day STRING) STORED AS TEXTFILE")
    writer.insertInto(table)


def _elsewhere(writer: BookmarkedWriter, lake: Lake, table: str) -> None:
    lake.spark.sql(f"CREATE TABLE {table} (id INT, day STRING) USING parquet PARTITIONED BY (day)")
    writer.partitionBy("day").in_catalog(f"spark:{table}").parquet(lake.path("out"))


def _other_partitions(writer: BookmarkedWriter, lake: Lake, table: str) -> None:
    place = lake.path("out")
    lake.spark.sql(f"CREATE TABLE {table} (id INT, day STRING) USING parquet PARTITIONED BY (day) LOCATION '{place}'")
    writer.in_catalog(f"spark:{table}").parquet(place)


def _given_format(writer: BookmarkedWriter, lake: Lake, table: str) -> None:
    lake.spark.sql(f"CREATE TABLE {table} (id INT, day STRING) USING parquet")
    writer.format("orc").insertInto(table)


REFUSED: Mapping[str, tuple[Callable[[BookmarkedWriter, Lake, str], object], str]] = {
    "columns": (_columns, "columns of the frame .* are not those of the table .*'more'.* missing"),
    "places": (_places, "the frame has 2 columns, and the table .* 1"),
    "types": (_types, "the column 'day' of the table .* is date, and that of the frame string"),
    "view": (_view, "is a view"),
    "buckets": (_buckets, "has buckets"),
    "csv": (_text, "is of format csv"),
    "text of Hive": (_rows_of_text, "is of format .*LazySimpleSerDe"),
    "elsewhere": (_elsewhere, "lies in '.*', and the output in '.*out'"),
    "other partitions": (_other_partitions, r"is partitioned by \['day'\], and the output by 'nothing'|by nothing"),
    "format": (_given_format, "format 'orc', and the table .* is of parquet"),
    "no table": (lambda writer, lake, table: writer.insertInto(table), "there is no table"),
    "partitionBy": (lambda writer, lake, table: writer.partitionBy("day").insertInto(table), "partitionBy has no"),
    "made of csv": (lambda writer, lake, table: writer.format("csv").saveAsTable(table), "of format csv can't be made"),
    "no name": (lambda writer, lake, table: writer.saveAsTable("no name"), "no name of a table"),
    "no catalog": (lambda writer, lake, table: writer.in_catalog("hive:x.y"), "is no table of a catalog"),
    "no table of spark": (
        lambda writer, lake, table: writer.in_catalog(f"spark:{table}").parquet(lake.path("out")),
        "there is no table",
    ),
    "database": (
        lambda writer, lake, table: writer.in_catalog(f"spark:{table}").jdbc("jdbc:postgresql://h/d", "t"),
        "has no effect on a table of a database",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_table_that_a_run_can_not_write_to_is_refused(lake: Lake, table: str, case: str) -> None:
    write, words = REFUSED[case]
    lake.put("a.txt", "1,x")
    job = lake.job().begin()
    with pytest.raises(OptionError, match=re.compile(f"{words}.*Nothing was", re.DOTALL)):
        write(job.write(orders(lake, job), "out"), lake, table)
    job.abort("refused")
    assert lake.head().version == 0


# ---- the Glue Data Catalog


@pytest.fixture
def glue(moto_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return a client of a Data Catalog that has a database."""
    for name, value in (
        ("AWS_ENDPOINT_URL_GLUE", moto_url),
        ("AWS_DEFAULT_REGION", "eu-west-1"),
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
    ):
        monkeypatch.setenv(name, value)
    client = boto3.session.Session().client("glue")
    client.create_database(DatabaseInput={"Name": "sales"})
    yield client
    client.delete_database(Name="sales")


def glue_table(glue: Any, folder: str, *keys: str) -> None:
    storage = {"Columns": [{"Name": "id", "Type": "int"}], "Location": Path(folder).as_uri(), "Compressed": False}
    table = {"Name": "orders", "PartitionKeys": [{"Name": key, "Type": "string"} for key in keys]}
    glue.create_table(DatabaseName="sales", TableInput={**table, "StorageDescriptor": storage})


def in_glue(lake: Lake) -> Callable[[BookmarkedWriter], object]:
    return lambda writer: writer.partitionBy("day").in_catalog("glue:sales.orders").parquet(lake.path("out"))


def glue_partitions(glue: Any) -> dict[tuple[str, ...], str]:
    found = glue.get_partitions(DatabaseName="sales", TableName="orders")["Partitions"]
    return {tuple(each["Values"]): each["StorageDescriptor"]["Location"] for each in found}


@pytest.mark.often
def test_table_of_glue_has_each_partition_once(lake: Lake, glue: Any) -> None:
    glue_table(glue, lake.path("out"), "Day")
    for name, lines in (("a.txt", ["1,x", "2,a/b"]), ("b.txt", ["3,x", "4,z"])):
        lake.put(name, *lines)
        run(lake, in_glue(lake))
    root = Path(lake.path("out")).as_uri()
    assert glue_partitions(glue) == {("x",): f"{root}/day=x", ("a/b",): f"{root}/day=a%2Fb", ("z",): f"{root}/day=z"}


def test_more_partitions_than_one_request_takes_are_added(lake: Lake, glue: Any) -> None:
    glue_table(glue, lake.path("out"), "day")
    new = [CatalogPartition(f"day={number}", (("day", str(number)),)) for number in range(250)]
    for _ in range(2):
        GlueCatalog().add("sales.orders", lake.path("out"), new)
    assert len(glue_partitions(glue)) == 250


def test_partition_of_glue_that_lies_elsewhere_is_no_place_to_publish_to(lake: Lake, glue: Any) -> None:
    glue_table(glue, lake.path("out"), "day")
    storage = {"Columns": [], "Location": lake.path("elsewhere")}
    wrong = {"Values": ["x"], "StorageDescriptor": storage}
    glue.create_partition(DatabaseName="sales", TableName="orders", PartitionInput=wrong)
    lake.put("a.txt", "1,x", "2,y")
    with pytest.raises(PublishError, match=r"has a partition 'x' already that lies in .*elsewhere'.*stays due"):
        run(lake, in_glue(lake))
    assert lake.head().published == 0
    glue.delete_partition(DatabaseName="sales", TableName="orders", PartitionValues=["x"])
    run(lake, in_glue(lake))
    assert sorted(glue_partitions(glue)) == [("x",), ("y",)]
    assert lake.head().published == 2


def test_overwrite_of_a_table_of_glue_with_a_partition_outside_of_its_folder_is_refused(lake: Lake, glue: Any) -> None:
    glue_table(glue, lake.path("out"), "day")
    storage = {"Columns": [], "Location": lake.path("elsewhere")}
    partition = {"Values": ["old"], "StorageDescriptor": storage}
    glue.create_partition(DatabaseName="sales", TableName="orders", PartitionInput=partition)
    lake.put("a.txt", "1,x")
    with pytest.raises(OptionError, match=r"a partition 'old' that lies in '.*elsewhere', outside of its folder"):
        run(lake, lambda writer: in_glue(lake)(writer.mode("overwrite")))
    assert sorted(glue_partitions(glue)) == [("old",)]
    glue.delete_partition(DatabaseName="sales", TableName="orders", PartitionValues=["old"])
    run(lake, lambda writer: in_glue(lake)(writer.mode("overwrite")))
    assert sorted(glue_partitions(glue)) == [("x",)]


def test_publish_to_glue_that_died_is_finished(lake: Lake, glue: Any) -> None:
    glue_table(glue, lake.path("out"), "day")
    lake.put("a.txt", "1,x")
    with pytest.raises(SimulatedCrash), runs_in(lambda _: RunEnvironment(at=dies_at(Failpoint.MOVED))):
        run(lake, in_glue(lake))
    assert glue_partitions(glue) == {}
    run(lake, in_glue(lake))
    assert list(glue_partitions(glue)) == [("x",)]


@pytest.mark.parametrize(
    ("keys", "folder", "name", "words"),
    [
        (("other",), "out", "sales.orders", r"partitioned by \['other'\]"),
        ((), "out", "sales.orders", "partitioned by 'nothing'|partitioned by nothing"),
        (("day",), "elsewhere", "sales.orders", "lies in '.*elsewhere'"),
        (("day",), "out", "sales.nobody", "there is no Glue table sales.nobody"),
        (("day",), "out", "orders", "is no Glue table"),
    ],
)
def test_other_table_of_glue_is_refused(
    lake: Lake, glue: Any, keys: tuple[str, ...], folder: str, name: str, words: str
) -> None:
    glue_table(glue, lake.path(folder), *keys)
    lake.put("a.txt", "1,x")
    job = lake.job().begin()
    writer = job.write(orders(lake, job), "out").partitionBy("day").in_catalog(f"glue:{name}")
    with pytest.raises(OptionError, match=f"{words}.*Nothing was written"):
        writer.parquet(lake.path("out"))
    job.abort("refused")


def test_glue_that_does_not_answer_is_told(lake: Lake, glue: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    glue_table(glue, lake.path("out"), "day")
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    lake.put("a.txt", "1,x")
    with pytest.raises(SourceError, match=r"out of reach: .*region.*Nothing was written"), lake.job() as job:
        in_glue(lake)(job.write(orders(lake, job), "out"))


# ---- the guide

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "catalogs.md"


@pytest.mark.needs("classic")  # a server has its address in the environment of a script
def test_scripts_of_the_guide_do_what_it_says(lake: Lake, glue: Any, tmp_path: Path) -> None:
    script, line = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    BookmarkStore(SqliteTable(tmp_path / "guide.db"), DEFAULT_NAMESPACE).init()
    out = str(tmp_path / "out")
    glue_table(glue, out, "day")
    in_one_job = script + "    " + line.replace('"orders").', '"files").').replace("s3a://lake/orders", out)
    moved = in_one_job.replace("/tmp/lake", str(tmp_path)).replace("/tmp/bookmarks.db", f"{tmp_path}/guide.db")
    raw = tmp_path / "raw" / "orders"
    raw.mkdir(parents=True)
    for number in (1, 2):
        (raw / f"{number}.json").write_text(f'{{"id": {number}, "amount": 1.5, "day": "d{number}"}}')
        exec(compile(moved, str(GUIDE), "exec"), {})  # noqa: S102 (the guide's own scripts)
    assert rows(lake, "orders") == [(1, "d1"), (2, "d2")]
    assert partitions(lake, "orders") == ["day=d1", "day=d2"]
    assert sorted(glue_partitions(glue)) == [("d1",), ("d2",)]
