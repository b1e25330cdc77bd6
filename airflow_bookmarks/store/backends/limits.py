"""Refuse what exceeds DynamoDB's limits, on every table alike, before its store is called.

Emulators and SQLite are laxer than DynamoDB, each in another way. Because of these checks, a program that runs on one
of them runs on all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import StoreError
from airflow_bookmarks.store.table import (
    MAX_ITEM_BYTES,
    MAX_OPERATIONS,
    MAX_UPDATED,
    Check,
    Equals,
    Key,
    Operation,
    Put,
    Update,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeAlias

    _Place: TypeAlias = tuple[object, ...]  # what it is, the key of its item, its name, the steps into it

MAX_TRANSACTION_BYTES = 4_000_000
MAX_TOKEN_CHARACTERS = 36
MAX_DEPTH = 32  # of lists and maps inside an attribute
_MAX_PK_BYTES = 2048
_MAX_SK_BYTES = 1024
_NUMBER_LIMIT = 10**38  # DynamoDB keeps 38 digits, and would round the rest
_NUMBER_BYTES = 21  # the most that DynamoDB counts for a number
_CONTAINER_BYTES = 3  # what DynamoDB counts for a list or map, and 1 more for each element
_KEY_NAMES = ("pk", "sk")
_OWNER_OF_AN_ATTRIBUTE = 2  # the length of its place


def check_keys(keys: Sequence[Key]) -> None:
    """Refuse keys that one `get` cannot take.

    Raises:
        StoreError: none or more than 100, a repeated, empty or too long key.
    """
    _check_count(len(keys), "keys")
    _check_distinct(keys)
    for key in keys:
        check_key(key)


def check_key(key: Key) -> None:
    """Refuse a key that DynamoDB cannot take: empty, above 2048 (pk) or 1024 bytes (sk), or not UTF-8.

    Raises:
        StoreError: the key is one of these.
    """
    for name, text, limit in (("pk", key.pk, _MAX_PK_BYTES), ("sk", key.sk, _MAX_SK_BYTES)):
        size = _text_bytes(text, (name, key))
        if not 0 < size <= limit:
            raise StoreError(f"{name} of {key} has {size} bytes, and 1 to {limit} are allowed. Nothing was written.")


def check_range(pk: str, prefix: str, after: str | None, until: str | None, limit: int | None) -> None:
    """Refuse the arguments of a query that have no meaning together.

    Raises:
        StoreError: empty pk, a prefix together with a bound, or a limit below 1.
    """
    if not pk:
        raise StoreError("a query needs the pk of one partition, and it is empty. Nothing was read.")
    if prefix and (after is not None or until is not None):
        raise StoreError(f"a query takes a prefix ({prefix!r}) or bounds (after, until), not both. Nothing was read.")
    if limit is not None and limit < 1:
        raise StoreError(f"a query takes a limit of 1 or more, not {limit}. Nothing was read.")


def check_operations(operations: Sequence[Operation], token: str | None) -> None:
    """Refuse operations that one transaction cannot take.

    Raises:
        StoreError: none or more than 100 operations, a key twice, an item above 400 KB, all above 4 MB, a value of
            another kind, an operation that does or checks nothing, or a token that is empty or above 36 characters.
    """
    _check_count(len(operations), "operations")
    _check_distinct([operation.key for operation in operations])
    if token is not None and not 0 < len(token) <= MAX_TOKEN_CHARACTERS:
        raise StoreError(
            f"a token has 1 to {MAX_TOKEN_CHARACTERS} characters, and {token!r} has {len(token)}. Nothing was written."
        )
    total = sum(_operation_bytes(operation) for operation in operations)
    if total > MAX_TRANSACTION_BYTES:
        raise StoreError(
            f"a transaction of {total} bytes is above {MAX_TRANSACTION_BYTES}. Nothing was written. Put large values "
            "into blobs first, each by a transaction of its own."
        )


def check_item(key: Key, attributes: Mapping[str, object]) -> int:
    """Return the size of an item in bytes, as DynamoDB counts it (numbers: as their most).

    Raises:
        StoreError: it is above 400 KB, or holds a value that no table takes.
    """
    size = _text_bytes(key.pk, ("pk", key)) + _text_bytes(key.sk, ("sk", key)) + sum(map(len, _KEY_NAMES))
    owner = ("attribute", key)
    for name, value in attributes.items():
        if not isinstance(name, str) or not name or name in _KEY_NAMES:
            where = _in_words((*owner, name))
            raise StoreError(f"{where}: an attribute has a name, and not that of a key. Nothing was written.")
        size += (len(name) if name.isascii() else _text_bytes(name, (*owner, name))) + _value_bytes(value, owner, name)
    if size > MAX_ITEM_BYTES:
        raise StoreError(
            f"the item {key} would have {size} bytes, and {MAX_ITEM_BYTES} are allowed. Nothing was written. Put large "
            "values into blobs."
        )
    return size


def _value_bytes(value: object, owner: _Place, step: object) -> int:
    # All that is written passes here: the place of a value is made by what needs it, and text comes first.
    if len(owner) - _OWNER_OF_AN_ATTRIBUTE > MAX_DEPTH:
        where = _in_words((*owner, step))
        raise StoreError(f"{where} is nested deeper than {MAX_DEPTH} levels. Nothing was written.")
    if isinstance(value, str):
        return len(value) if value.isascii() else _text_bytes(value, (*owner, step))
    if value is None or isinstance(value, bool):
        return 1
    if isinstance(value, int):
        if abs(value) >= _NUMBER_LIMIT:
            where = _in_words((*owner, step))
            raise StoreError(f"{where} is a number of more than 38 digits. Nothing was written. Store it as text.")
        return _NUMBER_BYTES
    if isinstance(value, bytes):
        return len(value)
    if isinstance(value, (list, dict)):
        return _container_bytes(value, (*owner, step))
    raise StoreError(
        f"{_in_words((*owner, step))} is of type {type(value).__name__}; text, integers, bools, None, bytes, lists and "
        "dicts are allowed. Nothing was written. Store fractions and times as text."
    )


def _container_bytes(value: list[object] | dict[object, object], place: _Place) -> int:
    size = _CONTAINER_BYTES + len(value)  # 1 for each element
    if isinstance(value, list):
        for i, element in enumerate(value):
            size += _value_bytes(element, place, i)
        return size
    for name, element in value.items():
        if not isinstance(name, str) or not name:
            where = _in_words(place)
            raise StoreError(f"{where} has the map key {name!r}, and a key is text, not empty. Nothing was written.")
        size += (len(name) if name.isascii() else _text_bytes(name, place)) + _value_bytes(element, place, name)
    return size


def _in_words(place: _Place) -> str:
    what, key, *names = place
    named = "".join(f" {name!r}" for name in names[:1])
    return f"{what}{named} of {key}" + "".join(f"[{step!r}]" for step in names[1:])


def _operation_bytes(operation: Operation) -> int:
    check_key(operation.key)
    size = 0
    match operation:
        case Put(key, attributes):
            size = check_item(key, attributes)
        case Update(key, new, gone):
            _check_update(key, new, gone)
            size = check_item(key, new)
        case Check(key, conditions) if not conditions:
            raise StoreError(f"the check of {key} has no condition. Nothing was written.")
    for condition in operation.conditions:
        if isinstance(condition, Equals):
            size += _value_bytes(condition.value, ("condition on", operation.key), condition.name)
    return size


def _check_update(key: Key, new: Mapping[str, object], gone: Sequence[str]) -> None:
    if not new and not gone:
        raise StoreError(f"the update of {key} neither sets nor removes an attribute. Nothing was written.")
    if len(new) + len(gone) > MAX_UPDATED:
        raise StoreError(
            f"the update of {key} names {len(new) + len(gone)} attributes, and {MAX_UPDATED} are allowed. Nothing was "
            "written."
        )
    both = sorted(set(new) & set(gone))
    if both or len(set(gone)) != len(gone) or set(gone) & {"", *_KEY_NAMES}:
        raise StoreError(
            f"the update of {key} sets {sorted(new)} and removes {sorted(gone)}: each attribute may be named once, and "
            "no key. Nothing was written."
        )


def _check_count(count: int, noun: str) -> None:
    if not 0 < count <= MAX_OPERATIONS:
        raise StoreError(f"one request takes 1 to {MAX_OPERATIONS} {noun}, not {count}. Nothing was written.")


def _check_distinct(keys: Sequence[Key]) -> None:
    if len(set(keys)) != len(keys):
        repeated = sorted({key for key in keys if keys.count(key) > 1})
        raise StoreError(
            f"one request takes each key once, and these come more often: {repeated}. Nothing was written."
        )


def _text_bytes(text: str, place: _Place) -> int:
    if text.isascii():
        return len(text)
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        where = _in_words(place)
        raise StoreError(f"{where} can't be written as UTF-8 ({error.reason}). Nothing was written.") from error
