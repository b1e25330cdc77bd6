"""Folders of the demo: all that it writes lies below one of them, which is emptied when it starts."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
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

    @classmethod
    @contextmanager
    def claimed(cls, root: Path) -> Iterator[Folders]:
        """Yield the folders below `root`, empty, for the block alone.

        Raises:
            RuntimeError: another process is at work there.
        """
        root.parent.mkdir(parents=True, exist_ok=True)
        with root.with_name(f".{root.name}.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise RuntimeError(
                    f"another demo is at work in {root}; nothing was touched. Wait, or end it"
                ) from error
            yield cls.make(root)

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
    def journal(self) -> Path:
        return self.data / "journal"

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
