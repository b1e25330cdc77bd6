"""Reads of tables of a catalog: partitions as it lists them, predicates, and what a table says of itself."""

from __future__ import annotations

import logging
from datetime import date
from typing import Any

import pytest

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.glue.errors import CatalogError, EntityNotFoundError, GlueUnsupportedError
from airflow_bookmarks.lifecycle.inspect.pending import pending
from airflow_bookmarks.store.bookmark_store import BookmarkStore, open_store
from tests.glue.running import Script, Tables, rows_of

pytestmark = pytest.mark.spark


def of(tables: Tables, name: str = "orders", **more: Any) -> dict[str, Any]:
    return {"database": tables.database, "table_name": name, "transformation_ctx": name, **more}


@pytest.fixture
def orders(script: Script, tables: Tables) -> Tables:
    """Add a table of CSV in two partitions, of which one lies elsewhere and neither is called by its values."""
    tables.add("orders", script.path("orders"), {"n": "bigint", "item": "string"}, keys={"day": "date", "hour": "int"},
               serde_parameters={"field.delim": ","}, parameters={"classification": "csv"})  # fmt: skip
    script.put("orders/2024/01/a.csv", "1,x")
    script.put("elsewhere/b.csv", "2,y")
    tables.add_partition("orders", script.path("orders/2024/01"), "2024-01-01", "7")
    tables.add_partition("orders", script.path("elsewhere"), "2024-01-02", "18")
    return tables


def test_partitions_are_read_where_the_catalog_says_with_its_values_and_types(script: Script, orders: Tables) -> None:
    rows = script.table_rows(**of(orders))
    assert rows == [(1, "x", date(2024, 1, 1), 7), (2, "y", date(2024, 1, 2), 18)]
    assert script.table_rows(**of(orders)) == []


@pytest.mark.seldom
def test_new_partition_is_read_whole_however_old_its_files(script: Script, orders: Tables) -> None:
    script.put("late/c.csv", "3,z")
    script.table_rows(**of(orders))
    orders.add_partition("orders", script.path("late"), "2024-01-03", "0")
    assert script.table_rows(**of(orders)) == [(3, "z", date(2024, 1, 3), 0)]


@pytest.mark.seldom
@pytest.mark.parametrize("predicate", ["", "day = '2024-01-01'"])
def test_look_without_spark_never_says_that_no_partition_is_new(script: Script, orders: Tables, predicate: str) -> None:
    script.table_rows(**of(orders, push_down_predicate=predicate))

    found = pending(store_of(script), script.name)

    assert not found.is_empty
    [context] = found.contexts
    assert context.unknown is not None
    assert "only the script, in Spark, asks it for new ones" in context.unknown


def store_of(script: Script) -> BookmarkStore:
    return open_store(str(script.spark.conf.get("spark.bookmarks.store")))


@pytest.mark.parametrize(
    "predicate",
    [
        "hour > 9",
        "date_format(DAY, 'yyyyMMdd') >= date_format(date_sub(date '2024-01-03', 1), 'yyyyMMdd')",
        "day = '2024-01-02' and hour between 10 and 20",
    ],
)
def test_predicate_is_evaluated_by_spark_over_typed_values(script: Script, orders: Tables, predicate: str) -> None:
    rows = script.table_rows(**of(orders), push_down_predicate=predicate)
    assert rows == [(2, "y", date(2024, 1, 2), 18)]
    assert script.table_rows(**of(orders)) == [(1, "x", date(2024, 1, 1), 7)]


@pytest.mark.parametrize("predicate", ["item = 'x'", "hour >", "no_such_function(hour)"])
def test_predicate_that_is_none_on_partitions_names_them(script: Script, orders: Tables, predicate: str) -> None:
    with pytest.raises(OptionError, match=r"can't be evaluated over the partition columns .*'hour': 'int'"):
        script.table_rows(**of(orders), push_down_predicate=predicate)


def test_predicate_of_the_catalog_is_evaluated_there(script: Script, orders: Tables) -> None:
    options = {"catalogPartitionPredicate": "hour = '7'"}
    assert script.table_rows(**of(orders), additional_options=options) == [(1, "x", date(2024, 1, 1), 7)]


def test_value_that_does_not_fit_its_type_is_an_error_that_names_it(script: Script, orders: Tables) -> None:
    orders.add_partition("orders", script.path("bad"), "2024-01-04", "noon")
    with pytest.raises(OptionError, match="has the value 'noon' for 'hour', which is no int"):
        script.table_rows(**of(orders))


@pytest.mark.seldom
def test_null_of_hive_is_null(script: Script, tables: Tables) -> None:
    tables.add("orders", script.path("o"), {"n": "int"}, keys={"day": "date"}, parameters={"classification": "csv"})
    script.put("o/x/a.csv", "1")
    tables.add_partition("orders", script.path("o/x"), "__HIVE_DEFAULT_PARTITION__")
    assert script.table_rows(**of(tables)) == [(1, None)]


@pytest.mark.seldom
def test_empty_missing_and_unplaced_partitions_are_skipped_and_counted(
    script: Script, orders: Tables, caplog: pytest.LogCaptureFixture
) -> None:
    orders.add_partition("orders", script.path("gone"), "2024-01-05", "1")
    orders.add_partition("orders", None, "2024-01-06", "1")
    with caplog.at_level(logging.INFO):
        assert len(script.table_rows(**of(orders))) == 2
    assert "1 empty_partitions" in caplog.text
    assert "1 partition(s) of table" in caplog.text
    lines = [each.getMessage() for each in caplog.records if each.name == "HadoopDataSource"]
    assert lines == [
        'Skipping Partition {"day": "2024-01-05", "hour": "1"} has no new files detected @ '
        f"{script.path('gone')} or path does not exist"
    ]


@pytest.mark.seldom
def test_table_of_many_partitions_is_listed_page_by_page(script: Script, tables: Tables) -> None:
    tables.add("orders", script.path("o"), {"n": "int"}, keys={"p": "int"}, parameters={"classification": "csv"})
    for number in range(120):
        tables.add_partition("orders", script.path(f"o/p{number}"), str(number))
    script.put("o/p119/a.csv", "1")
    assert script.table_rows(**of(tables)) == [(1, 119)]


def test_columns_of_csv_have_the_names_and_types_of_the_table_and_its_header_is_left_out(
    script: Script, tables: Tables
) -> None:
    tables.add("orders", script.path("o"), {"id": "int", "price": "decimal(5,2)", "at": "string"},
               serde="open-csv", serde_parameters={"separatorChar": ";", "quoteChar": "'"},
               parameters={"skip.header.line.count": "1"})  # fmt: skip
    script.put("o/a.csv", "one;two;three", "1;2.50;'a;b'")
    frame = script.run(lambda context: context.create_dynamic_frame.from_catalog(**of(tables)).toDF())
    assert frame.dtypes == [("id", "int"), ("price", "decimal(5,2)"), ("at", "string")]
    assert [tuple(map(str, row)) for row in frame.collect()] == [("1", "2.50", "a;b")]


@pytest.mark.seldom
@pytest.mark.parametrize("serde", ["parquet", "orc"])
def test_columnar_tables_have_the_types_of_their_files(script: Script, tables: Tables, serde: str) -> None:
    script.spark.createDataFrame([(1, 0.5)], "n long, x double").write.format(serde).save(script.path("o/p"))
    tables.add("orders", script.path("o"), {"n": "bigint", "x": "double"}, serde=serde, keys={"part": "string"})
    tables.add_partition("orders", script.path("o/p"), "one")
    assert script.table_rows(**of(tables)) == [(1, 0.5, "one")]


@pytest.mark.seldom
def test_format_is_the_classification_where_no_serde_says_it(script: Script, tables: Tables) -> None:
    script.put("o/a.csv", "1")
    tables.add("orders", script.path("o"), {"n": "int"}, serde=None, parameters={"classification": "csv"})
    assert script.table_rows(**of(tables)) == [(1,)]


@pytest.mark.seldom
def test_parameters_of_the_table_count_as_options(script: Script, tables: Tables) -> None:
    parameters = {"classification": "csv", "boundedFiles": "1", "exclusions": '["**.bak"]', "groupFiles": "inPartition"}
    tables.add("orders", script.path("o"), {"n": "int"}, parameters=parameters)
    for name in ("a.csv", "b.bak", "c.csv"):
        script.put(f"o/{name}", str(ord(name[0])))
    assert [script.table_rows(**of(tables)) for _ in range(3)] == [[(97,)], [(99,)], []]
    script.name = "another"
    assert len(script.table_rows(**of(tables), additional_options={"boundedFiles": "2"})) == 2


@pytest.mark.seldom
def test_keys_and_name_space_and_unknown_arguments_are_taken(
    script: Script, orders: Tables, caplog: pytest.LogCaptureFixture
) -> None:
    read = {"name_space": orders.database, "table_name": "orders", "transformation_ctx": "orders"}
    assert len(script.table_rows(**read, bookmark_key_fields=["n"], whatever=1)) == 2
    assert "the bookmark keys ['n'] are not used" in caplog.text
    assert "whatever" in caplog.text


@pytest.mark.parametrize(
    ("table", "said"),
    [
        pytest.param({"location": None}, "has no location", id="no-location"),
        pytest.param(
            {"serde": "org.example.Own", "parameters": {}}, "org.example.Own.* its location is", id="no-format"
        ),
        pytest.param({"keys": {}}, "the predicate 'n = 1' is for partitions", id="no-partitions"),
    ],
)
def test_tables_that_can_not_be_read_say_why(script: Script, tables: Tables, table: dict[str, Any], said: str) -> None:
    given = {"location": script.path("o"), "serde": "csv", "keys": {"p": "int"}, "parameters": {}, **table}
    tables.add("orders", given.pop("location"), {"n": "int"}, **given)
    with pytest.raises(OptionError, match=said):
        script.table_rows(**of(tables), push_down_predicate="n = 1")


@pytest.mark.parametrize("kind", ["kinesis", "iceberg"])
def test_streams_and_tables_of_other_kinds_are_out_of_reach(script: Script, tables: Tables, kind: str) -> None:
    tables.add("orders", script.path("o"), {"n": "int"}, parameters={"classification": kind})
    with pytest.raises(GlueUnsupportedError, match="Nothing was read or changed"):
        script.table_rows(**of(tables))


def test_unknown_table_names_the_catalog_and_the_region(script: Script, tables: Tables) -> None:
    with pytest.raises(EntityNotFoundError, match=r"table \w+\.gone does not exist in the Data Catalog .* eu-west-1"):
        script.table_rows(**of(tables, "gone"))
    with pytest.raises(EntityNotFoundError, match="catalog 123 in region"):
        script.table_rows(**of(tables, "gone"), catalog_id="123")


@pytest.mark.seldom
def test_data_frame_of_a_table_is_whole_and_says_so(
    script: Script, orders: Tables, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        assert len(script.run(lambda context: rows_of(context.create_data_frame.from_catalog(**of(orders))))) == 2
    assert "create_data_frame.from_catalog" in caplog.text
    assert "bookmark" in caplog.text


def test_catalog_that_does_not_answer_is_named(script: Script, tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_GLUE", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with pytest.raises(CatalogError, match="does not answer"):
        script.table_rows(**of(tables))


def test_partition_that_goes_and_comes_back_is_not_read_again(script: Script, orders: Tables) -> None:
    script.table_rows(**of(orders))
    orders.client.delete_partition(
        DatabaseName=orders.database, TableName="orders", PartitionValues=["2024-01-01", "7"]
    )
    assert script.table_rows(**of(orders)) == []
    orders.add_partition("orders", script.path("orders/2024/01"), "2024-01-01", "7")
    assert script.table_rows(**of(orders)) == []
