"""Remove what is no longer needed: each removal proves, in its own transaction, what it relies on.

A job's memory ends at `collected_until`, an attribute of its index item: runs up to that number may be gone, and no
reset, rewind, replay or consumer goes there any more. It only grows, and it is announced before anything is removed:

    announce   index: collected_until = C (if it is what was seen, and so is imported_at) | check HEAD.epoch
    remove     check HEAD.epoch, check index: collected_until = C | delete runs, executions (each if still as seen)

Why this is safe beside a driver: a commit, a mark or a take never makes a head, line or edge refer to an older run than
before. Only a reset, rewind, set, undo, replay or import does. The first four grow the epoch, and an import notes its
time in the index, so an announcement or removal that looked before them fails; and one of them that looked before the
announcement fails by `collection_check`, which is part of its transaction (an import, by the head that it has seen). A
replay changes state and revision of its run, which a removal checks.

A blob is put before the transaction that refers to it, and each put stamps it anew. So a blob goes only if its stamp is
still the one that was seen, and older than any run lasts, and older than any lease that is there, both by the clock of
the driver; see `airflow_bookmarks.lifecycle.maintenance.retention`. A change, which holds no lease, proves in its own
transaction that its blobs are there (`BlobStore.proof`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import ChangeRefusedError, ConditionFailedError, RunUnknownError, StateCorruptError
from airflow_bookmarks.core.text.instant import from_text
from airflow_bookmarks.store.blobs import URI
from airflow_bookmarks.store.codec.item import POSITIONS, REPLACED_PREFIX
from airflow_bookmarks.store.table import (
    MAX_OPERATIONS,
    Attributes,
    Check,
    Condition,
    Delete,
    Equals,
    Key,
    Lacks,
    Operation,
    Update,
    Value,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime, timedelta

    from airflow_bookmarks.core.run import RunKey, RunState
    from airflow_bookmarks.store.reader import StateReader

COLLECTED_UNTIL = "collected_until"
POSITION_PREFIX = "position:"  # of the attributes of run and line items that hold a position
COPIED_UNTIL = "copied_until"  # of the index item: up to here the history is that of another store
IMPORTED_AT = "imported_at"  # of the index item: another history took the place of the former one


def holds_positions(name: str) -> bool:
    """Whether an attribute of a run or line item holds a position, or those of all contexts."""
    return name == POSITIONS or name.startswith(POSITION_PREFIX)


def stored_positions(attributes: Attributes) -> Iterator[Value]:
    """Yield each position that a run or line item holds; what is none, it yields as well."""
    for name, value in attributes.items():
        if name.startswith(POSITION_PREFIX):
            yield value
        elif name == POSITIONS:
            yield from value.values() if isinstance(value, dict) else [value]


# ---- what is left


def collected_until(store: StateReader, job: str) -> int:
    """Return the number up to which runs of a job may be gone; 0 if all are there."""
    return collected_in(store, job, store.index_entry(job))


def collected_in(store: StateReader, job: str, entry: Mapping[str, object] | None) -> int:
    """Return what `collected_until` does, of an index entry that was read already.

    Raises:
        StateCorruptError: there is none, of a job that has a head; or it says no number.
    """
    if entry is None and store.snapshot(job).head is not None:
        raise StateCorruptError(
            f"the index item of job {job!r} in namespace {store.namespace!r} is gone, so nobody can tell which of its "
            "runs were collected. Nothing was read or changed. 'airflow-bookmarks doctor' says whether it can be "
            "written again."
        )
    value = (entry or {}).get(COLLECTED_UNTIL, 0)
    if not isinstance(value, int):
        raise _no_number(store, job, COLLECTED_UNTIL, value)
    return value


def _no_number(store: StateReader, job: str, name: str, value: object) -> StateCorruptError:
    return StateCorruptError(
        f"the index item of job {job!r} in namespace {store.namespace!r} says {name} = {value!r}, which is no number. "
        "Nothing was changed. Restore it from a backup."
    )


def copied_until(store: StateReader, job: str) -> int:
    """Return the number up to which runs were made elsewhere, by the job that this one is a copy of; 0 if it is no
    copy.

    What they published belongs to that job: nothing here may remove or replace it.
    """
    return copied_in(store, job, store.index_entry(job))


def copied_in(store: StateReader, job: str, entry: Mapping[str, object] | None) -> int:
    """Return what `copied_until` does, of an index entry that was read already, after the head that it belongs to.

    An import changes both at once, and a change proves the head alone.
    """
    value = (entry or {}).get(COPIED_UNTIL, 0)
    if not isinstance(value, int):
        raise _no_number(store, job, COPIED_UNTIL, value)
    return value


def check_own(store: StateReader, job: str, number: int, what: str) -> None:
    """Make sure that run `number` of a job, and every later one, was made here; `what` names what they are needed for.

    Raises:
        ChangeRefusedError: it came with an import, and its files belong to the job that was exported.
    """
    check_made_here(job, number, what, copied_until(store, job))


def check_made_here(job: str, number: int, what: str, copied: int) -> None:
    """Make sure of what `check_own` does, where runs up to `copied` came with an import."""
    if number <= copied:
        raise ChangeRefusedError(
            f"job {job!r}: its runs up to {copied} were imported, and what they published belongs to the job that was "
            f"exported; {what} would take that away from it. Nothing was changed. Do it there; here, go without."
        )


def oldest_run(store: StateReader, job: str) -> int | None:
    """Return the number of the oldest committed run that is left whole; None if there is none."""
    for run in store.runs(job, after=collected_until(store, job)):
        if run.state.is_committed:
            return run.key.number
    return None


def check_uncollected(store: StateReader, job: str, number: int) -> int:
    """Make sure that nothing after run `number` of a job is gone; return what a change has to prove with
    `collection_check`.

    Number 0 means before the first run: going there needs no run, so a reset does not call this.

    Raises:
        RunUnknownError: runs after it, or it itself, were collected; names the oldest run left.
    """
    gone = collected_until(store, job)
    check_left(store, job, number, gone)
    return gone


def check_left(store: StateReader, job: str, number: int, gone: int) -> None:
    """Make sure of what `check_uncollected` does, where runs up to `gone` may be gone."""
    if number > gone or gone == 0:
        return
    oldest = oldest_run(store, job)
    left = "and no later run is left" if oldest is None else f"and the oldest run left is {oldest}"
    raise RunUnknownError(
        f"run {number} of job {job!r} was collected: runs up to {gone} are older than the retention, {left}. Nothing "
        f"was read or changed. Name run {gone + 1 if oldest is None else oldest} or a later one; back to the very "
        "beginning is a reset, which reads everything again."
    )


def check_readable(store: StateReader, consumer: str, upstream: str, consumed: int) -> None:
    """Make sure that a consumer that has read `upstream` up to run `consumed` finds every run after it.

    Raises:
        RunUnknownError: some of them were collected.
    """
    gone = collected_until(store, upstream)
    if consumed >= gone:
        return
    raise RunUnknownError(
        f"job {consumer!r} has consumed upstream {upstream!r} up to run {consumed}, and runs up to {gone} were "
        "collected: what they published can't be told apart any more. Nothing was read or changed. Read the whole "
        f"target of {upstream!r} once with spark.read, then set the position of {consumer!r} to 'now'."
    )


def collection_check(store: StateReader, job: str, seen: int) -> Operation:
    """Return the part of a change's transaction that proves that nothing was collected since `seen` was read."""
    return Check(store.keys(job).index, [_is_collected(seen)])


def _is_collected(until: int) -> Condition:
    return Equals(COLLECTED_UNTIL, until) if until else Lacks(COLLECTED_UNTIL)


# ---- runs and executions


@dataclass(frozen=True, slots=True)
class SeenRun:
    """A run item as it was seen: it is removed only if unchanged."""

    key: RunKey
    state: RunState
    revision: int


@dataclass(frozen=True, slots=True)
class Base:
    """What a removal relies on: the job has this epoch, is collected up to here, and was not imported over since."""

    epoch: int
    collected: int
    imported_at: object = None

    def checks(self, store: StateReader, job: str) -> list[Operation]:
        """Return the part of a transaction that proves that it still holds."""
        return [Check(store.keys(job).head, [Equals("epoch", self.epoch)]), Check(store.keys(job).index, self._index())]

    def _index(self) -> list[Condition]:
        imported = Lacks(IMPORTED_AT) if self.imported_at is None else Equals(IMPORTED_AT, str(self.imported_at))
        return [_is_collected(self.collected), imported]


def base(store: StateReader, job: str) -> Base:
    """Return what a removal that reads the job from now on relies on.

    Raises:
        JobUnknownError: no such bookmark.
    """
    entry = store.index_entry(job) or {}
    return Base(store.head(job).epoch, collected_in(store, job, entry), entry.get(IMPORTED_AT))


def announce(store: StateReader, job: str, base: Base, until: int) -> Base | None:
    """Record that runs up to `until` are being collected; return what holds from then on, None if the job moved."""
    head, index = base.checks(store, job)
    noted = Update(index.key, set={COLLECTED_UNTIL: until}, conditions=index.conditions)
    return replace(base, collected=until) if _is_written(store, [head, noted]) else None


def remove_runs(store: StateReader, job: str, base: Base, runs: Iterable[SeenRun]) -> bool:
    """Remove collected run items; False if the job, or one of them, moved since."""
    keys = store.keys(job)
    deletes = [
        Delete(keys.run(run.key), [Equals("state", run.state.value), Equals("revision", run.revision)]) for run in runs
    ]
    return _removed(store, job, base, deletes)


@dataclass(frozen=True, slots=True)
class SeenExecution:
    """An execution as it was seen: it is removed only if unchanged.

    `runs` are the run it made last and the one it replays; `touched_at` says when it was last taken or killed, None
    where nothing tells that.
    """

    runs: tuple[int, ...]
    touched_at: str | None
    unchanged: tuple[Condition, ...]

    @classmethod
    def of(cls, item: Attributes) -> SeenExecution:
        """Return it from its item. One that is damaged is as old, and has as many runs, as can be read of it."""
        names = ("attempt", "killed_attempt", "taken_nonce", "last_run", "replaying")
        times = [text for text in (item.get("taken_at"), item.get("killed_at")) if isinstance(text, str)]
        return cls(
            runs=tuple(n for n in (item.get("last_run"), item.get("replaying")) if isinstance(n, int)),
            touched_at=max(times, default=None),
            unchanged=tuple(Equals(n, item[n]) if n in item else Lacks(n) for n in names),
        )


def seen_executions(store: StateReader, job: str) -> dict[str, SeenExecution]:
    """Return all executions of a job by run id, as they are now."""
    return {run_id: SeenExecution.of(attributes) for run_id, attributes in store.execution_items(job)}


def remove_executions(store: StateReader, job: str, base: Base, executions: Mapping[str, SeenExecution]) -> bool:
    """Remove executions, given by run id; False if one of them, or the job, moved since they were seen."""
    keys = store.keys(job)
    deletes = [Delete(keys.execution(run_id), seen.unchanged) for run_id, seen in executions.items()]
    return _removed(store, job, base, deletes)


def _removed(store: StateReader, job: str, base: Base, deletes: Sequence[Operation]) -> bool:
    checks = base.checks(store, job)
    return all(_is_written(store, [*checks, *part]) for part in _parts(deletes, MAX_OPERATIONS - len(checks)))


def expired_sides(store: StateReader, job: str, now: datetime, kept_for: timedelta) -> list[str]:
    """Return the ids of side records that are no longer needed, those made longer than `kept_for` ago."""
    return [ulid for ulid, side in store.side_items(job) if _is_expired(side, now, kept_for)]


def _is_expired(side: Attributes, now: datetime, kept_for: timedelta) -> bool:
    # Earlier versions wrote into it when it expires.
    expires, made_at = side.get("expires_at"), side.get("made_at")
    if isinstance(expires, int):
        return expires < now.timestamp()
    if not isinstance(made_at, str) or any(name.startswith(REPLACED_PREFIX) for name in side):
        return False
    try:
        return from_text(made_at) + kept_for < now
    except ValueError:
        return False


def remove_sides(store: StateReader, job: str, ulids: Sequence[str]) -> None:
    """Remove side records: they are display-only, and each is written once."""
    deletes = [Delete(store.keys(job).side(ulid)) for ulid in ulids]
    for part in _parts(deletes, MAX_OPERATIONS):
        store.table.transact(part)


def _is_written(store: StateReader, operations: Sequence[Operation]) -> bool:
    try:
        store.table.transact(operations)
    except ConditionFailedError:
        return False
    return True


def _parts(operations: Sequence[Operation], size: int) -> Iterator[Sequence[Operation]]:
    for start in range(0, len(operations), size):
        yield operations[start : start + size]


# ---- blobs


@dataclass(frozen=True, slots=True)
class StoredBlob:
    """A blob as found: its hash, and per chunk the key and the stamp of its last put (None: a chunk has no stamp).

    `uri` is that of its object, if it is one.
    """

    sha256: str
    chunks: Mapping[Key, str | None]
    uri: str | None = None

    @property
    def stamped_at(self) -> str | None:
        """The youngest stamp, as text; None if a chunk has none."""
        stamps = [stamp for stamp in self.chunks.values() if stamp is not None]
        return max(stamps) if stamps and len(stamps) == len(self.chunks) else None


def stored_blobs(store: StateReader) -> list[StoredBlob]:
    """Return every blob of the namespace. This reads the whole table."""
    prefix = f"{store.namespace}#BLOB#"
    found: dict[str, dict[Key, str | None]] = {}
    uris: dict[str, str] = {}
    for key, attributes in store.table.scan(prefix, names=["stamped_at", URI]):
        sha256, stamp, uri = key.pk.removeprefix(prefix), attributes.get("stamped_at"), attributes.get(URI)
        found.setdefault(sha256, {})[key] = stamp if isinstance(stamp, str) else None
        if isinstance(uri, str):
            uris[sha256] = uri
    return [StoredBlob(sha256, chunks, uris.get(sha256)) for sha256, chunks in sorted(found.items())]


def job_partitions(store: StateReader) -> list[str]:
    """Return the partition keys of all jobs of the namespace, also of one whose index item is gone."""
    return sorted({key.pk for key, _ in store.table.scan(f"{store.namespace}#JOB#")})


def remove_blob(store: StateReader, blob: StoredBlob) -> bool:
    """Remove a blob, unless one of its chunks was put again since it was found; False if one was.

    If it has more chunks than a transaction holds, some may have gone before that was noticed. No data is lost: putting
    a blob again puts every chunk of it. The last chunk goes first: while it is there, all are.

    Its object goes after the item that names it: by then it can neither be found nor named again. An object of another
    table stays, because that table may name it.
    """
    last_first = sorted(blob.chunks.items(), key=lambda chunk: chunk[0].sk, reverse=True)
    deletes: list[Operation] = [
        Delete(key, [Equals("stamped_at", stamp)]) for key, stamp in last_first if stamp is not None
    ]
    if not all(_is_written(store, part) for part in _parts(deletes, MAX_OPERATIONS)):
        return False
    if blob.uri is not None and store.blobs.owns(blob.uri, blob.sha256):
        store.blobs.delete_object(blob.uri)
    return True
