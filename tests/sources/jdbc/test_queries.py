"""Queries in place of tables, on PostgreSQL and MariaDB: what of them is read by key, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from airflow_bookmarks.core.errors import DatabaseError, OptionError, SourceError
from airflow_bookmarks.core.selection.bound import Bound
from airflow_bookmarks.core.selection.reason import NO_KEY
from airflow_bookmarks.databases.database import open_database
from tests.databases.servers import new_database
from tests.sources.jdbc.key_types import CASES, PAGE, look
from tests.sources.jdbc.shop import Shop

SERVERS = ("postgresql", "mariadb")
TIME = {"postgresql": "timestamp", "mariadb": "datetime"}
BINARY = {"postgresql": 'varchar(20) COLLATE "C"', "mariadb": "varchar(20) COLLATE utf8mb4_bin"}


@pytest.fixture(params=SERVERS)
def shop(request: pytest.FixtureRequest) -> Iterator[Shop]:
    """Make a database with orders and their lines: order 3 has none, and order 1 has two."""
    with new_database(request.getfixturevalue(f"{request.param}_server")) as login:
        made = Shop(login)
        made.run(f"CREATE TABLE orders (id int PRIMARY KEY, at {TIME[request.param]}(6), sku {BINARY[request.param]})")
        made.run("CREATE TABLE line (id int PRIMARY KEY, of_order int, amount int)")
        made.run("INSERT INTO orders VALUES (1, '2013-01-31', 'a'), (2, '2013-01-31', 'B'), (3, '2013-02-01', 'c')")
        made.run("INSERT INTO line VALUES (10, 1, 5), (11, 1, 6), (12, 2, 7)")
        yield made


def read(shop: Shop, query: str, keys: tuple[str, ...] = ("id",), **how: Any) -> list[tuple[Any, ...]]:
    return shop.read(query=query, keys=keys, zone="UTC", **how)


# One of each kind, those among them that are refused.
TYPES = {
    "postgresql": (
        "bigint",
        "numeric",
        "date",
        "timestamp",
        "timestamptz",
        "uuid",
        'text COLLATE "und-x-icu"',
        "varchar(20)",
        "char(3)",
        "double precision",
    ),
    "mariadb": (
        "bigint",
        "bigint unsigned",
        "bit(64)",
        "decimal(65, 30)",
        "date",
        "datetime(6)",
        "timestamp(6)",
        "uuid",
        "varchar(20) COLLATE utf8mb4_bin",
        "varchar(20) COLLATE utf8mb4_nopad_bin",
        "varchar(20) COLLATE utf8mb4_general_ci",
        "double",
        "enum('sad', 'happy')",
    ),
}


@pytest.mark.seldom
@pytest.mark.slow
@pytest.mark.parametrize("server", SERVERS)
def test_column_of_a_query_is_a_key_as_that_of_a_table_is(server: str, request: pytest.FixtureRequest) -> None:
    wanted = [case for case in CASES[server] if case.declared in TYPES[server]]
    assert len(wanted) == len(TYPES[server])
    with new_database(request.getfixturevalue(f"{server}_server")) as login:
        query = "WITH all_of_it AS (SELECT * FROM t) SELECT id, k FROM all_of_it"
        found = [look(login, case, query).row() for case in wanted]

    of_tables = PAGE.read_text(encoding="utf-8").splitlines()
    assert [row for row in found if row not in of_tables] == []


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, at FROM orders -- all of them",
        "SELECT id, at FROM orders /* all */",
        "SELECT id, at FROM orders ORDER BY at DESC, id DESC",
        "WITH early AS (SELECT * FROM orders) SELECT id, at FROM early",
        "SELECT id, at FROM orders UNION ALL SELECT id, NULL FROM orders WHERE 1 = 0",
        "(SELECT id, at FROM orders)",
        "SELECT o.id, max(o.at) AS at FROM orders o LEFT JOIN line l ON l.of_order = o.id GROUP BY o.id",
    ],
)
@pytest.mark.parametrize("keys", [("id",), ("at", "id")])
def test_each_row_of_a_query_is_read_once(shop: Shop, query: str, keys: tuple[str, ...]) -> None:
    assert [row[-1] for row in read(shop, query, keys)] == [1, 2, 3]
    assert read(shop, query, keys) == []
    shop.run("INSERT INTO orders VALUES (4, '2013-02-02', 'd'), (5, '2013-02-01 00:00:00.000001', 'e')")
    assert {row[-1] for row in read(shop, query, keys)} == {4, 5}
    assert read(shop, query, keys) == []


def test_rows_of_a_join_are_read_by_keys_that_tell_them_apart(shop: Shop) -> None:
    query = "SELECT o.at, l.id, l.amount FROM orders o JOIN line l ON l.of_order = o.id"
    bounded: dict[str, Any] = {"bound": Bound(max_rows=1)}
    assert [[row[-1] for row in read(shop, query, ("at", "id"), **bounded)] for _ in range(4)] == [[10], [11], [12], []]
    shop.run("INSERT INTO line VALUES (13, 2, 1)")
    assert [row[-1] for row in read(shop, query, ("at", "id"))] == [13]


def test_rows_of_a_join_that_the_keys_do_not_tell_apart_are_refused_at_the_end(shop: Shop) -> None:
    query = "SELECT o.id, l.amount FROM orders o JOIN line l ON l.of_order = o.id"
    assert read(shop, query) == [(1,), (1,), (2,)]
    shop.run("INSERT INTO line VALUES (14, 3, 1), (15, 3, 2)")
    with pytest.raises(SourceError, match="several rows have the keys 3, and there is no primary key"):
        read(shop, query)


def test_rows_of_an_outer_join_without_a_key_are_an_error_or_counted_or_read_once(shop: Shop) -> None:
    query = "SELECT o.id AS of_order, l.id FROM orders o LEFT JOIN line l ON l.of_order = o.id"
    with pytest.raises(SourceError, match="1 row without a value of id"):
        read(shop, query)
    assert read(shop, query, on_null="skip") == [(10,), (11,), (12,)]
    assert shop.plans[-1].skipped == {NO_KEY: 1}
    shop.position = None
    assert sorted(read(shop, query, on_null="include_once"), key=str) == [(10,), (11,), (12,), (None,)]
    assert read(shop, query, on_null="include_once") == []


def test_query_without_rows_has_types(shop: Shop) -> None:
    query = "SELECT id, at FROM orders WHERE id > 3"
    assert read(shop, query, ("at", "id")) == []
    shop.run("INSERT INTO orders VALUES (4, '2013-02-02', 'd')")
    assert [row[-1] for row in read(shop, query, ("at", "id"))] == [4]


def test_text_of_a_query_is_compared_by_its_bytes(shop: Shop) -> None:
    assert read(shop, "SELECT sku FROM orders", ("sku",)) == [("B",), ("a",), ("c",)]
    shop.run("INSERT INTO orders VALUES (4, '2013-02-02', 'C'), (5, '2013-02-02', 'd')")
    assert read(shop, "SELECT sku FROM orders", ("sku",)) == [("d",)]  # C comes before c


def test_text_with_a_collation_that_takes_two_for_one_is_no_key_or_compared_by_its_bytes(shop: Shop) -> None:
    if shop.login.dialect == "mariadb":
        shop.run("CREATE TABLE names (name varchar(20) COLLATE utf8mb4_general_ci)")
        with pytest.raises(OptionError, match=r"varchar.* with the collation utf8mb4_general_ci, whose values have no"):
            read(shop, "SELECT name FROM names", ("name",))
        binary = "SELECT name COLLATE utf8mb4_bin AS name FROM names"
    else:
        shop.run("CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
        shop.run('CREATE TABLE names (name text COLLATE "blind")')
        binary = "SELECT name FROM names"
    shop.run("INSERT INTO names VALUES ('Foo')")
    assert read(shop, binary, ("name",)) == [("Foo",)]
    shop.run("INSERT INTO names VALUES ('foo')")
    assert read(shop, binary, ("name",)) == [("foo",)]


def test_position_of_text_from_before_it_was_compared_by_bytes_keeps_its_order(
    request: pytest.FixtureRequest,
) -> None:
    with new_database(request.getfixturevalue("postgresql_server")) as login:
        shop = Shop(login)
        shop.run('CREATE TABLE names (name text COLLATE "und-x-icu")')
        shop.run("INSERT INTO names VALUES ('b')")
        read(shop, "SELECT name FROM names", ("name",))
        before = (shop.position or b"").replace(b'"C"', b"null")
        assert before != shop.position
        shop.position = before
        shop.run("INSERT INTO names VALUES ('C')")
        assert read(shop, "SELECT name FROM names", ("name",)) == [("C",)]


def test_time_that_a_query_shows_with_more_digits_is_final_when_its_second_is_over(shop: Shop) -> None:
    time = TIME[shop.login.dialect]
    shop.run(f"CREATE TABLE log (id int PRIMARY KEY, at {time}(0))")
    query = f"SELECT id, CAST(at AS {time}(6)) AS at FROM log"
    read(shop, query, ("at", "id"), settle=timedelta(0))
    last = shop.plans[-1].leads_to.table.keys[0]
    assert last.digits == 0
    now = datetime.now(UTC)
    shop.run(f"INSERT INTO log VALUES (1, '{now - timedelta(seconds=5):%Y-%m-%d %H:%M:%S}')")
    assert [row[-1] for row in read(shop, query, ("at", "id"), settle=timedelta(0))] == [1]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT nothing FROM orders", "nothing"),
        ("SELECT at FROM orders", "id"),
        ("SELECT id, id FROM orders", "id"),
        ("SELECT id FROM orders; -- all of them", ";"),
        ("SELECT id FROM orders /* all", "all|syntax|unterminated"),
        ("DELETE FROM orders", "DELETE|DELETE FROM|syntax"),
    ],
)
def test_query_that_the_database_does_not_take_is_refused_in_its_words(shop: Shop, query: str, said: str) -> None:
    with pytest.raises(DatabaseError, match=f"refused a statement: .*({said}).*The statement changed nothing"):
        read(shop, query)
    assert shop.rows("SELECT count(*) FROM orders") == [(3,)]
    assert shop.position is None


def test_types_of_a_query_leave_no_table_behind(shop: Shop) -> None:
    read(shop, "SELECT id FROM orders")
    tables = shop.rows("SELECT table_name FROM information_schema.tables WHERE table_name LIKE '%bookmark%'")
    assert tables == []


def test_values_of_a_column_of_a_query_can_be_read_one_by_one(shop: Shop) -> None:
    source = shop.source(query="SELECT id, sku FROM orders", per="sku")
    assert shop.read(source) == [(1,), (2,), (3,)]


def test_user_who_may_make_no_temporary_table_is_told_so(request: pytest.FixtureRequest) -> None:
    server = request.getfixturevalue("mariadb_server")
    with new_database(server) as login, open_database(login) as admin:
        user = f"u_{login.database[-12:]}"
        admin.execute("CREATE TABLE orders (id int PRIMARY KEY)")
        admin.execute(f"CREATE USER '{user}'@'%' IDENTIFIED BY 'long-enough-to-be-one'")
        admin.execute(f"GRANT SELECT ON {login.database}.* TO '{user}'@'%'")
        admin.execute(f"GRANT PROCESS ON *.* TO '{user}'@'%'")
        try:
            shop = Shop(replace(login, user=user, password="long-enough-to-be-one"))
            with pytest.raises(OptionError, match=r"lacks the right CREATE TEMPORARY TABLES.*Make a view.*or grant it"):
                read(shop, "SELECT id FROM orders")
            admin.execute(f"GRANT CREATE TEMPORARY TABLES ON {login.database}.* TO '{user}'@'%'")
            assert read(shop, "SELECT id FROM orders") == []
        finally:
            admin.execute(f"DROP USER '{user}'@'%'")
