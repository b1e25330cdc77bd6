"""Translate operations, conditions and values into the form of DynamoDB's API, and back.

Pure translation. boto3's own serialiser is not used: it returns Decimal and Binary, and accepts some floats.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from airflow_bookmarks.core.errors import StateCorruptError, StoreError
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
    Update,
    Value,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Wire: TypeAlias = dict[str, Any]  # one value ({"S": "text"}), item or request

# ---- requests


@dataclass(frozen=True, slots=True)
class _Placeholders:
    """The names (#n0) and values (:v0) of one expression, so that no attribute name can clash with a reserved word."""

    names: dict[str, str] = field(default_factory=dict)
    values: Wire = field(default_factory=dict)

    def name(self, name: str) -> str:
        return self.names.setdefault(name, f"#n{len(self.names)}")

    def value(self, value: Value) -> str:
        placeholder = f":v{len(self.values)}"
        self.values[placeholder] = to_wire(value)
        return placeholder

    def parts(self) -> Wire:
        """Return them as parts of a request; empty parts are an error to DynamoDB."""
        names = {"ExpressionAttributeNames": {mark: name for name, mark in self.names.items()}} if self.names else {}
        return names | ({"ExpressionAttributeValues": self.values} if self.values else {})


def wire_operation(table: str, operation: Operation) -> Wire:
    """Return an operation as one of the `TransactItems` of TransactWriteItems."""
    marks = _Placeholders()
    request: Wire = {"TableName": table}
    match operation:
        case Put(key, attributes):
            kind = "Put"
            request["Item"] = wire_item(key, attributes)
        case Update(key, new, gone):
            kind = "Update"
            request |= {"Key": wire_key(key), "UpdateExpression": _update_expression(new, gone, marks)}
        case Delete(key):
            kind = "Delete"
            request["Key"] = wire_key(key)
        case Check(key):
            kind = "ConditionCheck"
            request["Key"] = wire_key(key)
    if operation.conditions:
        request["ConditionExpression"] = " AND ".join(_clause(c, marks) for c in operation.conditions)
        # Saves the read that would tell who was faster.
        request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
    return {kind: request | marks.parts()}


def _clause(condition: Condition, marks: _Placeholders) -> str:
    match condition:
        case Exists():
            return "attribute_exists(pk)"  # each item has its key
        case Missing():
            return "attribute_not_exists(pk)"
        case Equals(name, value):
            return f"{marks.name(name)} = {marks.value(value)}"
        case Lacks(name):
            return f"attribute_not_exists({marks.name(name)})"


def _update_expression(new: Mapping[str, Value], gone: Sequence[str], marks: _Placeholders) -> str:
    clauses = []
    if new:
        clauses.append("SET " + ", ".join(f"{marks.name(name)} = {marks.value(value)}" for name, value in new.items()))
    if gone:
        clauses.append("REMOVE " + ", ".join(marks.name(name) for name in gone))
    return " ".join(clauses)


def query_request(pk: str, prefix: str, after: str | None, until: str | None) -> Wire:
    """Return the parts of a Query that select its items; the arguments are those of `Table.query`."""
    values: Wire = {":pk": {"S": pk}}
    clause = "pk = :pk"
    if prefix:
        clause += " AND begins_with(sk, :prefix)"
        values[":prefix"] = {"S": prefix}
    elif after is not None and until is not None:
        # BETWEEN includes both ends; the lower one is dropped when it arrives.
        clause += " AND sk BETWEEN :after AND :until"
        values |= {":after": {"S": after}, ":until": {"S": until}}
    elif after is not None:
        clause += " AND sk > :after"
        values[":after"] = {"S": after}
    elif until is not None:
        clause += " AND sk <= :until"
        values[":until"] = {"S": until}
    return {"KeyConditionExpression": clause, "ExpressionAttributeValues": values}


# ---- values


def wire_key(key: Key) -> Wire:
    """Return a key."""
    return {"pk": {"S": key.pk}, "sk": {"S": key.sk}}


def wire_item(key: Key, attributes: Mapping[str, Value]) -> Wire:
    """Return an item with its key."""
    return wire_key(key) | {name: to_wire(value) for name, value in attributes.items()}


def item_of(wire: Mapping[str, Any]) -> tuple[Key, Attributes]:
    """Return the key and the attributes of an item that DynamoDB gave."""
    key = Key(wire["pk"]["S"], wire["sk"]["S"])
    names = [name for name in wire if name not in ("pk", "sk")]
    return key, {name: from_wire(wire[name], f"attribute {name!r} of {key}") for name in names}


def to_wire(value: Value) -> Wire:
    """Return a value in the form of DynamoDB's API.

    Example:
        >>> to_wire({"fence": 3, "is_last": True})
        {'M': {'fence': {'N': '3'}, 'is_last': {'BOOL': True}}}

    Raises:
        StoreError: the value is of a type that no table takes, a float for example.
    """
    match value:
        case None:
            return {"NULL": True}
        case bool():
            return {"BOOL": value}
        case str():
            return {"S": value}
        case int():
            return {"N": str(value)}
        case bytes():
            return {"B": value}
        case list():
            return {"L": [to_wire(element) for element in value]}
        case dict():
            return {"M": {name: to_wire(element) for name, element in value.items()}}
    raise StoreError(f"a {type(value).__name__} is no value of a table. Nothing was written. Store it as text.")


def from_wire(wire: Mapping[str, Any], where: str) -> Value:
    """Return the value that DynamoDB's API gave; `where` names it in errors.

    Raises:
        StateCorruptError: a type or number that this package never writes.
    """
    ((kind, content),) = wire.items()
    match kind:
        case "S" | "BOOL" | "B":
            value: Value = content
            return value
        case "N" if content.lstrip("-").isdecimal():
            return int(content)
        case "NULL":
            return None
        case "L":
            return [from_wire(element, where) for element in content]
        case "M":
            return {name: from_wire(element, where) for name, element in content.items()}
        case _:
            raise StateCorruptError(
                f"{where} holds {kind} {content!r}, which this package never writes: it was changed from outside. "
                "Nothing was written. Restore the table from a backup, or reset the job."
            )
