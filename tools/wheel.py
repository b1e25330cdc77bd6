"""A look at what goes into a wheel: one without the page would install, and show nothing in Airflow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGE = Path("airflow_bookmarks/plugin/www/dist/main.js")


class PageIsBuilt(BuildHookInterface[Any]):
    """Refuses a wheel without the page; an editable install may do without."""

    PLUGIN_NAME = "page"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Look, before the wheel is made."""
        if version != "editable" and not (Path(self.root) / PAGE).is_file():
            raise FileNotFoundError(f"{PAGE} is not there, so no wheel was made. Call `make page`, then build again.")
