"""Keys of an SQLite table of which a run may read a part."""

from __future__ import annotations

from airflow_bookmarks.core.selection.bound import Bound
from airflow_bookmarks.core.selection.reason import OVER_BOUND
from airflow_bookmarks.sources.source import PlanInput
from tests.lifecycle.sqlite_keys import KeyPlan, KeySource, keys_of


class BoundedKeys(KeySource):
    """Keys of which a run may read a part: so many as the bound of its loop says."""

    bounds = frozenset({"max_rows"})

    def __init__(self, database: str, most: int | None = None) -> None:
        super().__init__(database)
        self.most = most

    def bounded(self, bound: Bound) -> BoundedKeys:
        return BoundedKeys(self.database, bound.max_rows)

    def plan(self, found: PlanInput) -> KeyPlan:
        whole = super().plan(found)
        keys = keys_of(whole)
        if self.most is None or len(keys) <= self.most:
            return whole
        left = len(keys) - self.most
        return KeyPlan(self.database, whole.after, keys[self.most - 1], self.most, {OVER_BOUND: left}, has_more=True)
