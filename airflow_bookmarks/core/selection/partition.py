"""Partition columns: names and values in paths (`year=2013/month=01`), and types settled once for all of them.

Spark infers the type of a partition column from the paths that one read happens to see, so the same column may be a
number today and text tomorrow. Here it is settled over every listed value and kept with the source.
"""

from __future__ import annotations

import re
from datetime import date
from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import unquote

from airflow_bookmarks.core.errors import SchemaChangedError, SourceError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from airflow_bookmarks.core.rules.schema import OnSchemaChange

NULL_VALUE = "__HIVE_DEFAULT_PARTITION__"
_INTEGER = re.compile(r"-?\d{1,18}")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_INT_MAX = 2**31 - 1


def partition_values(path: str, root: str) -> dict[str, str]:
    """Return the partition columns of a file below `root`, in path order, values decoded.

    Example:
        >>> partition_values("/d/flights/month=1/day=a%2Fb/f.parquet", "/d/flights")
        {'month': '1', 'day': 'a/b'}
    """
    folders = path[len(root) :].strip("/").split("/")[:-1] if path.startswith(root) else []
    pairs = (folder.split("=", 1) for folder in folders if is_partition(folder))
    return {unescaped(name): unescaped(value) for name, value in pairs}


def unescaped(text: str) -> str:
    """Return the name of a column, or a value, as it stands in the name of a folder, decoded as Spark does.

    Spark takes each escape for one character (`ExternalCatalogUtils.unescapePathName`), never for a byte of UTF-8. It
    escapes no letters itself, so what it has written is the same either way; what others have written is not.

    Example:
        >>> unescaped("a%2Fb"), unescaped("%FF"), unescaped("S%C3%A3o"), unescaped("São")
        ('a/b', 'ÿ', 'SÃ£o', 'São')
    """
    return unquote(text, "latin-1")


def folders_above(path: str, root: str) -> list[str]:
    """Return the folders below `root` that hold the file `path`, the nearest first.

    Example:
        >>> folders_above("/d/clean/m=1/d=5/f", "/d/clean")
        ['/d/clean/m=1/d=5', '/d/clean/m=1']
    """
    found = []
    while (path := path.rpartition("/")[0]) and path.startswith(f"{root.rstrip('/')}/"):
        found.append(path)
    return found


def is_partition(folder: str) -> bool:
    """Whether the name of a folder is `column=value`."""
    name, sign, _ = folder.partition("=")
    return bool(name) and bool(sign)


def root_of(path: str, roots: Sequence[str], *, recursive: bool = False) -> str:
    """Return the first of `roots` whose listing holds the file `path`.

    Example:
        >>> root_of("/d/raw/month=1/f", ["/d", "/d/raw"])
        '/d/raw'
    """
    return root_among(path, placed(roots), recursive=recursive)


def root_among(path: str, place_of: Mapping[str, int], *, recursive: bool = False) -> str:
    """Return what `root_of` does, of roots with their places in the list: made once, for many files of many roots."""
    below = roots_above(path, place_of)
    for root in below:
        folders = path[len(root) :].strip("/").split("/")[:-1]
        if recursive or all(is_partition(folder) for folder in folders):
            return root
    if not below:
        raise ValueError(f"{path!r} lies below none of {list(place_of)}")
    return below[0]  # planned by a run that listed all folders


def placed(roots: Sequence[str]) -> dict[str, int]:
    """Return the index of each root in the list: its first, if it is named twice."""
    return {root: at for at, root in reversed(list(enumerate(roots)))}


def roots_above(path: str, place_of: Mapping[str, int]) -> list[str]:
    """Return the roots that are the file `path` or that it lies below, in the order of their places.

    It costs one lookup for each name in the path: there may be as many roots as files, each of them named.

    Example:
        >>> roots_above("/d/raw/f", {"/d/raw": 0, "/d/raw/g": 1, "/": 2, "/d": 3})
        ['/d/raw', '/', '/d']
    """
    above, found = path, [root for root in ("/",) if root in place_of and path.startswith("/")]
    while above:
        if above in place_of and above not in found:
            found.append(above)
        above = above.rpartition("/")[0]
    return sorted(found, key=place_of.__getitem__)


def settle_types(
    paths: Iterable[tuple[str, str]],
    settled: Mapping[str, str],
    named: Collection[str] = (),
    *,
    on_schema_change: OnSchemaChange = "fail",
    pruned: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> dict[str, str]:
    """Return the Spark type of each partition column over all `(path, root)` given: int, bigint, date or string.

    A type that was settled before stays: a value that it can't take is an error, because the same column would have
    another type from this run on. Not so for the columns that the user's schema names (`named`, in any case): their
    type is the user's. A column that was not settled takes the values of `pruned` folders too, by column: what is let
    in later fits. With `on_schema_change` "accept" and "reset" names and types follow what is there now.

    Raises:
        SchemaChangedError: a value does not fit its settled type, or the columns are others.
        SourceError: files of one source have different partition columns.
    """
    values: dict[str, set[str]] = {}
    names: tuple[str, ...] | None = None
    for path, root in paths:
        found = partition_values(path, root)
        if names is None:
            names = tuple(found)
            values = {name: set() for name in names}
        elif tuple(found) != names:
            raise SourceError(
                f"files of one source have different partition columns: {list(names)} and, at {path!r}, {list(found)}. "
                "Nothing was read or changed. Give each layout a context of its own."
            )
        for name, value in found.items():
            values[name].add(value)
    if names is None:
        return dict(settled)  # nothing is there now: what was settled stays
    for name in values.keys() - settled.keys():
        values[name].update(pruned.get(name, ()))
    follows = on_schema_change != "fail"
    if settled and set(names) != set(settled) and not follows:
        raise SchemaChangedError(
            f"the partition columns were {sorted(settled)} in the runs before, and are {sorted(names)} now. Nothing "
            "was read or changed. Read the new layout under a context of its own; or go on with it by "
            "on_schema_change='accept', or read all of it from the beginning by 'reset'."
        )
    free = {name.lower() for name in named}
    return {
        name: _settle(name, seen - {NULL_VALUE}, settled.get(name), is_free=follows or name.lower() in free)
        for name, seen in values.items()
    }


def _settle(name: str, values: set[str], settled: str | None, *, is_free: bool) -> str:
    if settled is not None and not values:
        return settled  # nothing but nulls is there now
    fits = narrowest(values)
    if settled is None or (is_free and not _takes(settled, fits)):
        return fits
    if not _takes(settled, fits):
        example = next(v for v in sorted(values) if not _takes(settled, narrowest({v})))
        raise SchemaChangedError(
            f"partition column {name!r} has been {settled} in the runs before, and the value {example!r} is none. "
            "Nothing was read or changed. Go on with the type that takes all values by on_schema_change='accept', or "
            "read all from the beginning by 'reset'. Name the column in the schema to say its type yourself."
        )
    return settled


def _takes(settled: str, fits: str) -> bool:
    if settled in ("string", fits):
        return True
    return settled == "bigint" and fits == "int"


def narrowest(values: set[str]) -> str:
    """Return the type that takes all of these values, which are no nulls.

    Example:
        >>> narrowest({"1", "02"}), narrowest({"2013-01-31"}), narrowest({"1", "a"})
        ('int', 'date', 'string')
    """
    if not values:
        return "string"
    if all(_INTEGER.fullmatch(v) for v in values):
        return "int" if all(-_INT_MAX - 1 <= int(v) <= _INT_MAX for v in values) else "bigint"
    return "date" if all(_is_date(v) for v in values) else "string"


def _is_date(text: str) -> bool:
    if not _DATE.fullmatch(text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
