"""Fields kept, left out, renamed and moved. The friends and the organizations are those of AWS's documentation."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.glue.dynamic.frame import DynamicFrame
from airflow_bookmarks.glue.dynamic.types import DoubleType, Field, StringType, StructType
from tests.glue.dynamic.frames import frame_of, held, tree

FRIENDS = (
    '{"name": "Sally", "age": 23, "location": {"state": "WY", "county": "Fremont"}, "friends": []}',
    '{"name": "Varun", "age": 34, "location": {"state": "NE", "county": "Douglas"}, "friends": '
    '[{"name": "Arjun", "age": 3}]}',
    '{"name": "Sheila", "age": 63, "friends": [{"name": "Nancy", "age": "22"}]}',
)


@pytest.fixture(scope="module")
def friends(shared_spark: SparkSession) -> DynamicFrame:
    return frame_of(shared_spark, *FRIENDS)


@pytest.mark.seldom
def test_fields_are_left_out_also_of_structs_in_arrays(friends: DynamicFrame) -> None:
    rest = friends.drop_fields(paths=["age", "location.county", "friends.age", "absent", "location.absent"])

    assert sorted(rest.toDF().columns) == ["friends", "location", "name"]
    assert tree(rest.select_fields(["friends", "location", "name"])) == (
        "|-- friends: array\n|    |-- element: struct\n|    |    |-- name: string\n"
        "|-- location: struct\n|    |-- state: string\n|-- name: string"
    )
    assert held(rest)[1] == {"friends": [{"name": "Arjun"}], "location": {"state": "NE"}, "name": "Varun"}
    assert held(rest)[2]["location"] is None


def test_struct_whose_fields_all_go_goes_along(friends: DynamicFrame) -> None:
    rest = friends.drop_fields(["location.state", "location.county", "friends"])

    assert sorted(rest.toDF().columns) == ["age", "name"]


def test_fields_are_kept_in_their_order_and_absent_ones_left_out(friends: DynamicFrame) -> None:
    kept = friends.select_fields(["name", "absent", "friends[].age", "LOCATION.State"])

    assert tree(kept) == (
        "|-- name: string\n|-- friends: array\n|    |-- element: struct\n"
        "|    |    |-- age: choice\n|    |    |    |-- int\n|    |    |    |-- string\n"
        "|-- location: struct\n|    |-- state: string"
    )
    assert friends.select_fields("name").toDF().columns == ["name"]
    assert friends.select_fields(["absent"]).toDF().columns == []


RENAMES = {
    "a column": ("age", "years", ["friends", "years", "location", "name"]),
    "a field of a struct": ("location.state", "location.code", ["friends", "age", "location", "name"]),
    "a field of structs in an array": ("friends.age", "friends.years", ["friends", "age", "location", "name"]),
    "out of a struct": ("location.state", "state", ["friends", "age", "location", "name", "state"]),
    "into a struct": ("age", "location.age", ["friends", "location", "name"]),
    "into a new struct": ("age", "person.age.years", ["friends", "location", "name", "person"]),
    "a column to a name with a dot": ("age", "`a.b`", ["friends", "a.b", "location", "name"]),
    "an absent one": ("absent", "other", ["friends", "age", "location", "name"]),
}


@pytest.mark.seldom
@pytest.mark.parametrize(("old", "new", "columns"), RENAMES.values(), ids=RENAMES)
def test_field_is_renamed_and_keeps_its_type(friends: DynamicFrame, old: str, new: str, columns: list[str]) -> None:
    made = friends.rename_field(old, new)

    assert sorted(made.toDF().columns) == sorted(columns)
    if old != "absent":
        assert made.select_fields([new]).schema().fields
        assert not made.select_fields([old]).schema().fields


def test_field_that_moves_keeps_its_values(friends: DynamicFrame) -> None:
    moved = friends.rename_field("age", "location.age").select_fields(["location"])

    assert [record["location"]["age"] for record in held(moved)] == [23, 34, 63]  # also where there was no struct


def test_rename_to_a_name_that_is_taken_or_out_of_an_array_is_an_error(friends: DynamicFrame) -> None:
    with pytest.raises(OptionError, match="'name' already"):
        friends.rename_field("age", "name")
    with pytest.raises(OptionError, match="leaves no array"):
        friends.rename_field("friends.age", "ages")


@pytest.mark.seldom
def test_only_fields_of_type_null_are_null_fields(spark: SparkSession) -> None:
    frame = frame_of(spark, '{"a": null, "s": {"b": null, "c": 1}, "l": [{"d": null, "e": 1}], "t": {"f": null}}')

    rest = frame.drop_null_fields()

    assert sorted(rest.toDF().columns) == ["l", "s"]
    assert tree(rest.select_fields(["l", "s"])) == (
        "|-- l: array\n|    |-- element: struct\n|    |    |-- e: int\n|-- s: struct\n|    |-- c: int"
    )


def test_schema_of_a_script_casts_and_fills_up(friends: DynamicFrame) -> None:
    wanted = StructType([Field("age", DoubleType()), Field("name", StringType()), Field("email", StringType())])

    made = friends.with_frame_schema(wanted)

    assert made.schema() == wanted
    assert held(made)[0] == {"age": 23.0, "name": "Sally", "email": None}
