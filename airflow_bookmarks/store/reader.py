"""Read the state: heads, runs, lines, edges and events of one namespace, all by consistent reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_bookmarks.core.errors import (
    JobUnknownError,
    NameInvalidError,
    StateCorruptError,
    TableLayoutError,
)
from airflow_bookmarks.core.job import check_name, may_be_kept
from airflow_bookmarks.core.timeline import Ancestry
from airflow_bookmarks.store.blobs import BlobStore
from airflow_bookmarks.store.codec import item
from airflow_bookmarks.store.codec.item import Keys
from airflow_bookmarks.store.table import MAX_OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from airflow_bookmarks.core.errors import BookmarkError
    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.position import Edge
    from airflow_bookmarks.core.rules.audit import AuditEvent
    from airflow_bookmarks.core.run import Execution, Run, RunKey
    from airflow_bookmarks.core.timeline import Timeline, TimelineChange
    from airflow_bookmarks.store.object_store import ObjectStore
    from airflow_bookmarks.store.table import Attributes, Key, Table
    from airflow_bookmarks.store.table_settings import FoundSettings

LAYOUT_VERSION = 1

_T = TypeVar("_T")


IMPORTED_FROM = "imported_from"  # of an event: the namespace of the document that brought it


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the table says of a job at one moment: None where there is no item."""

    head: Head | None
    execution: Execution | None


class StateReader:
    """What the table says of one namespace. `BookmarkStore` adds the transitions.

    Args:
        table: where the items are.
        namespace: isolates environments that share a table; part of every key.
        state_uri, objects: where blobs lie that are too large for the table; see `BlobStore`.
    """

    def __init__(
        self, table: Table, namespace: str, *, state_uri: str | None = None, objects: ObjectStore | None = None
    ) -> None:
        self.table = table
        self.namespace = check_name("namespace", namespace)
        self.blobs = BlobStore(table, namespace, state_uri=state_uri, objects=objects)

    def check_layout(self) -> None:
        """Make sure that this version knows the table's layout.

        Raises:
            TableLayoutError: no schema item, or another version.
        """
        self._check_schema(self.table.get([item.SCHEMA]).get(item.SCHEMA))

    def _check_schema(self, schema: Mapping[str, Any] | None) -> None:
        where = ", ".join(f"{k} {v}" for k, v in self.table.describe().items())
        if schema is None:
            raise TableLayoutError(
                f"the table ({where}) has no schema item: it was not made by 'airflow-bookmarks init', or is another "
                "table. Nothing was read or changed. Run 'airflow-bookmarks init' on it, or name the right table."
            )
        found = schema.get("layout_version")
        if found != LAYOUT_VERSION or isinstance(found, bool):
            raise TableLayoutError(
                f"the table ({where}) has layout version {found!r}, and this package knows "
                f"version {LAYOUT_VERSION}. Nothing was read or changed. Use the package version that made the "
                "table, or upgrade."
            )

    # ---- reading

    def keys(self, job: str) -> Keys:
        """Return the keys of a job."""
        return Keys(self.namespace, check_name("job", job))

    def snapshot(self, job: str, run_id: str | None = None) -> Snapshot:
        """Return head and execution of a job, in one request that also checks the table's layout."""
        keys = self.keys(job)
        wanted = [item.SCHEMA, keys.head] + ([keys.execution(run_id)] if run_id else [])
        found = self.table.get(wanted)
        self._check_schema(found.get(item.SCHEMA))
        head = found.get(keys.head)
        execution = found.get(keys.execution(run_id)) if run_id else None
        return Snapshot(
            None if head is None else item.head_of(head),
            None if execution is None or run_id is None else item.execution_of(run_id, execution),
        )

    def head(self, job: str) -> Head:
        """Return the head of a job.

        Raises:
            JobUnknownError: this namespace has no bookmark of that name.
        """
        head = self.snapshot(job).head
        if head is None:
            raise JobUnknownError(
                f"no bookmark named {job!r} in namespace {self.namespace!r}. 'airflow-bookmarks list' shows those "
                "that are."
            )
        return head

    def heads(self, jobs: Sequence[str]) -> dict[str, Head]:
        """Return the heads of those of `jobs` that have one; one request per hundred."""
        keys = {self.keys(job).head: job for job in jobs}
        return {keys[key]: item.head_of(attributes) for key, attributes in self.items(list(keys)).items()}

    def heads_or_damage(self, jobs: Sequence[str]) -> dict[str, Head | BookmarkError]:
        """Return the heads as `heads` does; a head that can't be read is replaced by its error."""
        found: dict[str, Head | BookmarkError] = {}
        for part in _hundreds(jobs):  # one that is damaged has all of its part read again
            found |= self._heads_or_damage(part)
        return found

    def _heads_or_damage(self, jobs: Sequence[str]) -> dict[str, Head | BookmarkError]:
        try:
            return dict(self.heads(jobs))
        except (StateCorruptError, NameInvalidError) as error:
            if len(jobs) == 1:
                return {jobs[0]: error}
        # One damaged item spoils the answer for all. Halving finds it in few requests; reading each job alone would
        # take many.
        half = len(jobs) // 2
        return self._heads_or_damage(jobs[:half]) | self._heads_or_damage(jobs[half:])

    def execution(self, job: str, run_id: str) -> Execution | None:
        """Return one execution; None if it never took the job, as none did whose id has no room in a key."""
        if not may_be_kept(run_id):
            return None
        key = self.keys(job).execution(run_id)
        attributes = self.table.get([key]).get(key)
        return None if attributes is None else item.execution_of(run_id, attributes)

    def executions(self, job: str, run_ids: Iterable[str]) -> dict[str, Execution]:
        """Return those of some executions of a job that exist; one request per hundred."""
        keys = {self.keys(job).execution(run_id): run_id for run_id in run_ids}
        found = self.items(list(keys))
        return {keys[key]: item.execution_of(keys[key], attributes) for key, attributes in found.items()}

    def executions_of_jobs(self, run_ids: Mapping[str, str]) -> dict[str, Execution]:
        """Return one execution of each of several jobs, by job; those that exist. One request per hundred."""
        keys = {self.keys(job).execution(run_id): job for job, run_id in run_ids.items()}
        found = self.items(list(keys))
        return {keys[key]: item.execution_of(run_ids[keys[key]], found[key]) for key in found}

    def execution_items(self, job: str) -> Iterator[tuple[str, Attributes]]:
        """Yield all executions of a job by their run id, as plain attributes."""
        for key, attributes in self.table.query(self.keys(job).partition, prefix=item.EXECUTION_PREFIX):
            yield key.sk.removeprefix(item.EXECUTION_PREFIX), attributes

    def run(self, job: str, key: RunKey) -> Run | None:
        """Return one run item."""
        return self.run_items(job, [key]).get(key)

    def committed_run(self, job: str, number: int) -> Run | None:
        """Return the run that committed under a number; runs that failed or were given up share it."""
        for run in self.runs(job, after=number - 1, until=number):
            if run.state.is_committed:
                return run
        return None

    def run_items(self, job: str, keys: Sequence[RunKey]) -> dict[RunKey, Run]:
        """Return those of the run items that exist, in one request (100 at most)."""
        wanted = {self.keys(job).run(key): key for key in dict.fromkeys(keys)}
        if not wanted:
            return {}
        return {wanted[k]: item.run_of(wanted[k], v) for k, v in self.table.get(list(wanted)).items()}

    def runs(
        self, job: str, *, after: int = 0, until: int | None = None, reverse: bool = False, limit: int | None = None
    ) -> Iterator[Run]:
        """Yield run items by number and fence; run numbers in (after, until].

        Raises:
            StateCorruptError: one of them can't be read.
        """
        for _, run in self.runs_or_damage(job, after=after, until=until, reverse=reverse, limit=limit):
            if isinstance(run, StateCorruptError):
                raise run
            yield run

    def runs_or_damage(
        self, job: str, *, after: int = 0, until: int | None = None, reverse: bool = False, limit: int | None = None
    ) -> Iterator[tuple[RunKey, Run | StateCorruptError]]:
        """Yield run items as `runs` does, each by its key; one that can't be read is replaced by its error."""
        low = f"{item.RUN_PREFIX}{after:010d}#~"
        high = f"{item.RUN_PREFIX}{'9' * 10 if until is None else format(until, '010d')}#~"
        rows = self.table.query(self.keys(job).partition, after=low, until=high, reverse=reverse, limit=limit)
        for key, attributes in rows:
            run_key = item.run_key(key.sk)
            try:
                run: Run | StateCorruptError = item.run_of(run_key, attributes)
            except StateCorruptError as error:
                run = error
            yield run_key, run

    def open_runs(self, job: str, head: Head) -> list[Run]:
        """Return the runs that were planned and neither committed nor given up, oldest first.

        All of them carry the next number: every committing run has settled all open runs before.
        """
        return [r for r in self.runs(job, after=head.run_number, until=head.run_number + 1) if r.state.is_open]

    def lines(self, job: str) -> list[Timeline]:
        """Return the lines of a job, oldest first; the first one (epoch 1) has no item."""
        rows = self.table.query(self.keys(job).partition, prefix=item.LINE_PREFIX)
        return [item.line_of(item.line_epoch(key.sk), attributes) for key, attributes in rows]

    def line_change(self, job: str, epoch: int) -> TimelineChange | None:
        """Return what began the line of `epoch`; None if no change did (the first line)."""
        key = self.keys(job).line(epoch)
        attributes = self.table.get([key]).get(key)
        return None if attributes is None else item.line_change_of(epoch, attributes)

    def ancestry(self, job: str, epoch: int) -> Ancestry:
        """Return which runs are living history in `epoch`."""
        return Ancestry.of(epoch, self.lines(job) if epoch > 1 else [])

    def edge(self, job: str, consumer: str) -> Edge | None:
        """Return what `consumer` has consumed of `job`."""
        key = self.keys(job).edge(consumer)
        attributes = self.table.get([key]).get(key)
        return None if attributes is None else item.edge_of(consumer, attributes)

    def edges(self, job: str) -> list[Edge]:
        """Return what each consumer has consumed of `job`."""
        rows = self.table.query(self.keys(job).partition, prefix=item.EDGE_PREFIX)
        return [item.edge_of(key.sk.removeprefix(item.EDGE_PREFIX), attributes) for key, attributes in rows]

    def edges_of(self, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Edge]:
        """Return the edges of (consumer, upstream) that exist; one request per hundred."""
        keys = {self.keys(upstream).edge(consumer): (consumer, upstream) for consumer, upstream in pairs}
        found = self.items(list(keys))
        return {keys[key]: item.edge_of(keys[key][0], attributes) for key, attributes in found.items()}

    def events(self, job: str) -> list[AuditEvent]:
        """Return the audit events of a job, oldest first.

        In the order of the version that each one found, because clocks differ; within one by time.
        """
        rows = [_event(a) for _, a in self.table.query(self.keys(job).partition, prefix=item.EVENT_PREFIX)]
        return sorted(rows, key=_order)

    def sides(self, job: str) -> list[Attributes]:
        """Return the side records of a job (pause and disable runs), oldest first, as plain attributes."""
        return [attributes for _, attributes in self.side_items(job)]

    def side_items(self, job: str) -> Iterator[tuple[str, Attributes]]:
        """Yield the side records of a job with their ids, oldest first."""
        for key, attributes in self.table.query(self.keys(job).partition, prefix=item.SIDE_PREFIX):
            yield key.sk.removeprefix(item.SIDE_PREFIX), attributes

    def jobs(self) -> list[tuple[str, Attributes]]:
        """Return the names of all jobs of the namespace with their index entries, by name."""
        return [(key.sk, attributes) for key, attributes in self.table.query(f"{self.namespace}#JOBS")]

    def index_entry(self, job: str) -> Attributes | None:
        """Return the index entry of one job: which DAG and task made it, its last commit."""
        return self.index_entries([job]).get(job)

    def index_entries(self, jobs: Iterable[str]) -> dict[str, Attributes]:
        """Return the index entries of those of some jobs that have one; one request per hundred."""
        keys = {self.keys(job).index: job for job in jobs}
        return {keys[key]: attributes for key, attributes in self.items(list(keys)).items()}

    # ---- items as they are stored, for what examines, exports and cleans them

    def items(self, keys: Sequence[Key]) -> dict[Key, Attributes]:
        """Return those of some items that exist; one request per hundred, not one snapshot."""
        found: dict[Key, Attributes] = {}
        for part in _hundreds(keys):
            found |= self.table.get(part)
        return found

    def partition(self, partition: str) -> Iterator[tuple[Key, Attributes]]:
        """Yield all items of one partition in the order of their sort keys."""
        return self.table.query(partition)

    # ---- the table itself

    def describe(self) -> dict[str, str]:
        """Describe where the table is, for people: kind, name or path, region or host; no secret."""
        return self.table.describe()

    def table_settings(self) -> FoundSettings | None:
        """Return the present settings of the table; None if its kind has none."""
        return self.table.settings()

    def close(self) -> None:
        """Release connections; the store can't be used afterwards."""
        self.table.close()


def _hundreds(all_of_them: Sequence[_T]) -> Iterator[Sequence[_T]]:
    """Yield the parts that one request takes."""
    for start in range(0, len(all_of_them), MAX_OPERATIONS):
        yield all_of_them[start : start + MAX_OPERATIONS]


def _event(attributes: AuditEvent) -> AuditEvent:
    """Return an event; the event of a replay, which a run writes, gets the attribute names of events by people.

    An imported event was not written by a local user: its `who` says so.
    """
    if "kind" not in attributes and "replayed_by" in attributes:
        words: AuditEvent = {"kind": "replay", "who": attributes["replayed_by"], "why": "the run was replayed"}
        attributes = {**attributes, **words, "at": attributes.get("replayed_at")}
    if IMPORTED_FROM in attributes:
        attributes = {**attributes, "who": f"{attributes.get('who', '?')!s} (imported)"}
    return attributes


def _order(event: AuditEvent) -> tuple[int, str]:
    version, at = event.get("version_before"), event.get("at")
    return (version if isinstance(version, int) else 0, at if isinstance(at, str) else "")
