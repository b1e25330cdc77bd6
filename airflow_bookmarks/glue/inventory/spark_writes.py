"""Writes by Spark itself: they run here, and the commit of the job knows nothing of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from airflow_bookmarks.glue.inventory.finding import ScriptFinding
from airflow_bookmarks.glue.inventory.source import dotted
from airflow_bookmarks.glue.inventory.surface import Support

if TYPE_CHECKING:
    from airflow_bookmarks.glue.inventory.source import ScriptSource

# What ends a chain that begins with df.write.
ENDS = frozenset({"save", "parquet", "orc", "csv", "json", "text", "xml", "saveAsTable", "insertInto", "jdbc"})
_V2 = ("writeTo", "mergeInto")
_SQL = ("spark.sql", "spark_session.sql", "sparkSession.sql", "sqlContext.sql", "glueContext.sql")
_CHANGES = re.compile(
    r"\s*(?:insert|merge|update|delete|truncate|load|replace\s+table|create\s+(?:or\s+replace\s+)?table\b.*\bselect"
    r"|with\b.*\b(?:insert|merge)\s+(?:into|overwrite))\b",
    re.IGNORECASE | re.DOTALL,
)
_NOTE = (
    "not part of the commit: its rows are visible at once, and a retry writes them again. Write the frame by "
    "glueContext.write_dynamic_frame, or see that a second write of the same rows does no harm"
)


def spark_writes(source: ScriptSource) -> Iterator[ScriptFinding]:
    """Yield the writes of a script that Spark makes by itself."""
    for node, what in writes_in(source, source.tree):
        yield ScriptFinding(node.lineno, Support.WORD, what, _NOTE)


def writes_in(source: ScriptSource, tree: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    """Yield what a part of a script writes by Spark: the expression, and what it is called."""
    ended: set[ast.expr] = set()
    writers: list[ast.Attribute] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            what = _call(source, node)
            if what is not None:
                yield node, what
                ended |= _chain(node)
            if isinstance(node.func, ast.Attribute):
                ended.add(node.func)  # a method `write`, as of an open file, is no writer of Spark
        elif isinstance(node, ast.Attribute) and node.attr == "write" and isinstance(node.ctx, ast.Load):
            writers.append(node)
    # A writer that a variable holds, and which is ended elsewhere.
    yield from ((node, "write") for node in writers if node not in ended)


def _call(source: ScriptSource, call: ast.Call) -> str | None:
    """Return what a call that writes is called; None of any other call."""
    name = dotted(call.func)
    parts = name.split(".")
    if parts[-1] in ENDS and "write" in parts[:-1]:
        return f"write.{parts[-1]}"
    if len(parts) > 1 and parts[-1] in _V2:
        return parts[-1]
    if name.endswith(_SQL) and call.args and _CHANGES.match(_text(source, call.args[0])):
        return "spark.sql"
    return None


def _chain(call: ast.Call) -> set[ast.expr]:
    """Return the expressions down to the beginning of a chain of calls: of `a.b(x).c()` all but x."""
    found: set[ast.expr] = set()
    node: ast.expr = call
    while isinstance(node, ast.Call | ast.Attribute):
        found.add(node)
        node = node.func if isinstance(node, ast.Call) else node.value
    return found


def _text(source: ScriptSource, node: ast.expr) -> str:
    """Return the text of a statement, with `?` in place of what only a run knows."""
    node = source.origin(node)
    if isinstance(node, ast.JoinedStr):
        return "".join(str(each.value) if isinstance(each, ast.Constant) else "?" for each in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(source, node.left) + _text(source, node.right)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return _text(source, node.left)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("format", "strip"):
        return _text(source, node.func.value)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else "?"
