"""Tables of databases through scripts for Glue: `test_database.py` runs these in a process with the drivers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.errors import OptionError, SourceError
from tests.databases.servers import check_installed, new_database
from tests.glue.conftest import script
from tests.glue.inputs.conftest import tables
from tests.glue.running import Script, Tables
from tests.sources.jdbc.shop import Shop
from tools.jars import fetch
from tools.servers import DatabaseServer, has_databases, postgresql

__all__ = ["script", "tables"]

pytestmark = pytest.mark.spark


@pytest.fixture(scope="session")
def more_conf() -> Mapping[str, str]:
    """Start Spark with the driver."""
    return {"spark.jars": ",".join(str(jar) for jar in sorted(fetch("postgresql").glob("*.jar")))}


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[DatabaseServer]:
    """Run PostgreSQL, which is all that these ask for."""
    if not has_databases("postgresql"):
        check_installed()
    with postgresql() as server:
        yield server


@pytest.fixture
def shop(postgresql_server: DatabaseServer) -> Iterator[Shop]:
    with new_database(postgresql_server) as login:
        made = Shop(login)
        made.run("CREATE TABLE orders (id int PRIMARY KEY, part int, name text)")
        add(made, 1, 2, 3)
        yield made


def add(shop: Shop, *ids: int) -> None:
    shop.run("INSERT INTO orders VALUES " + ", ".join(f"({each}, {each % 2}, 'n{each}')" for each in ids))


def options(shop: Shop, **more: Any) -> dict[str, Any]:
    login = shop.login
    url = f"jdbc:postgresql://{login.host}:{login.port}/{login.database}"
    given = {"url": url, "user": login.user, "password": login.password, "dbtable": "orders", **more}
    return {"connection_type": "postgresql", "connection_options": given, "transformation_ctx": "orders"}


def ids(rows: list[tuple[Any, ...]]) -> list[int]:
    return sorted(row[0] for row in rows)


def in_catalog(shop: Shop, tables: Tables, **parameters: str) -> dict[str, Any]:
    """Add the table and its connection to the catalog; return how it is read."""
    login = shop.login
    tables.client.create_connection(
        ConnectionInput={
            "Name": f"my {tables.database}",
            "ConnectionType": "JDBC",
            "ConnectionProperties": {
                "JDBC_CONNECTION_URL": f"jdbc:postgresql://{login.host}:{login.port}/{login.database}",
                "USERNAME": login.user or "",
                "PASSWORD": login.password or "",
            },
        }
    )
    told = {"classification": "postgresql", "connectionName": f"my {tables.database}", **parameters}
    location = f"{login.database}.public.orders"
    tables.add("orders", location, {"id": "int", "name": "string"}, serde=None, parameters=told)
    return {"database": tables.database, "table_name": "orders", "transformation_ctx": "orders"}


def test_rows_are_read_once_by_their_keys(script: Script, shop: Shop) -> None:
    read = options(shop, jobBookmarkKeys=["id"], jobBookmarkKeysSortOrder="asc")
    assert ids(script.rows(**read)) == [1, 2, 3]
    assert script.rows(**read) == []
    add(shop, 9)
    assert ids(script.rows(**read)) == [9]


def test_primary_key_without_gaps_is_the_default(script: Script, shop: Shop) -> None:
    assert ids(script.rows(**options(shop))) == [1, 2, 3]
    add(shop, 4)
    assert ids(script.rows(**options(shop))) == [4]


def test_rows_are_read_downwards_with_desc(script: Script, shop: Shop) -> None:
    shop.run("DELETE FROM orders")
    add(shop, 100, 90)
    read = options(shop, jobBookmarkKeys=["id"], jobBookmarkKeysSortOrder="DESC")
    assert ids(script.rows(**read)) == [90, 100]
    add(shop, 80, 110)
    assert ids(script.rows(**read)) == [80]


def test_keys_may_have_their_other_name(script: Script, shop: Shop) -> None:
    read = options(shop)
    assert ids(script.rows(**read, bookmark_key_fields=["part", "id"])) == [1, 2, 3]


def test_keys_may_be_spelled_in_another_case_as_catalogs_do(script: Script, shop: Shop) -> None:
    shop.run('CREATE TABLE upper_orders ("ID" int PRIMARY KEY)')
    shop.run("INSERT INTO upper_orders VALUES (1)")
    read = options(shop, dbtable="upper_orders", jobBookmarkKeys=["id"])
    assert [script.rows(**read), script.rows(**read)] == [[(1,)], []]


@pytest.mark.parametrize(
    "how",
    [
        pytest.param({"hashfield": "name", "hashpartitions": "3"}, id="field"),
        pytest.param({"hashexpression": "id % 5"}, id="expression"),
        pytest.param({"hashfield": "name", "hashpartitions": 1}, id="one"),
    ],
)
@pytest.mark.parametrize("ctx", ["orders", ""])
def test_rows_are_read_side_by_side_and_each_once(script: Script, shop: Shop, how: dict[str, Any], ctx: str) -> None:
    read = {**options(shop, jobBookmarkKeys=["id"], **how), "transformation_ctx": ctx}
    assert ids(script.rows(**read)) == [1, 2, 3]


def test_parts_between_which_a_row_may_move_are_warned_of(
    script: Script, shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    assert ids(script.rows(**options(shop, jobBookmarkKeys=["id"], hashexpression="id"))) == [1, 2, 3]
    assert "each part is read at another time" not in caplog.text
    add(shop, 7)
    assert ids(script.rows(**options(shop, jobBookmarkKeys=["id"], hashfield="name"))) == [7]
    assert "parts by 'name': each part is read at another time" in caplog.text


def test_sample_query_is_read_whole_in_each_run(script: Script, shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    read = options(shop, jobBookmarkKeys=["id"], sampleQuery="select * from orders where id < 3")
    for _ in range(2):
        assert ids(script.rows(**read)) == [1, 2]
    assert "with sampleQuery the bookmark is ignored" in caplog.text


def test_empty_increment_has_no_columns(script: Script, shop: Shop) -> None:
    read = options(shop, jobBookmarkKeys=["id"])
    script.rows(**read)
    frame = script.run(lambda context: context.create_dynamic_frame.from_options(**read))
    assert frame.toDF().columns == []


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        pytest.param({"jobBookmarkKeys": ["gone"]}, "gone", id="no-column"),
        pytest.param({"jobBookmarkKeys": ["id"], "jobBookmarkKeysSortOrder": "up"}, "'asc' or 'desc'", id="order"),
        pytest.param({"hashfield": "name", "hashexpression": "id"}, "rows are split by one", id="both-hashes"),
        pytest.param({"dbtable": ""}, "no 'dbtable'", id="no-table"),
        pytest.param({"url": ""}, "neither 'url' nor 'connectionName'", id="no-url"),
    ],
)
def test_wrong_options_are_errors_before_a_query(script: Script, shop: Shop, wrong: dict[str, Any], said: str) -> None:
    with pytest.raises((OptionError, SourceError), match=said):
        script.rows(**options(shop, **wrong))


def test_password_stays_out_of_state_and_log(
    script: Script, shop: Shop, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert shop.login.password
    script.rows(**options(shop, jobBookmarkKeys=["id"]))
    assert shop.login.password not in caplog.text
    assert shop.login.password.encode() not in (tmp_path / "bookmarks.db").read_bytes()


def test_table_of_the_catalog_is_read_by_its_connection(script: Script, shop: Shop, tables: Tables) -> None:
    read = in_catalog(shop, tables, hashfield="name")
    keys = {"jobBookmarkKeys": ["id"]}
    assert ids(script.table_rows(**read, additional_options=keys)) == [1, 2, 3]
    add(shop, 7)
    assert ids(script.table_rows(**read, additional_options=keys)) == [7]


def test_predicate_on_a_table_of_a_database_is_refused(script: Script, shop: Shop, tables: Tables) -> None:
    with pytest.raises(OptionError, match="is for partitions of files"):
        script.table_rows(**in_catalog(shop, tables), push_down_predicate="id > 1")


def test_table_without_a_context_is_read_whole(script: Script, shop: Shop, tables: Tables) -> None:
    read = {**in_catalog(shop, tables), "transformation_ctx": ""}
    for _ in range(2):
        assert ids(script.table_rows(**read)) == [1, 2, 3]
