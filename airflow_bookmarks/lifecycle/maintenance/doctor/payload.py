"""Check payloads: whether all bytes that items refer to are there, match their checksums, and are named by an item."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import StateCorruptError, StoreAccessError
from airflow_bookmarks.core.ledger.file_ledger import Ledger
from airflow_bookmarks.files.private_file import wider_mode
from airflow_bookmarks.lifecycle.maintenance.blobs import object_name_in
from airflow_bookmarks.lifecycle.maintenance.doctor.finding import RESTORE, Finding, Severity
from airflow_bookmarks.store.blobs import BlobMissingError
from airflow_bookmarks.store.transitions.collection import POSITION_PREFIX, stored_blobs
from airflow_bookmarks.store.uri import MEMORY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_bookmarks.lifecycle.maintenance.doctor.survey import Survey
    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from airflow_bookmarks.store.stored_item import StoredItem, StoredValue


_REACH = "Give this process access to the object, and look again: more may be wrong."
_LEDGER_START = b'{"blake2b":"'


def examine_payloads(survey: Survey) -> Iterator[Finding]:
    """Find damaged inline bytes, and blobs that are damaged or miss a chunk, those that a ledger names included."""
    seen: dict[str, Finding | None] = {}
    for key, attributes in survey.items.items():
        for name, value in attributes.items():
            for payload in _payloads(value):
                yield from _examine(survey, seen, payload, f"{key.sk}, {name}")
                if name.startswith(POSITION_PREFIX):
                    yield from _examine_ledger(survey, seen, payload, f"{key.sk}, {name}")


def _payloads(value: StoredValue) -> Iterator[StoredItem]:
    if isinstance(value, dict):
        if isinstance(value.get("sha256"), str):
            yield value
            return
        for inner in value.values():
            yield from _payloads(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _payloads(inner)


def _examine(survey: Survey, seen: dict[str, Finding | None], payload: StoredItem, where: str) -> Iterator[Finding]:
    sha256, inline = str(payload["sha256"]), payload.get("inline")
    if isinstance(inline, bytes):
        if hashlib.sha256(inline).hexdigest() != sha256:
            yield _damaged(survey, "the bytes in the item", where)
        return
    if sha256 not in seen:
        seen[sha256] = _examine_blob(survey, sha256, where)
        found = seen[sha256]
        if found is not None:
            yield found


def _examine_blob(survey: Survey, sha256: str, where: str) -> Finding | None:
    place = f"blob {sha256} ({where})"
    try:
        survey.store.blobs.get_named([sha256])
    except BlobMissingError as error:
        return Finding("blob-missing", survey.job, Severity.ERROR, f"{place} {error.what}", where, RESTORE)
    except StateCorruptError:
        return _damaged(survey, place, where)
    except StoreAccessError as error:
        return Finding("blob-unreachable", survey.job, Severity.ERROR, f"{place}: {error}", where, _REACH)
    return None


def _examine_ledger(
    survey: Survey, seen: dict[str, Finding | None], payload: StoredItem, where: str
) -> Iterator[Finding]:
    body = payload.get("inline")
    if not isinstance(body, bytes):
        if seen.get(str(payload["sha256"])) is not None:
            return  # the position itself is damaged, which another finding says
        sha256 = str(payload["sha256"])
        body = survey.store.blobs.get_named([sha256])[sha256]
    if not body.startswith(_LEDGER_START) or hashlib.sha256(body).hexdigest() != payload["sha256"]:
        return
    try:
        segments = Ledger.from_root(body, survey.store.blobs.get_named).segment_ids()
    except StateCorruptError as error:
        yield Finding(
            "ledger-unreadable", survey.job, Severity.ERROR, f"the ledger in {where}: {error}", where, RESTORE
        )
        return
    for sha256 in segments:
        yield from _examine(survey, seen, {"sha256": sha256}, f"{where}, ledger segment")


def _damaged(survey: Survey, what: str, where: str) -> Finding:
    text = f"{what} of {where} don't match their checksum: they were changed from outside"
    return Finding("bytes-damaged", survey.job, Severity.ERROR, text, where, RESTORE)


_LEFT = "'airflow-bookmarks gc' removes it, once it is older than any run lasts; a run at work may still name it."
_LIST = "Give this process the right to list the folder, and look again."


def examine_file(store: BookmarkStore) -> Iterator[Finding]:
    """Find a state file that users other than its owner may read or write."""
    path = store.describe().get("path", MEMORY)
    mode = None if path == MEMORY else wider_mode(path)
    if mode is not None:
        what = f"the state file has the permissions {mode:04o}: others than its owner may read or change it"
        yield Finding("file-open", "", Severity.NOTICE, what, path, f"If that is not meant: chmod 600 {path}*")


def examine_objects(store: BookmarkStore) -> Iterator[Finding]:
    """Find objects that no item names. This lists them, and scans the whole table."""
    try:
        uris = store.blobs.objects()  # before the items: an object is put before the item that names it
    except StoreAccessError as error:
        yield Finding("objects-unreachable", "", Severity.WARNING, str(error), str(store.blobs.state_uri), _LIST)
        return
    blobs = stored_blobs(store) if uris else []
    named = {object_name_in(blob.uri) for blob in blobs if blob.uri is not None}
    for uri in uris:
        if object_name_in(uri) not in named:
            what = f"the object {uri} is named by no item of the table"
            yield Finding("object-orphaned", "", Severity.NOTICE, what, uri, _LEFT)
