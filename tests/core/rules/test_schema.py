"""Promise FILE-18, the rules: what differs between two schemas, what passes, and how two become one."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_bookmarks.core.errors import SchemaChangedError
from airflow_bookmarks.core.rules.schema import (
    Merge,
    Type,
    add_missing,
    by_position,
    compare,
    is_readable_as,
    is_wider,
    spoken,
    struct,
    typed_as,
    widest,
    without,
)


def array(element: Type) -> Type:
    return {"type": "array", "elementType": element, "containsNull": True}


def mapping(value: Type) -> Type:
    return {"type": "map", "keyType": "string", "valueType": value, "valueContainsNull": True}


TEXT = Merge(is_text=True)
FIELDS = Merge(is_text=True, keeps_absent=True)


# ---- what differs


def test_same_columns_in_another_order_and_case_are_no_difference() -> None:
    assert not compare(struct(a="long", b="string"), struct(B="string", A="long"))


def test_case_tells_columns_apart_where_spark_is_told_so() -> None:
    found = compare(struct(a="long"), struct(A="long"), fold=lambda name: name)
    assert found.stats() == {"added": ["A: not there -> bigint"], "removed": ["a: bigint -> not there"]}


def test_nullability_and_metadata_say_nothing() -> None:
    strict: Any = {"type": "struct", "fields": [{"name": "a", "type": "long", "nullable": False, "metadata": {"x": 1}}]}
    assert not compare(strict, struct(a="long"))


@pytest.mark.parametrize(
    ("before", "now", "kind"),
    [
        ("integer", "long", "widened"),
        ("byte", "short", "widened"),
        ("float", "double", "widened"),
        ("decimal(5,2)", "decimal(10,2)", "widened"),
        ("decimal(5,2)", "decimal(7,4)", "widened"),
        ("long", "integer", "changed"),
        ("long", "double", "changed"),
        ("decimal(5,2)", "decimal(6,4)", "changed"),
        ("decimal(10,2)", "decimal(5,2)", "changed"),
        ("string", "long", "changed"),
        ("date", "timestamp", "changed"),
        ("string", struct(x="long"), "changed"),
        (array("long"), mapping("long"), "changed"),
        ({"type": "udt", "class": "A"}, {"type": "udt", "class": "B"}, "changed"),
    ],
)
def test_wider_type_of_the_same_kind_passes_and_any_other_does_not(before: Type, now: Type, kind: str) -> None:
    found = compare(struct(a=before), struct(a=now))
    assert found.stats() == {kind: [f"a: {spoken(before)} -> {spoken(now)}"]}
    assert found.is_compatible == (kind == "widened")


def test_differences_are_found_in_structs_arrays_and_maps() -> None:
    before = struct(s=struct(x="integer", y="string"), l=array(struct(z="float")), m=mapping("date"))
    now = struct(s=struct(x="string", n="long"), l=array(struct(z="double")), m=mapping("string"))
    assert compare(before, now).stats() == {
        "added": ["s.n: not there -> bigint"],
        "widened": ["l.element.z: float -> double"],
        "changed": ["s.x: int -> string", "m.value: date -> string"],
        "removed": ["s.y: string -> not there"],
    }
    assert "changed s.x: int -> string; changed m.value: date -> string; removed s.y" in compare(before, now).in_words()


# ---- made one with the last run's


def test_column_that_no_file_has_goes_where_files_carry_their_columns() -> None:
    assert Merge().of(struct(a="long", b="long"), struct(b="long")) == struct(b="long")


def test_field_that_no_value_shows_stays_where_fields_may_be_unset() -> None:
    before, now = struct(s=struct(x="long", y="date"), b="string"), struct(n="string", s=struct(z="long"))
    assert FIELDS.of(before, now) == struct(s=struct(x="long", y="date", z="long"), b="string", n="string")


def test_order_is_that_of_the_file_where_columns_are_told_by_their_place() -> None:
    assert TEXT.of(struct(a="string", b="string"), struct(b="long", a="long")) == struct(b="string", a="string")


@pytest.mark.parametrize(
    ("recorded", "seen", "text_keeps", "file_keeps"),
    [
        ("long", "integer", True, True),
        ("double", "float", True, True),
        ("string", "long", True, False),
        ("string", "date", True, False),
        ("double", "long", True, False),
        ("timestamp", "date", True, False),
        ("decimal(20,0)", "long", True, False),
        ("decimal(20,2)", "long", False, False),
        ("long", "string", False, False),
        ("integer", "long", False, False),
        ("string", struct(x="long"), False, False),
    ],
)
def test_recorded_type_stays_where_it_takes_what_is_seen(
    recorded: Type, seen: Type, text_keeps: bool, file_keeps: bool
) -> None:
    assert TEXT.of(struct(a=recorded), struct(a=seen)) == struct(a=recorded if text_keeps else seen)
    assert Merge().of(struct(a=recorded), struct(a=seen)) == struct(a=recorded if file_keeps else seen)


def test_wider_recorded_type_goes_where_spark_can_not_read_narrower_files() -> None:
    assert Merge(keeps_wider=False).of(struct(a="long"), struct(a="integer")) == struct(a="integer")


def test_name_is_spelt_as_in_the_files() -> None:
    assert FIELDS.of(struct(carrier="string"), struct(Carrier="string")) == struct(Carrier="string")


def test_merging_reaches_into_arrays_and_maps() -> None:
    before, now = (
        struct(l=array(struct(x="long")), m=mapping("long")),
        struct(l=array(struct(y="long")), m=mapping("integer")),
    )
    assert FIELDS.of(before, now) == struct(l=array(struct(x="long", y="long")), m=mapping("long"))


# ---- several files


def test_files_of_several_widths_are_read_by_the_widest_with_all_columns() -> None:
    files = [("a", struct(a="integer")), ("b", struct(a="long", n="string")), ("c", struct(a="short", m="date"))]
    assert widest(files) == struct(a="long", n="string", m="date")


def test_files_whose_types_are_no_one_kind_are_an_error_that_names_them() -> None:
    with pytest.raises(SchemaChangedError, match=r"a: int -> string, the one in 'a' or others.*'b'.*Nothing was"):
        widest([("a", struct(a="integer")), ("b", struct(a="string"))])


def test_shorter_headers_are_read_by_the_longest_that_begins_like_them() -> None:
    schemas = [struct(a="integer", b="string"), struct(a="double", b="date", c="long"), struct(A="boolean")]
    assert by_position(schemas) == struct(a="string", b="string", c="long")
    assert by_position(schemas[:2]) == struct(a="double", b="string", c="long")


def test_other_headers_are_an_error_because_csv_is_read_by_position() -> None:
    with pytest.raises(SchemaChangedError, match=r"column 2 is 'n' in some and 'b' in others.*Nothing was"):
        by_position([struct(a="string", b="string"), struct(a="string", n="string", b="string")])


# ---- parts


def test_columns_are_added_left_out_and_retyped_at_the_top() -> None:
    assert add_missing(
        struct(s=struct(x="long"), a="long"), struct(s=struct(x="string", y="date"), b="string")
    ) == struct(s=struct(x="long", y="date"), a="long", b="string")
    assert without(struct(a="long", B="long"), ["b"]) == struct(a="long")
    assert typed_as(struct(a="string", b="string"), struct(A="long", b="long"), ["a"]) == struct(a="long", b="string")


def test_type_is_not_wider_than_itself() -> None:
    assert not is_wider("decimal(5,2)", "decimal(5,2)")
    assert not is_wider("long", "long")
    assert not is_readable_as(struct(x="long"), "string")


def test_types_are_said_as_in_sql() -> None:
    nested = struct(l=array("long"), m=mapping("integer"), d="decimal(5,2)")
    assert spoken(nested) == "struct<l:array<bigint>,m:map<string,int>,d:decimal(5,2)>"
    assert spoken({"type": "udt", "class": "x"}) == "udt"
