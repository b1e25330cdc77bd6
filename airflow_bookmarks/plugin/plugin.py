"""The plugin: what Airflow's plugin manager finds. It is imported by every Airflow component, so it imports little."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from airflow.plugins_manager import AirflowPlugin

URL_PREFIX = "/bookmarks"


class BookmarksPlugin(AirflowPlugin):
    """Serves the bookmarks of one connection under `/bookmarks` of the API server."""

    name = "bookmarks"

    @cached_property
    def fastapi_apps(self) -> list[Any]:  # type: ignore[override]  # a list to whoever reads it of an instance
        """The app that the API server mounts; only there it is asked for, and FastAPI imported."""
        from airflow_bookmarks.plugin.app import create_bookmarks_app

        return [{"app": create_bookmarks_app(), "url_prefix": URL_PREFIX, "name": "Bookmarks"}]
