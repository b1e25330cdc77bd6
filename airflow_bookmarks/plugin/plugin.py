"""The plugin: what Airflow's plugin manager finds. It is imported by every Airflow component, so it imports little."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from airflow.plugins_manager import AirflowPlugin

from airflow_bookmarks.plugin.bundle import BUNDLE, STATIC, URL_PREFIX
from airflow_bookmarks.version import __version__

ROUTE = "bookmarks"  # of the page itself: /plugin/bookmarks
_NAME = "Bookmarks"


def react_app(destination: str) -> dict[str, str]:
    """Return the page as an entry for Airflow's UI, for one of the places where it can appear.

    The address is relative, so that it holds below a base path. It differs from place to place: Airflow before 3.3.2
    finds nothing in a module that it has already loaded. The version in it makes browsers fetch a new one.
    """
    url = f"{URL_PREFIX.strip('/')}{STATIC}/{BUNDLE.name}?v={__version__}&at={destination}"
    icon = f"{URL_PREFIX.strip('/')}{STATIC}/bookmark"
    place = {"category": "browse"} if destination == "nav" else {}
    return {
        "name": _NAME,
        "bundle_url": url,
        "destination": destination,
        "url_route": ROUTE if destination == "nav" else f"{ROUTE}_{destination}",
        "icon": f"{icon}.svg",
        "icon_dark_mode": f"{icon}-dark.svg",
        **place,
    }


class BookmarksPlugin(AirflowPlugin):
    """Serves the bookmarks of one connection under `/bookmarks` of the API server, and shows them in Airflow's UI."""

    name = "bookmarks"
    react_apps = [react_app(place) for place in ("nav", "dag", "task")] if BUNDLE.is_file() else []

    @cached_property
    def fastapi_apps(self) -> list[Any]:  # type: ignore[override]  # a list to whoever reads it of an instance
        """The app that the API server mounts; only the API server requests it, which imports FastAPI."""
        from airflow_bookmarks.plugin.app import create_bookmarks_app

        return [{"app": create_bookmarks_app(), "url_prefix": URL_PREFIX, "name": _NAME}]
