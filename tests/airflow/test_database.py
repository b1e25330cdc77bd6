"""The metadata database that the tests of Airflow share, however many conftests ask for it."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from tests.airflow import conftest


def test_second_request_for_the_database_leaves_what_the_first_has_made(airflow_database: None) -> None:
    database = conftest.put_database_in_place()
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("INSERT INTO variable (key, val, is_encrypted) VALUES ('kept', '1', 0)")
    try:
        conftest.put_database_in_place()

        with closing(sqlite3.connect(database)) as connection:
            assert connection.execute("SELECT val FROM variable WHERE key = 'kept'").fetchall() == [("1",)]
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    finally:
        with closing(sqlite3.connect(database)) as connection, connection:
            connection.execute("DELETE FROM variable WHERE key = 'kept'")
