"""Facts of the state table as the command line shows them: where it is, and how it is kept."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import StoreAccessError
from airflow_bookmarks.core.text.escaping import escaped

if TYPE_CHECKING:
    from airflow_bookmarks.store.bookmark_store import BookmarkStore


def table_details(store: BookmarkStore, *, with_lost: bool = False) -> dict[str, Any]:
    """Return where the table is, and in DynamoDB its key, deletion protection, stream and tags.

    `settings` says why where this identity may not see them; `with_lost`: `lost` lists what the table was made with
    and does not have any more, which stderr warns of too.
    """
    details: dict[str, Any] = dict(store.describe())
    try:
        found = store.table_settings()
    except StoreAccessError as error:
        return {**details, "settings": f"not known: {error}"}
    if found is None:
        return details
    details |= {
        "kms_key": found.kms_key or "DynamoDB's own",
        "deletion_protection": found.deletion_protection,
        "stream": found.stream,
        "tags": "not known" if found.tags is None else dict(found.tags),
    }
    if with_lost:
        details["lost"] = store.lost_settings(found)
        if details["lost"]:
            _warn(details["lost"])
    return details


def _warn(lost: list[str]) -> None:
    told = escaped(
        f"warning: the table was created with {', '.join(lost)}, and no longer has it. Restore it in AWS (aws "
        "dynamodb update-table, or tag-resource); if this was intended, run 'airflow-bookmarks init' with the settings "
        "it should have."
    )
    print(told, file=sys.stderr)
