"""What Redshift shares with PostgreSQL, from which it comes, runs there: its catalog, texts, literals and windows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_bookmarks.core.database.dialect import TableColumn
from airflow_bookmarks.core.database.dialects.redshift import Redshift
from airflow_bookmarks.core.database.key import KeyType
from airflow_bookmarks.core.database.windows.window import KeyWindow, Mark, TableKeys
from tests.databases.servers import new_database
from tests.sources.jdbc.shop import Shop
from tools.servers import DatabaseServer

ROWS = (
    "-9223372036854775808, 0.0000000001, '0001-01-01', '2013-01-31 23:59:58.000001', '2013-01-31 23:59:58.1+01', 'a'",
    "9223372036854775807, -12345678901234567890.5, '9999-12-31', '9999-12-31 23:59:59.999999', '1969-12-31Z', 'b'",
)


@pytest.fixture(scope="module")
def shop(postgresql_server: DatabaseServer) -> Iterator[Shop]:
    with new_database(postgresql_server) as login:
        shop = Shop(login)
        shop.run(
            'CREATE TABLE "Or""ders" (i bigint NOT NULL, n numeric(38, 10), d date, l timestamp, t timestamptz, s text)'
        )
        for row in ROWS:
            shop.run(f'INSERT INTO "Or""ders" VALUES ({row})')
        yield shop


def test_keys_are_found_and_their_text_is_their_value(shop: Shop) -> None:
    dialect = Redshift()
    found = [TableColumn(*row) for row in shop.rows(dialect.columns_query(['Or"ders']))]
    keys = [key for each in found if (key := dialect.key_column(each)) is not None]

    assert [(key.type, bool(key.is_nullable)) for key in keys] == [
        (KeyType.INTEGER, False),
        (KeyType.DECIMAL, True),
        (KeyType.DATE, True),
        (KeyType.LOCAL_TIME, True),
        (KeyType.TIME, True),
    ]
    source = dialect.table(['Or"ders'])
    for key in keys:
        for (text,) in shop.rows(dialect.some(dialect.as_text(key), source, "1 = 1", 10)):
            where = f"{dialect.column(key)} = {dialect.literal(text, key)}"
            assert shop.rows(dialect.capped_count(source, where, 10)) == [(1,)], (key, text)


def test_expanded_window_is_that_of_tuples(shop: Shop) -> None:
    dialect = Redshift()
    keys = [
        dialect.key_column(TableColumn(name, declared, False))
        for name, declared in (("a", "integer"), ("b", "integer"))
    ]
    table = TableKeys(tuple(key for key in keys if key is not None))
    condition = KeyWindow(Mark(("1", "2")), Mark(("2", "1"))).condition(dialect, table)

    rows = shop.rows(
        f"SELECT a, b FROM generate_series(0, 3) a, generate_series(0, 3) b WHERE {condition} "
        f"ORDER BY {table.order(dialect)}"
    )

    assert rows == [(1, 3), (2, 0), (2, 1)]
