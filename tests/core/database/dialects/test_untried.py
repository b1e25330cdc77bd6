"""Which columns of the databases that no test has can be keys, and that their dialects are named as untried."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

import pytest

from airflow_bookmarks.core.database.dialect import TableColumn
from airflow_bookmarks.core.database.dialects.registry import DIALECTS
from airflow_bookmarks.core.database.key import KeyColumn, KeyType, moment_of
from airflow_bookmarks.core.database.windows.cut import cut_of
from airflow_bookmarks.databases import dialects
from airflow_bookmarks.databases.dialects import dialect_named, warn_if_untried


def key(name: str, declared: str, collation: str = "") -> KeyColumn | None:
    return DIALECTS[name].key_column(TableColumn("k", declared, False, collation))


@pytest.mark.parametrize(
    ("name", "declared", "collation"),
    [
        ("sqlserver", "uniqueidentifier", ""),  # its order begins with the last bytes
        ("sqlserver", "smalldatetime", ""),  # rounds to a minute
        ("sqlserver", "varchar", "Latin1_General_BIN2"),  # sorted by its code page
        ("sqlserver", "nvarchar", "SQL_Latin1_General_CP1_CI_AS"),
        ("sqlserver", "float", ""),
        ("oracle", "VARCHAR2", ""),  # sorted as its session says
        ("oracle", "RAW", ""),
        ("oracle", "BINARY_DOUBLE", ""),
        ("redshift", "character varying(20)", ""),
        ("redshift", "super", ""),
    ],
)
def test_column_without_a_sure_order_is_no_key(name: str, declared: str, collation: str) -> None:
    assert key(name, declared, collation) is None


@pytest.mark.parametrize(
    ("name", "declared", "expected"),
    [
        ("oracle", "NUMBER(38,0)", (KeyType.INTEGER, 6)),
        ("oracle", "NUMBER(*,0)", (KeyType.INTEGER, 6)),
        ("oracle", "NUMBER(5,-2)", (KeyType.INTEGER, 6)),
        ("oracle", "NUMBER(*,*)", (KeyType.DECIMAL, 6)),
        ("oracle", "DATE", (KeyType.LOCAL_TIME, 0)),
        ("oracle", "TIMESTAMP(9) WITH LOCAL TIME ZONE", (KeyType.TIME, 6)),
        ("sqlserver", "datetimeoffset(3)", (KeyType.TIME, 3)),
        ("sqlserver", "datetime2(7)", (KeyType.LOCAL_TIME, 6)),
        ("redshift", "numeric(18,2)", (KeyType.DECIMAL, 6)),
    ],
)
def test_column_is_a_key(name: str, declared: str, expected: tuple[KeyType, int]) -> None:
    found = key(name, declared)

    assert found is not None
    assert (found.type, found.digits) == expected


def test_window_ends_where_no_later_datetime_of_sql_server_is_rounded_to() -> None:
    column = key("sqlserver", "datetime")
    assert column is not None

    for micros in range(0, 20_000, 7):
        moment = datetime(2013, 1, 31, 23, 59, 58, micros, UTC)
        rounded = datetime(2013, 1, 31, 23, 59, 58, round(micros * 300 / 1e6) * 10_000 // 3, UTC)
        cut = moment_of(cut_of(moment, column, "UTC"))

        assert cut is not None
        assert cut <= rounded


@pytest.mark.parametrize(
    ("name", "value", "literal"),
    [
        ("sqlserver", "0.5", "CAST(N'0.5' AS decimal(38, 1))"),
        ("redshift", "12", "CAST('12' AS numeric(38, 0))"),
        ("oracle", "1E+3", "1000"),
        ("oracle", "-0.5", "-0.5"),
    ],
)
def test_decimal_keeps_its_digits(name: str, value: str, literal: str) -> None:
    assert DIALECTS[name].literal(value, KeyColumn("k", KeyType.DECIMAL)) == literal


def test_untried_dialect_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    dialects._warn.cache_clear()
    caplog.set_level(logging.WARNING)

    for name in ("oracle", "oracle", "sqlserver", "postgresql", "mariadb"):
        warn_if_untried(dialect_named(name))

    assert [message.partition(" is untried")[0] for message in caplog.messages] == [
        "The SQL for oracle",
        "The SQL for sqlserver",
    ]
