"""Snapshots of a table without Spark: what the tests of the planner share."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from airflow_bookmarks.core.database.dialect import SharedSnapshot
from airflow_bookmarks.core.rules.schema import struct
from airflow_bookmarks.files.opener import open_any_filesystem
from airflow_bookmarks.sources.snapshot.position import SnapshotPlan
from airflow_bookmarks.sources.snapshot.snapshot import ChangeCounts, TableSnapshot, listed

Rows = dict[int, Any]


class JsonSnapshots:
    """Keeps rows as JSON: implements `SnapshotMaker`. `read` returns the rows of the table, by key."""

    shares: SharedSnapshot | None = None

    def __init__(self, read: Callable[[], Rows], **columns: str) -> None:
        self._read, self._columns = read, json.dumps(struct(**(columns or {"id": "integer"})))

    def take(self, uri: str, opening: str | None) -> TableSnapshot:
        rows = self._read()
        Path(uri).mkdir(parents=True)
        (Path(uri) / "rows.json").write_text(json.dumps(list(rows.items())))
        return TableSnapshot(uri, self._columns, len(rows), listed(open_any_filesystem(uri), uri))

    def compare(self, before: TableSnapshot, after: TableSnapshot) -> ChangeCounts:
        then, now = rows_of(before), rows_of(after)
        return ChangeCounts(
            len(now.keys() - then.keys()),
            sum(then[key] != now[key] for key in then.keys() & now.keys()),
            len(then.keys() - now.keys()),
        )


def rows_of(snapshot: TableSnapshot | None) -> Rows:
    """Return the rows of a snapshot; none where there is none."""
    return {} if snapshot is None else dict(json.loads((Path(snapshot.uri) / "rows.json").read_text()))


def changed(plan: SnapshotPlan) -> Sequence[int]:
    """Return the keys that came, changed or went."""
    if plan.is_empty:
        return []
    then, now = rows_of(plan.before), rows_of(plan.after)
    return sorted(key for key in then.keys() | now.keys() if then.get(key, ...) != now.get(key, ...))
