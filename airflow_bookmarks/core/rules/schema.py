"""Compare and merge two schemas of a source, given as the JSON of Spark's StructType.

No Spark: a schema is `{"type": "struct", "fields": [{"name": ..., "type": ..., ...}]}`, where a type is a name or, for
struct, array and map, a mapping in turn. Nullability and metadata play no part: files say nothing reliable of either.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from airflow_bookmarks.core.errors import SchemaChangedError

OnSchemaChange = Literal["fail", "accept", "reset"]
InferSchema = Literal["sample", "all", "last", "each"]

Type = str | Mapping[str, Any]
Fold = Callable[[str], str]  # what makes two spellings one column: str.lower where case means nothing

# Of a field in a recorded schema: no value of it was ever seen, so its type is not settled. Spark ignores this.
UNSEEN = "unseen"

_SPOKEN = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}
_INTEGERS = ("byte", "short", "integer", "long")
_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 19}
_DECIMAL = re.compile(r"decimal\((\d+),(-?\d+)\)")
# What text of the one kind can be read as without loss; anything can be read as the text that it is.
_READABLE_AS = {"integer": ("long", "double"), "long": ("double",), "date": ("timestamp", "timestamp_ntz")}


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """One column, by its dotted name, and its type before and now; None where it is absent."""

    name: str
    before: str | None
    now: str | None

    def __str__(self) -> str:
        return f"{self.name}: {self.before or 'not there'} -> {self.now or 'not there'}"


@dataclass(frozen=True, slots=True)
class SchemaDifference:
    """What two schemas differ in: columns that were added, have a wider type, another type, or went."""

    added: tuple[ColumnChange, ...] = ()
    widened: tuple[ColumnChange, ...] = ()
    changed: tuple[ColumnChange, ...] = ()
    removed: tuple[ColumnChange, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.widened or self.changed or self.removed)

    @property
    def is_compatible(self) -> bool:
        """Whether a reader of the former columns finds them all, in types that hold at least the same."""
        return not (self.changed or self.removed)

    def stats(self) -> dict[str, list[str]]:
        """Return it as plain values, by kind; what is empty is left out."""
        kinds = {"added": self.added, "widened": self.widened, "changed": self.changed, "removed": self.removed}
        return {kind: [str(change) for change in changes] for kind, changes in kinds.items() if changes}

    def in_words(self) -> str:
        """Return it for a message: `added n: not there -> string; removed a: int -> not there`."""
        return "; ".join(f"{kind} {change}" for kind, changes in self.stats().items() for change in changes)


def compare(before: Type, now: Type, fold: Fold = str.lower) -> SchemaDifference:
    """Say what `now` has otherwise than `before`, field by field, in structs, arrays and maps too.

    A type is wider if it is a longer integer, double for float, or a decimal with no fewer digits on either side of
    the point.

    Example:
        >>> compare(struct(a="integer"), struct(a="long", b="string")).stats()
        {'added': ['b: not there -> string'], 'widened': ['a: int -> bigint']}
    """
    found: dict[str, list[ColumnChange]] = {"added": [], "widened": [], "changed": [], "removed": []}
    _compare(before, now, fold, "", found)
    return SchemaDifference(**{kind: tuple(changes) for kind, changes in found.items()})


def _compare(before: Type, now: Type, fold: Fold, name: str, found: dict[str, list[ColumnChange]]) -> None:
    if not isinstance(before, str) and not isinstance(now, str) and before["type"] == now["type"] != "udt":
        if before["type"] != "struct":
            for part in _PARTS[before["type"]]:
                _compare(before[part], now[part], fold, f"{name}.{_PARTS[before['type']][part]}", found)
            return
        then, after = _fields(before, fold), _fields(now, fold)
        for key, each in then.items():
            inner = _below(name, each["name"])
            if key in after:
                _compare(each["type"], after[key]["type"], fold, inner, found)
            else:
                found["removed"].append(ColumnChange(inner, spoken(each["type"]), None))
        for key, each in after.items():
            if key not in then:
                found["added"].append(ColumnChange(_below(name, each["name"]), None, spoken(each["type"])))
    elif before != now:
        kind = "widened" if is_wider(now, before) else "changed"
        found[kind].append(ColumnChange(name, spoken(before), spoken(now)))


_PARTS: Mapping[str, Mapping[str, str]] = {
    "array": {"elementType": "element"},
    "map": {"keyType": "key", "valueType": "value"},
}


def is_wider(wide: Type, narrow: Type) -> bool:
    """Whether every value of the type `narrow` is one of `wide`, which is of the same kind and not the same type."""
    if not isinstance(wide, str) or not isinstance(narrow, str):
        return False
    if wide in _INTEGERS and narrow in _INTEGERS:
        return _INTEGERS.index(wide) > _INTEGERS.index(narrow)
    if (narrow, wide) == ("float", "double"):
        return True
    small, large = _DECIMAL.fullmatch(narrow), _DECIMAL.fullmatch(wide)
    if small is None or large is None or narrow == wide:
        return False
    (digits, scale), (more, longer) = ((int(m[1]), int(m[2])) for m in (small, large))
    return longer >= scale and more - longer >= digits - scale


def is_readable_as(wanted: Type, seen: Type) -> bool:
    """Whether values that look like `seen` can be read as `wanted` from text files, which carry no types."""
    if not isinstance(wanted, str) or not isinstance(seen, str):
        return False
    decimal = _DECIMAL.fullmatch(wanted)
    if decimal is not None and seen in _DIGITS:
        return int(decimal[1]) - int(decimal[2]) >= _DIGITS[seen]
    return wanted == "string" or wanted in _READABLE_AS.get(seen, ()) or is_wider(wanted, seen)


# ---- merging


@dataclass(frozen=True, slots=True)
class Merge:
    """How the schema seen now and the recorded one are merged.

    Args:
        is_text: the types are guesses from values (csv, json, xml), so a recorded type that takes them stays.
        keeps_absent: a recorded column that nothing shows now stays (json, xml: a field may just not have been set).
        keeps_wider: a recorded type that is wider than that of the files stays.
    """

    is_text: bool = False
    keeps_absent: bool = False
    keeps_wider: bool = True
    fold: Fold = field(default=str.lower)

    def of(self, recorded: Type, now: Type) -> Type:
        """Return the merged type; where the two can't be one it is that of now.

        Example:
            >>> spoken(Merge().of(struct(a="long", b="string"), struct(c="date", a="integer")))
            'struct<c:date,a:bigint>'
        """
        if isinstance(recorded, str) or isinstance(now, str):
            return recorded if self._stays(recorded, now) else now
        if recorded["type"] != now["type"] or now["type"] == "udt":
            return now
        if now["type"] != "struct":
            return {**now, **{part: self.of(recorded[part], now[part]) for part in _PARTS[now["type"]]}}
        then, after = _fields(recorded, self.fold), _fields(now, self.fold)
        order = list(dict.fromkeys([*then, *after])) if self.keeps_absent else list(after)
        # Where only the case of a name differs, files are read by the name that they have.
        both = {
            key: {**after[key], "type": self.of(then[key]["type"], after[key]["type"])} for key in then.keys() & after
        }
        fields = {**then, **after, **both}
        return {"type": "struct", "fields": [fields[key] for key in order]}

    def _stays(self, recorded: Type, now: Type) -> bool:
        if self.is_text and is_readable_as(recorded, now):
            return True
        return self.keeps_wider and is_wider(recorded, now)


def widest(schemas: Sequence[tuple[str, Type]], fold: Fold = str.lower) -> Type:
    """Return one schema for files that each have one: all columns, each with the widest type.

    Args:
        schemas: the path of a file and its schema; at least one.

    Raises:
        SchemaChangedError: one column has types that are not one kind, so no schema reads all the files.
    """
    first, merged = schemas[0]
    rule = Merge(keeps_absent=True, fold=fold)
    for path, schema in schemas[1:]:
        narrower = {change.name for change in compare(schema, merged, fold).widened}
        clash = [change for change in compare(merged, schema, fold).changed if change.name not in narrower]
        if clash:
            raise SchemaChangedError(
                f"files of one run have columns that can't be read together: {'; '.join(map(str, clash))}, the one in "
                f"{first!r} or others, the other in {path!r}. Nothing was committed. Give a schema that reads both "
                "with .schema(...), or put the files of each kind into a folder and context of its own."
            )
        merged = rule.of(merged, schema)
    return merged


def add_missing(schema: Type, others: Type, fold: Fold = str.lower) -> Type:
    """Return the schema with the columns that only `others` has, also in structs; types stay as they are."""
    if isinstance(schema, str) or isinstance(others, str) or schema["type"] != others["type"]:
        return schema
    if schema["type"] in _PARTS:
        parts = _PARTS[schema["type"]]
        return {**schema, **{part: add_missing(schema[part], others[part], fold) for part in parts}}
    if schema["type"] != "struct":
        return schema
    own, rest = _fields(schema, fold), _fields(others, fold)
    fields = [
        {**each, "type": add_missing(each["type"], rest[key]["type"], fold)} if key in rest else each
        for key, each in own.items()
    ]
    return {"type": "struct", "fields": [*fields, *(each for key, each in rest.items() if key not in own)]}


def by_position(schemas: Sequence[Type], fold: Fold = str.lower) -> Type:
    """Return one schema for text files whose columns go by position: the longest, if the others are prefixes of it.

    If the types of a column differ, it gets the one that holds both, else text.

    Raises:
        SchemaChangedError: two files have different columns in the same place.
    """
    columns: list[list[Mapping[str, Any]]] = [_as_struct(schema)["fields"] for schema in schemas]
    merged = max(columns, key=lambda fields: len(fields)).copy()
    for fields in columns:
        for place, each in enumerate(fields):
            if fold(each["name"]) != fold(merged[place]["name"]):
                raise SchemaChangedError(
                    f"files of one run have different headers: column {place + 1} is {merged[place]['name']!r} in some "
                    f"and {each['name']!r} in others, and Spark reads CSV by position, so values would end up under "
                    "the wrong name. Nothing was committed. Put the files of each layout into a folder and context of "
                    "its own, or give .schema(...) if it is only the names that differ."
                )
            merged[place] = {**merged[place], "type": _for_both(merged[place]["type"], each["type"])}
    return {"type": "struct", "fields": merged}


def _for_both(one: Type, other: Type) -> Type:
    if one == other or is_readable_as(one, other):
        return one
    return other if is_readable_as(other, one) else "string"


# ---- columns that no value was seen of


def with_unseen(schema: Type, names: Collection[str], fold: Fold = str.lower, _above: str = "") -> Type:
    """Return the schema with a mark at the fields of these dotted names, and at no others."""
    if isinstance(schema, str) or schema["type"] != "struct":
        return schema
    wanted, fields = {fold(name) for name in names}, []
    for each in schema["fields"]:
        name = _below(_above, each["name"])
        mark = {UNSEEN: True} if fold(name) in wanted else {}
        kept = {key: value for key, value in each.items() if key != UNSEEN}
        fields.append({**kept, "type": with_unseen(each["type"], names, fold, name), **mark})
    return {**schema, "fields": fields}


def unseen_in(schema: Type, _above: str = "") -> list[str]:
    """Return the dotted names of the fields that have the mark.

    Example:
        >>> unseen_in(with_unseen(struct(a="string", s=struct(b="string")), ["A", "s.b"]))
        ['a', 's.b']
    """
    if isinstance(schema, str) or schema["type"] != "struct":
        return []
    found = []
    for each in schema["fields"]:
        name = _below(_above, each["name"])
        found += [name] if each.get(UNSEEN) else unseen_in(each["type"], name)
    return found


def resolved(before: Type, now: Type, fold: Fold = str.lower) -> Type:
    """Return the recorded schema, where a field without a seen value gets the type that it has now.

    Example:
        >>> spoken(resolved(with_unseen(struct(a="string", b="string"), ["a"]), struct(a="long", b="long")))
        'struct<a:bigint,b:string>'
    """
    if isinstance(before, str) or before["type"] != "struct":
        return before
    others = {} if isinstance(now, str) or now["type"] != "struct" else _fields(now, fold)
    fields = []
    for each in before["fields"]:
        kept, other = {key: value for key, value in each.items() if key != UNSEEN}, others.get(fold(each["name"]))
        if other is not None:
            kind = other["type"] if each.get(UNSEEN) else resolved(each["type"], other["type"], fold)
            kept = {**kept, "type": kind}
        fields.append(kept)
    return {**before, "fields": fields}


# ---- words


def spoken(kind: Type) -> str:
    """Return a type as SQL writes it.

    Example:
        >>> spoken({"type": "array", "elementType": "long", "containsNull": True})
        'array<bigint>'
    """
    if isinstance(kind, str):
        return _SPOKEN.get(kind, kind)
    if kind["type"] == "struct":
        columns = [f"{each['name']}:{spoken(each['type'])}" for each in kind["fields"]]
        return f"struct<{','.join(columns)}>"
    if kind["type"] in _PARTS:
        return f"{kind['type']}<{','.join(spoken(kind[part]) for part in _PARTS[kind['type']])}>"
    return str(kind["type"])


def struct(**columns: Type) -> Type:
    """Return a schema with these columns, all nullable."""
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in columns.items()]
    return {"type": "struct", "fields": fields}


def without(schema: Type, names: Sequence[str], fold: Fold = str.lower) -> Type:
    """Return the schema without the top columns of these names."""
    gone = {fold(name) for name in names}
    fields = [each for each in _as_struct(schema)["fields"] if fold(each["name"]) not in gone]
    return {"type": "struct", "fields": fields}


def typed_as(schema: Type, other: Type, names: Sequence[str], fold: Fold = str.lower) -> Type:
    """Return the schema with the top columns of these names in the types that they have in `other`."""
    wanted = {fold(name) for name in names}
    types = {key: each["type"] for key, each in _fields(_as_struct(other), fold).items() if key in wanted}
    own = _fields(_as_struct(schema), fold)
    return {"type": "struct", "fields": [{**each, "type": types.get(key, each["type"])} for key, each in own.items()]}


def _as_struct(schema: Type) -> Mapping[str, Any]:
    if isinstance(schema, str):
        raise TypeError(f"{schema!r} is the type of a column, not a schema")
    return schema


def _fields(kind: Mapping[str, Any], fold: Fold) -> dict[str, Mapping[str, Any]]:
    return {fold(each["name"]): each for each in kind["fields"]}


def _below(name: str, inner: str) -> str:
    return f"{name}.{inner}" if name else inner
