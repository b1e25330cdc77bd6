"""What the tests of a transfer do with a document and with what it holds."""

from __future__ import annotations

import json
from typing import Any

from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.store.table import Attributes

WHY: dict[str, Any] = {"who": "ann", "reason": "a new table"}


def through_json(document: Any) -> Any:
    return json.loads(json.dumps(document))


def items(store: BookmarkStore, job: str) -> dict[str, Attributes]:
    return {key.sk: item for key, item in store.table.query(store.keys(job).partition)}
