"""Export bookmarks as one JSON document, import it into another table, and show bookmarks in Glue's format.

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
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import (
    ChangedMeanwhileError,
    ChangeRefusedError,
    DocumentError,
    JobUnknownError,
    ProtectedError,
    StoreError,
)
from airflow_bookmarks.core.head import busy_error
from airflow_bookmarks.core.job import check_name
from airflow_bookmarks.core.job_state import hidden
from airflow_bookmarks.core.ledger.file_ledger import Ledger
from airflow_bookmarks.core.rules.audit import check_reason, check_who
from airflow_bookmarks.core.text.identity import signed
from airflow_bookmarks.core.text.instant import from_text, to_text
from airflow_bookmarks.core.text.redaction import stored_error
from airflow_bookmarks.core.timeline import living_runs
from airflow_bookmarks.lifecycle.changes.naming import key_of, names_of
from airflow_bookmarks.lifecycle.history.rewind import resolve_run
from airflow_bookmarks.lifecycle.history.state_values import shown_state
from airflow_bookmarks.lifecycle.maintenance.artifacts import artifact_uris
from airflow_bookmarks.lifecycle.maintenance.blobs import position_hashes
from airflow_bookmarks.lifecycle.maintenance.landing import Origin
from airflow_bookmarks.lifecycle.protocol.owner import owner_of_kin
from airflow_bookmarks.sources.registry import has_ledger
from airflow_bookmarks.store.codec import item
from airflow_bookmarks.store.stored_item import item_bytes
from airflow_bookmarks.store.transitions import importing as transition
from airflow_bookmarks.store.transitions.collection import POSITION_PREFIX
from airflow_bookmarks.store.transitions.naming import check_may_delete, job_keys
from airflow_bookmarks.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.rules.audit import AuditEvent
    from airflow_bookmarks.core.run import ContextState, Run
    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from airflow_bookmarks.store.stored_item import IndexEntry, StoredItem, StoredValue

log = logging.getLogger(__name__)

FORMAT = 1

_IMPORT_OF = "import_of"  # of the index item: the checksum of what was imported
_LOOKS = 5
_MOST_DROPPED = 20  # that an event lists
_LEDGER_START = b'{"blake2b":"'
_BYTES, _MAP = "$base64", "$map"


# ---- out


def export(store: BookmarkStore, jobs: Sequence[str] | None = None, *, hide_state: bool = False) -> dict[str, Any]:
    """Return the bookmarks of jobs as one JSON document, with all that a run, a consumer or a rewind needs of them.

    It can run beside drivers: each job is as it was at one moment. A consumer goes with its upstream jobs, since its
    position counts their runs.

    Args:
        jobs: any names of these jobs; None: all of the namespace.
        hide_state: leave the values of `job.state` out of what people see of them. The items have them all the same, as
            an import needs them: what they keep secret, the document must be kept secret for.

    Raises:
        JobUnknownError: no such bookmark. StateCorruptError: bytes are damaged or gone. ChangedMeanwhileError: a job
            moved at every look.

    Example:
        json.dump(export(open_store("dynamodb://bookmarks?region=eu-west-1")), file)
    """
    store.check_layout()
    keys = list(store.heads(list(job_keys(store)))) if jobs is None else [key_of(store, name) for name in jobs]
    blobs: dict[str, str] = {}
    parts = {key: _exported_job(store, key, blobs) for key in dict.fromkeys(keys)}
    heads = store.heads(list(parts))
    states = {"states": {job: shown_state(store, job, head.contexts) for job, head in sorted(heads.items())}}
    return {
        "format": FORMAT,
        "exported_at": to_text(store.now()),
        "table_made_at": transition.table_made_at(store),
        "package_version": __version__,
        "namespace": store.namespace,
        "jobs": parts,
        "blobs": dict(sorted(blobs.items())),
        "artifacts": {job: found for job, part in parts.items() if (found := _artifacts(part["items"]))},
        **(hidden(states) if hide_state else states),
    }


def _artifacts(items: StoredItem) -> list[str]:
    """Return the folders that belong to positions of an exported job: a document names them, and does not hold them."""
    return sorted(set(artifact_uris(items)))


def _exported_job(store: BookmarkStore, job: str, blobs: dict[str, str]) -> dict[str, Any]:
    items = _settled_items(store, job)
    for sha256 in _needed_blobs(store, items.values()):
        if sha256 not in blobs:
            blobs[sha256] = base64.b64encode(store.blobs.get_named([sha256])[sha256]).decode()
    part = {
        "index": _to_json(store.index_entry(job) or {}),
        "aliases": names_of(store, job)[1:],
        "items": {sk: _to_json(_shown(sk, attributes)) for sk, attributes in items.items()},
    }
    return {**part, "sha256": _checksum(part)}


def _shown(sort_key: str, attributes: StoredItem) -> StoredItem:
    """Return an item as a document has it: without secrets in an error that an earlier version stored raw."""
    error = attributes.get("error")
    is_raw = sort_key.startswith(item.RUN_PREFIX) and isinstance(error, str)
    return {**attributes, "error": stored_error(str(error))} if is_raw else attributes


def _settled_items(store: BookmarkStore, job: str) -> dict[str, StoredItem]:
    """Return the items of a job by sort key, read while its head did not move."""
    keys = store.keys(job)
    for _ in range(_LOOKS):
        rows = store.partition(keys.partition)
        items = {key.sk: attributes for key, attributes in rows if not key.sk.startswith(item.SIDE_PREFIX)}
        head = items.get(keys.head.sk)
        if head is None:
            raise JobUnknownError(f"no bookmark named {job!r} in namespace {store.namespace!r}. Nothing was exported.")
        if _still(head) == _still(store.items([keys.head]).get(keys.head)):
            return items
    raise ChangedMeanwhileError(f"job {job!r} moved at every look. Nothing was exported. Try again when it is at rest.")


def _still(head: StoredItem | None) -> StoredItem | None:
    return None if head is None else {name: value for name, value in head.items() if name != "lease_until"}


def _needed_blobs(store: BookmarkStore, items: Any) -> Iterator[str]:
    for attributes in items:
        for name, value in attributes.items():
            for payload in _payloads(value):
                if "inline" not in payload:
                    yield str(payload["sha256"])
                if name.startswith(POSITION_PREFIX):
                    yield from _named_by_position(store, payload)


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


def _named_by_position(store: BookmarkStore, payload: StoredItem) -> list[str]:
    body = store.blobs.get(item.payload_of(payload))
    if body.startswith(_LEDGER_START):
        return Ledger.from_root(body, store.blobs.get_named).segment_ids()
    # A position of another kind names its blobs in plain text; text that only looks like such a name has none.
    return [name for name in position_hashes(body) if transition.has_blob(store, name)]


# ---- in


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import wrote: the jobs with their last run, and the number of blobs. `replaced` had a bookmark before.

    `kept` are those that an earlier import of the same document had brought: they are as they were. `dropped` says by
    job what of the document was left out.
    """

    jobs: Mapping[str, int]
    blobs: int
    replaced: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    dropped: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        made = {"jobs": dict(self.jobs), "blobs": self.blobs, "replaced": list(self.replaced), "kept": list(self.kept)}
        return {**made, "dropped": {job: list(what) for job, what in self.dropped.items()}}


def import_(
    store: BookmarkStore,
    document: Mapping[str, Any],
    *,
    who: str,
    reason: str,
    overwrite: bool = False,
    move: bool = False,
) -> Imported:
    """Import the bookmarks of an exported document into a store.

    Everything is checked before anything is written. Each job is claimed first, by a lease that does not end by itself:
    if this process dies half-way, the job can't run, and importing again finishes it, and leaves alone what is whole.
    Then it has no lease, and a fence above all it ever had.

    What comes from another table or namespace is a copy: the job it was taken from may be alive, and its files are its
    own. So a copy has none of its staging and open runs, and refuses a clean or replay of the runs that it was given.
    Whatever it comes from, only a move brings along what lets the next run change files: staging, and a publish or
    clean that is due. No import brings a request that may still be carried out, and events stand as imported.

    Args:
        document: what `export` returned.
        who, reason: for the audit event of each job; a reason is required.
        overwrite: also replace a bookmark that is there. Its audit events stay.
        move: the store that was exported is gone, or nobody uses it any more: this one takes its place, with its
            staging, open runs, and what is due. Into another namespace it brings nothing that is due, and no staging.

    Raises:
        DocumentError: damaged, or of another format. OptionError: no reason.
        ChangeRefusedError: a job or name is there already; a consumer has read what would be replaced; or a publish or
            clean is due, of a copy or of another namespace, which can't be finished here.
        JobBusyError, ProtectedError: of a job that would be replaced. StoreAccessError: this role may not delete, which
            an import half-way has to.
    """
    check_reason("import", reason)
    check_who(who)
    store.check_layout()
    document_jobs, blobs = _checked(document)
    jobs = {j: part for j, part in document_jobs.items() if overwrite or not _is_done(store, j, part)}
    seen = {job: store.look(job).head for job in jobs}
    home = (store.namespace, transition.table_made_at(store))
    is_copy = not move and (document.get("namespace"), document.get("table_made_at")) != home
    origin = Origin(str(document.get("namespace")), store.namespace, is_copy, move)
    for job, part in jobs.items():
        _check_free(store, job, part, seen[job], overwrite)
        origin.check_due(job, part.head)
        origin.check_artifacts(job, part.items)
        _check_artifacts_there(store, job, part)
        check_may_delete(store, job)
    for body in blobs.values():
        store.blobs.put(body)
    dropped: dict[str, tuple[str, ...]] = {}
    for job, part in jobs.items():
        event: AuditEvent = {"kind": "import", **signed(who), "why": reason, "from": str(document.get("namespace"))}
        landing = origin.landing(job, part.items, part.head, part.index)
        if landing.dropped:
            dropped[job] = landing.dropped
            event["dropped"] = list(landing.dropped[:_MOST_DROPPED])
            log.warning("bookmark %s: the import leaves out: %s", job, "; ".join(landing.dropped))
        index = {**landing.index, _IMPORT_OF: part.sha256}
        owner = owner_of_kin(store, job)
        if not transition.write_job(store, job, seen[job], landing.items, index, event, owner):
            raise ChangedMeanwhileError(f"job {job!r} moved while it was imported. Import it again.")
        for name in part.aliases:
            transition.write_alias(store, job, name)
    replaced = tuple(job for job, head in seen.items() if head is not None)
    kept = tuple(job for job in document_jobs if job not in jobs)
    return Imported({job: part.head.run_number for job, part in jobs.items()}, len(blobs), replaced, kept, dropped)


def _check_artifacts_there(store: BookmarkStore, job: str, part: _TransferPart) -> None:
    head = next(attributes for sk, attributes in part.items.items() if sk == store.keys(job).head.sk)
    missing = store.artifacts.missing(job, artifact_uris(head)) if any(artifact_uris(head)) else []
    if missing:
        raise ChangeRefusedError(
            f"job {job!r}: {len(missing)} folder(s) that belong to its position are gone since it was exported, the "
            f"first: {missing[0]!r}. Nothing was imported. Restore them from a backup first, or begin anew."
        )


@dataclass(frozen=True, slots=True)
class _TransferPart:
    """One job of a document, read."""

    sha256: str
    head: Head
    index: IndexEntry
    aliases: tuple[str, ...]
    items: Mapping[str, StoredItem]


def _checked(document: Any) -> tuple[dict[str, _TransferPart], dict[str, bytes]]:
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


_AGAIN = "Nothing was imported. Export again."
_NOT_OURS = (
    "Nothing was imported. It has to be what 'airflow-bookmarks export' wrote, by the same version or an earlier one."
)


def _checked_part(job: str, part: Mapping[str, Any]) -> _TransferPart:
    content = {name: part[name] for name in ("index", "aliases", "items")}
    if _checksum(content) != part["sha256"]:
        raise DocumentError(f"job {job!r} does not match its checksum. Nothing was imported. Export again.")
    items = {sk: _of_json(value) for sk, value in part["items"].items()}
    index = _of_json(part["index"])
    if not isinstance(index, dict) or not all(isinstance(value, dict) for value in items.values()):
        raise DocumentError(f"job {job!r} has an item that is no map. Nothing was imported. Export again.")
    attributes: dict[str, StoredItem] = {sk: value for sk, value in items.items() if isinstance(value, dict)}
    for sk, value in attributes.items():
        item_bytes(job, sk, value)  # what a table would refuse half-way
    aliases = tuple(check_name("job", name) for name in part["aliases"])
    return _TransferPart(part["sha256"], item.head_of(attributes["HEAD"]), index, aliases, attributes)


def _check_complete(jobs: Mapping[str, _TransferPart], blobs: Mapping[str, bytes]) -> None:
    for job, part in jobs.items():
        for attributes in part.items.values():
            for name, value in attributes.items():
                for payload in _payloads(value):
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
    if name.startswith(POSITION_PREFIX) and body.startswith(_LEDGER_START):
        yield from Ledger.from_root(body, lambda names: {one: blobs[one] for one in names}).segment_ids()


def _check_free(store: BookmarkStore, job: str, part: _TransferPart, head: Head | None, overwrite: bool) -> None:
    for name in part.aliases:
        if key_of(store, name) not in (job, name) or store.look(name).head is not None:
            raise ChangeRefusedError(f"{name!r}, a name of job {job!r}, is another job here. Nothing was imported.")
    if key_of(store, job) != job:
        raise ChangeRefusedError(f"{job!r} is another name of job {key_of(store, job)!r} here. Nothing was imported.")
    if head is None or transition.is_claimed(head):
        return
    if not overwrite:
        raise ChangeRefusedError(
            f"there is a job {job!r} in namespace {store.namespace!r} (run {head.run_number}). Nothing was imported. "
            "Export the jobs that you want by name, or let it be replaced with overwrite (--overwrite)."
        )
    if head.protected:
        raise ProtectedError(f"job {job!r} is protected and can't be replaced. Nothing was imported.")
    if head.holder(store.now()) is not None:
        raise busy_error(job, head)
    _check_consumers(store, job, part)


def _check_consumers(store: BookmarkStore, job: str, part: _TransferPart) -> None:
    """Refuse to replace what a consumer has read by what it has not: the difference would go unnoticed."""
    for edge in store.edges(job):
        given = part.items.get(f"{item.EDGE_PREFIX}{edge.consumer}")
        if given is None or (given["run_number"], given["epoch"]) != (edge.run_number, edge.epoch):
            raise ChangeRefusedError(
                f"job {job!r}: consumer {edge.consumer!r} has read it up to run {edge.run_number}, epoch {edge.epoch}, "
                "and the document does not know of that. Nothing was imported. Rewind instead of importing; or "
                "import into another namespace."
            )


def _is_done(store: BookmarkStore, job: str, part: _TransferPart) -> bool:
    """Whether an earlier import of the same document has brought the job, and ended with it."""
    head = store.look(job).head
    entry = store.index_entry(job) or {}
    return head is not None and not transition.is_claimed(head) and entry.get(_IMPORT_OF) == part.sha256


# ---- as Glue shows it


def as_glue_entry(store: BookmarkStore, job: str, run: str | None = None) -> dict[str, Any]:
    """Return a bookmark in the shape of Glue's get-job-bookmark: a JobBookmarkEntry.

    As observed of Glue: `Run` names the next run, `Attempt` counts from 0, `PreviousRunId` is absent in the first
    entry, and `JobBookmark` is JSON in a string, of which every value is a string. Glue has no file ledger: what tells
    read files from unread ones is not part of this shape, so it is to look at, never to import.

    Args:
        run: the entry as it was after this run (number or run id); None: as it is now.

    Raises:
        JobUnknownError: no such bookmark. RunUnknownError: no such run in the living history.
    """
    key = key_of(store, job)
    head = store.head(key)
    last = resolve_run(store, key, head, run) if run is not None else _last_run(store, key, head)
    contexts = head.contexts if run is None or last is None else last.contexts
    entry: dict[str, Any] = {
        "JobName": job,
        "Version": head.version if run is None or last is None else last.version,
        "Run": (0 if last is None else last.key.number) + 1,
        "Attempt": 0 if last is None else last.attempt - 1,
    }
    if last is not None:
        before = _last_run(store, key, head, last.key.number - 1)
        entry |= {} if before is None else {"PreviousRunId": before.run_id}
        entry["RunId"] = last.run_id
    states = {ctx: _glue_state(store, key, state) for ctx, state in contexts.items()}
    return {**entry, "JobBookmark": json.dumps(states, ensure_ascii=False)}


def _last_run(store: BookmarkStore, job: str, head: Head, until: int | None = None) -> Run | None:
    living = store.ancestry(job, head.epoch)
    runs = store.runs(job, until=head.run_number if until is None else until, reverse=True)
    return next(living_runs(runs, living), None)


def _glue_state(store: BookmarkStore, job: str, state: ContextState) -> dict[str, Any]:
    run = store.run(job, state.run)
    mark = state.watermark or ""
    if not has_ledger(state.kind):
        return {"jsonClass": f"{state.kind.capitalize()}JobBookmarkState", "values": {"RUN": str(state.run.number),
                "WATERMARK": mark}}  # fmt: skip
    return {
        "jsonClass": "HadoopDataSourceJobBookmarkState",
        "timestamps": {
            "RUN": str(state.run.number),
            "HIGH_BAND": "0",
            "CURR_LATEST_PARTITION": "0",
            "CURR_LATEST_PARTITIONS": "",
            "CURR_RUN_START_TIME": "" if run is None else _glue_time(run.planned_at),
            "INCLUDE_LIST": "",
            "WATERMARK": mark,
        },
    }


def _glue_time(text: str) -> str:
    time: datetime = from_text(text).astimezone(UTC)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


# ---- values as JSON


def _to_json(value: StoredValue) -> Any:
    match value:
        case bytes():
            return {_BYTES: base64.b64encode(value).decode()}
        case list():
            return [_to_json(element) for element in value]
        case dict():
            plain = {name: _to_json(element) for name, element in value.items()}
            return {_MAP: plain} if any(name.startswith("$") for name in value) else plain
    return value


def _of_json(value: Any) -> StoredValue:
    match value:
        case list():
            return [_of_json(element) for element in value]
        case dict() if value.keys() == {_BYTES}:
            return base64.b64decode(value[_BYTES], validate=True)
        case dict():
            inner = value[_MAP] if value.keys() == {_MAP} else value
            return {str(name): _of_json(element) for name, element in inner.items()}
        case None | bool() | int() | str():
            return value
    raise DocumentError(f"the document holds {value!r}, which no item does. Nothing was imported. Export again.")


def _checksum(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode("ascii")).hexdigest()
