"""What every table promises. A table passes when a subclass of `TableConformance` does, on the fixture `table`."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_bookmarks.core.errors import ConditionFailedError, StoreError, TableMissingError
from airflow_bookmarks.store.backends.limits import MAX_DEPTH
from airflow_bookmarks.store.table import (
    Attributes,
    Check,
    Condition,
    Delete,
    Equals,
    Exists,
    Key,
    Lacks,
    Missing,
    Operation,
    Put,
    Table,
    Update,
    Value,
    evaluate,
)

HEAD = Key("default#JOB#flights", "HEAD")
RUN = Key("default#JOB#flights", "RUN#0000000001#0000000003")
EDGE = Key("default#JOB#flights", "DOWN#reports")

# Each condition, an item (None: none), and whether it holds.
CONDITIONS: list[tuple[Condition, Attributes | None, bool]] = [
    (Exists(), {"fence": 3}, True),
    (Exists(), {}, True),
    (Exists(), None, False),
    (Missing(), None, True),
    (Missing(), {}, False),
    (Equals("fence", 3), {"fence": 3}, True),
    (Equals("fence", 3), {"fence": 4}, False),
    (Equals("fence", 3), {"fence": "3"}, False),
    (Equals("fence", 3), {"version": 3}, False),
    (Equals("fence", 3), None, False),
    (Equals("flag", True), {"flag": True}, True),
    (Equals("lease", None), {"lease": None}, True),
    (Equals("root", b"\x00\xff"), {"root": b"\x00\xff"}, True),
    (Equals("root", b"a"), {"root": "a"}, False),
    (Equals("contexts", {"a": [1, "x"]}), {"contexts": {"a": [1, "x"]}}, True),
    (Equals("contexts", {"a": [1, "x"]}), {"contexts": {"a": ["x", 1]}}, False),
    (Equals("size", 10), {"size": 10}, True),  # reserved words of DynamoDB
    (Equals("a.b[0] #:-", 1), {"a.b[0] #:-": 1}, True),
    (Lacks("lease"), None, True),
    (Lacks("lease"), {"fence": 3}, True),
    (Lacks("lease"), {"lease": None}, False),
]

# moto compares as Python does, and takes an absent attribute for None.
CONDITIONS_BEYOND_MOTO: list[tuple[Condition, Attributes, bool]] = [
    (Equals("flag", True), {"flag": 1}, False),
    (Equals("flag", 1), {"flag": True}, False),
    (Equals("flag", False), {"flag": 0}, False),
    (Equals("lease", None), {}, False),
]

# Values as a table keeps them. Text without surrogates, numbers up to 38 digits.
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**38) + 1, 10**38 - 1),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.binary(max_size=20),
)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=10)
VALUES: st.SearchStrategy[Value] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(NAMES, inner, max_size=4)),
    max_leaves=10,
)


def _nested(levels: int) -> Value:
    value: Value = 1
    for _ in range(levels):
        value = [value]
    return value


def rows(table: Table, pk: str) -> list[str]:
    return [key.sk for key, _ in table.query(pk)]


def fill(table: Table, pk: str, sort_keys: Sequence[str], **attributes: Value) -> None:
    for sk in sort_keys:
        table.transact([Put(Key(pk, sk), attributes)])


def check_condition(table: Table, condition: Condition, item: Attributes | None, holds: bool) -> None:
    assert evaluate([condition], item) is holds
    if item is not None:
        table.transact([Put(HEAD, item)])
    operations: list[Operation] = [Check(HEAD, [condition]), Put(RUN, {"state": "PLANNED"})]
    if holds:
        table.transact(operations)
    else:
        with pytest.raises(ConditionFailedError) as caught:
            table.transact(operations)
        assert caught.value.failed == {0: item}
    assert (RUN in table.get([RUN])) is holds


class TableConformance:
    """The promises, by the part of the protocol that makes them."""

    # ---- creation

    def test_a_table_that_was_never_created_is_missing(self, empty_table: Table, backend: str) -> None:
        if backend == "sqlite-memory":
            pytest.skip("a table in memory is made at its first use: there is no older one that could be missed")
        with pytest.raises(TableMissingError, match="airflow-bookmarks init"):
            empty_table.get([HEAD])
        with pytest.raises(TableMissingError):
            list(empty_table.query("default#JOBS"))
        with pytest.raises(TableMissingError):
            empty_table.transact([Put(HEAD, {})])
        with pytest.raises(TableMissingError):
            empty_table.transact([Put(HEAD, {}), Put(RUN, {})])

    def test_creating_tells_whether_the_table_was_absent(self, empty_table: Table) -> None:
        assert empty_table.create() is True
        assert empty_table.create() is False

    def test_creating_again_leaves_every_item(self, table: Table) -> None:
        table.transact([Put(HEAD, {"fence": 3})])
        table.create()
        assert table.get([HEAD]) == {HEAD: {"fence": 3}}

    def test_description_names_the_kind(self, table: Table, backend: str) -> None:
        assert table.describe()["kind"] == ("sqlite" if backend.startswith("sqlite") else "dynamodb")

    def test_a_closed_table_refuses(self, table: Table) -> None:
        table.close()
        with pytest.raises(StoreError, match="closed"):
            table.get([HEAD])

    # ---- items and values

    def test_get_returns_what_is_there_and_leaves_out_what_is_not(self, table: Table) -> None:
        table.transact([Put(HEAD, {"fence": 3}), Put(RUN, {})])
        assert table.get([EDGE, RUN, HEAD]) == {HEAD: {"fence": 3}, RUN: {}}
        assert table.get([EDGE]) == {}

    def test_get_takes_100_keys(self, table: Table) -> None:
        keys = [Key(f"default#JOB#{n}", "HEAD") for n in range(100)]
        table.transact([Put(key, {"n": n}) for n, key in enumerate(keys)])
        assert table.get(keys) == {key: {"n": n} for n, key in enumerate(keys)}

    def test_every_value_comes_back_as_it_was(self, table: Table) -> None:
        attributes: Attributes = {
            "empty text": "",
            "empty bytes": b"",
            "empty list": [],
            "empty map": {},
            "none": None,
            "true": True,
            "false": False,
            "one": 1,
            "zero": 0,
            "large": 10**38 - 1,
            "negative": -(10**38) + 1,
            "decimal as text": "1.500",
            "all bytes": bytes(range(256)),
            "unicode": "Zürich 東京 🚀 \x00 e\u0301",
            "nested": {"a": [1, True, None, "x", b"\xff", {"b": [[], {}]}]},
            "$bytes": {"$bytes": "YQ==", "$$bytes": b"a"},
            "looks like bytes": {"$bytes": "YQ=="},
        }
        table.transact([Put(HEAD, attributes)])
        found = table.get([HEAD])[HEAD]
        assert found == attributes
        assert {n: type(v) for n, v in found.items()} == {n: type(v) for n, v in attributes.items()}
        assert next(iter(table.query(HEAD.pk)))[1] == attributes

    def test_a_map_that_looks_like_a_value_of_the_api_comes_back(self, table: Table, backend: str) -> None:
        if backend == "moto":
            pytest.skip("moto takes such a map for the value itself, and fails")
        attributes: Attributes = {"facts": {"S": "x", "N": "1", "M": {"B": b"x"}}}
        table.transact([Put(HEAD, attributes)])
        assert table.get([HEAD]) == {HEAD: attributes}

    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(attributes=st.dictionaries(NAMES.filter(lambda n: n not in ("pk", "sk")), VALUES, max_size=5))
    def test_any_value_comes_back_and_equals_itself(self, table: Table, attributes: Attributes) -> None:
        table.transact([Put(HEAD, attributes)])
        found = table.get([HEAD])[HEAD]
        assert found == attributes
        assert repr(sorted(found)) == repr(sorted(attributes))
        conditions: list[Condition] = [Equals(name, value) for name, value in attributes.items()]
        table.transact([Check(HEAD, [Exists(), *conditions])])

    def test_unicode_keys_are_kept_apart(self, table: Table) -> None:
        names = ["café", "cafe\u0301", "CAFÉ", "東京", "🚀", "a b", "a%20b", "a'b\"c", "a\\b"]
        fill(table, "default#JOBS", names)
        assert rows(table, "default#JOBS") == sorted(names, key=str.encode)
        assert len(table.get([Key("default#JOBS", name) for name in names])) == len(names)

    def test_a_value_nested_as_deep_as_allowed_comes_back(self, table: Table) -> None:
        table.transact([Put(HEAD, {"n": _nested(MAX_DEPTH - 1)})])
        assert table.get([HEAD]) == {HEAD: {"n": _nested(MAX_DEPTH - 1)}}

    # ---- conditions

    @pytest.mark.parametrize(("condition", "item", "holds"), CONDITIONS)
    def test_condition(self, table: Table, condition: Condition, item: Attributes | None, holds: bool) -> None:
        check_condition(table, condition, item, holds)

    @pytest.mark.parametrize(("condition", "item", "holds"), CONDITIONS_BEYOND_MOTO)
    def test_condition_tells_types_apart(
        self, table: Table, condition: Condition, item: Attributes, holds: bool, backend: str
    ) -> None:
        if backend == "moto":
            pytest.skip("moto compares as Python does, and takes an absent attribute for None")
        check_condition(table, condition, item, holds)

    @pytest.mark.parametrize("kind", [Put, Update, Delete])
    def test_each_operation_obeys_its_conditions(self, table: Table, kind: type) -> None:
        changed: dict[type, Operation] = {
            Put: Put(HEAD, {"fence": 4}, [Equals("fence", 9)]),
            Update: Update(HEAD, set={"fence": 4}, conditions=[Equals("fence", 9)]),
            Delete: Delete(HEAD, [Equals("fence", 9)]),
        }
        table.transact([Put(HEAD, {"fence": 3})])
        with pytest.raises(ConditionFailedError) as caught:
            table.transact([changed[kind]])
        assert caught.value.failed == {0: {"fence": 3}}
        assert table.get([HEAD]) == {HEAD: {"fence": 3}}

    def test_all_conditions_of_an_operation_must_hold(self, table: Table) -> None:
        table.transact([Put(HEAD, {"fence": 3, "version": 7})])
        table.transact([Check(HEAD, [Exists(), Equals("fence", 3), Equals("version", 7), Lacks("lease")])])
        with pytest.raises(ConditionFailedError):
            table.transact([Check(HEAD, [Equals("fence", 3), Equals("version", 8)])])

    def test_a_condition_sees_the_state_before_the_transaction(self, table: Table) -> None:
        table.transact([Put(HEAD, {"fence": 3})])
        table.transact([Update(HEAD, set={"fence": 4}, conditions=[Equals("fence", 3)])])
        assert table.get([HEAD]) == {HEAD: {"fence": 4}}

    def test_a_failed_condition_in_the_middle_leaves_everything(self, table: Table) -> None:
        table.transact([Put(HEAD, {"fence": 3}), Put(EDGE, {"run_number": 1})])
        with pytest.raises(ConditionFailedError) as caught:
            table.transact(
                [
                    Update(HEAD, set={"fence": 4}),
                    Put(RUN, {"state": "PLANNED"}, [Exists()]),
                    Delete(EDGE),
                ]
            )
        assert caught.value.failed == {1: None}
        assert table.get([HEAD, RUN, EDGE]) == {HEAD: {"fence": 3}, EDGE: {"run_number": 1}}

    def test_every_failed_condition_is_told_with_the_item_that_was_there(self, table: Table) -> None:
        table.transact([Put(HEAD, {"fence": 3}), Put(RUN, {"state": "COMMITTED"})])
        with pytest.raises(ConditionFailedError) as caught:
            table.transact(
                [
                    Update(HEAD, set={"fence": 5}, conditions=[Equals("fence", 4)]),
                    Put(EDGE, {}),
                    Put(RUN, {}, [Missing()]),
                ]
            )
        assert caught.value.failed == {0: {"fence": 3}, 2: {"state": "COMMITTED"}}

    # ---- operations

    def test_put_replaces_the_item_whole(self, table: Table) -> None:
        table.transact([Put(HEAD, {"fence": 3, "lease": "me"})])
        table.transact([Put(HEAD, {"fence": 4})])
        assert table.get([HEAD]) == {HEAD: {"fence": 4}}

    def test_update_changes_the_named_attributes_alone(self, table: Table) -> None:
        table.transact([Put(HEAD, {"fence": 3, "lease": "me", "version": 7})])
        table.transact([Update(HEAD, set={"fence": 4, "plan:a.b c": {"x": 1}}, remove=["lease", "never there"])])
        assert table.get([HEAD]) == {HEAD: {"fence": 4, "version": 7, "plan:a.b c": {"x": 1}}}

    def test_update_creates_an_absent_item(self, table: Table) -> None:
        table.transact([Update(HEAD, set={"fence": 1})])
        table.transact([Update(RUN, remove=["lease"])])
        assert table.get([HEAD, RUN]) == {HEAD: {"fence": 1}, RUN: {}}

    def test_update_of_many_attributes(self, table: Table, backend: str) -> None:
        attributes: Attributes = {f"output:{n}": n for n in range(200)}
        if backend == "moto":
            attributes = dict(list(attributes.items())[:100])  # moto parses by recursion, and stops at more
        table.transact([Update(HEAD, set=attributes)])
        table.transact([Update(HEAD, remove=list(attributes)[:90], set={"fence": 1})])
        assert table.get([HEAD])[HEAD] == dict(list(attributes.items())[90:]) | {"fence": 1}

    def test_delete_of_an_absent_item_is_no_error(self, table: Table) -> None:
        table.transact([Delete(HEAD)])
        table.transact([Delete(HEAD), Put(RUN, {})])
        assert table.get([HEAD, RUN]) == {RUN: {}}

    # ---- tokens

    def test_a_repeated_token_counts_once(self, table: Table, backend: str) -> None:
        if backend == "moto":
            pytest.skip("moto ignores the token and applies the transaction twice")
        token = str(uuid.uuid4())
        operations = [Put(HEAD, {"fence": 1}, [Missing()]), Put(RUN, {"state": "PLANNED"})]
        table.transact(operations, token=token)
        table.transact([Update(HEAD, set={"fence": 2})])
        table.transact(operations, token=token)
        assert table.get([HEAD]) == {HEAD: {"fence": 2}}

    def test_a_repeated_token_counts_once_for_a_single_put_too(self, table: Table, backend: str) -> None:
        if backend == "moto":
            pytest.skip("moto ignores the token and applies the transaction twice")
        token = str(uuid.uuid4())
        table.transact([Put(HEAD, {"fence": 1})], token=token)
        table.transact([Put(HEAD, {"fence": 2})])
        table.transact([Put(HEAD, {"fence": 1})], token=token)
        assert table.get([HEAD]) == {HEAD: {"fence": 2}}

    def test_a_token_with_other_operations_is_refused(self, table: Table, backend: str) -> None:
        if backend == "moto":
            pytest.skip("moto ignores the token")
        token = str(uuid.uuid4())
        table.transact([Put(HEAD, {"fence": 1})], token=token)
        with pytest.raises(StoreError):
            table.transact([Put(HEAD, {"fence": 2})], token=token)
        assert table.get([HEAD]) == {HEAD: {"fence": 1}}

    def test_a_token_whose_transaction_failed_can_be_used_again(self, table: Table) -> None:
        token = str(uuid.uuid4())
        operations = [Put(HEAD, {"fence": 1}, [Missing()])]
        table.transact([Put(HEAD, {})])
        with pytest.raises(ConditionFailedError):
            table.transact(operations, token=token)
        table.transact([Delete(HEAD)])
        table.transact(operations, token=token)
        assert table.get([HEAD]) == {HEAD: {"fence": 1}}

    # ---- queries

    def test_query_yields_one_partition_in_the_order_of_utf8(self, table: Table) -> None:
        names = ["a", "a\x01", "b", "B", "~", "é", "\uffff", "𐀀", "a#b", "a!"]
        fill(table, "one", names)
        fill(table, "two", ["x"])
        assert rows(table, "one") == sorted(names, key=str.encode)
        assert [key.sk for key, _ in table.query("one", reverse=True)] == sorted(names, key=str.encode, reverse=True)
        assert rows(table, "none") == []

    @pytest.mark.parametrize(
        ("bounds", "expected"),
        [
            ({}, "abcde"),
            ({"after": "b"}, "cde"),
            ({"after": "bb"}, "cde"),
            ({"after": ""}, "abcde"),
            ({"after": "e"}, ""),
            ({"until": "c"}, "abc"),
            ({"until": "cc"}, "abc"),
            ({"until": ""}, ""),
            ({"after": "a", "until": "d"}, "bcd"),
            ({"after": "c", "until": "c"}, ""),
            ({"after": "d", "until": "b"}, ""),
            ({"limit": 2}, "ab"),
            ({"limit": 9}, "abcde"),
            ({"reverse": True}, "edcba"),
            ({"reverse": True, "limit": 2}, "ed"),
            ({"reverse": True, "after": "b", "limit": 3}, "edc"),
            ({"reverse": True, "after": "b", "limit": 4}, "edc"),
            ({"reverse": True, "after": "a", "until": "d"}, "dcb"),
            ({"after": "a", "until": "d", "limit": 2}, "bc"),
            ({"after": "a", "limit": 1}, "b"),
            ({"prefix": "c"}, "c"),
            ({"prefix": "x"}, ""),
        ],
    )
    def test_query_bounds(self, table: Table, bounds: dict[str, object], expected: str) -> None:
        fill(table, "p", list("abcde"))
        assert "".join(key.sk for key, _ in table.query("p", **bounds)) == expected  # type: ignore[arg-type]

    @pytest.mark.parametrize("prefix", ["RUN#", "é", "\U0010ffff", "a\U0010ffff", "\ud7ff", "%", "_", "R%"])
    def test_prefix_is_taken_literally(self, table: Table, prefix: str) -> None:
        others = ["RUN", "RUO", "RUN$", 'RUN"', "f", "e\u0301", "b", "a", "\ue000", "Z", "\U0010fffe"]
        fill(table, "p", [prefix, prefix + "1", prefix + "\U0010ffff\U0010ffff", *others])
        expected = sorted([prefix, prefix + "1", prefix + "\U0010ffff\U0010ffff"], key=str.encode)
        assert [key.sk for key, _ in table.query("p", prefix=prefix)] == expected
        assert [key.sk for key, _ in table.query("p", prefix=prefix, reverse=True)] == expected[::-1]

    @pytest.mark.parametrize("reverse", [False, True])
    def test_query_reads_on_past_a_page_of_one_megabyte(self, table: Table, reverse: bool) -> None:
        names = [f"{n:010d}" for n in range(9)]
        fill(table, "p", names, data=b"x" * 240_000)
        fill(table, "p", ["z"])
        expected = sorted([*names, "z"], reverse=reverse)
        assert [key.sk for key, _ in table.query("p", reverse=reverse)] == expected
        assert [key.sk for key, _ in table.query("p", reverse=reverse, limit=7)] == expected[:7]
        assert [key.sk for key, _ in table.query("p", after=names[0], until=names[8])] == names[1:]

    def test_query_reads_on_past_many_small_items(self, table: Table) -> None:
        names = [f"{n:04d}" for n in range(150)]
        for at in range(0, 150, 100):
            table.transact([Put(Key("p", name), {"n": name}) for name in names[at : at + 100]])
        assert rows(table, "p") == names
        assert [key.sk for key, _ in table.query("p", limit=130, reverse=True)] == names[::-1][:130]

    def test_a_query_that_is_left_early_holds_nothing_up(self, table: Table) -> None:
        fill(table, "p", ["a", "b"])
        walk = table.query("p")
        next(walk)
        table.transact([Put(Key("p", "c"), {})])
        assert rows(table, "p") == ["a", "b", "c"]

    # ---- limits

    @pytest.mark.parametrize(
        "operations",
        [
            pytest.param([], id="none"),
            pytest.param([Put(Key("p", str(n)), {}) for n in range(101)], id="101"),
            pytest.param([Put(HEAD, {}), Delete(HEAD)], id="one key twice"),
            pytest.param([Put(HEAD, {}), Check(HEAD, [Exists()])], id="one key twice, by a check"),
            pytest.param([Put(Key("", "a"), {})], id="empty pk"),
            pytest.param([Put(Key("a", ""), {})], id="empty sk"),
            pytest.param([Put(Key("a", "é" * 513), {})], id="sk of 1026 bytes"),
            pytest.param([Put(Key("a", "\ud800"), {})], id="surrogate in a key"),
            pytest.param([Put(HEAD, {"data": b"x" * 400_001})], id="item above 400 KB"),
            pytest.param([Put(HEAD, {"data": "é" * 200_001})], id="text above 400 KB"),
            pytest.param([Put(Key("p", str(n)), {"data": b"x" * 399_000}) for n in range(11)], id="above 4 MB"),
            pytest.param([Put(HEAD, {"n": 10**38})], id="39 digits"),
            pytest.param([Put(HEAD, {"n": 1.5})], id="float"),  # type: ignore[dict-item]
            pytest.param([Put(HEAD, {"n": [{"x": 1.0}]})], id="nested float"),  # type: ignore[dict-item]
            pytest.param([Put(HEAD, {"n": {1: 2}})], id="map key that is no text"),  # type: ignore[dict-item]
            pytest.param([Put(HEAD, {"n": (1, 2)})], id="tuple"),  # type: ignore[dict-item]
            pytest.param([Put(HEAD, {"": 1})], id="empty attribute name"),
            pytest.param([Put(HEAD, {"pk": "x"})], id="attribute named as a key"),
            pytest.param([Put(HEAD, {"n": {"": 1}})], id="empty map key"),
            pytest.param([Put(HEAD, {"n": _nested(34)})], id="34 levels"),
            pytest.param([Update(HEAD)], id="update of nothing"),
            pytest.param([Update(HEAD, set={str(n): n for n in range(201)})], id="update of 201 attributes"),
            pytest.param([Update(HEAD, set={"a": 1}, remove=["a"])], id="set and removed"),
            pytest.param([Update(HEAD, remove=["a", "a"])], id="removed twice"),
            pytest.param([Update(HEAD, remove=["sk"])], id="key removed"),
            pytest.param([Check(HEAD, [])], id="check of nothing"),
        ],
    )
    def test_what_no_table_takes_is_refused(self, table: Table, operations: list[Operation]) -> None:
        with pytest.raises(StoreError, match="Nothing was written"):
            table.transact(operations)
        assert rows(table, HEAD.pk) == rows(table, "p") == []

    def test_an_item_that_would_grow_above_400_kb_is_left_as_it_was(self, table: Table) -> None:
        table.transact([Put(HEAD, {"a": "x" * 300_000})])
        with pytest.raises(StoreError, match="Nothing was written"):
            table.transact([Update(HEAD, set={"b": "x" * 300_000}), Put(RUN, {})])
        assert table.get([HEAD, RUN]) == {HEAD: {"a": "x" * 300_000}}

    def test_a_transaction_takes_100_operations(self, table: Table) -> None:
        table.transact([Put(Key("p", f"{n:03d}"), {}) for n in range(100)])
        assert len(rows(table, "p")) == 100

    def test_a_blob_chunk_fits(self, table: Table) -> None:
        table.transact([Put(HEAD, {"data": b"\xff" * 350_000})])
        assert table.get([HEAD])[HEAD]["data"] == b"\xff" * 350_000

    @pytest.mark.parametrize("token", ["", "x" * 37])
    def test_a_token_of_another_length_is_refused(self, table: Table, token: str) -> None:
        with pytest.raises(StoreError, match="token"):
            table.transact([Put(HEAD, {})], token=token)

    @pytest.mark.parametrize("keys", [[], [HEAD, HEAD], [Key("", "a")], [Key("p", str(n)) for n in range(101)]])
    def test_keys_that_no_get_takes_are_refused(self, table: Table, keys: list[Key]) -> None:
        with pytest.raises(StoreError):
            table.get(keys)

    def test_a_query_of_no_meaning_is_refused_before_it_is_walked(self, table: Table) -> None:
        with pytest.raises(StoreError, match="prefix"):
            table.query("p", prefix="a", after="b")
        with pytest.raises(StoreError, match="pk"):
            table.query("")
        with pytest.raises(StoreError, match="limit"):
            table.query("p", limit=0)

    # ---- scan

    def test_scan_finds_every_item_of_the_partitions_that_begin_so(self, table: Table) -> None:
        fill(table, "prod#BLOB#a", ["0", "1"])
        fill(table, "prod#JOB#x", ["HEAD"])
        fill(table, "prod#JOBS", ["x"])
        fill(table, "production#BLOB#a", ["0"])
        fill(table, "prod#BLO", ["0"])
        found = {(key.pk, key.sk) for key, _ in table.scan("prod#BLOB#")}
        assert found == {("prod#BLOB#a", "0"), ("prod#BLOB#a", "1")}
        assert len(list(table.scan("prod#"))) == 5
        assert list(table.scan("staging#")) == []

    def test_scan_brings_the_named_attributes_alone(self, table: Table) -> None:
        item: Attributes = {"stamped_at": "2013", "data": b"x", "chunks": 1, "a.b #": None}
        table.transact([Put(Key("p", "a"), item)])
        table.transact([Put(Key("p", "b"), {"data": b"y"})])
        assert dict(table.scan("p", names=["stamped_at", "a.b #"])) == {
            Key("p", "a"): {"stamped_at": "2013", "a.b #": None},
            Key("p", "b"): {},
        }
        assert dict(table.scan("p")) == {Key("p", "a"): {}, Key("p", "b"): {}}

    def test_scan_reads_on_past_a_page_of_one_megabyte(self, table: Table) -> None:
        for n in range(4):
            fill(table, f"p{n}", ["a"], data=b"x" * 350_000)
        fill(table, "other", ["a"], data=b"x" * 350_000)
        assert sorted(key.pk for key, _ in table.scan("p")) == ["p0", "p1", "p2", "p3"]

    def test_scan_takes_its_beginning_literally(self, table: Table) -> None:
        for pk in ("a%", "a_", "ab", "A%"):
            fill(table, pk, ["x"])
        assert [key.pk for key, _ in table.scan("a%")] == ["a%"]

    def test_scan_of_everything_is_refused(self, table: Table) -> None:
        with pytest.raises(StoreError, match="beginning"):
            table.scan("")

    # ---- many at a time

    def test_of_threads_that_race_for_one_state_exactly_one_wins(self, table: Table, backend: str) -> None:
        if backend == "moto":
            pytest.skip("moto checks a condition and writes in steps that another request can come between")
        table.transact([Put(HEAD, {"fence": 0})])
        threads = 4
        ready = threading.Barrier(threads)

        def take(me: int) -> int | None:
            ready.wait()
            try:
                table.transact([Update(HEAD, set={"fence": 1, "holder": me}, conditions=[Equals("fence", 0)])])
            except ConditionFailedError:
                return None
            return me

        with ThreadPoolExecutor(threads) as pool:
            winners = [me for me in pool.map(take, range(threads)) if me is not None]
        assert [table.get([HEAD])[HEAD]["holder"]] == winners

    def test_threads_that_count_by_compare_and_set_lose_nothing(self, table: Table, backend: str) -> None:
        if backend == "moto":
            pytest.skip("moto checks a condition and writes in steps that another request can come between")
        table.transact([Put(HEAD, {"count": 0})])

        def increment() -> None:
            while True:
                count = table.get([HEAD])[HEAD]["count"]
                assert isinstance(count, int)
                try:
                    table.transact([Update(HEAD, set={"count": count + 1}, conditions=[Equals("count", count)])])
                except ConditionFailedError:
                    continue
                return

        with ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(increment) for _ in range(20)]:
                done.result()
        assert table.get([HEAD]) == {HEAD: {"count": 20}}
