"""Which packages the import of a module loads: its imports where they run, and those of modules that it imports."""

from __future__ import annotations

import ast
import functools
import sys
from typing import TYPE_CHECKING

from tests.syntax import parsed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


def loaded_packages(modules: Iterable[Path], root: Path) -> dict[str, Path]:
    """Return the packages of others that these modules load, each with a module that imports it.

    Args:
        modules: files of Python below `root`.
        root: the folder from which the project's own packages are imported.
    """
    loaded: dict[str, Path] = {}
    ahead = list(modules)
    seen = set(ahead)
    while ahead:
        module = ahead.pop()
        for name in _imports_of(module):
            own = _files_of(name, root)
            if not own and (package := name.partition(".")[0]) not in sys.stdlib_module_names:
                loaded.setdefault(package, module)
            ahead += own - seen
            seen |= own
    return loaded


@functools.cache
def _imports_of(module: Path) -> tuple[str, ...]:
    return tuple(_imported(parsed(module.read_text()).body))


def _imported(body: Iterable[ast.stmt]) -> Iterator[str]:
    """Return the names that statements import as they run; none behind `pytest.importorskip`, which may end there."""
    for node in body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.unparse(node.test):
            yield from _imported([*node.body, *node.orelse])
        elif isinstance(node, ast.Expr) and ast.unparse(node.value).startswith("pytest.importorskip("):
            return


@functools.cache
def _files_of(name: str, root: Path) -> frozenset[Path]:
    """Return the modules of the project that an import of this name loads: with its packages, or none if it is not."""
    parts = name.split(".")
    packages = {root.joinpath(*parts[:count], "__init__.py") for count in range(1, len(parts) + 1)}
    ends = {root.joinpath(*parts[:count]).with_suffix(".py") for count in (len(parts), len(parts) - 1) if count}
    return frozenset(path for path in packages | ends if path.exists())
