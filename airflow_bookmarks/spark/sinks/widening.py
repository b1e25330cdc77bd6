"""Which values a column of a table takes from a column of another type without losing any.

Spark's own `INSERT` also takes values that may not fit, and looks at each when it writes it, or makes it NULL where
`spark.sql.ansi.enabled` is off. Here the script casts these, and says by that what becomes of them.
"""

from __future__ import annotations

import re

_INTEGERS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}  # with the digits that hold each of their values
_EXACT_IN_DOUBLE = ("tinyint", "smallint", "int", "float")
_SHOWN_AS_TEXT = ("boolean", "date", *_INTEGERS)
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_TEXT_OF_LENGTH = re.compile(r"(?:var)?char\((\d+)\)")


def is_wider(given: str, wanted: str) -> bool:
    """Return whether each value of one type of Spark, as `simpleString` names it, is one of another.

    Example:
        >>> is_wider("int", "bigint"), is_wider("bigint", "int"), is_wider("string", "date")
        (True, False, False)
    """
    given, wanted = given.lower(), wanted.lower()
    if given == wanted or (given == "string" and length_of(wanted) is not None):
        return True
    if given in _INTEGERS and wanted in _INTEGERS:
        return _INTEGERS[given] <= _INTEGERS[wanted]
    if wanted == "string":
        return given in _SHOWN_AS_TEXT or _DECIMAL.fullmatch(given) is not None
    if wanted == "double":
        return given in _EXACT_IN_DOUBLE
    digits, into = _digits(given), _digits(wanted)
    if digits is not None and into is not None and wanted not in _INTEGERS:
        return into[0] >= digits[0] and into[1] >= digits[1]
    return (given, wanted) == ("date", "timestamp")


def length_of(kind: str) -> int | None:
    """Return the most characters that a type takes; None where it is none of a length, such as `varchar(10)`."""
    found = _TEXT_OF_LENGTH.fullmatch(kind.lower())
    return None if found is None else int(found[1])


def _digits(kind: str) -> tuple[int, int] | None:
    """Return how many digits a number has before and behind the point."""
    found = _DECIMAL.fullmatch(kind)
    if found is not None:
        return int(found[1]) - int(found[2]), int(found[2])
    return (_INTEGERS[kind], 0) if kind in _INTEGERS else None
