"""The inventory knows what the layer has: each name that it calls supported is there, and no other is left out."""

from __future__ import annotations

import pytest

from airflow_bookmarks.databases.client import _CLIENTS
from airflow_bookmarks.glue import errors
from airflow_bookmarks.glue.context.glue_context import GlueContext
from airflow_bookmarks.glue.dynamic import cast
from airflow_bookmarks.glue.dynamic.collection import DynamicFrameCollection
from airflow_bookmarks.glue.dynamic.frame import DynamicFrame
from airflow_bookmarks.glue.inputs import database, formats, read
from airflow_bookmarks.glue.inventory.surface import (
    CALLS,
    CONNECTIONS,
    CONTEXT_MEMBERS,
    DATABASES,
    FORMATS,
    FRAME_METHODS,
    JSON_PATH,
    OUT_OF_REACH,
    READ_ONLY,
    SQL_CONTEXT_MEMBERS,
    TYPE_NAMES,
    WRITTEN_AT_ONCE,
    Support,
    is_type,
)
from airflow_bookmarks.glue.outputs import write
from airflow_bookmarks.glue.transforms import apply_mapping


def members_of(known: type) -> set[str]:
    """Return the public names of a class, those of its instances among them."""
    made = {name for each in known.__mro__ for name in getattr(each, "__annotations__", {})}
    return {name for name in {*dir(known), *made} if not name.startswith("_")}


# What an instance has, and its class does not say.
INSTANCE = {"spark_session", "create_dynamic_frame", "create_data_frame", "write_dynamic_frame", "write_data_frame"}


def test_members_of_the_context_are_there() -> None:
    assert CONTEXT_MEMBERS - INSTANCE - members_of(GlueContext) == set()


def test_members_of_the_context_that_are_there_are_known() -> None:
    own = {name for name in members_of(GlueContext) if hasattr(GlueContext, name)}
    known = CONTEXT_MEMBERS | SQL_CONTEXT_MEMBERS | OUT_OF_REACH.keys() | INSTANCE
    assert {name for name in own if not name.startswith("run")} - known == set()


def test_methods_of_frames_are_there() -> None:
    assert FRAME_METHODS - members_of(DynamicFrame) - members_of(DynamicFrameCollection) == set()


def test_calls_out_of_reach_are_those_that_raise() -> None:
    assert OUT_OF_REACH.keys() == {*errors.OUT_OF_REACH, "begin_transaction"}


def test_connection_types_are_those_that_can_be_read_or_written() -> None:
    supported = {name for name, (support, _) in CONNECTIONS.items() if support is not Support.NO}
    assert {*read._FILES, *formats.FORMATS, *database.VENDORS, "dynamodb"} == supported
    assert set(database.VENDORS) == set(DATABASES)
    assert {*write._FILES, *write._FORMAT_AS_TYPE, *database.VENDORS} == supported - READ_ONLY.keys()
    refused = {name for name, (support, _) in CONNECTIONS.items() if support is Support.NO}
    assert refused <= {*read._STREAMS, *read._CONNECTORS, *read._TABLE_FORMATS}


def test_databases_that_are_written_outside_of_the_commit_are_those_that_no_client_reaches() -> None:
    assert DATABASES - {"jdbc", "redshift"} - _CLIENTS.keys() == WRITTEN_AT_ONCE


def test_formats_are_those_that_are_read_or_written() -> None:
    assert {*formats.FORMATS, "glueparquet"} == set(FORMATS)


@pytest.mark.parametrize("path", ["$", "$.a", "$.a.b[*]", "$[*]", "$.a[*].*", "$..a", "$.a[0]", "a", "$.a[?(@.b)]"])
def test_paths_in_json_are_those_that_are_read(path: str) -> None:
    assert bool(JSON_PATH.fullmatch(path)) == bool(formats._JSON_PATH.fullmatch(path))


@pytest.mark.parametrize("name", CALLS)
def test_form_of_a_call_names_its_parameters(name: str) -> None:
    assert len(set(CALLS[name].parameters)) == len(CALLS[name].parameters)


def test_types_of_a_mapping_are_those_that_it_takes() -> None:
    assert {*cast._NAMES, *apply_mapping._WITH_PARTS} == TYPE_NAMES


@pytest.mark.parametrize(
    "kind", ["Decimal( 9 , 2 )", "decimal(9)", "varchar(3)", "char( 3 )", "map<string,int>", "number", "char"]
)
def test_types_with_parts_or_a_size_are_those_that_a_mapping_takes(kind: str) -> None:
    assert is_type(kind) == apply_mapping._is_type(kind)
