"""Folders of the demo: everything it writes lies in `build/demo`, which is emptied when it starts."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Folders:
    """Where what lies, below one root."""

    root: Path

    @classmethod
    def make(cls, root: Path) -> Folders:
        """Return the folders below `root`, empty."""
        if root.exists():
            shutil.rmtree(root)
        folders = cls(root)
        for folder in (folders.data, folders.logs, folders.airflow):
            folder.mkdir(parents=True)
        return folders

    @property
    def data(self) -> Path:
        """What the DAGs know as `flights_data`."""
        return self.root / "data"

    @property
    def raw(self) -> Path:
        return self.data / "raw" / "flights"

    @property
    def clean(self) -> Path:
        return self.data / "clean" / "flights"

    @property
    def delays(self) -> Path:
        return self.data / "delays"

    @property
    def airflow(self) -> Path:
        return self.root / "airflow"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def bookmarks(self) -> Path:
        """The state store, where that is SQLite."""
        return self.root / "bookmarks.db"

    @property
    def passwords(self) -> Path:
        """Who may log in to the Airflow that `up` starts."""
        return self.root / "passwords.json"

    @property
    def pid_file(self) -> Path:
        return self.root / "up.json"


def dags() -> Path:
    """Return the folder of the example DAGs."""
    return PROJECT / "dags_examples"
