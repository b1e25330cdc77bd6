"""Which module of a package imports which, wherever the import stands, and the circles among them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tests.syntax import parsed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

Graph = dict[str, set[str]]


def import_graph(package: Path) -> Graph:
    """Return the modules that each module of a package imports, also within functions and for types alone.

    A name that is imported from a package counts as an import of that package, unless it is a module of it.
    """
    paths = {_name(path, package): path for path in package.rglob("*.py") if "node_modules" not in path.parts}
    return {name: set(_imported(name, path, paths)) - {name} for name, path in paths.items()}


def circles_of(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the modules of each circle: those that reach each other."""
    reached = {name: _reached(graph, name) for name in graph}
    circles = {frozenset(other for other in names if name in reached[other]) for name, names in reached.items()}
    return sorted(sorted(circle) for circle in circles if circle)


def _name(path: Path, package: Path) -> str:
    return ".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__")


def _imported(name: str, path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    for node in ast.walk(parsed(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            origin = _origin(name, path, node)
            for alias in node.names:
                inner = f"{origin}.{alias.name}"
                if inner in known:
                    yield inner
                elif origin in known:
                    yield origin


def _origin(name: str, path: Path, node: ast.ImportFrom) -> str:
    """Return the absolute name of the module that a `from` names."""
    if not node.level:
        return node.module or ""
    up = node.level - (path.name == "__init__.py")
    parts = name.split(".")
    return ".".join([*parts[: len(parts) - up], *([node.module] if node.module else [])])


def _reached(graph: Mapping[str, set[str]], start: str) -> set[str]:
    """Return what a module imports, directly and through others; itself only by a circle."""
    reached: set[str] = set()
    ahead = [start]
    while ahead:
        for other in graph[ahead.pop()] - reached:
            reached.add(other)
            ahead.append(other)
    return reached
