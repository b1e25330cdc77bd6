"""The conformance suite of sources over tables, by a number and by a time, on PostgreSQL and MariaDB."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import ClassVar

import pytest

from airflow_bookmarks.databases.address import DatabaseAddress
from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.sources.jdbc.kind import TableKind
from airflow_bookmarks.sources.jdbc.position import TablePlan
from airflow_bookmarks.sources.jdbc.source import TableSource
from airflow_bookmarks.testing.source_conformance import SourceConformance
from tests.databases.servers import new_database
from tests.sources.jdbc.shop import Shop


class KnownLogin:
    """Knows one login, whatever it is asked for."""

    def __init__(self, login: DatabaseLogin) -> None:
        self._login = login

    def login(self, address: DatabaseAddress) -> DatabaseLogin:
        return self._login


class Tables(SourceConformance):
    """An item is a row of a table."""

    keys: ClassVar[tuple[str, ...]] = ("id",)

    @pytest.fixture(params=["postgresql", "mariadb"], autouse=True)
    def _database(self, request: pytest.FixtureRequest, _world: None) -> Iterator[None]:
        with new_database(request.getfixturevalue(f"{request.param}_server")) as login:
            self.store.databases = KnownLogin(login)
            self.shop = Shop(login)
            time = "timestamptz" if login.dialect == "postgresql" else "timestamp(6)"
            self.shop.run(f"CREATE TABLE orders (id int PRIMARY KEY, at {time} NOT NULL)")
            yield

    def kind(self) -> TableKind:
        return TableKind()

    def source(self) -> TableSource:
        return self.shop.source(keys=self.keys)

    def arrive(self, number: int) -> None:
        self.shop.run(f"INSERT INTO orders VALUES ({number}, '{self._time(number):%Y-%m-%d %H:%M:%S}')")

    def items(self, plan: TablePlan) -> Iterable[int]:
        return [int(keys[-1]) for keys in self.shop.held(plan)]

    def value_after(self, number: int) -> str:
        return str(number)

    def _time(self, number: int) -> datetime:
        return datetime(2013, 1, 31, tzinfo=UTC) + timedelta(days=number)


class TestByNumber(Tables):
    """Rows in the order of their primary key."""


@pytest.mark.thorough  # the suite by number and by time with a lookback has both parts of it
class TestByTime(Tables):
    """Rows in the order of a time, and of the primary key among those of one time."""

    keys: ClassVar[tuple[str, ...]] = ("at", "id")

    def value_after(self, number: int) -> str:
        return self._time(number).isoformat()


@pytest.mark.thorough  # as above
class TestWithLookback(Tables):
    """Rows in the order of their primary key, of which late ones are looked for."""

    def source(self) -> TableSource:
        return self.shop.source(keys=self.keys, lookback=timedelta(hours=1))


class TestByTimeWithLookback(TestByTime):
    """Rows in the order of a time, of which late ones are looked for."""

    def source(self) -> TableSource:
        return self.shop.source(keys=self.keys, lookback=timedelta(hours=36))
