"""Survey a job: read everything that the table says of it once, and note what could not be read.

Payloads are checked on the way: whether all bytes that items refer to are there, match, and are named by an item.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import StateCorruptError, StoreAccessError
from airflow_bookmarks.core.files.file_list import decode_moves, decode_paths, decode_published
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.ledger.file_ledger import Ledger
from airflow_bookmarks.core.timeline import Ancestry, living_runs
from airflow_bookmarks.files.private_file import wider_mode
from airflow_bookmarks.lifecycle.maintenance.blobs import object_name_in
from airflow_bookmarks.lifecycle.maintenance.doctor.finding import RESTORE, Finding, Severity
from airflow_bookmarks.sources.registry import find_kind, own_errors
from airflow_bookmarks.store.blobs import BlobMissingError
from airflow_bookmarks.store.codec import item
from airflow_bookmarks.store.transitions import collection
from airflow_bookmarks.store.transitions.collection import holds_positions, stored_blobs
from airflow_bookmarks.store.uri import MEMORY

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.plan import Plan
    from airflow_bookmarks.core.position import Edge
    from airflow_bookmarks.core.rules.audit import AuditEvent
    from airflow_bookmarks.core.run import ContextState, Execution, OutputEntry, Payload, Run, RunKey
    from airflow_bookmarks.core.selection.listing import FileInfo
    from airflow_bookmarks.core.timeline import Timeline
    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from airflow_bookmarks.store.stored_item import IndexEntry, ItemKey, StoredItem, StoredValue

_LOOKS = 5


@dataclass(frozen=True)
class Survey:
    """Everything that the table says of one job at one moment.

    `items` are all items of its partition as they are; `unreadable` those that can't be decoded, with the reason. Runs
    up to `collected` may be gone. `is_settled` is false if the job moved during every read.
    """

    store: BookmarkStore
    job: str
    now: datetime
    items: Mapping[ItemKey, StoredItem]
    index: IndexEntry | None
    is_settled: bool = True
    head: Head | None = None
    collected: int = 0
    runs: Mapping[RunKey, Run] = field(default_factory=dict)
    lines: Mapping[int, Timeline] = field(default_factory=dict)
    executions: Mapping[str, Execution] = field(default_factory=dict)
    edges: Mapping[str, Edge] = field(default_factory=dict)
    events: tuple[AuditEvent, ...] = ()
    unreadable: Mapping[ItemKey, str] = field(default_factory=dict)

    @classmethod
    def of(cls, store: BookmarkStore, job: str, now: datetime) -> Survey:
        """Read a job; again if it moved while it was read."""
        keys = store.keys(job)
        found: dict[ItemKey, StoredItem] = {}
        for _ in range(_LOOKS):
            index = store.index_entry(job)
            found = dict(store.partition(keys.partition))
            if _still(found.get(keys.head)) == _still(store.items([keys.head]).get(keys.head)):
                return cls._read(store, job, now, found, index, True)
        return cls._read(store, job, now, found, store.index_entry(job), False)

    @classmethod
    def _read(
        cls,
        store: BookmarkStore,
        job: str,
        now: datetime,
        items: Mapping[ItemKey, StoredItem],
        index: IndexEntry | None,
        is_settled: bool,
    ) -> Survey:
        read: dict[str, dict[Any, Any]] = {}
        unreadable: dict[ItemKey, str] = {}
        for key, attributes in items.items():
            kind, _, rest = key.sk.partition("#")
            try:
                name, value = _object_of(kind, rest, key, attributes)
            except StateCorruptError as error:
                unreadable[key] = str(error)
            else:
                read.setdefault(kind, {})[name] = value
        collected = 0 if index is None else index.get(collection.COLLECTED_UNTIL, 0)
        return cls(
            store=store,
            job=job,
            now=now,
            items=items,
            index=index,
            is_settled=is_settled,
            head=read.get("HEAD", {}).get(""),
            collected=collected if isinstance(collected, int) else 0,
            runs=read.get("RUN", {}),
            lines=read.get("LINE", {}),
            executions=read.get("EXEC", {}),
            edges=read.get("DOWN", {}),
            events=tuple(read.get("EVENT", {}).values()),
            unreadable=unreadable,
        )

    def is_still(self) -> bool:
        """Whether the head is still as it was read (apart from how long the lease holds)."""
        key = self.store.keys(self.job).head
        return _still(self.items.get(key)) == _still(self.store.items([key]).get(key))

    @property
    def committed(self) -> Mapping[int, list[Run]]:
        """The committed runs by number, ascending; more than one under a number is damage."""
        found: dict[int, list[Run]] = {}
        for key in sorted(self.runs):
            if self.runs[key].state.is_committed:
                found.setdefault(key.number, []).append(self.runs[key])
        return found

    def living(self) -> list[Run]:
        """Return the committed runs of the living line, oldest first; none if the line can't be followed."""
        ancestry = self.ancestry()
        if ancestry is None:
            return []
        return list(living_runs((run for runs in self.committed.values() for run in runs), ancestry))

    def ancestry(self) -> Ancestry | None:
        """Return which runs are living history; None where a line is missing."""
        if self.head is None:
            return None
        try:
            return Ancestry.of(self.head.epoch, self.lines.values())
        except StateCorruptError:
            return None

    @property
    def has_live_lease(self) -> bool:
        """Whether a run holds the job now."""
        return self.head is not None and self.head.holder(self.now) is not None

    # ---- bytes; None where they are damaged, gone or out of reach, which is a finding of its own

    def bytes_of(self, payload: Payload) -> bytes | None:
        """Return the bytes of a payload."""
        try:
            return self.store.blobs.get(payload)
        except (StateCorruptError, StoreAccessError):
            return None

    def plan_of(self, run: Run, ctx: str) -> Plan | None:
        """Return the stored plan of a context; None where its kind is not known here.

        Raises:
            StateCorruptError: its kind can't read it.
            SourceError: a kind of a user's own has failed at it.
        """
        entry = run.plans.get(ctx)
        kind = None if entry is None else find_kind(entry.kind)
        body = None if entry is None or kind is None else self.bytes_of(entry.body)
        if body is None or kind is None:
            return None
        plan: Plan = kind.decode(body)
        return plan

    def files_of(self, run: Run, ctx: str) -> FilePlan | None:
        """Return the stored plan of a context if it is a plan of files."""
        entry = run.plans.get(ctx)
        kind = None if entry is None else find_kind(entry.kind)
        plan = None if kind is None or not kind.has_files else self.plan_of(run, ctx)
        return plan if isinstance(plan, FilePlan) else None

    def moves_of(self, output: OutputEntry) -> list[tuple[str, str]]:
        """Return the pairs (staged file, published file) of an output."""
        body = None if output.publish is None else self.bytes_of(output.publish)
        return [] if body is None else decode_moves(body)

    def published_of(self, output: OutputEntry) -> list[FileInfo | str]:
        """Return the files that an output publishes: as they were staged, or the path alone where that is unknown."""
        body = None if output.publish is None else self.bytes_of(output.publish)
        return [] if body is None else decode_published(body)

    def deletes_of(self, output: OutputEntry) -> list[str]:
        """Return the files that an output replaces; after a replay, also those that its first publish replaced."""
        lists = [payload for payload in (output.delete, output.replaced) if payload is not None]
        bodies = [body for body in map(self.bytes_of, lists) if body is not None]
        return [path for body in bodies for path in decode_paths(body)]

    def position_of(self, ctx: str, state: ContextState) -> Payload | None:
        """Return the stored position that a state names; None where it is gone."""
        if state.set_in is not None:
            attributes = self.items.get(self.store.keys(self.job).line(state.set_in), {})
            value = attributes.get(collection.POSITION_PREFIX + ctx)
            return item.payload_of(value) if isinstance(value, dict) else None
        run = self.runs.get(state.run)
        return None if run is None else run.positions.get(ctx)

    def ledger_of(self, ctx: str, state: ContextState) -> Ledger | None:
        """Return the ledger of a context, where its kind has one."""
        payload = self.position_of(ctx, state)
        body = None if payload is None else self.bytes_of(payload)
        kind = find_kind(state.kind)
        with own_errors(state.kind):
            return None if body is None or kind is None else kind.ledger(body, self.store.blobs.get_named)


def _object_of(kind: str, rest: str, key: ItemKey, attributes: StoredItem) -> tuple[Any, Any]:
    match kind:
        case "HEAD":
            return "", item.head_of(attributes)
        case "RUN":
            run_key = item.run_key(key.sk)
            return run_key, item.run_of(run_key, attributes)
        case "LINE":
            epoch = item.line_epoch(key.sk)
            item.line_change_of(epoch, attributes)  # an undo needs it too
            return epoch, item.line_of(epoch, attributes)
        case "EXEC":
            return rest, item.execution_of(rest, attributes)
        case "DOWN":
            return rest, item.edge_of(rest, attributes)
    return rest, attributes


def _still(head: StoredItem | None) -> StoredItem | None:
    return None if head is None else {name: value for name, value in head.items() if name != "lease_until"}


# ---- payloads


_REACH = "Give this process access to the object, and look again: more may be wrong."
_LEDGER_START = b'{"blake2b":"'


def examine_payloads(survey: Survey) -> Iterator[Finding]:
    """Find damaged inline bytes, and blobs that are damaged or miss a chunk, those that a ledger names included."""
    seen: dict[str, Finding | None] = {}
    for key, attributes in survey.items.items():
        for name, value in attributes.items():
            for payload in _payloads(value):
                yield from _examine(survey, seen, payload, f"{key.sk}, {name}")
                if holds_positions(name):
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
