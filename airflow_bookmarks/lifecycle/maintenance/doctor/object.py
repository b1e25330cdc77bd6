"""Where the state lies: whether each object under `state_uri` is named by an item, and who may read a file of state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import StoreAccessError
from airflow_bookmarks.files.private_file import wider_mode
from airflow_bookmarks.lifecycle.maintenance.doctor.finding import Finding, Severity
from airflow_bookmarks.lifecycle.maintenance.retention import object_name_in
from airflow_bookmarks.store.transitions.collection import stored_blobs
from airflow_bookmarks.store.uri import MEMORY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_bookmarks.store.bookmark_store import BookmarkStore

_LEFT = "'airflow-bookmarks gc' removes it, once it is older than any run lasts; a run at work may still name it."
_REACH = "Give this process the right to list the folder, and look again."


def examine_file(store: BookmarkStore) -> Iterator[Finding]:
    """Find a state file that others than its owner may read or write."""
    path = store.table.describe().get("path", MEMORY)
    mode = None if path == MEMORY else wider_mode(path)
    if mode is not None:
        what = f"the state file has the permissions {mode:04o}: others than its owner may read or change it"
        yield Finding("file-open", "", Severity.NOTICE, what, path, f"If that is not meant: chmod 600 {path}*")


def examine_objects(store: BookmarkStore) -> Iterator[Finding]:
    """Find objects that no item names. This lists them, and scans the whole table."""
    try:
        uris = store.blobs.objects()  # before the items: an object is put before the item that names it
    except StoreAccessError as error:
        yield Finding("objects-unreachable", "", Severity.WARNING, str(error), str(store.blobs.state_uri), _REACH)
        return
    blobs = stored_blobs(store) if uris else []
    named = {object_name_in(blob.uri) for blob in blobs if blob.uri is not None}
    for uri in uris:
        if object_name_in(uri) not in named:
            what = f"the object {uri} is named by no item of the table"
            yield Finding("object-orphaned", "", Severity.NOTICE, what, uri, _LEFT)
