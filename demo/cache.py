"""What the demo makes once and keeps for every clone: `$XDG_CACHE_HOME/airflow-bookmarks` (`~/.cache`)."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder(name: str) -> Path:
    """Return a folder of the user's cache, made where it was absent."""
    root = os.environ.get("XDG_CACHE_HOME")
    folder = (Path(root) if root else Path.home() / ".cache") / "airflow-bookmarks" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder
