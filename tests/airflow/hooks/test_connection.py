"""The fields of a connection: what they allow, and what they refuse before anything is opened."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_bookmarks.core.errors import BookmarkError, OptionError
from airflow_bookmarks.get_provider_info import get_provider_info
from airflow_bookmarks.hooks.connection import ConnectionFields

DYNAMODB = "dynamodb://bookmarks?region=eu-west-1"


def address(**extra: Any) -> str:
    return str(ConnectionFields.of("mine", extra).address)


def test_fields_and_uri_together_make_the_address() -> None:
    assert address(store="dynamodb://bookmarks", region="eu-west-1", namespace="prod") == (
        "dynamodb://bookmarks?region=eu-west-1&namespace=prod"
    )
    assert address(store="sqlite:////b.db", namespace="prod") == "sqlite:////b.db?namespace=prod"


@pytest.mark.parametrize("in_uri", ["", "&state_uri=s3://state/prod"])
def test_state_uri_of_field_or_uri_is_part_of_the_address(in_uri: str) -> None:
    found = address(store=f"{DYNAMODB}{in_uri}", state_uri="s3://state/prod/")

    assert found == f"{DYNAMODB}&state_uri=s3://state/prod"


def test_names_may_be_said_in_the_field_or_in_the_uri() -> None:
    assert address(store=DYNAMODB, names="ascii") == f"{DYNAMODB}&names=ascii"
    assert address(store="sqlite:////b.db?names=ascii") == address(store="sqlite:////b.db", names="ascii")


def test_field_that_repeats_the_uri_is_no_contradiction() -> None:
    assert address(store=f"{DYNAMODB}&namespace=prod", namespace="prod", region="eu-west-1") == (
        f"{DYNAMODB}&namespace=prod"
    )


@pytest.mark.parametrize(
    ("store", "field", "value", "in_uri"),
    [
        (DYNAMODB, "region", "us-east-1", "eu-west-1"),
        (f"{DYNAMODB}&namespace=prod", "namespace", "test", "prod"),
        (f"{DYNAMODB}&namespace=default", "namespace", "test", "default"),
        (f"{DYNAMODB}&names=ascii", "names", "unicode", "ascii"),
        (f"{DYNAMODB}&endpoint=http://a:1", "endpoint", "http://b:2", "http://a:1"),
    ],
)
def test_field_and_uri_that_differ_are_an_error_that_names_both(
    store: str, field: str, value: str, in_uri: str
) -> None:
    with pytest.raises(OptionError) as raised:
        address(store=store, **{field: value})

    assert all(text in str(raised.value) for text in ("'mine'", repr(field), repr(value), repr(in_uri)))


@pytest.mark.parametrize("empty", [None, ""])
def test_empty_field_counts_as_not_given(empty: str | None) -> None:
    fields = ConnectionFields.of("mine", {"store": DYNAMODB, "namespace": empty, "state_uri": empty})

    assert (str(fields.address), fields.namespace) == (DYNAMODB, None)


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ({"store": DYNAMODB, "table": "x"}, "unknown field 'table'"),
        ({"store": DYNAMODB, "aws_secret_access_key": "x"}, "unknown field 'aws_secret_access_key'"),
        ({}, "names no store"),
        ({"store": DYNAMODB, "namespace": 1}, "'namespace' has to be text"),
        ({"store": DYNAMODB, "hide_state": "yes"}, "'hide_state' is 'yes'"),
        ({"store": DYNAMODB, "default_option": "on"}, "unknown bookmark option 'on'"),
        ({"store": DYNAMODB, "state_uri": "b/p"}, "no folder that state can lie in"),
        ({"store": DYNAMODB, "state_uri": "s3://me:secret@b/p"}, "holds a user or password"),
        ({"store": DYNAMODB, "state_uri": "/var/lib/state"}, "a folder of one machine"),
        ({"store": f"{DYNAMODB}&state_uri=s3://a/p", "state_uri": "s3://b/p"}, "'s3://b/p'.*'s3://a/p'"),
        ({"store": "sqlite:////b.db", "region": "eu-west-1"}, "SQLite store has no 'region'"),
        ({"store": DYNAMODB, "names": "latin"}, "names='latin'"),
        ({"store": "mysql://x"}, "scheme"),
        ({"store": DYNAMODB, "namespace": "a/b"}, "can't be the name of a namespace"),
        ({"store": "dynamodb://bookmarks", "endpoint": "nowhere"}, "endpoint"),
    ],
)
def test_what_it_cannot_use_is_an_error(extra: dict[str, Any], said: str) -> None:
    with pytest.raises(BookmarkError, match=said) as raised:
        ConnectionFields.of("mine", extra)

    assert isinstance(raised.value, ValueError)


def test_fields_are_those_of_the_form_in_airflow() -> None:
    (connection,) = get_provider_info()["connection-types"]

    assert set(ConnectionFields.__dataclass_fields__) == set(connection["conn-fields"])
