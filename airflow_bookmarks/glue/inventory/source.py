"""The source of one script: its imports and its calls, with what can be known of arguments without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

UNKNOWN: Any = object()  # a value that only a run can tell


@dataclass(frozen=True, slots=True)
class Import:
    """One imported module, with the names taken from it (none: the module itself; "*": all)."""

    line: int
    module: str
    names: tuple[str, ...] = ()


class ScriptSource:
    """The parsed source of a script.

    Args:
        text: the source, in Python 3.

    Raises:
        SyntaxError: it is none.
    """

    def __init__(self, text: str) -> None:
        self.tree = ast.parse(text)
        self._assigned = _assigned_once(self.tree)

    def imports(self) -> Iterator[Import]:
        """Yield what is imported, in the order of the text."""
        for node in _nodes(self.tree):
            if isinstance(node, ast.Import):
                yield from (Import(node.lineno, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield Import(node.lineno, node.module, tuple(alias.name for alias in node.names))

    def calls(self) -> Iterator[tuple[str, ast.Call]]:
        """Yield each call with the dotted name of what is called, in the order of the text."""
        for node in _nodes(self.tree):
            if isinstance(node, ast.Call) and (name := dotted(node.func)):
                yield name, node

    def attributes(self) -> Iterator[tuple[str, int]]:
        """Yield the dotted name and the line of each attribute that is looked up."""
        for node in _nodes(self.tree):
            if isinstance(node, ast.Attribute) and (name := dotted(node)):
                yield name, node.lineno

    def made_by(self, maker: str) -> set[str]:
        """Return the names that hold the result of a call of `maker`: a class, or one of its methods."""
        names: set[str] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call):
                called = dotted(node.value.func).split(".")
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if maker in called:
                    names |= {name for target in targets if (name := dotted(target))}
        return names

    def arguments(self, call: ast.Call, parameters: Sequence[str]) -> dict[str, ast.expr]:
        """Return the arguments of a call by the names of its parameters; those behind `*` and `**` are not known."""
        if parameters[:1] == ("catalog_id",) and not self._begins_with_catalog(call):
            parameters = parameters[1:]
        given = dict(zip(parameters, call.args, strict=False))
        return given | {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}

    def _begins_with_catalog(self, call: ast.Call) -> bool:
        """Whether a call of `purge_table` names its catalog first; scripts also write it without, as in Scala."""
        if len(call.args) > 2 and isinstance(self.value(call.args[2]), str):
            return True
        return bool(call.args) and isinstance(call.args[0], ast.Constant) and call.args[0].value is None

    def value(self, node: ast.expr | None) -> Any:
        """Return the value of an expression, `UNKNOWN` where only a run can tell; None for none."""
        if node is None:
            return None
        if isinstance(node, ast.Name):
            known = self.origin(node)
            return UNKNOWN if any(isinstance(each, ast.Name) for each in ast.walk(known)) else self.value(known)
        if isinstance(node, ast.Dict):
            return {
                self.value(key): self.value(value) for key, value in zip(node.keys, node.values, strict=True) if key
            }
        if isinstance(node, ast.List | ast.Tuple):
            return [each for element in node.elts for each in self._elements(element)]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return _sum(self.value(node.left), self.value(node.right))
        return node.value if isinstance(node, ast.Constant) else UNKNOWN

    def _elements(self, node: ast.expr) -> list[Any]:
        """Return the values that an element of a list brings: several behind a star."""
        if not isinstance(node, ast.Starred):
            return [self.value(node)]
        several = self.value(node.value)
        return several if isinstance(several, list) else [UNKNOWN]

    def origin(self, node: ast.expr) -> ast.expr:
        """Return what a name stands for, if it is assigned once; else the expression itself."""
        return self._assigned.get(node.id, node) if isinstance(node, ast.Name) else node


def _sum(left: Any, right: Any) -> Any:
    """Return the sum of two values; of a list and what is not known, the list with something that is not known."""
    if isinstance(left, str) and isinstance(right, str):
        return left + right
    if any(isinstance(each, list) for each in (left, right)):
        return [value for each in (left, right) for value in (each if isinstance(each, list) else [UNKNOWN])]
    return UNKNOWN


def dotted(node: ast.expr) -> str:
    """Return the name of an expression: of `a.b(...).c`, "a.b.c"; empty where it begins with no name.

    Example:
        >>> dotted(ast.parse("GlueContext(sc).spark_session", mode="eval").body)
        'GlueContext.spark_session'
    """
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attr):
            before = dotted(value)
            return f"{before}.{attr}" if before else attr
        case ast.Call(func=func):
            return dotted(func)
    return ""


def _nodes(tree: ast.AST) -> list[Any]:
    found = [node for node in ast.walk(tree) if hasattr(node, "lineno")]
    return sorted(found, key=lambda node: (node.lineno, node.col_offset))


def _assigned_once(tree: ast.AST) -> Mapping[str, ast.expr]:
    """Return what names stand for, as far as each is assigned once."""
    assigned: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    assigned.setdefault(target.id, []).append(node.value)
        elif isinstance(node, ast.AugAssign | ast.For) and isinstance(node.target, ast.Name):
            assigned.setdefault(node.target.id, []).extend([node.target, node.target])
    return {name: values[0] for name, values in assigned.items() if len(values) == 1}
