"""The address of a store: what is taken, what is refused, and that a message never repeats a secret."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import boto3.session
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_bookmarks.core.errors import NameInvalidError, OptionError
from airflow_bookmarks.store.backends.dynamodb import DynamoTable
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.opener import open_table
from airflow_bookmarks.store.table import Key, Put
from airflow_bookmarks.store.uri import StoreAddress


@pytest.mark.parametrize(
    ("uri", "address"),
    [
        ("dynamodb://bookmarks", StoreAddress("dynamodb", "bookmarks")),
        ("dynamodb://Book_marks.v1-x", StoreAddress("dynamodb", "Book_marks.v1-x")),
        (
            "dynamodb://bookmarks?region=eu-west-1&endpoint=http://127.0.0.1:8000&namespace=prod",
            StoreAddress("dynamodb", "bookmarks", "prod", "eu-west-1", "http://127.0.0.1:8000"),
        ),
        ("sqlite:////var/lib/bookmarks.db", StoreAddress("sqlite", "/var/lib/bookmarks.db")),
        (
            "sqlite:////home/me/b%20c%3F%23.db?namespace=x&create=true",
            StoreAddress("sqlite", "/home/me/b c?#.db", "x", create=True),
        ),
        ("sqlite:///:memory:", StoreAddress("sqlite", ":memory:")),
        ("sqlite:///:memory:?namespace=tests", StoreAddress("sqlite", ":memory:", "tests")),
        ("sqlite:////b.db?names=ascii", StoreAddress("sqlite", "/b.db", names="ascii")),
        (
            "dynamodb://bookmarks?namespace=prod&names=ascii",
            StoreAddress("dynamodb", "bookmarks", "prod", names="ascii"),
        ),
    ],
)
def test_an_address_is_read_and_written_back(uri: str, address: StoreAddress) -> None:
    assert StoreAddress.parse(uri) == address
    assert str(address) == uri


def test_spelled_out_defaults_are_left_out_when_written() -> None:
    assert str(StoreAddress.parse("sqlite:////b.db?create=false&namespace=default&names=unicode")) == "sqlite:////b.db"
    uri = "dynamodb://bookmarks?endpoint=http%3A%2F%2F127.0.0.1%3A8000"
    assert str(StoreAddress.parse(uri)) == "dynamodb://bookmarks?endpoint=http://127.0.0.1:8000"


@given(path=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1))
def test_any_path_survives_being_written_and_read(path: str) -> None:
    address = StoreAddress("sqlite", "/" + path.strip("/") + ".db")
    assert StoreAddress.parse(str(address)) == address


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("", "scheme"),
        ("bookmarks", "scheme"),
        ("postgresql://h/db", "scheme 'postgresql'"),
        ("dynamodb://", "3 to 255"),
        ("dynamodb://ab", "3 to 255"),
        ("dynamodb://table/x", "3 to 255"),
        ("dynamodb://table:80", "3 to 255"),
        ("dynamodb://bookmarks?table=x", "unknown parameter 'table'"),
        ("dynamodb://bookmarks?create=true", "unknown parameter 'create'"),
        ("dynamodb://bookmarks?Region=eu-west-1", "unknown parameter 'Region'"),
        ("dynamodb://bookmarks?region=a&region=b", "'region' twice"),
        ("dynamodb://bookmarks?region=", "'region' without a value"),
        ("dynamodb://bookmarks?region", "'region' without a value"),
        ("dynamodb://bookmarks?region=evil.example/", "no name of a region"),
        ("dynamodb://bookmarks?endpoint=127.0.0.1:8000", "endpoint"),
        ("dynamodb://bookmarks?endpoint=file:///etc/passwd", "endpoint"),
        ("dynamodb://bookmarks?endpoint=http://h:port", "endpoint"),
        ("dynamodb://bookmarks?insecure=yes", "insecure"),
        ("sqlite:////a.db?insecure=true", "insecure"),
        ("sqlite:////a.db?names=ASCII", "names='ASCII'; it is unicode or ascii"),
        ("dynamodb://bookmarks?names=latin", "names='latin'; it is unicode or ascii"),
        ("dynamodb://bookmarks#x", "'#'"),
        ("dynamodb://[x", "can't be read"),
        ("sqlite://bookmarks.db", "only an absolute one"),
        (
            "sqlite:///bookmarks.db",
            "has the path 'bookmarks.db'; only an absolute one of a file is taken, with four slashes",
        ),
        ("sqlite:///./bookmarks.db", "only an absolute one"),
        ("sqlite://host//bookmarks.db", "only an absolute one"),
        ("sqlite://host/:memory:", "only an absolute one"),
        ("sqlite:////var/lib/", "only an absolute one"),
        ("sqlite:////b%00.db", "only an absolute one"),
        ("sqlite:////b.db?region=eu-west-1", "unknown parameter 'region'"),
        ("sqlite:////b.db?create=yes", "true or false"),
    ],
)
def test_a_wrong_address_is_refused_with_a_right_one(uri: str, said: str) -> None:
    with pytest.raises(OptionError) as caught:
        StoreAddress.parse(uri)
    assert said in str(caught.value)
    examples = ("dynamodb://bookmarks?region=eu-west-1", "sqlite:////var/lib/bookmarks.db")
    assert any(example in str(caught.value) for example in examples)


@pytest.mark.parametrize(
    "uri",
    [
        "dynamodb://user:hunter2@bookmarks",
        "dynamodb://bookmarks?secret_access_key=hunter2",
        "dynamodb://bookmarks?endpoint=http://user:hunter2@127.0.0.1:8000",
        "dynamodb://bookmarks?region=a&region=hunter2",
        "sqlite://user:hunter2@host//b.db",
    ],
)
def test_credentials_are_refused_and_not_repeated(uri: str) -> None:
    with pytest.raises(OptionError) as caught:
        StoreAddress.parse(uri)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("namespace", ["a#b", ".a", "a/b", "a b"])
def test_a_namespace_must_be_a_name(namespace: str) -> None:
    with pytest.raises(NameInvalidError):
        StoreAddress.parse(f"sqlite:////b.db?namespace={namespace.replace('#', '%23')}")


def test_an_sqlite_address_opens_its_file(tmp_path: Path) -> None:
    table, namespace = open_table(f"sqlite:///{tmp_path}/b.db?namespace=prod&create=true")
    assert isinstance(table, SqliteTable)
    assert namespace == "prod"
    table.transact([Put(Key("p", "a"), {})])
    assert table.describe() == {"kind": "sqlite", "path": f"{tmp_path}/b.db"}
    table.close()


def test_a_dynamodb_address_opens_its_table(dynamodb_local_url: str) -> None:
    table, namespace = open_table(f"dynamodb://opened?region=eu-west-1&endpoint={dynamodb_local_url}")
    assert isinstance(table, DynamoTable)
    assert namespace == "default"
    table.create()
    assert table.get([Key("p", "a")]) == {}
    table.close()


def test_a_session_gives_its_region() -> None:
    table, _ = open_table("dynamodb://bookmarks", session=boto3.session.Session(region_name="eu-north-1"))
    assert table.describe()["region"] == "eu-north-1"
    table.close()


def test_reading_an_address_imports_neither_boto3_nor_sqlite3() -> None:
    code = (
        "import sys; from airflow_bookmarks.store.uri import StoreAddress; StoreAddress.parse('sqlite:////b.db'); "
        "print([m for m in ('boto3', 'botocore', 'sqlite3', '_sqlite3') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
