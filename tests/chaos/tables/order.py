"""What a process of these tests is told to do."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from airflow_bookmarks.databases.login import DatabaseLogin
from tests.chaos.real.order import CommitPath, Order

APPENDED, UPSERTED = "all_lines", "newest"  # the tables, and the outputs that go to them
NOT_COMMITTED = 3  # how a worker ends that finds no commit


@dataclass(frozen=True, slots=True)
class TablesOrder(Order):
    """One attempt of the job, as a driver or as the worker after it: from `<root>/raw` to a folder and two tables.

    `fault` is the point at which it kills itself, when it comes there for the time `nth`, from 1.
    """

    warehouse: DatabaseLogin = field(kw_only=True)
    nth: int = 1
    is_worker: bool = False

    @classmethod
    def from_text(cls, text: str) -> TablesOrder:
        """Return the order that `to_text` wrote."""
        given = json.loads(text)
        read = {"path": CommitPath(given["path"]), "holds": tuple(given["holds"])}
        return cls(**{**given, **read, "warehouse": DatabaseLogin(**given["warehouse"])})
