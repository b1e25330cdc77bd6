"""A driver process for the kill tests: one run of the copy job, without Spark, on an SQLite store.

python -m tests.lifecycle.driver <root> <attempt> <append|overwrite_partitions> <fault> [<job> [<upstream>]]
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.sinks.staging import Mode
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.chaos.kill import kill_hook
from tests.lifecycle.shop import Shop


def main(root: str, attempt: str, mode: str, fault: str, job: str = "copy", upstream: str | None = None) -> None:
    """Make one run as attempt `attempt` of the execution `task`, and die at `fault`."""
    store = BookmarkStore(SqliteTable(Path(root) / "bookmarks.db"), "test")
    environment = replace(RunEnvironment(), at=kill_hook(fault, int(attempt)))
    shop = Shop(Path(root), store, environment, Mode(mode))
    shop.run(job, run_id="task", attempt=int(attempt), upstream=upstream)


if __name__ == "__main__":
    main(*sys.argv[1:])
