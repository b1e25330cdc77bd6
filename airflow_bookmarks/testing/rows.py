"""The assertion that each arrived row is in a target once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from math import isnan
from typing import Any, Protocol, TypeAlias, runtime_checkable

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.testing.arrival import ArrivedRow

_SHOWN = 5


@runtime_checkable
class Collectable(Protocol):
    """What is needed of a DataFrame here."""

    def collect(self) -> Sequence[Any]:
        """Return all rows."""
        ...


Target: TypeAlias = Collectable | Iterable[Any]


def assert_each_row_once(
    arrived: Iterable[ArrivedRow], target: Target, *, columns: Sequence[str] | None = None
) -> None:
    """Assert that the target holds each arrived row as often as it arrived, and no other rows.

    Args:
        arrived: rows as mappings: `results.arrived_rows` for a target that the job appends to, `results.current_rows`
            for one in which corrected input replaces earlier rows.
        target: a DataFrame, its rows, or mappings.
        columns: the columns that identify a row, if the job changes others; default: all columns of the arrived rows.

    Raises:
        AssertionError: rows are missing, occur too often, or never arrived; the message shows the first of each.
        OptionError: the arrived rows have different columns and `columns` is not given, or a row lacks one of them.

    Example:
        >>> assert_each_row_once([{"id": 1}, {"id": 2}], [{"id": 2}, {"id": 1}])
        >>> assert_each_row_once([{"id": 1}], [{"id": 1}, {"id": 1}])
        Traceback (most recent call last):
        ...
        AssertionError: not each arrived row is in the target once:
        1 row(s) too often: (id=1) 2 times, and arrived once
    """
    rows, found = [dict(row) for row in arrived], [_mapping(row) for row in _rows(target)]
    names = _columns(rows, columns)
    shown: dict[_Key, str] = {}
    wanted = _counted(rows, names, "an arrived row", shown)
    there = _counted(found, names, "a row of the target", shown)
    faults = [*_told(wanted, there, shown)]
    if not rows and found and not names:
        faults = [f"nothing arrived, and {len(found)} row(s) are there"]
    if faults:
        raise AssertionError("\n".join(["not each arrived row is in the target once:", *faults]))


def _columns(rows: Sequence[ArrivedRow], columns: Sequence[str] | None) -> Sequence[str]:
    if columns is not None:
        if isinstance(columns, str) or not columns:
            raise OptionError(f"columns={columns!r}: expected a list of names, such as ['id']. Nothing was compared.")
        return list(columns)  # which may be an iterator
    if any(row.keys() != rows[0].keys() for row in rows):
        raise OptionError(
            "arrived rows have different columns. Nothing was compared. Say with columns=['id'] which ones tell one "
            "row from another."
        )
    return list(rows[0]) if rows else []


def _rows(target: Target) -> Iterable[Any]:
    return target.collect() if isinstance(target, Collectable) else target


def _mapping(row: Any) -> Mapping[str, Any]:
    if isinstance(row, Mapping):
        return row
    if hasattr(row, "asDict"):
        found: dict[str, Any] = row.asDict()
        return found
    raise OptionError(
        f"the target has {row!r}, which is neither a row of a DataFrame nor a mapping. Nothing was compared. Give the "
        "DataFrame, or its rows."
    )


_Key: TypeAlias = tuple[Hashable, ...]


def _counted(
    rows: Iterable[Mapping[str, Any]], names: Sequence[str], what: str, shown: dict[_Key, str]
) -> Counter[_Key]:
    counted: Counter[_Key] = Counter()
    for row in rows:
        missing = [name for name in names if name not in row]
        if missing:
            raise OptionError(
                f"{what} has no column {missing[0]!r}, only {list(row)}. Nothing was compared. Say with columns=[...] "
                "which ones to compare."
            )
        key = tuple(_comparable(row[name]) for name in names)
        shown.setdefault(key, f"({', '.join(f'{name}={row[name]!r}' for name in names)})")
        counted[key] += 1
    return counted


def _comparable(value: object) -> Hashable:
    """Return what is equal for equal values: NaN is NaN, a map has no order, and a list in Spark was any sequence."""
    if hasattr(value, "asDict"):
        value = value.asDict()
    match value:
        case float() if isnan(value):
            return float, "nan"
        case bool():
            return bool, value  # and not the number that it equals
        case Mapping():
            return dict, frozenset((name, _comparable(each)) for name, each in value.items())
        case list() | tuple():
            return tuple(_comparable(each) for each in value)
    return value if isinstance(value, Hashable) else repr(value)


def _told(wanted: Counter[_Key], there: Counter[_Key], shown: Mapping[_Key, str]) -> Iterable[str]:
    missing = [shown[key] for key in wanted if key not in there]
    seldom = [_often(key, wanted, there, shown) for key in wanted if 0 < there[key] < wanted[key]]
    often = [_often(key, wanted, there, shown) for key in wanted if there[key] > wanted[key]]
    other = [shown[key] for key in there if key not in wanted]
    kinds = {"missing": missing, "too seldom": seldom, "too often": often, "that never arrived": other}
    for kind, rows in kinds.items():
        if rows:
            more = f" and {len(rows) - _SHOWN} more" if len(rows) > _SHOWN else ""
            yield f"{len(rows)} row(s) {kind}: {', '.join(rows[:_SHOWN])}{more}"


def _often(key: _Key, wanted: Counter[_Key], there: Counter[_Key], shown: Mapping[_Key, str]) -> str:
    came = "once" if wanted[key] == 1 else f"{wanted[key]} times"
    return f"{shown[key]} {there[key]} times, and arrived {came}"
