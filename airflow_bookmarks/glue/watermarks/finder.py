"""Find `scripts.helpers.watermarks` where a project has a package `scripts` of its own.

Without such a package the import is found on the path, beside `awsglue`. A project's own package hides that place, and
is not to be hidden in turn: so this finder comes last, and answers for what no other has found, and for nothing else.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

MODULE = "scripts.helpers.watermarks"

_PACKAGE = MODULE.rpartition(".")[0]  # without which the module can't be imported


def install() -> None:
    """Let `scripts.helpers.watermarks` be imported where nobody else has it; once in a process."""
    if not any(isinstance(finder, WatermarksFinder) for finder in sys.meta_path):
        sys.meta_path.append(WatermarksFinder())


class WatermarksFinder(MetaPathFinder):
    """The last of the finders: it is asked for what no other has found."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of the module, or of the package that it lies in; None for anything else."""
        if fullname not in (MODULE, _PACKAGE):
            return None
        return importlib.util.spec_from_loader(fullname, _WatermarksLoader(), is_package=fullname == _PACKAGE)


class _WatermarksLoader(Loader):
    def exec_module(self, module: ModuleType) -> None:
        """Fill the module with what it re-exports; the package stays empty."""
        if module.__name__ == MODULE:
            from airflow_bookmarks.glue.watermarks.table import Watermarks

            vars(module).update(Watermarks=Watermarks, __all__=["Watermarks"])
