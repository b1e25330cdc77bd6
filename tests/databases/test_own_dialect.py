"""A dialect of one's own is registered by its name, or found by an entry point, and reads tables by key."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from airflow_bookmarks.core.database.dialects.oracle import Oracle
from airflow_bookmarks.core.database.dialects.postgresql import PostgreSQL
from airflow_bookmarks.core.errors import OptionError, SourceError
from airflow_bookmarks.databases.address import DatabaseAddress, DatabaseLocation
from airflow_bookmarks.databases.dialects import GROUP, dialect_named, find_dialect, register, registered
from airflow_bookmarks.databases.login import DatabaseLogin
from tests.databases.servers import new_sqlite
from tests.databases.sqlite_dialect import SQLite
from tests.installed import install, printed
from tests.sources.jdbc.shop import Shop

NOW = timedelta(0)


class Acme(PostgreSQL):
    name = "acme"
    driver = "com.acme.Driver"


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    shop = Shop(new_sqlite(tmp_path / "shop.db"))
    shop.run('CREATE TABLE orders (id INTEGER PRIMARY KEY, "na me" TEXT)')
    with registered(SQLite()):
        yield shop


def test_rows_of_sqlite_are_read_once_by_number(shop: Shop) -> None:
    shop.run("INSERT INTO orders VALUES (1, 'a'), (2, 'b'), (10, 'c')")

    assert shop.read(settle=NOW) == [(1,), (2,), (10,)]
    assert shop.read(settle=NOW) == []
    shop.run("INSERT INTO orders VALUES (11, 'd'), (9223372036854775807, 'e')")
    assert shop.read(settle=NOW) == [(11,), (9223372036854775807,)]


def test_rows_of_sqlite_are_read_once_by_text(shop: Shop) -> None:
    shop.run("INSERT INTO orders VALUES (1, 'Zoe'), (2, 'anna'), (3, 'it''s')")
    keys = ("na me", "id")

    assert shop.read(keys=keys, settle=NOW) == [("Zoe", 1), ("anna", 2), ("it's", 3)]
    shop.run("INSERT INTO orders VALUES (4, 'it''s'), (5, 'é')")
    assert shop.read(keys=keys, settle=NOW) == [("it's", 4), ("é", 5)]


def test_lookback_is_refused_by_name(shop: Shop) -> None:
    shop.run("INSERT INTO orders VALUES (1, 'a')")

    with pytest.raises(
        OptionError, match=r"lookback is for PostgreSQL, MySQL and MariaDB, and this is sqlite\. Nothing"
    ):
        shop.read(settle=NOW, lookback=timedelta(hours=1))


def test_value_of_another_type_is_no_key(shop: Shop) -> None:
    shop.run("INSERT INTO orders VALUES (1, 'a'), (2, x'00')")

    with pytest.raises(SourceError, match="1 row without a value of na me"):
        shop.read(keys=("na me",), settle=NOW)


def test_what_a_dialect_does_not_tell_is_refused_by_name(shop: Shop) -> None:
    with pytest.raises(OptionError, match=r"sqlite does not tell which transactions are open.*settle=timedelta"):
        shop.read()


def test_fault_of_an_own_dialect_is_one_of_its_source() -> None:
    class Faulty(Acme):
        name = "faulty"

        def now_query(self) -> str:
            raise KeyError("clock")

    with registered(Faulty()), pytest.raises(SourceError, match=r"the dialect 'faulty' failed: .*clock"):
        dialect_named("faulty").now_query()


def test_unknown_dialect_is_refused_by_name() -> None:
    with pytest.raises(OptionError, match=r"tables of 'sqlite' can't be read by key here; those of postgresql, "):
        dialect_named("sqlite")


def test_splitting_by_a_hash_is_refused_where_there_is_none() -> None:
    with pytest.raises(OptionError, match="Give partition_column="):
        SQLite().part("id", 2)


def test_name_of_another_dialect_is_refused() -> None:
    class Other(Oracle):
        name = "postgresql"

    with pytest.raises(OptionError, match="is that of PostgreSQL already"):
        register(Other())
    register(PostgreSQL())

    assert type(dialect_named("postgresql")) is PostgreSQL


@pytest.mark.parametrize(("name", "why"), [("a:b", "no JDBC URL can have"), ("", "no JDBC URL can have")])
def test_name_that_no_url_has_is_refused(name: str, why: str) -> None:
    made = Acme()
    made.__class__.name = name
    try:
        with pytest.raises(OptionError, match=why):
            register(made)
    finally:
        Acme.name = "acme"


def test_what_is_no_dialect_is_refused() -> None:
    with pytest.raises(OptionError, match="is no object of a dialect"):
        register(Acme)  # type: ignore[arg-type]  # the class


def test_url_of_an_own_dialect_has_its_name() -> None:
    with registered(Acme()):
        address = DatabaseAddress.parse("jdbc:acme://db:7000/shop?tls=on")
        login = DatabaseLogin.of_address(address)

        assert address.location == DatabaseLocation("acme", "db", 7000, "shop", (("tls", "on"),))
        assert login.jdbc_url == "jdbc:acme://db:7000/shop?tls=on"
        assert login.jdbc_properties() == {"driver": "com.acme.Driver"}
        with pytest.raises(OptionError, match="write jdbc:acme://HOST:PORT/DATABASE"):
            DatabaseAddress.parse("jdbc:acme://db/shop")
    with pytest.raises(OptionError, match="a kind that is not known"):
        DatabaseAddress.parse("jdbc:acme://db:7000/shop")
    assert find_dialect("acme") is None


def test_dialect_of_an_installed_package_needs_no_call(tmp_path: Path) -> None:
    install(tmp_path, GROUP, "acme", acme="tests.databases.test_own_dialect:Acme", broken="nowhere:Nothing")
    code = """
from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.databases.dialects import dialect_named
print(dialect_named("acme").driver)
try:
    dialect_named("broken")
except OptionError as error:
    print(error)
"""

    driver, why = printed(tmp_path, code)

    assert driver == "com.acme.Driver"
    assert "The entry point 'broken'" in why
