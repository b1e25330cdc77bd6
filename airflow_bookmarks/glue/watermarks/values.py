"""Values of a watermark as DynamoDB stores them, so that each comes back equal and of the type that it had.

DynamoDB has one type for numbers and none for times. So values lie in the table as a person reads them there (a time as
ISO 8601 text, a number as a number), and the types that this hides are kept beside them, in the same shape.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from airflow_bookmarks.core.errors import BookmarkError

AttributeValue = dict[str, Any]  # as the client of DynamoDB takes it: {"S": "text"}
Types = str | dict[str, Any] | list[Any] | None  # of one value: a name, or those of what it holds; None: it shows

_MOST_DIGITS = 38  # of a number in DynamoDB
_EXPONENTS = range(-128, 126)


class WatermarkValueError(BookmarkError, ValueError):
    """Raised when a watermark has a value that is none, or that could not be read back as it was."""


def encoded(value: Any, name: str) -> tuple[AttributeValue, Types]:
    """Return a value as DynamoDB stores it, and what this hides of its type.

    Args:
        value: text, a bool, int, float, Decimal, datetime or date; or a list or dict of such, with text as names.
        name: what errors call it.

    Raises:
        WatermarkValueError: None, or a value of another type.

    Example:
        >>> encoded(date(2013, 1, 31), "day")
        ({'S': '2013-01-31'}, 'date')
    """
    # Exact types: a numpy.float64 is a float, and a pandas.Timestamp a datetime, that would come back as another type.
    kind = type(value)
    if kind is str:
        return {"S": value}, None
    if kind is bool:
        return {"BOOL": value}, None
    if kind in (int, float, Decimal):
        return _number(value)
    if kind in (datetime, date):
        return {"S": value.isoformat()}, kind.__name__
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        pairs = {key: encoded(inner, f"{name}.{key}") for key, inner in value.items()}
        hidden = {key: types for key, (_, types) in pairs.items() if types is not None}
        return {"M": {key: stored for key, (stored, _) in pairs.items()}}, hidden or None
    if isinstance(value, Sequence) and kind in (list, tuple):
        parts = [encoded(inner, f"{name}[{at}]") for at, inner in enumerate(value)]
        types_of_parts = [types for _, types in parts]
        hidden_parts = types_of_parts if any(types is not None for types in types_of_parts) else None
        return {"L": [stored for stored, _ in parts]}, hidden_parts
    raise _refused(value, name)


def decoded(stored: AttributeValue, types: Types = None) -> Any:
    """Return what `encoded` was given; of an item that another program wrote, whole numbers as int, others as Decimal.

    Example:
        >>> decoded({"N": "7"}), decoded({"N": "7"}, "float"), decoded({"S": "2013-01-31"}, "date")
        (7, 7.0, datetime.date(2013, 1, 31))
    """
    ((kind, value),) = stored.items()
    if kind == "M":
        below = types if isinstance(types, dict) else {}
        return {name: decoded(inner, below.get(name)) for name, inner in value.items()}
    if kind == "L":
        each = types if isinstance(types, list) else [None] * len(value)
        return [decoded(inner, of) for inner, of in zip(value, each, strict=True)]
    if kind == "NULL":
        return None
    match types:
        case "datetime":
            return datetime.fromisoformat(value)
        case "date":
            return date.fromisoformat(value)
        case "float":
            return float(value)
        case "Decimal":
            return Decimal(value)
        case "int":
            return int(value)
    return _plain_number(value) if kind == "N" else value


def _number(value: int | float | Decimal) -> tuple[AttributeValue, Types]:
    kind = type(value)
    hidden = None if kind is int else kind.__name__
    exact = Decimal(repr(value)) if kind is float and math.isfinite(value) else value
    if _fits(exact):
        return {"N": str(exact)}, hidden
    return {"S": repr(value) if kind is float else str(value)}, kind.__name__


def _fits(value: int | float | Decimal) -> bool:
    """Whether DynamoDB holds a number as it is: up to 38 digits, and neither infinite nor a NaN."""
    try:
        number = Decimal(value)
        digits = len(number.as_tuple().digits)
        return number.is_finite() and digits <= _MOST_DIGITS and (not number or number.adjusted() in _EXPONENTS)
    except (InvalidOperation, ValueError):
        return False


def _plain_number(text: str) -> int | Decimal:
    number = Decimal(text)
    return int(number) if number == number.to_integral_value() else number


def _refused(value: Any, name: str) -> WatermarkValueError:
    if value is None:
        return WatermarkValueError(
            f"the watermark has None as {name!r}: an aggregate over no rows gives that, and the next run would compare "
            "with it and find nothing. Nothing was written; the last watermark stays. Add a watermark only when there "
            "were rows."
        )
    return WatermarkValueError(
        f"the watermark has a {type(value).__module__}.{type(value).__qualname__} as {name!r}, which could not be read "
        "back as it is. Nothing was written; the last watermark stays. Give text, int, float, Decimal, bool, datetime "
        "or date, or a list or dict of these."
    )
