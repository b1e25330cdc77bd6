"""What the command line prints: plain tables for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.amount import Amount
from airflow_bookmarks.core.text.count import counted
from airflow_bookmarks.core.text.escaping import escaped, is_obeyed, width

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

FORMATS = ("table", "json")
WARNING = "WARNING"  # begins a line that says what is lost
_GAP = "  "


def as_json(value: Any) -> str:
    """Return plain values as JSON, two blanks deep, with letters of any script as they are where stdout takes them."""
    text = json.dumps(value, indent=2, ensure_ascii=not _takes_any_letter())
    return text if text.isascii() and "\x7f" not in text else "".join(map(_json_letter, text))


def _json_letter(letter: str) -> str:
    # What JSON leaves as it is, and a terminal obeys. Outside of text JSON has no such letter but the new line.
    return json.dumps(letter)[1:-1].replace("\x7f", "\\u007f") if is_obeyed(letter) and letter != "\n" else letter


def _takes_any_letter() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")


def as_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Return rows below their headings, numbers to the right.

    Example:
        >>> rows = [{"number": 1, "state": "PUBLISHED"}, {"number": 12, "state": "UNDONE"}]
        >>> print(as_table(rows, ["number", "state"]))
        NUMBER  STATE
             1  PUBLISHED
            12  UNDONE
    """
    cells = [[in_words(row.get(name)) for name in columns] for row in rows]
    heads = [name.replace("_", " ").upper() for name in columns]
    widths = [max(width(line[i]) for line in [heads, *cells]) for i in range(len(columns))]
    is_number = [all(isinstance(row.get(name), int | None) for row in rows) for name in columns]
    lines = [heads, *cells]
    return "\n".join(
        _GAP.join(
            _filled(cell, wide, is_right=right) for cell, wide, right in zip(line, widths, is_number, strict=True)
        ).rstrip()
        for line in lines
    )


def _filled(cell: str, wide: int, *, is_right: bool = False) -> str:
    blanks = " " * (wide - width(cell))
    return blanks + cell if is_right else cell + blanks


def as_list(details: Mapping[str, Any], indent: str = "") -> str:
    """Return one thing as a list of names and values; what a value holds itself is set in below its name."""
    names = {name: escaped(str(name)) for name in details}
    wide = max(map(width, names.values()), default=0)
    lines: list[str] = []
    for key, value in details.items():
        name = names[key]
        if isinstance(value, dict) and value:
            lines += [f"{indent}{name}", as_list(value, indent + _GAP)]
        elif isinstance(value, list) and value:
            lines += [f"{indent}{name}", *(f"{indent}{_GAP}{in_words(each)}" for each in value)]
        else:
            lines.append(f"{indent}{_filled(name, wide)}{_GAP}{in_words(value)}")
    return "\n".join(lines)


def with_units(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of a table, after "files" those that say how much there is of something else, if a row does.

    Example:
        >>> with_units([{"unit": "keys", "count": 2}], ("ctx", "files", "bytes"))
        ('ctx', 'files', 'count', 'unit', 'bytes')
    """
    rows = list(rows)
    more = [name for name in ("count", "unit", "amounts") if any(row.get(name) not in (None, {}) for row in rows)]
    at = columns.index("files") + 1
    return (*columns[:at], *more, *columns[at:])


def amount(again: Mapping[str, Any]) -> str:
    """Return what is read again as words: files, bytes and, where they are known, rows; or what its kind counts."""
    others = [Amount(unit, count).in_words() for unit, count in again.get("amounts", {}).items()]
    if others:
        files = [files_and_bytes(again["files"], again["bytes"])] if again["files"] else []
        return ", ".join([*files, *others])
    if again["files"] is None:
        return "whatever comes after that position; it is not counted"
    rows = "" if again["rows"] is None else f", {counted(again['rows'], 'row')}"
    return f"{files_and_bytes(again['files'], again['bytes'])}{rows}"


def never_read_amount(never: Mapping[str, Any]) -> str | None:
    """Return as words how much a set skips for good; None where that is not known.

    Args:
        never: the values of a `NeverReadInput`; one that an older version stored has neither rows nor amounts.

    Example:
        >>> never_read_amount({"files": 3, "bytes": 900, "rows": 40, "amounts": {"versions": 2}, "unknown": None})
        '3 files, 900 bytes, 40 rows, 2 versions'
        >>> never_read_amount({"files": None, "bytes": None, "rows": 1, "amounts": {}, "unknown": None})
        '1 row'
    """
    if never["unknown"] is not None:
        return None
    files, rows = never["files"], never.get("rows")
    parts = [] if files is None else [files_and_bytes(files, never["bytes"])]
    parts += [] if rows is None else [counted(rows, "row")]
    parts += [Amount(unit, count).in_words() for unit, count in never.get("amounts", {}).items()]
    return ", ".join(parts) or None


def files_and_bytes(files: int, size_bytes: int | None) -> str:
    """Return a number of files as words, with their bytes where they are known.

    Example:
        >>> files_and_bytes(1, 2000), files_and_bytes(2, None)
        ('1 file, 2,000 bytes', '2 files, how many bytes is not known')
    """
    size = "how many bytes is not known" if size_bytes is None else counted(size_bytes, "byte")
    return f"{counted(files, 'file')}, {size}"


def in_words(value: Any) -> str:
    """Return one value as a cell: what is None or empty as `-`, and what a terminal may obey escaped.

    Example:
        >>> in_words({"flights": "2013-01-31", "people": None}), in_words(None), in_words(True), in_words([1, 2])
        ('flights=2013-01-31 people=-', '-', 'yes', '1, 2')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(in_words, value)) or "-"
    if isinstance(value, dict):
        return " ".join(f"{escaped(str(name))}={in_words(inner)}" for name, inner in value.items()) or "-"
    return "-" if value is None or value == "" else escaped(str(value))
