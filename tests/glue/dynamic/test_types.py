"""The types under the names of `awsglue.gluetypes`."""

from __future__ import annotations

import json

import pytest

from airflow_bookmarks.glue.dynamic.choice import glue_schema, spark_schema
from airflow_bookmarks.glue.dynamic.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    ChoiceType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    EntityType,
    EnumType,
    Field,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

WHOLE = StructType(
    [
        Field("id", LongType()),
        Field("price", ChoiceType([IntegerType(), DoubleType(), StructType([Field("amount", DecimalType(12, 3))])])),
        Field("items", ArrayType(StructType([Field("code", ChoiceType([IntegerType(), StringType()]))]))),
        Field("tags", MapType(StringType())),
        Field("nothing", NullType()),
        *[
            Field(kind.typeName(), kind())
            for kind in (BinaryType, BooleanType, ByteType, DateType, FloatType, ShortType)
        ],
        Field("at", TimestampType()),
        Field("local", TimestampNTZType()),
    ]
)

TREE = """root
|-- id: long
|-- price: choice
|    |-- int
|    |-- double
|    |-- struct
|    |    |-- amount: decimal(12,3)
|-- items: array
|    |-- element: struct
|    |    |-- code: choice
|    |    |    |-- int
|    |    |    |-- string
|-- tags: map
|    |-- keyType: string
|    |-- valueType: string
|-- nothing: null
|-- binary: binary
|-- boolean: boolean
|-- byte: byte
|-- date: date
|-- float: float
|-- short: short
|-- at: timestamp
|-- local: timestamp_ntz"""


def test_schema_is_shown_as_a_tree() -> None:
    assert WHOLE.treeString() == TREE


def test_schema_comes_back_from_json_and_from_spark() -> None:
    assert DataType.fromJsonValue(json.loads(json.dumps(WHOLE.jsonValue()))) == WHOLE
    assert glue_schema(spark_schema(WHOLE)) == WHOLE


def test_type_says_its_name_and_properties() -> None:
    assert StringType({"note": "code"}).jsonValue() == {"dataType": "string", "properties": {"note": "code"}}
    assert EnumType(["a", "b"]).jsonValue()["options"] == ["a", "b"]
    with pytest.raises(ValueError, match="'strings'"):
        DataType.fromJsonValue({"dataType": "strings"})
    with pytest.raises(NotImplementedError):
        EntityType("thing", StringType())


def test_choice_has_each_type_once() -> None:
    choice = ChoiceType([IntegerType()])

    choice.merge([IntegerType(), StringType()])
    choice.add(DoubleType())

    assert [kind.typeName() for kind in choice.choices] == ["int", "string", "double"]
    with pytest.raises(ValueError, match="'int' already"):
        choice.add(IntegerType())


def test_fields_of_a_struct_are_found_by_name() -> None:
    struct = StructType([Field("a", StringType())])
    struct.add(Field("b", LongType()))

    assert struct.hasField("b")
    assert not struct.hasField(Field("c", LongType()))
    assert struct.getField("b").dataType == LongType()
    assert [field.name for field in struct] == ["a", "b"]
    with pytest.raises(KeyError, match="'c'"):
        struct.getField("c")
