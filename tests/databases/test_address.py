"""The address of a database is one line of text, in one spelling, without a secret."""

from __future__ import annotations

import traceback

import pytest

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.databases.address import DatabaseAddress, DatabaseLocation


def test_connection_is_named_by_its_id() -> None:
    address = DatabaseAddress.parse("conn:crm")

    assert (address.conn_id, address.url, address.location) == ("crm", None, None)
    assert (str(address), address.name) == ("conn:crm", "conn:crm")


@pytest.mark.parametrize(
    ("text", "location"),
    [
        ("jdbc:postgresql://db:5433/crm", DatabaseLocation("postgresql", "db", 5433, "crm")),
        ("jdbc:postgresql://db/crm", DatabaseLocation("postgresql", "db", 5432, "crm")),
        ("jdbc:mariadb://db/crm", DatabaseLocation("mariadb", "db", 3306, "crm")),
        ("jdbc:mysql://db/crm", DatabaseLocation("mysql", "db", 3306, "crm")),
        ("jdbc:postgresql://[2001:db8::7]:5432/crm", DatabaseLocation("postgresql", "2001:db8::7", 5432, "crm")),
        ("jdbc:postgresql://db/a%20b%2Fc%25", DatabaseLocation("postgresql", "db", 5432, "a b/c%")),
        # These two drivers read no %XX.
        ("jdbc:mariadb://db/a b%20", DatabaseLocation("mariadb", "db", 3306, "a b%20")),
        ("jdbc:sqlite:/var/lib/my%20 crm.db", DatabaseLocation("sqlite", None, None, "/var/lib/my%20 crm.db")),
        (
            "jdbc:mariadb://db/crm?sessionVariables=time_zone='+00:00'&sslMode=trust",
            DatabaseLocation(
                "mariadb", "db", 3306, "crm", (("sessionVariables", "time_zone='+00:00'"), ("sslMode", "trust"))
            ),
        ),
        ("jdbc:redshift://db/crm", DatabaseLocation("redshift", "db", 5439, "crm")),
        ("jdbc:sqlserver://db;databaseName=my crm", DatabaseLocation("sqlserver", "db", 1433, "my crm")),
        (
            "jdbc:sqlserver://db:1434;encrypt=true;DATABASE=crm;trustServerCertificate=false",
            DatabaseLocation(
                "sqlserver", "db", 1434, "crm", (("encrypt", "true"), ("trustServerCertificate", "false"))
            ),
        ),
        ("jdbc:oracle:thin:@//[::1]/crm.example.com", DatabaseLocation("oracle", "::1", 1521, "crm.example.com")),
        ("jdbc:oracle:thin:@db:1522/crm", DatabaseLocation("oracle", "db", 1522, "crm")),
        (
            "jdbc:postgresql://db/crm?sslmode=require&options=-c%20a%3Db",
            DatabaseLocation("postgresql", "db", 5432, "crm", (("options", "-c a=b"), ("sslmode", "require"))),
        ),
    ],
)
def test_url_has_parts(text: str, location: DatabaseLocation) -> None:
    address = DatabaseAddress.parse(text)

    assert address.location == location
    assert DatabaseAddress.parse(str(address)) == address


def test_two_spellings_of_a_url_are_one_address() -> None:
    one = DatabaseAddress.parse("jdbc:postgresql://DB.example.com/crm?sslmode=require&connectTimeout=5")
    other = DatabaseAddress.parse("jdbc:postgresql://db.example.com:5432/crm?connectTimeout=5&sslmode=require")

    assert one == other
    assert str(one) == "jdbc:postgresql://db.example.com:5432/crm?connectTimeout=5&sslmode=require"


def test_name_stays_when_parameters_change() -> None:
    address = DatabaseAddress.parse("jdbc:mariadb://[::1]/crm?sslMode=trust")

    assert address.name == "jdbc:mariadb://[::1]:3306/crm"


@pytest.mark.parametrize(
    "text",
    [
        "jdbc:postgresql://etl:hunter2@db/crm",
        "jdbc:postgresql://etl%3Ahunter2%40db/crm",
        "jdbc:postgresql://hunter2@db/crm",
        "jdbc:postgresql://db/crm?user=hunter2",
        "jdbc:postgresql://db/crm?password=hunter2",
        "jdbc:postgresql://db/crm?PASSWORD=hunter2",
        "jdbc:postgresql://db/crm?sslmode=require&sslpassword=hunter2",
        "jdbc:mariadb://db/crm?keyStorePassword=hunter2",
        "jdbc:mysql://db/crm?x=1&accessToken=hunter2",
        "jdbc:sqlserver://db;databaseName=crm;user=hunter2",
        "jdbc:sqlserver://db;password=hunter2;databaseName=crm",
        "jdbc:oracle:thin:etl/hunter2@//db/crm",
        "jdbc:oracle:thin:etl/hunter2@db:1521/crm",
        "jdbc:redshift://db/crm?PWD=hunter2",
    ],
)
def test_secret_in_a_url_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(OptionError, match="AIRFLOW_CONN_<ID>") as raised:
        DatabaseAddress.parse(text)

    assert "Nothing was read or changed" in str(raised.value)
    assert "hunter2" not in "".join(traceback.format_exception(raised.value)).replace(text, "")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("postgresql://db/crm", "neither with 'conn:' nor with 'jdbc:'"),
        ("", "neither with 'conn:' nor with 'jdbc:'"),
        ("conn:", "names a connection by an id"),
        ("conn:a b", "names a connection by an id"),
        ("jdbc:db2://db:50000/crm", "a kind that is not known; there are jdbc:postgresql:, jdbc:mysql:"),
        ("jdbc:oracle:thin:@db:1521:crm", "jdbc:oracle:thin:@//HOST:PORT/SERVICE"),
        ("jdbc:oracle:oci:@//db/crm", "jdbc:oracle:thin:@//HOST:PORT/SERVICE"),
        ("jdbc:sqlserver://db", "jdbc:sqlserver://HOST:PORT;databaseName=DATABASE"),
        ("jdbc:sqlserver://db/crm", "jdbc:sqlserver://HOST:PORT;databaseName=DATABASE"),
        ("jdbc:sqlserver://db;databaseName={a;b}", "jdbc:sqlserver://HOST:PORT;databaseName=DATABASE"),
        (r"jdbc:sqlserver://db\two;databaseName=crm", "jdbc:sqlserver://HOST:PORT;databaseName=DATABASE"),
        ("jdbc:postgresql:crm", "one host and one database"),
        ("jdbc:postgresql://db", "one host and one database"),
        ("jdbc:postgresql://db:x/crm", "a port that is no number"),
        ("jdbc:postgresql://one:5432,other:5432/crm", "give one host"),
        ("jdbc:postgresql://[::1/crm", "can't be read as a URL"),
        ("jdbc:postgresql://db/crm#part", "holds a '#'"),
        ("jdbc:postgresql://db/crm?a=1&a=2", "'a' twice"),
        ("jdbc:sqlite:crm.db", "absolute path"),
        ("jdbc:sqlite::memory:", "absolute path"),
        ("jdbc:sqlite:/crm.db?mode=rw", "absolute path"),
    ],
)
def test_wrong_address_says_what_is_wrong(text: str, why: str) -> None:
    with pytest.raises(OptionError, match=why.replace("?", r"\?")):
        DatabaseAddress.parse(text)


@pytest.mark.parametrize("given", [{}, {"conn_id": "crm", "url": "jdbc:sqlite:/crm.db"}])
def test_address_is_one_of_the_two(given: dict[str, str]) -> None:
    with pytest.raises(OptionError, match="exactly one of them"):
        DatabaseAddress(**given)
