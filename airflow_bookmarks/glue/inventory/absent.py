"""Let the import of a transform of Glue Studio say what to do instead, where nobody has a module of that name."""

from __future__ import annotations

import importlib.util
import sys
from importlib.abc import Loader, MetaPathFinder
from typing import TYPE_CHECKING

from airflow_bookmarks.glue.inventory.surface import OF_STUDIO, STUDIO_PREFIX

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


def install() -> None:
    """Let imports of transforms of Glue Studio end with advice; once in a process."""
    if not any(isinstance(finder, StudioFinder) for finder in sys.meta_path):
        sys.meta_path.append(StudioFinder())


class StudioFinder(MetaPathFinder):
    """The last of the finders: a project's own module of such a name is found by one before it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec whose import is an error that says what to do; None for any other module."""
        if not fullname.startswith(STUDIO_PREFIX) or "." in fullname:
            return None
        return importlib.util.spec_from_loader(fullname, _AbsentLoader())


class _AbsentLoader(Loader):
    def exec_module(self, module: ModuleType) -> None:
        """Raise the error about the module.

        Raises:
            ImportError: always.
        """
        raise ImportError(f"{module.__name__}: {OF_STUDIO}. Nothing was read or changed.", name=module.__name__)
