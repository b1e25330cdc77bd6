"""Present the state of a job as answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.health.record import standing_of
from airflow_bookmarks.core.job import airflow_run_id
from airflow_bookmarks.core.job_state import STATE_KIND, hidden
from airflow_bookmarks.core.ledger.gap import gaps_in_words
from airflow_bookmarks.core.metadata.known import is_moment
from airflow_bookmarks.core.rules.owner import FORMER_OWNERS, former_in
from airflow_bookmarks.core.run import orders, watermarks
from airflow_bookmarks.core.selection.partition_time import NEWEST_PARTITION
from airflow_bookmarks.core.text.instant import to_text
from airflow_bookmarks.core.text.redaction import redacted
from airflow_bookmarks.lifecycle.changes.approval import ASK_ANEW
from airflow_bookmarks.lifecycle.inspect.sharded_list import row_of_shards
from airflow_bookmarks.lifecycle.state.positions import shown
from airflow_bookmarks.plugin.presenters.health import worst_of
from airflow_bookmarks.plugin.schemas.responses import (
    ContextRow,
    DamagedRequest,
    EventRow,
    Gaps,
    Holder,
    JobRow,
    JobState,
    RequestRow,
    RunRow,
    SideRow,
    Task,
    Window,
)
from airflow_bookmarks.sources.registry import find_kind, has_ledger, upstream_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from airflow_bookmarks.core.errors import StateCorruptError
    from airflow_bookmarks.core.head import Head, Lease
    from airflow_bookmarks.core.run import ContextState, Execution, PlanEntry
    from airflow_bookmarks.lifecycle.changes.approval import Request
    from airflow_bookmarks.plugin.auth import Person, UserScope
    from airflow_bookmarks.plugin.presenters.health import Surroundings
    from airflow_bookmarks.sources.kind import SetBy

_INDEX = {"dag_id": str, "task_id": str, "map_index": int, "first_seen_at": str, "last_commit_at": str}
_DAMAGED = "What the state store holds of this is damaged; 'airflow-bookmarks doctor' names the item."


# ---- jobs


def job_row(
    namespace: str, job: str, head: Head, entry: Mapping[str, Any], now: datetime, around: Surroundings
) -> JobRow:
    """Return where a job stands."""
    return JobRow(
        job=job,
        namespace=namespace,
        state=standing_of(head, now),
        run_number=head.run_number,
        published=head.published,
        data_run_number=head.data_run_number,
        due_run_number=None if head.publishing is None else head.publishing.number,
        cleaning=head.cleaning is not None,
        protected=head.protected,
        shared_with=list(head.shared_with),
        epoch=head.epoch,
        version=head.version,
        watermark=watermarks(head.contexts),
        order=orders(head.contexts),
        holder=None if head.lease is None else _holder(head.lease),
        health=around.health(job, head, now),
        **index_details(entry),
    )


def damaged_row(
    namespace: str, job: str, entry: Mapping[str, Any], why: str | Exception | None, scope: UserScope
) -> JobRow:
    """Return a job that can't be read, with the reason; None: its head is not there."""
    gone = f"the head of job {job!r} is gone, and it had one. Restore the table from a backup or an export."
    damaged = damage(gone if why is None else why, scope)
    return JobRow(job=job, namespace=namespace, state="DAMAGED", damaged=damaged, **index_details(entry))


# The first that one shard is in, its job is in: what somebody may have to do comes first.
STATES: Sequence[JobState] = ("DAMAGED", "RUNNING", "EXPIRED", "DUE", "IDLE", "NEW")


def sharded_row(job: str, shards: Sequence[JobRow]) -> JobRow:
    """Return a sharded job as one row, combined from its virtual shards as on the command line."""
    rows = [{**row.model_dump(), "lease": row.holder} for row in shards]
    whole = row_of_shards(job, rows)
    lists = {
        name: sorted({dag_id for row in rows for dag_id in row[name]}) for name in ("former_owners", "shared_with")
    }
    own: dict[str, Any] = {"state": next(state for state in STATES if any(row.state == state for row in shards))}
    own |= {"health": worst_of([row.health for row in shards])}
    own |= {"is_deleted": False, "runs": [], "lag": None, "map_index": None, "holder": whole["lease"], **lists}
    return JobRow(**{name: value for name, value in whole.items() if name != "lease"} | own)


def damage(why: str | Exception, scope: UserScope) -> str:
    """Say why something of a job can't be read; only users with rights on connections see items, objects and tables."""
    return redacted(str(why)) if scope.may_see_the_store else _DAMAGED


def damaged_request(request_id: str, error: StateCorruptError, scope: UserScope) -> DamagedRequest:
    """Return a request that can't be read, with the reason and what to do."""
    why = damage(error, scope)
    # The error itself says what to do, and only some are shown it.
    return DamagedRequest(id=request_id, why=why if ASK_ANEW in why else f"{why} {ASK_ANEW}")


def index_details(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the index says of a job; values of a wrong type are left out."""
    details: dict[str, Any] = {name: entry[name] for name, kind in _INDEX.items() if isinstance(entry.get(name), kind)}
    return {**details, FORMER_OWNERS: former_in(entry)}


def _holder(lease: Lease) -> Holder:
    until = to_text(lease.expires_at)
    return Holder(run_id=lease.run_id, attempt=lease.attempt, since=to_text(lease.since), until=until)


def context_rows(
    contexts: Mapping[str, ContextState], planned: Mapping[str, PlanEntry], quarantined: Mapping[str, int | None]
) -> list[ContextRow]:
    """Return where each context stands, with what its last plan tells of gaps and of the newest partition.

    Args:
        contexts: those of the job's head.
        planned: the last plan of each.
        quarantined: how many files each has set aside, where there are any; None: not known.
    """
    result = {ctx: shown(planned.get(ctx)) for ctx in contexts}
    return [
        ContextRow(
            ctx=ctx,
            kind=state.kind,
            source=state.fingerprint,
            watermark=state.watermark,
            order=state.order,
            run_number=state.run.number,
            set_in_epoch=state.set_in,
            position=in_words(state),
            set_by=_set_by(state.kind),
            upstream=upstream_of(state),
            gaps=_gaps(result[ctx].get("gaps")),
            newest_partition=result[ctx].get(NEWEST_PARTITION),
            reads_parts=ctx in planned and planned[ctx].metadata.part is not None,
            quarantined=quarantined.get(ctx, 0),
        )
        for ctx, state in sorted(contexts.items())
    ]


def _set_by(kind: str) -> SetBy | None:
    found = find_kind(kind)
    return None if found is None else found.set_by


def _gaps(gaps: Mapping[str, Any] | None) -> Gaps | None:
    return None if gaps is None else Gaps(**gaps, words=gaps_in_words(gaps))


def in_words(state: ContextState) -> str:
    """Describe where a context stands.

    Example:
        >>> from airflow_bookmarks.core.run import ContextState, RunKey
        >>> in_words(ContextState("upstream", "upstream:clean", RunKey(7, 9), "41"))
        'up to run 41 of clean, since run 7'
    """
    since = f"since run {state.run.number}" if state.set_in is None else f"set by hand in epoch {state.set_in}"
    if state.kind == STATE_KIND:
        return f"what the script kept, {since}"
    upstream = upstream_of(state)
    if upstream is not None:
        return f"up to run {state.watermark or 0} of {upstream}, {since}"
    if state.watermark is None:
        return f"nothing read yet, {since}"
    if has_ledger(state.kind) and is_moment(state.watermark):
        return f"every file that was found; the newest is of {state.watermark}, {since}"
    if state.watermark_column is not None:
        return f"every file that was found; the greatest {state.watermark_column} is {state.watermark}, {since}"
    if has_ledger(state.kind):
        return f"every file that was found; the highest is {state.watermark}, {since}"
    return f"up to {state.watermark}, {since}"


def side_row(record: Mapping[str, Any]) -> SideRow:
    """Return a pause or disable run."""
    return SideRow(
        option=record["option"],
        run_id=record["run_id"],
        attempt=record["attempt"],
        from_run=record.get("from"),
        to_run=record.get("to"),
        made_at=record.get("made_at"),
        contexts={ctx: dict(details) for ctx, details in record.get("contexts", {}).items()},
    )


def request_row(body: Request, person: Person, *, may_change: bool, hides_state: bool) -> RequestRow:
    """Return a request, with whether this user may approve it: not one of their own."""
    result = hidden(body.as_dict()) if hides_state else body.as_dict()
    return RequestRow(**result, may_approve=may_change and not body.who.is_same(person.identity))


# ---- runs and events


def run_row(row: Mapping[str, Any], execution: Execution | None = None) -> RunRow:
    """Return a run, given as `lifecycle.inspect.runs.row` has it, with a link to its task where Airflow made it."""
    window = {
        ctx: Window(before=details.get("watermark_before"), after=row["watermark"].get(ctx))
        for ctx, details in row["contexts"].items()
    }
    return RunRow(**row, window=window, task=None if execution is None else task_of(execution, row["attempt"]))


def task_of(execution: Execution, attempt: int) -> Task | None:
    """Return the task behind an execution; None if it is not one of Airflow's."""
    dag_id, dag_run_id, task_id = execution.dag_id, execution.dag_run_id, execution.task_id
    if dag_id is None or dag_run_id is None or task_id is None:
        return None
    index = execution.run_id.removeprefix(airflow_run_id(dag_id, dag_run_id, task_id)).removeprefix("/")
    return Task(
        dag_id=dag_id,
        dag_run_id=dag_run_id,
        task_id=task_id,
        map_index=int(index) if index.isascii() and index.isdigit() else -1,
        try_number=attempt,
    )


def event_row(event: Mapping[str, Any]) -> EventRow:
    """Return an event without internal attributes (nonces, previews)."""
    known: dict[str, Any] = {name: event.get(name) for name in EventRow.model_fields}
    # An undo goes back to all that the line before had; the last run kept of that is another number.
    return EventRow(**known | {"to_run": event.get("last_kept", event.get("to_run"))})
