"""The document that holds exported bookmarks: its values as JSON, its checksums, and what reads and checks it.

The document, format 1:

    {"format": 1, "exported_at": ..., "namespace": ..., "package_version": ..., "table_made_at": ...,
     "jobs": {"<job>": {"index": {...}, "aliases": [...], "items": {"HEAD": {...}, "RUN#...": {...}}, "sha256": ...}},
     "blobs": {"<sha256>": "<base64>"}, "artifacts": {"<job>": ["<URI>", ...]},
     "states": {"<job>": {"<name>": "<JSON text>"}}}

Items stand under their sort keys, with their attributes by name, as in the table. Bytes are `{"$base64": "..."}`; a map
of which a name begins with `$` is `{"$map": {...}}`. `sha256` of a job is that of the JSON of its index, aliases and
items, names in alphabetical order, without blanks, ASCII; a blob is named by the sha256 of its bytes. `artifacts`
names the folders that belong to positions, which stay where they are; `states` is what people see of `job.state`. An
import reads neither. Side records stay where they are: no run reads them.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import DocumentError, StoreError
from airflow_bookmarks.core.job import check_name
from airflow_bookmarks.core.ledger.file_ledger import Ledger
from airflow_bookmarks.store.codec import item
from airflow_bookmarks.store.stored_item import item_bytes
from airflow_bookmarks.store.transitions.collection import holds_positions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.store.stored_item import IndexEntry, StoredItem, StoredValue

FORMAT = 1
LEDGER_START = b'{"blake2b":"'

_BYTES, _MAP = "$base64", "$map"
_AGAIN = "Nothing was imported. Export again."
_NOT_OURS = (
    "Nothing was imported. It has to be what 'airflow-bookmarks export' wrote, by the same version or an earlier one."
)


@dataclass(frozen=True, slots=True)
class DocumentPart:
    """One job of a document, read."""

    sha256: str
    head: Head
    index: IndexEntry
    aliases: tuple[str, ...]
    items: Mapping[str, StoredItem]


def read_document(document: Any) -> tuple[dict[str, DocumentPart], dict[str, bytes]]:
    """Return the jobs and the blobs of an exported document, all of it checked.

    Raises:
        DocumentError: it is damaged, incomplete, or of another format.
    """
    if not isinstance(document, Mapping):
        raise DocumentError(f"the document is no JSON object but a {type(document).__name__}. {_NOT_OURS}")
    if document.get("format") != FORMAT or isinstance(document["format"], bool):
        raise DocumentError(
            f"the document has format {document.get('format')!r}, and this version knows {FORMAT}. {_NOT_OURS}"
        )
    try:
        jobs = {check_name("job", job): _checked_part(job, part) for job, part in document["jobs"].items()}
        blobs = {sha256: base64.b64decode(text, validate=True) for sha256, text in document["blobs"].items()}
        for sha256, body in blobs.items():
            if hashlib.sha256(body).hexdigest() != sha256:
                raise DocumentError(f"the blob {sha256} does not match its checksum. {_AGAIN}")
        _check_complete(jobs, blobs)
    except DocumentError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError, StoreError) as error:
        raise DocumentError(f"the document can't be read ({type(error).__name__}: {error}). {_AGAIN}") from error
    return jobs, blobs


def _checked_part(job: str, part: Mapping[str, Any]) -> DocumentPart:
    content = {name: part[name] for name in ("index", "aliases", "items")}
    if checksum_of(content) != part["sha256"]:
        raise DocumentError(f"job {job!r} does not match its checksum. Nothing was imported. Export again.")
    items = {sk: of_json(value) for sk, value in part["items"].items()}
    index = of_json(part["index"])
    if not isinstance(index, dict) or not all(isinstance(value, dict) for value in items.values()):
        raise DocumentError(f"job {job!r} has an item that is no map. Nothing was imported. Export again.")
    attributes: dict[str, StoredItem] = {sk: value for sk, value in items.items() if isinstance(value, dict)}
    for sk, value in attributes.items():
        item_bytes(job, sk, value)  # what a table would refuse half-way
    aliases = tuple(check_name("job", name) for name in part["aliases"])
    return DocumentPart(part["sha256"], item.head_of(attributes["HEAD"]), index, aliases, attributes)


def _check_complete(jobs: Mapping[str, DocumentPart], blobs: Mapping[str, bytes]) -> None:
    for job, part in jobs.items():
        for attributes in part.items.values():
            for name, value in attributes.items():
                for payload in payloads_in(value):
                    missing = [sha256 for sha256 in _named_by(name, payload, blobs) if sha256 not in blobs]
                    if missing:
                        raise DocumentError(
                            f"job {job!r} needs the blob {missing[0]}, and the document lacks it. Nothing was "
                            "imported. Export again."
                        )


def _named_by(name: str, payload: StoredItem, blobs: Mapping[str, bytes]) -> Iterator[str]:
    """Yield the blobs that a payload in the attribute `name` needs."""
    stored = item.payload_of(payload)
    if stored.inline is None:
        yield stored.sha256
    body = blobs.get(stored.sha256, b"") if stored.inline is None else stored.inline
    if holds_positions(name) and body.startswith(LEDGER_START):
        yield from Ledger.from_root(body, lambda names: {one: blobs[one] for one in names}).segment_ids()


# ---- values as JSON


def to_json(value: StoredValue) -> Any:
    """Return a value of an item as the document has it."""
    match value:
        case bytes():
            return {_BYTES: base64.b64encode(value).decode()}
        case list():
            return [to_json(element) for element in value]
        case dict():
            plain = {name: to_json(element) for name, element in value.items()}
            return {_MAP: plain} if any(name.startswith("$") for name in value) else plain
    return value


def of_json(value: Any) -> StoredValue:
    """Return a value of an item from what the document has of it.

    Raises:
        DocumentError: no item has such a value.
    """
    match value:
        case list():
            return [of_json(element) for element in value]
        case dict() if value.keys() == {_BYTES}:
            return base64.b64decode(value[_BYTES], validate=True)
        case dict():
            inner = value[_MAP] if value.keys() == {_MAP} else value
            return {str(name): of_json(element) for name, element in inner.items()}
        case None | bool() | int() | str():
            return value
    raise DocumentError(f"the document holds {value!r}, which no item does. Nothing was imported. Export again.")


def checksum_of(content: Mapping[str, Any]) -> str:
    """Return the sha256 of the index, aliases and items of a job."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode("ascii")).hexdigest()


def payloads_in(value: StoredValue) -> Iterator[StoredItem]:
    """Yield the references to bodies in a value of an item."""
    if isinstance(value, dict):
        if isinstance(value.get("sha256"), str):
            yield value
            return
        for inner in value.values():
            yield from payloads_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from payloads_in(inner)
