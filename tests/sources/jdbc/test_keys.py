"""Keys of every type and tables of every kind: each row is read once, or an error says why it can't be."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from airflow_bookmarks.core.errors import OptionError, SourceError, SourceMissingError
from airflow_bookmarks.core.selection.bound import Bound
from airflow_bookmarks.core.selection.reason import NO_KEY
from airflow_bookmarks.sources.jdbc.ends import MOST_TIES
from airflow_bookmarks.sources.jdbc.position import TablePosition
from tests.databases.servers import new_database
from tests.sources.jdbc.shop import Shop
from tools.servers import DatabaseServer


@pytest.fixture
def pg(postgresql_server: DatabaseServer) -> Iterator[Shop]:
    """Make a database in PostgreSQL."""
    with new_database(postgresql_server) as login:
        yield Shop(login)


@pytest.fixture
def maria(mariadb_server: DatabaseServer) -> Iterator[Shop]:
    """Make a database in MariaDB."""
    with new_database(mariadb_server) as login:
        yield Shop(login)


@pytest.fixture(params=["postgresql", "mariadb"])
def shop(request: pytest.FixtureRequest) -> Iterator[Shop]:
    """Make a database in each."""
    with new_database(request.getfixturevalue(f"{request.param}_server")) as login:
        yield Shop(login)


def read(shop: Shop, table: str = "t", keys: tuple[str, ...] = ("k",), **how: Any) -> list[str]:
    """Return the last key of each row that a run reads, as text."""
    plan_rows = shop.read(table=table, keys=keys, **how)
    return [str(row[-1]) for row in plan_rows]


# ---- values without a place


@pytest.mark.parametrize("nothing", ["NaN", "Infinity", "-Infinity"])
def test_number_that_is_none_does_not_end_the_bookmark(pg: Shop, nothing: str) -> None:
    pg.run("CREATE TABLE t (k numeric PRIMARY KEY)")
    pg.run(f"INSERT INTO t VALUES (1.5), ('{nothing}')")
    with pytest.raises(SourceError, match=r"1 row without a value of k, or with one without a place among others"):
        read(pg)
    assert read(pg, on_null="skip") == ["1.5"]
    assert pg.plans[-1].skipped == {NO_KEY: 1}
    pg.run("INSERT INTO t VALUES (2)")
    assert read(pg, on_null="skip") == ["2"]
    pg.position = None
    assert sorted(read(pg, on_null="include_once")) == sorted(["1.5", "2", nothing])
    assert read(pg, on_null="include_once") == []


@pytest.mark.parametrize("type", ["timestamptz", "timestamp", "date"])
def test_infinite_time_does_not_end_the_bookmark(pg: Shop, type: str) -> None:
    pg.run(f"CREATE TABLE t (at {type} NOT NULL, k int PRIMARY KEY)")
    pg.run("INSERT INTO t VALUES ('2013-01-31', 1), ('infinity', 2), ('-infinity', 3)")
    how: dict[str, Any] = {"keys": ("at", "k"), "zone": "UTC"}
    with pytest.raises(SourceError, match=r"2 rows without a value of at or k, or with one without a place"):
        read(pg, **how)
    assert read(pg, on_null="skip", **how) == ["1"]
    pg.run("INSERT INTO t VALUES ('2013-02-01', 4)")
    assert read(pg, on_null="skip", **how) == ["4"]


def test_zero_date_does_not_pass_for_a_value(maria: Shop) -> None:
    maria.run("CREATE TABLE t (at datetime NOT NULL, k int PRIMARY KEY)")
    maria.run("INSERT INTO t VALUES ('2013-01-31', 1), ('0000-00-00', 2)")
    how: dict[str, Any] = {"keys": ("at", "k"), "zone": "UTC"}
    with pytest.raises(SourceError, match=r"1 row without a value of at or k"):
        read(maria, **how)
    assert read(maria, on_null="skip", **how) == ["1"]
    maria.run("INSERT INTO t VALUES ('0000-00-00', 3), ('2013-02-01', 4)")
    assert read(maria, on_null="skip", **how) == ["4"]
    assert maria.plans[-1].skipped == {NO_KEY: 2}


def test_row_without_the_second_of_two_keys_is_skipped_wherever_it_lies(shop: Shop) -> None:
    null = "" if shop.login.dialect == "postgresql" else "NULL"
    shop.run(f"CREATE TABLE t (a int NOT NULL, k int {null}, id int PRIMARY KEY)")
    shop.run("INSERT INTO t VALUES (1, 1, 1), (2, NULL, 2), (3, 3, 3), (3, NULL, 4)")
    how: dict[str, Any] = {"keys": ("a", "k")}
    with pytest.raises(SourceError, match="2 rows without a value of a or k"):
        read(shop, **how)
    assert read(shop, on_null="skip", **how) == ["1", "3"]
    shop.run("INSERT INTO t VALUES (4, NULL, 5), (5, 5, 6)")
    assert read(shop, on_null="skip", **how) == ["5"]
    shop.position = None
    assert sorted(read(shop, on_null="include_once", **how)) == ["1", "3", "5", "None", "None", "None"]
    assert read(shop, on_null="include_once", **how) == []


# ---- exact values


def test_times_before_christ_and_after_the_year_9999(pg: Shop) -> None:
    pg.run("CREATE TABLE t (k timestamptz PRIMARY KEY)")
    pg.run("INSERT INTO t VALUES ('0044-03-15 12:00+00 BC'), ('0001-01-01 00:00+00')")
    assert shop_texts(pg) == ["0044-03-15 12:00:00+00 BC", "0001-01-01 00:00:00+00"]
    pg.run("INSERT INTO t VALUES ('0043-01-01 00:00+00 BC'), ('2013-01-31'), ('10000-01-01')")
    assert shop_texts(pg) == ["2013-01-31 00:00:00+00"]  # the first lies below the bookmark, the last in the future


def shop_texts(pg: Shop) -> list[str]:
    """Return the keys of the rows that a run reads, as the database writes them: Python has no such times."""
    source = pg.source(table="t", keys=["k"])
    found = Shop(pg.login, pg.position)
    found.held = lambda plan, window=None: []  # type: ignore[method-assign]
    found.read(source)
    pg.position, plan = found.position, found.plans[-1]
    where = plan.window.condition(pg.dialect, plan.leads_to.table)
    return [text for (text,) in pg.rows(f"SELECT CAST(k AS text) FROM t WHERE {where} ORDER BY t.k")]


def test_unsigned_numbers_above_those_with_a_sign(maria: Shop) -> None:
    maria.run("CREATE TABLE t (k bigint unsigned PRIMARY KEY)")
    maria.run("INSERT INTO t VALUES (9223372036854775807), (9223372036854775808)")
    assert read(maria) == ["9223372036854775807", "9223372036854775808"]
    maria.run("INSERT INTO t VALUES (18446744073709551615)")
    assert read(maria) == ["18446744073709551615"]
    assert read(maria) == []


def test_negative_numbers(shop: Shop) -> None:
    shop.run("CREATE TABLE t (k bigint PRIMARY KEY)")
    shop.run("INSERT INTO t VALUES (-9223372036854775808), (-2)")
    assert read(shop) == ["-9223372036854775808", "-2"]
    shop.run("INSERT INTO t VALUES (-1), (0)")
    assert read(shop) == ["-1", "0"]


def test_text_is_read_in_the_order_of_its_bytes_whatever_the_collation(pg: Shop) -> None:
    pg.run('CREATE TABLE t (k text COLLATE "und-x-icu" PRIMARY KEY)')
    pg.run("INSERT INTO t VALUES ('a'), ('B')")
    assert read(pg, bound=Bound(max_rows=1)) == ["B"]
    assert read(pg) == ["a"]
    pg.run("INSERT INTO t VALUES ('ä')")
    assert read(pg) == ["ä"]


def test_text_of_mariadb_needs_a_collation_of_bytes(maria: Shop) -> None:
    maria.run("CREATE TABLE t (k varchar(9) COLLATE utf8mb4_bin PRIMARY KEY, other varchar(9) UNIQUE)")
    maria.run("INSERT INTO t VALUES ('a', 'x'), ('B', 'y'), ('ä', 'z')")
    assert read(maria) == ["B", "a", "ä"]
    with pytest.raises(OptionError, match=r"key 'other' has the type varchar\(9\) with the collation utf8mb4_general"):
        read(maria, keys=("other",))


@pytest.mark.parametrize(
    ("made", "type"), [("CREATE EXTENSION citext", "citext"), ("CREATE DOMAIN number AS bigint", "number")]
)
def test_type_whose_order_is_not_known_is_refused(pg: Shop, made: str, type: str) -> None:
    pg.run(made)
    pg.run(f"CREATE TABLE t (k {type} PRIMARY KEY)")
    with pytest.raises(OptionError, match=f"key 'k' has the type {type}.* have no exact order here"):
        read(pg)


# ---- tables


@pytest.mark.parametrize(
    "made",
    [
        "CREATE TABLE t (k int NOT NULL)",
        "CREATE TABLE t (k int NOT NULL) PARTITION BY RANGE (k); CREATE TABLE a PARTITION OF t FOR VALUES FROM (0) TO "
        "(2); CREATE TABLE b PARTITION OF t DEFAULT",
        "CREATE TABLE a (k int PRIMARY KEY); CREATE VIEW t AS SELECT k FROM a WHERE k > 0",
        "CREATE TABLE t (k int GENERATED BY DEFAULT AS IDENTITY)",
        "CREATE UNLOGGED TABLE t (k int UNIQUE)",
    ],
    ids=["heap", "partitioned", "view", "identity", "unlogged"],
)
def test_tables_of_each_kind(pg: Shop, made: str) -> None:
    for statement in made.split(";"):
        pg.run(statement)
    pg.run("INSERT INTO t VALUES (1), (2)")
    assert read(pg) == ["1", "2"]
    pg.run("INSERT INTO t VALUES (3)")
    assert read(pg) == ["3"]
    assert read(pg) == []


def test_key_that_the_database_computes(shop: Shop) -> None:
    shop.run("CREATE TABLE t (a int NOT NULL, k int GENERATED ALWAYS AS (a * 2) STORED)")
    shop.run("INSERT INTO t (a) VALUES (1), (2)")
    assert read(shop) == ["2", "4"]
    shop.run("INSERT INTO t (a) VALUES (3)")
    assert read(shop) == ["6"]


@pytest.mark.parametrize("name", ["100 %", "%s", 'say "k"', "it's", "`k`", "back\\slash", ":k"])
def test_names_with_signs_that_mean_something_elsewhere(shop: Shop, name: str) -> None:
    quote = shop.dialect.quote
    shop.run(f"CREATE TABLE {quote(name)} ({quote(name)} int PRIMARY KEY)")
    shop.run(f"INSERT INTO {quote(name)} VALUES (1)")
    assert read(shop, table=name, keys=(name,)) == ["1"]
    assert read(shop, table=name, keys=(name,)) == []


def test_table_of_that_name_in_another_schema_is_another_table(pg: Shop) -> None:
    pg.run("CREATE SCHEMA other")
    pg.run("CREATE TABLE other.t (k int PRIMARY KEY, name text)")
    pg.run("INSERT INTO other.t VALUES (7)")
    with pytest.raises(SourceMissingError, match='there is no table "t"'):
        read(pg)
    pg.run("CREATE TABLE t (k int PRIMARY KEY)")
    pg.run("INSERT INTO t VALUES (1)")
    assert read(pg) == ["1"]
    assert read(Shop(pg.login), table="other.t") == ["7"]


# ---- a table that is not what it was


def test_renamed_table_is_missing_and_one_that_takes_its_name_goes_on_behind_the_bookmark(shop: Shop) -> None:
    shop.run("CREATE TABLE t (k int PRIMARY KEY)")
    shop.run("INSERT INTO t VALUES (1), (2)")
    read(shop)
    shop.run("ALTER TABLE t RENAME TO before_t")
    with pytest.raises(SourceMissingError):
        read(shop)
    shop.run("CREATE TABLE t (k int PRIMARY KEY)")
    assert read(shop) == []
    shop.run("INSERT INTO t VALUES (1)")
    with pytest.raises(SourceError, match="rows were read up to 2, and the last one is 1 now"):
        read(shop)
    shop.run("INSERT INTO t VALUES (2), (3)")
    assert read(shop) == ["3"]


def test_sequence_that_begins_anew_is_noticed(pg: Shop) -> None:
    pg.run("CREATE TABLE t (k serial PRIMARY KEY, n int)")
    pg.run("INSERT INTO t (n) VALUES (1), (2)")
    read(pg)
    pg.run("TRUNCATE t RESTART IDENTITY")
    pg.run("INSERT INTO t (n) VALUES (1)")
    with pytest.raises(SourceError, match="or its keys begin anew"):
        read(pg)


def test_table_that_was_made_again_with_the_same_rows_has_nothing_new(shop: Shop) -> None:
    for _ in range(2):
        shop.run("DROP TABLE IF EXISTS t")
        shop.run("CREATE TABLE t (k int PRIMARY KEY)")
        shop.run("INSERT INTO t VALUES (1), (2)")
        if shop.position is None:
            read(shop)
    assert read(shop) == []


def test_server_that_was_restored_elsewhere_is_refused(shop: Shop) -> None:
    shop.run("CREATE TABLE t (k int PRIMARY KEY)")
    shop.run("INSERT INTO t VALUES (1)")
    read(shop)
    assert shop.position is not None
    position = TablePosition.decode(shop.position)
    assert position.identity
    shop.position = replace(position, identity="another").encode()
    with pytest.raises(SourceError, match=rf"another server .*{re.escape(position.identity)}, and not another"):
        read(shop)


# ---- how many


def test_table_without_rows_and_with_one(shop: Shop) -> None:
    shop.run("CREATE TABLE t (k int PRIMARY KEY)")
    assert read(shop) == []
    assert read(shop, settle=timedelta(0)) == []
    shop.run("INSERT INTO t VALUES (1)")
    assert read(shop) == ["1"]
    assert read(shop) == []


@pytest.mark.seldom  # a minute
def test_more_ties_than_a_bookmark_can_name_are_refused(shop: Shop) -> None:
    shop.run("CREATE TABLE t (k int NOT NULL, id int PRIMARY KEY)")
    numbers = (
        "generate_series(1, {0}) g" if shop.login.dialect == "postgresql" else "(SELECT seq g FROM seq_1_to_{0}) s"
    )
    shop.run(f"INSERT INTO t SELECT 1, g FROM {numbers.format(MOST_TIES)}")
    assert len(read(shop)) == MOST_TIES
    shop.run(f"INSERT INTO t VALUES (1, {MOST_TIES + 1})")
    with pytest.raises(SourceError, match="more than 10,000 rows have the keys 1"):
        read(shop)
    assert len(read(Shop(shop.login), keys=("k", "id"))) == MOST_TIES + 1
