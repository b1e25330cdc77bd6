"""Targets that a script names itself: whatever arguments a task gives it, it writes there, or removes what is there."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_bookmarks.glue.inventory.spark_writes import ENDS as SPARK_ENDS
from airflow_bookmarks.glue.inventory.surface import form_of

if TYPE_CHECKING:
    from airflow_bookmarks.glue.inventory.source import ScriptSource

_SPARK_WRITES = SPARK_ENDS - {"jdbc"}  # whose first argument is no target
# Parameters of Spark's writes that hold the target.
_SPARK_TARGET = ("path", "name", "tableName")
_OPTION_DICTS = ("connection_options", "additional_options")
_OF_FRAME = ("connection_type", "connection_options")  # of the method `write` of a DynamicFrame


@dataclass(frozen=True, slots=True)
class FixedTarget:
    """A path or table that is written down in a script: the line, the call, and the target."""

    line: int
    what: str
    target: str


def fixed_targets(source: ScriptSource) -> Iterator[FixedTarget]:
    """Yield the targets that a script names itself, in the order of the text."""
    for name, call in source.calls():
        last = name.rpartition(".")[2]
        target = _target_of(source, name, last, call)
        if target:
            yield FixedTarget(call.lineno, ".".join(name.split(".")[-2:]) if last.startswith("from_") else last, target)


def _target_of(source: ScriptSource, name: str, last: str, call: ast.Call) -> str | None:
    form = form_of(name)
    if form is not None and form.does in ("write", "purge"):
        given = source.arguments(call, form.parameters)
        return _table(source, given, "database", "table_name") or _path(source, given) or _database_table(source, given)
    if last == "setCatalogInfo":
        names = ("catalogDatabase", "catalogTableName")
        return _table(source, source.arguments(call, names), *names)
    if last == "write":  # of a DynamicFrame; any other has no such options
        given = source.arguments(call, _OF_FRAME)
        return _path(source, given) or _database_table(source, given)
    if last in _SPARK_WRITES and "write" in name.split("."):
        given = source.arguments(call, _SPARK_TARGET[:1])
        return next((found for name in _SPARK_TARGET if (found := _text(source, given.get(name)))), None)
    return None


def _table(source: ScriptSource, given: Mapping[str, ast.expr], database: str, table: str) -> str | None:
    names = [_text(source, given.get(name)) for name in (database, table)]
    return ".".join(name for name in names if name) if all(names) else None


def _path(source: ScriptSource, given: Mapping[str, ast.expr]) -> str | None:
    named = next((found for name in ("path", "s3_path") if (found := _text(source, given.get(name)))), None)
    return named or _options(source, given).get("path")


def _database_table(source: ScriptSource, given: Mapping[str, ast.expr]) -> str | None:
    """Return the table of a database, where both the connection and the table are written down."""
    options = _options(source, given)
    connection = _text(source, given.get("catalog_connection")) or options.get("url") or options.get("connectionName")
    return f"{connection} {options['dbtable']}" if connection and "dbtable" in options else None


def _options(source: ScriptSource, given: Mapping[str, ast.expr]) -> dict[str, str]:
    dicts = [source.value(given.get(name)) for name in _OPTION_DICTS]
    pairs = [pair for each in dicts if isinstance(each, dict) for pair in each.items()]
    return {key: value for key, value in pairs if isinstance(key, str) and isinstance(value, str)}


def _text(source: ScriptSource, node: ast.expr | None) -> str | None:
    value = source.value(node)
    return value if isinstance(value, str) else None
