"""Errors that a script swallows around its reads and writes, and then goes on to its commit."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from airflow_bookmarks.glue.inventory.finding import ScriptFinding
from airflow_bookmarks.glue.inventory.source import dotted
from airflow_bookmarks.glue.inventory.spark_writes import writes_in
from airflow_bookmarks.glue.inventory.surface import Support, form_of

if TYPE_CHECKING:
    from airflow_bookmarks.glue.inventory.source import ScriptSource

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_EXITS = frozenset({"sys.exit", "exit", "quit", "os._exit", "os.abort"})
_OF_SINKS = frozenset({"getFrame", "writeFrame"})
_NOTE = (
    "an error of the script's own between read and write that is swallowed here does not keep job.commit() from "
    "committing: what was read counts as read. Raise it again: spark.bookmarks.on_unused=error finds only input that "
    "no action has read, and one that failed counts as well"
)


def swallowed_errors(source: ScriptSource, jobs: Collection[str]) -> Iterator[ScriptFinding]:
    """Yield where a script catches the errors of its reads and writes, and goes on.

    Not where all its commits lie in the very block, as then an error skips them.

    Args:
        source: the script.
        jobs: the names of its `Job`.
    """
    commits = {
        call for name, call in source.calls() if name.endswith(".commit") and name.removesuffix(".commit") in jobs
    }
    script = _Script(source, commits)
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Try) and script.handles_data(node.body) and not script.holds_commits(node):
            ends_by_return = script.returns_before_commits(node)
            for handler in node.handlers:
                if not _ends(handler.body, ends_by_return):
                    yield ScriptFinding(handler.lineno, Support.WORD, _named(handler), _NOTE)
        elif isinstance(node, ast.With | ast.AsyncWith) and _suppresses(node) and script.handles_data(node.body):
            yield ScriptFinding(node.lineno, Support.WORD, "suppress", _NOTE)


class _Script:
    """What the parts of a script do with data."""

    def __init__(self, source: ScriptSource, commits: Collection[ast.Call]) -> None:
        self._source, self._commits = source, commits
        self._functions: Mapping[str, Sequence[ast.AST]] = _functions(source.tree)

    def handles_data(self, body: Sequence[ast.stmt]) -> bool:
        """Whether statements read or write, or name a function of the script that does."""
        seen: set[str] = set()
        waiting: list[ast.AST] = list(body)
        while waiting:
            part = waiting.pop()
            if self._handles_data_itself(part):
                return True
            named = {name for node in ast.walk(part) if (name := _function_named(node))} - seen
            seen |= named
            waiting += [function for name in named for function in self._functions.get(name, ())]
        return False

    def _handles_data_itself(self, part: ast.AST) -> bool:
        for node in ast.walk(part):
            if isinstance(node, ast.Call):
                name = dotted(node.func)
                form = form_of(name)
                if (form is not None and form.does) or name.rpartition(".")[2] in _OF_SINKS:
                    return True
        return next(writes_in(self._source, part), None) is not None

    def holds_commits(self, node: ast.Try) -> bool:
        """Whether an error in the block skips all commits of the script."""
        inside = {each for part in (*node.body, *node.orelse) for each in ast.walk(part)}
        return bool(self._commits) and all(commit in inside for commit in self._commits)

    def returns_before_commits(self, node: ast.Try) -> bool:
        """Whether a return from the handler leaves the function that makes all commits."""
        around = [
            each
            for functions in self._functions.values()
            for each in functions
            if node in (inside := set(ast.walk(each))) and all(commit in inside for commit in self._commits)
        ]
        return bool(self._commits) and bool(around)


def _functions(tree: ast.AST) -> Mapping[str, Sequence[ast.AST]]:
    found: dict[str, list[ast.AST]] = {}
    for node in ast.walk(tree):
        if isinstance(node, _FUNCTIONS):
            found.setdefault(node.name, []).append(node)
    return found


def _function_named(node: ast.AST) -> str | None:
    """Return the name by which an expression may mean a function: called as a method, or handed on as well."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.id if isinstance(node, ast.Name) else None


def _ends(body: Sequence[ast.stmt], by_return: bool) -> bool:
    """Whether statements always end the run, or by a return the function that commits it."""
    return any(_always_ends(statement, by_return) for statement in body)


def _always_ends(statement: ast.stmt, by_return: bool) -> bool:
    match statement:
        case ast.Raise():
            return True
        case ast.Return():
            return by_return
        case ast.Expr(value=ast.Call(func=func)):
            return dotted(func) in _EXITS
        case ast.If(body=body, orelse=orelse):
            return _ends(body, by_return) and _ends(orelse, by_return)
        case ast.With(body=body) | ast.Try(finalbody=body):
            return _ends(body, by_return)
    return False


def _named(handler: ast.ExceptHandler) -> str:
    return "except" if handler.type is None else f"except {ast.unparse(handler.type)}"


def _suppresses(node: ast.With | ast.AsyncWith) -> bool:
    return any(
        isinstance(item.context_expr, ast.Call) and dotted(item.context_expr.func).rpartition(".")[2] == "suppress"
        for item in node.items
    )
