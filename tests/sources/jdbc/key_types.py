"""Columns of every type as keys: what becomes of each on a real server, and the page of the documentation that says so.

    $ python -m tests.sources.jdbc.key_types      # writes docs/reference/database-types.md anew

`test_key_types.py` compares the page with what it finds.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.database.windows.window import KeyWindow
from airflow_bookmarks.core.errors import OptionError, SourceError
from airflow_bookmarks.core.selection.bound import Bound
from airflow_bookmarks.core.selection.reason import NO_KEY
from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.sources.jdbc.position import TablePlan
from tests.databases.servers import new_database
from tests.sources.jdbc.shop import Shop
from tools.servers import DatabaseServer, mariadb, postgresql

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "database-types.md"
_SERVERS: Mapping[str, Callable[[], AbstractContextManager[DatabaseServer]]] = {
    "postgresql": postgresql,
    "mariadb": mariadb,
}
_TYPE = re.compile(r"the type .+?, whose")
_TITLES = {"postgresql": "PostgreSQL", "mariadb": "MariaDB"}


@dataclass(frozen=True)
class Case:
    """A type as a key.

    Attributes:
        declared: As it stands in `CREATE TABLE`.
        values: Literals, in the order in which the database has them.
        made: What has to be there first.
        nothing: Literals that have no place in the order.
    """

    declared: str
    values: tuple[str, ...]
    made: str = ""
    nothing: tuple[str, ...] = ()


_INFINITE = ("'-infinity'", "'infinity'")
CASES: Mapping[str, Sequence[Case]] = {
    "postgresql": (
        Case("smallint", ("-32768", "0", "32767")),
        Case("integer", ("-2147483648", "0", "2147483647")),
        Case("bigint", ("-9223372036854775808", "0", "9223372036854775807")),
        Case("bigserial", ("1", "2", "9223372036854775807")),
        Case(
            "numeric",
            ("-1e30", "0.000000000000000000001", "1e40"),
            nothing=("'-Infinity'", "'Infinity'", "'NaN'"),
        ),
        Case("numeric(38, 10)", ("0.0000000001", "1234567890123456789012345678.0123456789"), nothing=("'NaN'",)),
        Case("date", ("'0044-03-15 BC'", "'1752-09-14'", "'2013-01-31'"), nothing=_INFINITE),
        Case("timestamp", ("'1900-01-01 00:00:00.000001'", "'2013-01-31 23:59:59.999999'"), nothing=_INFINITE),
        Case("timestamp(0)", ("'1900-01-01 00:00:01'", "'2013-01-31 23:59:59'"), nothing=_INFINITE),
        Case(
            "timestamptz",
            ("'0044-03-15 12:00+00 BC'", "'1900-01-01 00:00:00.000001+00'", "'2013-01-31 23:59:59.999999+01'"),
            nothing=_INFINITE,
        ),
        Case("timestamptz(3)", ("'1900-01-01 00:00:00.001+00'", "'2013-01-31 23:59:59.999+00'"), nothing=_INFINITE),
        Case("uuid", ("'00000000-0000-0000-0000-000000000001'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'")),
        Case("text", ("''", "'B'", "'a'", "'a''\\b%'", "'ä'", "'\U0001f600'")),
        Case('text COLLATE "C"', ("''", "'B'", "'a'", "'ä'")),
        Case('text COLLATE "und-x-icu"', ("''", "'B'", "'a'", "'ä'")),
        Case("varchar(20)", ("'B'", "'a'", "'a '")),
        Case("char(3)", ("'B'", "'a'")),
        Case("citext", ("'a'", "'B'"), made="CREATE EXTENSION citext"),
        Case("bit(8)", ("B'00000001'", "B'11111111'")),
        Case("boolean", ("false", "true")),
        Case("real", ("0.5", "1.5")),
        Case("double precision", ("0.5", "1.5")),
        Case("money", ("1", "2")),
        Case("mood", ("'sad'", "'happy'"), made="CREATE TYPE mood AS ENUM ('sad', 'happy')"),
        Case("positive", ("1", "2"), made="CREATE DOMAIN positive AS bigint CHECK (VALUE > 0)"),
        Case("bytea", (r"'\x00'", r"'\xff'")),
        Case("time", ("'00:00'", "'23:59'")),
        Case("timetz", ("'00:00+00'", "'23:59+00'")),
        Case("interval", ("'1 day'", "'25 hours'")),
        Case("inet", ("'10.0.0.1'", "'10.0.0.2'")),
        Case("jsonb", ("'1'", "'2'")),
        Case("oid", ("1", "2")),
        Case("integer[]", ("'{1}'", "'{2}'")),
    ),
    "mariadb": (
        Case("tinyint", ("-128", "0", "127")),
        Case("boolean", ("0", "1")),
        Case("smallint unsigned", ("0", "65535")),
        Case("mediumint", ("-8388608", "0", "8388607")),
        Case("int", ("-2147483648", "0", "2147483647")),
        Case("int(8) zerofill", ("0", "7", "4294967295")),
        Case("bigint", ("-9223372036854775808", "0", "9223372036854775807")),
        Case("bigint unsigned", ("0", "9223372036854775808", "18446744073709551615")),
        Case("bit(1)", ("0", "1")),
        Case("bit(64)", ("1", "9223372036854775808", "18446744073709551615")),
        Case("year", ("0", "1901", "2013", "2155")),
        Case("decimal(38, 10)", ("0.0000000001", "1234567890123456789012345678.0123456789")),
        Case("decimal(65, 30)", ("-1e30", f"0.{'0' * 29}1", f"{'9' * 35}.{'9' * 30}")),
        Case("date", ("'1752-09-14'", "'2013-01-31'"), nothing=("'0000-00-00'",)),
        Case("datetime", ("'1900-01-01 00:00:01'", "'2013-01-31 23:59:59'"), nothing=("'0000-00-00'",)),
        Case(
            "datetime(6)",
            ("'1900-01-01 00:00:00.000001'", "'2013-01-31 23:59:59.999999'"),
            nothing=("'0000-00-00'",),
        ),
        Case("timestamp", ("'1970-01-01 00:00:01'", "'2013-01-31 23:59:59'"), nothing=("'0000-00-00'",)),
        Case(
            "timestamp(6)",
            ("'1990-01-01 00:00:00.000001'", "'2013-01-31 23:59:59.999999'"),
            nothing=("'0000-00-00'",),
        ),
        Case("uuid", ("'00000000-0000-0000-0000-000000000001'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'")),
        Case("varchar(20) COLLATE utf8mb4_bin", ("''", "'B'", "'a'", "'a''\\b%'", "'ä'", "'\U0001f600'")),
        Case("varchar(20) COLLATE utf8mb4_nopad_bin", ("'B'", "'a'", "'a '", "'ä'")),
        Case("char(3) CHARACTER SET latin1 COLLATE latin1_bin", ("'B'", "'a'", "'ä'")),
        Case("varchar(20) COLLATE utf8mb4_general_ci", ("'a'", "'B'")),
        Case("varchar(20) COLLATE utf8mb4_unicode_ci", ("'a'", "'B'")),
        Case("float", ("0.5", "1.5")),
        Case("double", ("0.5", "1.5")),
        Case("enum('sad', 'happy')", ("'sad'", "'happy'")),
        Case("set('a', 'b')", ("'a'", "'b'")),
        Case("binary(2)", ("x'0001'", "x'ff00'")),
        Case("varbinary(20)", ("x'00'", "x'ff'")),
        Case("time(6)", ("'-00:00:01'", "'838:59:59'")),
        Case("inet6", ("'::1'", "'::2'")),
    ),
}


@dataclass(frozen=True)
class Found:
    """What became of a type as a key.

    Attributes:
        declared: The type.
        refused: Why it is refused; None: it is taken.
        kept: Its values as the bookmark keeps them, each of which was the end of a window once.
        nothing: Values for which `on_null` decides.
    """

    declared: str
    refused: str | None = None
    kept: tuple[str, ...] = ()
    nothing: tuple[str, ...] = ()

    def row(self) -> str:
        """Return it as a row of the table."""
        if self.refused is not None:
            return f"| {_code(self.declared)} | refused | |"
        nothing = ", ".join(_code(each) for each in self.nothing)
        by_on_null = f"; by `on_null`: {nothing}" if nothing else ""
        return f"| {_code(self.declared)} | exact | {' < '.join(map(_code, self.kept))}{by_on_null} |"


@dataclass
class _Rows(Shop):
    """A shop with one table `t`, whose rows are told by their column `id`: Python has not all values of its key `k`.

    `query` is read in place of the table, if it is given.
    """

    query: str | None = None

    def held(self, plan: TablePlan, window: KeyWindow | None = None) -> list[tuple[Any, ...]]:
        condition = (window or plan.window).condition(self.dialect, plan.leads_to.table)
        return self.rows(f"SELECT id FROM {plan.source} WHERE {condition} ORDER BY id")

    def run_job(self, **how: Any) -> list[int]:
        """Make one run, and return which rows it has read."""
        return [id_ for (id_,) in self.read(table="t", query=self.query, keys=["k"], zone="UTC", **how)]


def look(login: DatabaseLogin, case: Case, query: str | None = None) -> Found:
    """Read rows by a key of a type, each by itself and all together, and return what came of it.

    Args:
        query: read in place of the table `t`, whose columns `k` and `id` it has.

    Raises:
        AssertionError: a row was read twice, or not at all, or in another order.
    """
    shop = _Rows(login, query=query)
    create(shop, case)
    try:
        shop.run_job()
    except OptionError as refused:
        shop.run(f"INSERT INTO t VALUES ({case.values[0]}, 0)")  # the table is right, and the key is not
        return Found(case.declared, refused=str(refused))
    kept = tuple(_end_of(shop, number, value) for number, value in enumerate(case.values))
    assert shop.run_job() == []
    _check_order(shop, case)
    if case.nothing:
        _check_nothing(shop, case)
    return Found(case.declared, None, kept, tuple(each.strip("'") for each in case.nothing))


def create(shop: Shop, case: Case) -> None:
    """Make the empty table of a case."""
    shop.run("DROP TABLE IF EXISTS t")
    if case.made:
        shop.run(case.made)
    nullable = " NULL" if case.declared.startswith("timestamp") else ""  # MariaDB would put the present time there
    shop.run(f"CREATE TABLE t (k {case.declared}{nullable}, id int PRIMARY KEY)")


def _end_of(shop: _Rows, number: int, value: str) -> str:
    """Write a row, read it as the only one that is new, and return the key as the bookmark has it."""
    shop.run(f"INSERT INTO t VALUES ({value}, {number})")
    assert shop.run_job() == [number], value
    until = shop.plans[-1].window.until
    assert until is not None
    return until.values[0]


def _check_order(shop: _Rows, case: Case) -> None:
    """Read all rows again, one in each run: they come in the order of their keys."""
    shop.position = None
    found = [shop.run_job(bound=Bound(max_rows=1)) for _ in case.values]
    assert found == [[number] for number in range(len(case.values))], case.declared
    assert shop.run_job() == []


def _check_nothing(shop: _Rows, case: Case) -> None:
    """Write values without a place: a run fails, or counts them, and what comes after them is read."""
    shop.run("DELETE FROM t")
    for number, value in enumerate((case.values[0], *case.nothing)):
        shop.run(f"INSERT INTO t VALUES ({value}, {number})")
    shop.position = None
    with pytest.raises(
        SourceError, match=rf"{len(case.nothing)} rows? without a value of k, or with one without a place"
    ):
        shop.run_job()
    assert shop.run_job(on_null="skip") == [0]
    assert shop.plans[-1].skipped == {NO_KEY: len(case.nothing)}
    shop.run(f"INSERT INTO t VALUES ({case.values[-1]}, 99)")
    assert shop.run_job(on_null="skip") == [99]


# ---- the page

_HEAD = """# Types of keys in databases

<!-- `make database-types` writes this page from what the servers do; a test compares it. -->

What becomes of a column of each type as a key of [`job.read(ctx).jdbc(...)`](../guides/databases.md), found on real
servers. `exact`: each of these values was the end of a run once, as the bookmark keeps it, and rows are read in this
order, each once. `by on_null`: a row with this value counts as one without a key. A first key without a zone (`date`,
`timestamp` of PostgreSQL, `datetime`) needs `zone=...`.

`refused`: the run ends before it reads or changes anything, with this error, which names the type:

> {refusal}

Floats are refused because their text need not be exact; text with a collation that does not compare bytes, because
different texts may be equal there; the others, because their order is not that of their text, or blanks at their end
do not count. Add a column of another type, or read a view that casts the key, if that has the order that you want.

Spark itself does not read a column `uuid` of MariaDB ("Unrecognized SQL type"): read a view that casts it to text.
"""


def page(found: Mapping[str, Sequence[Found]]) -> str:
    """Return the page."""
    refused = [each.refused for rows in found.values() for each in rows if each.refused is not None]
    (refusal,) = {_TYPE.sub("the type ..., whose", each) for each in refused}  # all say the same
    parts = [_HEAD.format(refusal=refusal)]
    for dialect, rows in found.items():
        table = ["| type | as a key | values |", "|---|---|---|", *(each.row() for each in rows)]
        parts.append("\n".join([f"## {_TITLES[dialect]}", "", *table, ""]))
    return "\n".join(parts)


def is_exact(dialect: str, case: Case) -> bool:
    """Return what the page says of a type."""
    part = PAGE.read_text(encoding="utf-8").partition(f"## {_TITLES[dialect]}")[2]
    row = re.search(rf"^\| {re.escape(_code(case.declared))} \| (exact|refused) \|", part, re.MULTILINE)
    assert row is not None, f"{case.declared}: make database-types writes the page anew"
    return row[1] == "exact"


def _code(text: str) -> str:
    """Return a value as code; a blank at its end would not be seen."""
    return f"`{text}`" if text and text.strip() == text else f"`'{text}'`"


def main() -> None:
    """Ask both servers, and write the page."""
    logging.getLogger("airflow_bookmarks").setLevel(logging.ERROR)
    found = {}
    with ExitStack() as servers:
        for dialect, cases in CASES.items():
            login = servers.enter_context(new_database(servers.enter_context(_SERVERS[dialect]())))
            found[dialect] = [look(login, case) for case in cases]
    PAGE.write_text(page(found), encoding="utf-8")


if __name__ == "__main__":
    main()
