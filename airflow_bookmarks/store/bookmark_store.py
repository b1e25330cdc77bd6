"""The upper layer of the state store: the state transitions of DESIGN.md, each one transaction, on any `Table`.

    take, renew, release, fence: `transitions.lease`
    plan      check fence | RUN plan            place     HEAD staging | RUN output
    commit    HEAD version + 1, publishing | RUN COMMITTED | EXEC | index | one edge per upstream
    mark      HEAD published, lease released (or: fence + 1, the next run) | RUN PUBLISHED | EXEC finished
    fail
    abandon, adopt, and others of an open run: `transitions.settlement`
    those that start a line: `transitions.timeline`; of a replay: `transitions.replay`

Every transition is read back when a condition failed, because that may be the trace of an own success whose reply was
lost: by the RUN item and HEAD, never by the lease, which success itself releases.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import (
    ConditionFailedError,
    MisuseError,
    StateCorruptError,
)
from airflow_bookmarks.core.head import Lease
from airflow_bookmarks.core.health.cadence import COMMITS_KEPT
from airflow_bookmarks.core.run import (
    ContextState,
    OutputEntry,
    Payload,
    PlanEntry,
    Run,
    RunState,
    StateEntry,
)
from airflow_bookmarks.core.text.instant import to_text
from airflow_bookmarks.core.text.redaction import stored_error
from airflow_bookmarks.core.text.ulid import new_ulid
from airflow_bookmarks.databases.access import EnvironmentAccess
from airflow_bookmarks.store.backends.limits import check_item
from airflow_bookmarks.store.blobs import INLINE_BYTES
from airflow_bookmarks.store.codec import item
from airflow_bookmarks.store.object_store import note_settings, note_state_uri, noted_settings
from airflow_bookmarks.store.reader import LAYOUT_VERSION
from airflow_bookmarks.store.table import (
    MAX_ITEM_BYTES,
    MAX_OPERATIONS,
    MAX_UPDATED,
    Attributes,
    Check,
    Condition,
    Equals,
    Exists,
    Lacks,
    Missing,
    Operation,
    Put,
    Table,
    Update,
)
from airflow_bookmarks.store.table_settings import DEFAULT, TableSettings
from airflow_bookmarks.store.transitions.base import LeaseGrant, commit_conditions
from airflow_bookmarks.store.transitions.lease import RUN_NUMBER, LeaseStore
from airflow_bookmarks.store.transitions.replay import ReplayStore
from airflow_bookmarks.store.transitions.settlement import SettlementStore
from airflow_bookmarks.store.transitions.timeline import TimelineTransitions
from airflow_bookmarks.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from airflow_bookmarks.core.position import Edge
    from airflow_bookmarks.databases.access import DatabaseAccess
    from airflow_bookmarks.store.table_settings import FoundSettings
    from airflow_bookmarks.store.uri import StoreAddress

__all__ = ["BookmarkStore", "Commit", "LeaseGrant", "open_store"]

SIDE_RETENTION = timedelta(days=30)
MAX_UPSTREAMS = MAX_OPERATIONS - 4  # a commit also writes HEAD, RUN, EXEC and the index
# Of all contexts of a job: a change that moves every edge also writes HEAD, LINE, EVENT and the request that it carries
# out, proves what was collected and the list of what to clean, and gives up the open run; one more is to spare.
MAX_JOB_UPSTREAMS = MAX_OPERATIONS - 8
MAX_RUN_BYTES = MAX_ITEM_BYTES  # of the item of a run, with its plans and what its commit adds
# Each later write of an item pays for everything in it, and a blob is paid for once: so the inline payloads of one RUN
# item share this limit, and a plan, which is there before places, commit and mark are written, has less.
_ITEM_BUDGET = 16_384
PLAN_INLINE_BYTES = 1_024


@dataclass(frozen=True, slots=True)
class Commit:
    """What a commit writes: per context the new state and position, per output its lists, edges, and measurements.

    `contexts` is the whole map after the run; `positions` and `edges` only what this run moved. `has_item` tells
    whether a plan or place was stored before.
    """

    contexts: Mapping[str, ContextState]
    positions: Mapping[str, Payload]
    outputs: Mapping[str, OutputEntry]
    edges: Mapping[str, Edge]
    schemas: Mapping[str, Payload]
    metrics: Attributes
    is_empty: bool
    is_last: bool = True
    has_item: bool = True
    option: str = "enable"


class BookmarkStore(LeaseStore, SettlementStore, TimelineTransitions, ReplayStore):
    """The bookmarks of one namespace of one table.

    Args:
        table: where the items are.
        namespace: isolates environments that share a table; part of every key.
        clock: returns the present time, aware; for leases and stamps only, never for positions.
        random: for identifiers and backoff.
        state_uri: folder for blobs that are too large for the table; None: the table holds all.
        objects: what reaches that folder; None: files, as sources and targets are reached.
        ascii_names: whether new jobs, contexts and outputs are refused names outside of ASCII.

    `address` is the URI given to `open_store`; None if the store was built in another way. `databases` finds the logins
    of the databases that its jobs read and write: by the environment, unless whoever opens the store sets another one.
    """

    address: StoreAddress | None = None
    databases: DatabaseAccess = EnvironmentAccess()

    # ---- the table itself

    def init(self, settings: TableSettings = DEFAULT) -> bool:
        """Create the table and its schema item if they are absent; return whether anything was created.

        The schema item notes the `state_uri`, so that its objects are found after that has changed or been dropped, and
        the settings that the last `init` with settings asked for.

        Args:
            settings: what a table in DynamoDB is made with: encryption key, deletion protection, tags, stream.

        Raises:
            TableLayoutError: the table has another layout or version. OptionError: it is there, without `settings`.
        """
        created = self.table.create(settings)
        schema: Attributes = {"layout_version": LAYOUT_VERSION, "created_at": to_text(self._clock())}
        try:
            self.table.transact([Put(item.SCHEMA, schema, [Missing()])])
        except ConditionFailedError:
            self.check_layout()
        if self.blobs.state_uri is not None:
            note_state_uri(self.table, self.blobs.state_uri)
        if not settings.is_default:
            note_settings(self.table, settings)
        return created

    def lost_settings(self, found: FoundSettings) -> list[str]:
        """Describe what the table was made with, by the note of `init`, and no longer has."""
        return noted_settings(self.table.get([item.SCHEMA]).get(item.SCHEMA, {})).lacking(found)

    # ---- plan, place

    def plan(self, grant: LeaseGrant, ctx: str, entry: PlanEntry, *, option: str, is_last: bool) -> None:
        """Store the plan of one context on the run item, before the first byte is read.

        Raises:
            FencedError: the job is not ours any more; nothing was written.
        """
        keys = self.keys(grant.job)
        run = Update(
            keys.run(grant.key),
            set=self._run_base(grant, option, is_last) | item.plan_attribute(ctx, entry),
            conditions=_OPEN,
        )
        self._held(grant, [Check(keys.head, [Equals("fence", grant.fence)]), run], f"store the plan of {ctx!r}")

    def context_bytes(self, grant: LeaseGrant, ctx: str, entry: PlanEntry) -> int:
        """Return about how many bytes a context takes in the item of a run, once that is committed."""
        return check_item(self.keys(grant.job).run(grant.key), item.context_attributes(ctx, entry))

    def place(
        self,
        grant: LeaseGrant,
        outputs: Mapping[str, OutputEntry],
        staging: Sequence[str],
        *,
        option: str,
        is_last: bool,
        state: StateEntry | None = None,
    ) -> None:
        """Store where outputs are staged, before the first byte is written; `staging` are all roots known so far.

        Before a sink that commits by itself writes, the outputs staged by then are stored with what they publish, and
        `job.state` as the run leaves it (None: the run has not used it).

        Raises:
            FencedError: the job is not ours any more; nothing was written.
        """
        keys = self.keys(grant.job)
        head = Update(keys.head, set={"staging": list(staging)}, conditions=[Equals("fence", grant.fence)])
        placed = self._run_base(grant, option, is_last)
        for name, entry in outputs.items():
            placed |= item.output_attribute(name, entry)
        if state is not None:
            placed |= item.state_attribute(state)
        run = Update(keys.run(grant.key), set=placed, conditions=_OPEN)
        self._held(grant, [head, run], f"store the place of {', '.join(map(repr, outputs))}")

    def _run_base(self, grant: LeaseGrant, option: str, is_last: bool) -> Attributes:
        return item.run_attributes(_planned(grant, option, is_last))

    def payloads(
        self, datas: Mapping[str, bytes], used_bytes: int = 0, *, most_bytes: int | None = None
    ) -> dict[str, Payload]:
        """Return references for several bodies of one item: inline while they are small and fit together, else blobs.

        Args:
            datas: the bodies, by name.
            used_bytes: what lies inline in that item already.
            most_bytes: up to which size a body is small; default: 16 KB.
        """
        result: dict[str, Payload] = {}
        for name, data in datas.items():
            room = INLINE_BYTES if used_bytes + len(data) <= _ITEM_BUDGET else 0
            result[name] = self.blobs.payload(data, room if most_bytes is None else min(room, most_bytes))
            used_bytes += len(data) if result[name].inline is not None else 0
        return result

    # ---- commit, mark

    def commit(self, grant: LeaseGrant, commit: Commit) -> Run:
        """Make the plans of the run part of the bookmark, in one atomic step; return the run as it is then.

        Raises:
            FencedError: the job is not ours any more. ChangedMeanwhileError: its version moved. Nothing was written.
            MisuseError: more upstreams than a transaction holds, or a position names an artifact of others.
        """
        if len(commit.edges) > MAX_UPSTREAMS:
            raise MisuseError(
                f"job {grant.job!r} reads {len(commit.edges)} upstream jobs in one run; {MAX_UPSTREAMS} is the "
                "most that one DynamoDB transaction can commit. Nothing was committed. Split the job."
            )
        self.artifacts.check(grant.job, commit.contexts, grant.base.contexts)
        try:
            self.table.transact(self._commit_operations(grant, commit), token=self._token())
        except ConditionFailedError as error:
            found = self.run(grant.job, grant.key)
            if found is not None and found.state.is_committed and grant.has_made(found):
                return found  # an own success whose reply was lost
            self._check_indexed(grant)
            raise self._unchanged(grant, "commit") from error
        return self._committed(grant, commit)

    def _check_indexed(self, grant: LeaseGrant) -> None:
        if self.index_entry(grant.job) is None:
            raise StateCorruptError(
                f"the index item of job {grant.job!r} in namespace {self.namespace!r} is gone, so nobody can tell "
                "which of its runs were collected or imported. Nothing was committed. 'airflow-bookmarks doctor' says "
                "whether it can be written again."
            )

    def _committed(self, grant: LeaseGrant, commit: Commit) -> Run:
        """Return what was just written, so that the publisher need not read it."""
        return replace(
            _planned(grant, commit.option, commit.is_last),
            state=RunState.COMMITTED,
            is_empty=commit.is_empty,
            outputs=commit.outputs,
            positions=commit.positions,
            schemas=commit.schemas,
            contexts=commit.contexts,
            metrics=commit.metrics,
            version=grant.base.version + 1,
            data_run_number=grant.base.data_run_number if commit.is_empty else grant.run_number,
        )

    def _commit_operations(self, grant: LeaseGrant, commit: Commit) -> list[Operation]:
        keys, now, key = self.keys(grant.job), to_text(self._clock()), grant.key
        data_run = grant.base.data_run_number if commit.is_empty else key.number
        version = grant.base.version + 1
        head: Attributes = {"version": version, "run_number": key.number, "publishing": str(key)}
        head |= {"contexts": item.contexts_value(commit.contexts), "data_run_number": data_run}
        head |= item.commits_attribute(self._commits(grant))
        run = {} if commit.has_item else self._run_base(grant, commit.option, commit.is_last)
        run |= {"state": RunState.COMMITTED.value, "version": version, "committed_at": now}
        run |= {"contexts": item.contexts_value(commit.contexts), "data_run_number": data_run}
        run |= {"is_empty": commit.is_empty, "metrics": commit.metrics, "is_last": commit.is_last}
        run["edges"] = {
            job: {"run_number": e.run_number, "epoch": e.epoch, "changes": e.changes, "contexts": dict(e.contexts)}
            for job, e in commit.edges.items()
        }
        for name, output in commit.outputs.items():
            run |= item.output_attribute(name, output)
        run |= item.bodies_attributes(commit.positions, commit.schemas, MAX_UPDATED - len(run))
        operations: list[Operation] = [
            Update(
                keys.head,
                set=head,
                conditions=commit_conditions(grant),
            ),
            Update(keys.run(key), set=run, conditions=[Lacks("failed_at")]),
            Update(keys.execution(grant.identity.run_id), set=self._execution_runs(grant)),
            # It is there since the take: written anew, it would lose what was collected or imported.
            Update(keys.index, set=self._index_commit(grant, now, key.number), conditions=[Exists()]),
        ]
        operations += [
            Update(self.keys(upstream).edge(grant.job), set=item.edge_attributes(replace(edge, updated_at=now)))
            for upstream, edge in commit.edges.items()
        ]
        return operations

    def _commits(self, grant: LeaseGrant) -> Sequence[datetime]:
        """Return the times of the last commits with the present one, which replaces that of its own loop."""
        before = grant.base.commits if grant.first_run is None else grant.base.commits[:-1]
        return [*before, self._clock()][-COMMITS_KEPT:]

    def _index_commit(self, grant: LeaseGrant, now: str, number: int) -> Attributes:
        entry: Attributes = {"last_commit_at": now, RUN_NUMBER: number}
        identity = grant.identity
        # The take settled who owns the job. The owner's task that runs it may change.
        if identity.dag_id is not None and identity.dag_id == grant.base.owner:
            entry |= {"task_id": identity.task_id, "map_index": identity.map_index}
        return entry

    def _execution_runs(self, grant: LeaseGrant) -> Attributes:
        # Not finished until the mark of this run, also where recovery has just marked an earlier attempt's as the last.
        runs: Attributes = {"last_run": grant.run_number, "first_run": grant.first_run or grant.run_number}
        return runs | {"finished": False}

    def mark(
        self, grant: LeaseGrant, run: Run, *, is_own: bool, take_next: timedelta | None = None
    ) -> LeaseGrant | None:
        """Record that a committed run is published, and release the lease if the run is the publisher's own.

        Return what the driver holds after that: None if the lease was released. With `take_next` (a lease time) the own
        lease is not released: the same transaction takes the next fence, for the next run of the same execution.

        Raises:
            FencedError: the job is not ours any more; whoever took it over finishes the publication.
        """
        keys, now = self.keys(grant.job), self._clock()
        published = max(grant.base.published, run.key.number)
        head: Attributes = {"published": published}
        remove = ["publishing", "failure"]  # a failure to publish, or to replay, is over
        following: LeaseGrant | None = None
        if is_own and take_next is not None:
            nonce = self._token()
            lease = Lease(grant.identity.run_id, grant.identity.attempt, now, now + take_next, nonce)
            head |= {"fence": grant.fence + 1, **item.lease_attributes(lease)}
            first_run = grant.first_run or run.key.number
            following = replace(grant, fence=grant.fence + 1, nonce=nonce, begun_at=now, first_run=first_run)
        elif is_own:
            remove += item.LEASE_ATTRIBUTES
        operations: list[Operation] = [
            Update(keys.head, set=head, remove=remove, conditions=[Equals("fence", grant.fence)]),
            Update(
                keys.run(run.key),
                set={"state": RunState.PUBLISHED.value, "published_at": to_text(now), "metrics": dict(run.metrics)},
                conditions=[Equals("state", RunState.COMMITTED.value)],
            ),
        ]
        # A replay ends the execution that replays. The execution that made the run has ended before, and may be
        # collected.
        is_finished = run.is_last or run.replayed_by is not None
        maker = keys.execution(run.replayed_by or run.run_id)
        operations.append(Update(maker, set={"finished": is_finished}, remove=["replaying"]))
        try:
            self.table.transact(operations, token=self._token())
        except ConditionFailedError as error:
            if not self._is_marked(grant, run, following):
                raise self._fenced(grant, f"mark run {run.key.number} as published") from error
        if following is not None:
            return replace(following, base=replace(self.head(grant.job), lease=None))
        if is_own:
            return None
        return replace(grant, base=replace(grant.base, published=published, publishing=None))

    def _is_marked(self, grant: LeaseGrant, run: Run, following: LeaseGrant | None) -> bool:
        found, head = self.run(grant.job, run.key), self.head(grant.job)
        if following is not None:
            return head.lease is not None and head.lease.nonce == following.nonce
        if found is None or found.run_id != run.run_id or found.revision < run.revision:
            return False
        return found.state is RunState.PUBLISHED and head.published >= run.key.number

    # ---- fail, abandon, adopt

    def fail(
        self,
        grant: LeaseGrant,
        error: str,
        *,
        has_item: bool,
        is_kept: bool = False,
        is_failure: bool = True,
        exit_code: int | None = None,
    ) -> None:
        """Mark the own run as FAILED, if it has an item, and release the lease; the error is redacted and cut.

        With `is_kept` a run that has planned nothing gets an item, so that its error is not lost. `is_failure`: the
        head says so too; not where the run only leaves its work to another one. `exit_code` is that of the driver, if
        it is known.

        Raises:
            FencedError: the job is not ours any more.
        """
        keys = self.keys(grant.job)
        left = item.failure_attribute(self._failure(grant, error, exit_code=exit_code)) if is_failure else {}
        operations: list[Operation] = [
            Update(keys.head, set=left, remove=item.LEASE_ATTRIBUTES, conditions=[Equals("fence", grant.fence)])
        ]
        failed: Attributes = {
            "state": RunState.FAILED.value,
            "error": stored_error(error),
            "failed_at": to_text(self._clock()),
        }
        if has_item:
            operations.append(
                Update(keys.run(grant.key), set=failed, conditions=[Equals("state", RunState.PLANNED.value)])
            )
        elif is_kept:
            failed = self._run_base(grant, "enable", True) | failed
            operations.append(Update(keys.run(grant.key), set=failed, conditions=_OPEN))
        self._held(grant, operations, "mark the run as failed")

    # ---- side records

    def put_side(
        self, job: str, record: Attributes, *, ulid: str | None = None, replaced: Mapping[str, Payload] | None = None
    ) -> str:
        """Store the record of a pause or disable run; return its id, or replace the record with the given id.

        No later run of the job reads it, and `gc` removes it after `SIDE_RETENTION`. The exception is a record with
        `replaced`, which lists the published files that the run replaces, by output: consumers look there when such a
        file is gone, so the record stays. A replacement names every attribute of the former record.

        No run says when an item expires: with the right to say that it could have DynamoDB delete any item of a job.
        """
        now = self._clock()
        ulid = ulid or new_ulid(now, self._random)
        attributes = record | {"made_at": to_text(now)}
        if replaced:
            attributes |= {f"{item.REPLACED_PREFIX}{name}": item.payload_value(each) for name, each in replaced.items()}
        self.table.transact([Update(self.keys(job).side(ulid), set=attributes)])
        return ulid


# A request whose reply was lost may arrive late: it must neither reopen what is committed nor commit what was reported
# as failed.
_OPEN: Sequence[Condition] = (Lacks("committed_at"), Lacks("failed_at"))


def _planned(grant: LeaseGrant, option: str, is_last: bool) -> Run:
    """Return the run of a holding as in its first write: what makes it, and against which state."""
    return Run(
        key=grant.key,
        state=RunState.PLANNED,
        epoch=grant.base.epoch,
        run_id=grant.identity.run_id,
        attempt=grant.identity.attempt,
        planned_at=to_text(grant.begun_at),
        base_version=grant.base.version,
        changes=grant.base.changes,
        fences=(grant.fence,),
        is_last=is_last,
        option=option,
        runtime_version=__version__,
    )


def open_store(uri: str, *, session: Any = None) -> BookmarkStore:
    """Open the bookmarks that a store URI names.

    Args:
        uri: `dynamodb://<table>?region=...&namespace=...&endpoint=...` or `sqlite:////<absolute path>?namespace=...`,
            each with `state_uri=...`, a folder for state that is too large for the table, and `names=ascii`, which
            refuses new names outside of ASCII.
        session: a boto3 session whose credentials reach DynamoDB, and a state_uri in S3; default: boto3's own chain.

    Raises:
        OptionError: the URI has an unknown scheme or parameter.
        TableMissingError: an SQLite file that does not exist, unless `create=true`.

    Example:
        >>> store = open_store("sqlite:///:memory:?create=true")
        >>> store.jobs()
        []
    """
    from airflow_bookmarks.store.opener import open_table
    from airflow_bookmarks.store.uri import StoreAddress

    address = StoreAddress.parse(uri)
    table, _ = open_table(uri, session=session)
    store = store_on(table, address, session=session)
    if address.create:
        store.init()
    return store


def store_on(table: Table, address: StoreAddress, *, session: Any = None) -> BookmarkStore:
    """Return the bookmarks on an open table, with everything that their address says of them.

    Args:
        table: what `address` names.
        address: a store URI, parsed.
        session: a boto3 session whose credentials reach a state_uri in S3; default: as sources and targets are reached.
    """
    from airflow_bookmarks.files.objects import FileObjects

    store = BookmarkStore(
        table,
        address.namespace,
        state_uri=address.state_uri,
        objects=FileObjects(session),
        ascii_names=address.has_ascii_names,
    )
    store.address = address
    return store
