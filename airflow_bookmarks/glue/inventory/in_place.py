"""A folder or table that a script reads with a context, purges and writes: with enable a run refuses that."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from airflow_bookmarks.glue.inventory.finding import ScriptFinding
from airflow_bookmarks.glue.inventory.surface import Support, form_of

if TYPE_CHECKING:
    from airflow_bookmarks.glue.inventory.source import ScriptSource

_NOTE = (
    "what is purged here is also read with a transformation_ctx, and written: with enable that is an error, as the job "
    "would read its own output. Read it without transformation_ctx, whole: purge and write then take effect together"
)


def rewritten_in_place(source: ScriptSource) -> Iterator[ScriptFinding]:
    """Yield the purges of what the script also reads with a context, and writes, as far as both are written down."""
    places: dict[str, set[str]] = {"read": set(), "write": set(), "purge": set()}
    purges: list[tuple[int, str, set[str]]] = []
    for name, call in source.calls():
        form = form_of(name)
        if form is None or form.does not in places:
            continue
        given = source.arguments(call, form.parameters)
        if form.does == "read" and not _has_context(source, given):
            continue
        found = _places(source, given)
        places[form.does] |= found
        if form.does == "purge":
            purges.append((call.lineno, name.rpartition(".")[2], found))
    for line, what, found in purges:
        if found & places["read"] & places["write"]:
            yield ScriptFinding(line, Support.WORD, what, _NOTE)


def _has_context(source: ScriptSource, given: Mapping[str, ast.expr]) -> bool:
    return "transformation_ctx" in given and source.value(given["transformation_ctx"]) not in ("", None)


def _places(source: ScriptSource, given: Mapping[str, ast.expr]) -> set[str]:
    """Return the table, or the paths, that a call names: those that only a run knows by their expression."""
    if "database" in given and "table_name" in given:
        return {f"{_spelled(source, given['database'])} {_spelled(source, given['table_name'])}"}
    nodes = [given[name] for name in ("s3_path", "path") if name in given]
    options = source.origin(given["connection_options"]) if "connection_options" in given else None
    for key, node in zip(options.keys, options.values, strict=True) if isinstance(options, ast.Dict) else ():
        if source.value(key) in ("path", "paths"):
            several = source.origin(node)
            nodes += several.elts if isinstance(several, ast.List | ast.Tuple) else [several]
    return {_spelled(source, node) for node in nodes}


def _spelled(source: ScriptSource, node: ast.expr) -> str:
    """Return one spelling of a place: its text where it is written down, else its expression."""
    value = source.value(node)
    if not isinstance(value, str):
        return ast.unparse(source.origin(node))
    scheme, sign, rest = value.partition("://")
    return f"{'s3' if scheme in ('s3a', 's3n') else scheme}{sign}{rest}".rstrip("/")
