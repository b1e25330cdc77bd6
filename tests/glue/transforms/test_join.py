"""`join` and `mergeDynamicFrame`."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.glue.transforms.classes import Join, SelectFromCollection
from tests.glue.transforms.frames import codes, dicts_of, frame_of, rows_of, tree


def test_example_of_aws_keeps_all_columns(shared_spark: SparkSession) -> None:
    persons = frame_of(shared_spark, [("p1", "Ross"), ("p2", "Capito")], "id string, name string")
    memberships = frame_of(
        shared_spark, [("p1", "o1"), ("p1", "o2"), ("p3", "o1")], "person_id string, organization_id string"
    )
    orgs = frame_of(shared_spark, [("o1", "House"), ("o2", "Senate")], "org_id string, org_name string")
    history = Join.apply(orgs, Join.apply(persons, memberships, "id", "person_id"), "org_id", "organization_id")
    combined = history.drop_fields(["person_id", "org_id"])
    assert combined.toDF().columns == ["org_name", "id", "name", "organization_id"]
    assert sorted(rows_of(combined)) == [("House", "p1", "Ross", "o1"), ("Senate", "p1", "Ross", "o2")]


def test_column_that_both_have_gets_a_dot(shared_spark: SparkSession) -> None:
    left = frame_of(shared_spark, [(1, "a")], "id int, name string")
    right = frame_of(shared_spark, [(1, "b")], "id int, Name string")
    joined = left.join(paths1=["id"], paths2=["id"], frame2=right)
    assert joined.toDF().columns == ["id", "name", ".id", ".Name"]
    assert rows_of(joined) == [(1, "a", 1, "b")]


@pytest.mark.seldom
def test_keys_pair_by_position_and_null_equals_nothing(shared_spark: SparkSession) -> None:
    left = frame_of(shared_spark, [(1, 2), (2, 1), (None, 5)], "a int, b int")
    right = frame_of(shared_spark, [(1, 2), (None, 5)], "c int, d int")
    assert rows_of(left.join(["a", "b"], ["c", "d"], right)) == [(1, 2, 1, 2)]


@pytest.mark.seldom
def test_frame_joins_itself(shared_spark: SparkSession) -> None:
    frame = frame_of(shared_spark, [(1, 2), (2, 1)], "a int, b int")
    assert sorted(rows_of(frame.join("a", "b", frame))) == [(1, 2, 2, 1), (2, 1, 1, 2)]


@pytest.mark.seldom
def test_keys_of_other_types_and_choices_compare_by_text(shared_spark: SparkSession) -> None:
    right = frame_of(shared_spark, [("10", "ten"), ("x7", "seven"), ("0x", "none")], "key string, word string")
    joined = codes(shared_spark).join("code", "key", right)
    assert tree(joined)[1:4] == ["|-- code: choice", "|    |-- long", "|    |-- string"]
    assert sorted(row["word"] for row in dicts_of(joined)) == ["seven", "ten"]
    numbers = frame_of(shared_spark, [(10,)], "n bigint")
    assert [row["word"] for row in dicts_of(numbers.join("n", "key", right))] == ["ten"]


@pytest.mark.seldom
def test_key_may_be_a_path(shared_spark: SparkSession) -> None:
    left = frame_of(shared_spark, [((1,),)], "a struct<b: int>")
    right = frame_of(shared_spark, [(1, "x")], "k int, v string")
    assert rows_of(left.join("a.b", "k", right)) == [((1,), 1, "x")]


@pytest.mark.parametrize(
    ("keys1", "keys2", "words"),
    [("gone", "id", "no key 'gone'"), (["id"], ["id", "id"], "1 keys"), ([], [], "0 keys")],
    ids=["absent", "more", "none"],
)
def test_keys_that_say_nothing_clear_are_refused(
    shared_spark: SparkSession, keys1: list[str] | str, keys2: list[str] | str, words: str
) -> None:
    frame = frame_of(shared_spark, [(1,)], "id int")
    with pytest.raises(OptionError, match="Nothing was read or changed") as raised:
        frame.join(keys1, keys2, frame)
    assert words in str(raised.value)
    with pytest.raises(TypeError, match="DynamicFrame"):
        frame.join("id", "id", frame.toDF())


@pytest.mark.seldom
def test_example_of_aws_merges_by_primary_key(shared_spark: SparkSession) -> None:
    contacts = frame_of(
        shared_spark,
        [(1, 0, "fax"), (1, 1, "phone"), (20, 0, "fax"), (20, 1, "phone"), (20, 2, "twitter")],
        "id long, index int, `contact_details.val.type` string",
    )
    split = contacts.split_rows({"id": {">": 10}}, "high", "low")
    low, high = (SelectFromCollection.apply(dfc=split, key=key) for key in ("low", "high"))
    merged = high.mergeDynamicFrame(stage_dynamic_frame=low, primary_keys=["id"])
    assert rows_of(merged.toDF().where("id = 1 or id= 20").orderBy("id", "index")) == [
        (1, 0, "fax"),
        (1, 1, "phone"),
        (20, 0, "fax"),
        (20, 1, "phone"),
        (20, 2, "twitter"),
    ]


@pytest.mark.seldom
def test_staged_rows_replace_rows_with_equal_keys(shared_spark: SparkSession) -> None:
    source = frame_of(
        shared_spark, [(1, "old"), (2, "kept"), (2, "kept twice"), (None, "no key")], "id int, value string"
    )
    stage = frame_of(
        shared_spark, [(1, "new"), (1, "new twice"), (3, "added"), (None, "staged")], "id int, value string"
    )
    merged = source.mergeDynamicFrame(stage, ["id"])
    assert sorted(row[1] for row in rows_of(merged)) == [
        "added",
        "kept",
        "kept twice",
        "new",
        "new twice",
        "no key",
        "staged",
    ]


@pytest.mark.seldom
def test_merge_of_keys_in_another_order_and_of_another_schema(shared_spark: SparkSession) -> None:
    source = frame_of(shared_spark, [(1, "a", 1.5), (2, "b", 2.5)], "id int, kind string, price double")
    stage = frame_of(shared_spark, [("a", 1, "note"), ("c", 9, "new")], "kind string, id int, comment string")
    merged = source.mergeDynamicFrame(stage, ["kind", "id"])
    assert sorted(tree(merged)) == [
        "|-- comment: string",
        "|-- id: int",
        "|-- kind: string",
        "|-- price: double",
    ]
    assert [(row["id"], row["price"], row["comment"]) for row in dicts_of(merged)] == [
        (1, None, "note"),
        (2, 2.5, None),
        (9, None, "new"),
    ] or sorted((row["id"], row["comment"] or "") for row in dicts_of(merged)) == [(1, "note"), (2, ""), (9, "new")]


@pytest.mark.parametrize("keys", [["gone"], [], ["only_source"]], ids=["absent", "none", "absent-from-one"])
def test_merge_without_a_key_that_both_have_is_refused(shared_spark: SparkSession, keys: list[str]) -> None:
    source = frame_of(shared_spark, [(1, 1)], "id int, only_source int")
    stage = frame_of(shared_spark, [(1,)], "id int")
    with pytest.raises(OptionError, match="Nothing was read or changed"):
        source.mergeDynamicFrame(stage, keys)
