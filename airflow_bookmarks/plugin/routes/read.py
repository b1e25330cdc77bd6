"""Looking: the routes that change nothing. Each takes the permission to look at the job."""

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Path, Query

from airflow_bookmarks.core.errors import OptionError, StateCorruptError
from airflow_bookmarks.core.head import Head
from airflow_bookmarks.core.job_state import HIDDEN, STATE_CONTEXT, shown_states
from airflow_bookmarks.core.run import ContextState, Run, RunKey
from airflow_bookmarks.core.text.instant import to_text
from airflow_bookmarks.hooks.bookmark import BookmarkHook
from airflow_bookmarks.lifecycle.changes.approval import APPROVED, OPEN, Request, requests_or_damage
from airflow_bookmarks.lifecycle.health.job import missing_in, set_aside
from airflow_bookmarks.lifecycle.history.state_values import state_values
from airflow_bookmarks.lifecycle.inspect.lag import Neighbours
from airflow_bookmarks.lifecycle.inspect.partitions import by_partition
from airflow_bookmarks.lifecycle.inspect.runs import row
from airflow_bookmarks.lifecycle.state.positions import last_plans
from airflow_bookmarks.lifecycle.state.quarantine import quarantined_counts
from airflow_bookmarks.plugin.auth import UserScope
from airflow_bookmarks.plugin.dependencies import JobName, Owned, PageRequestDep, TaskRunner
from airflow_bookmarks.plugin.presenters.bookmark import (
    context_rows,
    damage,
    damaged_request,
    damaged_row,
    event_row,
    job_row,
    request_row,
    run_row,
    sharded_row,
    side_row,
)
from airflow_bookmarks.plugin.presenters.health import Surroundings
from airflow_bookmarks.plugin.presenters.job_list import JobQuery, Sort, failed_tasks, job_list, row_of, worst_lag
from airflow_bookmarks.plugin.presenters.sharded_job import live_shards
from airflow_bookmarks.plugin.redaction import hidden_from, with_names_hidden
from airflow_bookmarks.plugin.scan.child import may_look
from airflow_bookmarks.plugin.schemas.graph import Graph
from airflow_bookmarks.plugin.schemas.partitions import PartitionList, PartitionRow
from airflow_bookmarks.plugin.schemas.pending import Pending
from airflow_bookmarks.plugin.schemas.responses import (
    ConsumerRow,
    EventList,
    FileList,
    FileRow,
    HealthWord,
    Job,
    JobList,
    JobState,
    LagList,
    LagRow,
    May,
    Me,
    RunList,
    RunRow,
)
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.store.transitions.naming import is_deleted, job_keys
from airflow_bookmarks.version import __version__

router = APIRouter(tags=["looking"])

_Told = TypeVar("_Told", Pending, LagList)

_SIDE_RUNS = 20
_CLOSED_REQUESTS = 20
_RUNS_OF_PARTITIONS = 1000
# Of a job whose head can't be read, only its name and owner are known.
_NOTHING_MORE: dict[str, Any] = {
    "contexts": [], "job_state": {}, "consumers": [], "hidden_consumers": 0, "requests": [], "side_runs": [],
}  # fmt: skip
_CURSOR = r"^[0-9]{1,10}\.[0-9]{1,10}$"

Limit = Annotated[int, Query(ge=1, le=200, description="how many at most")]
Offset = Annotated[int, Query(ge=0, le=10**9, description="how many to leave out")]
Search = Annotated[str, Query(max_length=250, description="a part of the job's name, its DAG's or its task's")]
Points = Annotated[int, Query(ge=0, le=50, description="how many of the last runs come with each job")]
Counts = Annotated[bool, Query(description="whether to say how many jobs there are of each health")]
DagName = Annotated[str, Path(max_length=250)]
TaskName = Annotated[str | None, Query(max_length=250)]


@router.get("/me")
async def me(request: PageRequestDep) -> Me:
    """Say who is logged in, and what they may do with jobs that belong to no DAG. Asks nothing of the store."""
    may_read = await request.airflow(request.person.may_read_assets)
    may_change = await request.airflow(request.person.may_change_assets)
    may = May(read_jobs_without_dag=may_read, change_jobs_without_dag=may_change)
    return Me(name=request.person.name, may=may, may_look=may_look(), package_version=__version__)


@router.get("/jobs")
async def jobs(
    request: PageRequestDep,
    search: Search = "",
    state: JobState | None = None,
    sort: Sort = "job",
    limit: Limit = 50,
    offset: Offset = 0,
    runs: Points = 10,
    health: HealthWord | None = None,
    counts: Counts = False,
) -> JobList:
    """List the jobs that the user may look at."""
    wanted = JobQuery(search, state, health, sort, limit, offset, runs, counts=counts)
    scope = await request.scope()
    do = request.all_jobs if wanted.needs_heads else request.store
    return await do(lambda hook: job_list(hook.get_conn(), scope, wanted, request.backstage.jobs))


@router.get("/dags/{dag_id}/jobs")
async def jobs_of_dag(
    request: PageRequestDep,
    dag_id: DagName,
    task_id: TaskName = None,
    limit: Limit = 50,
    offset: Offset = 0,
    runs: Points = 10,
) -> JobList:
    """List the jobs that belong to a DAG, or to one of its tasks; none where the user may not look at the DAG."""
    wanted = JobQuery(limit=limit, offset=offset, runs=runs, dag_id=dag_id, task_id=task_id)
    scope = await request.scope()
    return await request.store(lambda hook: job_list(hook.get_conn(), scope, wanted, request.backstage.jobs))


@router.get("/jobs/{job}")
async def one_job(request: PageRequestDep, job: JobName) -> Job:
    """Tell all of a job that is to be known at one look."""
    found = await request.readable_job(job)
    may_change = await request.airflow(lambda: request.person.may_change_each(found.rights))
    scope = await request.scope()
    if found.shards:
        return await request.store(lambda hook: _sharded_job(hook, found, scope, may_change))
    result = await request.store(lambda hook: _job(hook, found, request, scope, may_change))
    return result.model_copy(update={"sharded_job": await request.sharded_job_of(found.key)})


@router.get("/jobs/{job}/runs")
async def runs_of(
    request: PageRequestDep,
    job: JobName,
    limit: Limit = 50,
    before: Annotated[str | None, Query(pattern=_CURSOR, description="`next` of the page before")] = None,
) -> RunList:
    """List the runs of a job, newest first, with those that failed, were given up or undone."""
    found = await request.readable(job)
    scope = await request.scope()
    cursor = None if before is None else RunKey.parse(before)
    return await request.store(lambda hook: _runs(hook.get_conn(), found.key, scope, limit, cursor))


@router.get("/jobs/{job}/runs/{number}/files")
async def files_of(
    request: PageRequestDep,
    job: JobName,
    number: Annotated[int, Path(ge=1, lt=10**10)],
    limit: Limit = 50,
    offset: Offset = 0,
) -> FileList:
    """List the files that a run of the living history has read."""
    found = await request.readable(job)
    result = await request.with_files(
        lambda hook, do: do("files", found.key, number=number, offset=offset, limit=limit)
    )
    rows = [FileRow(**each) for each in result["files"]]
    return FileList(files=rows, total=result["total"], unlisted=result["unlisted"], limit=limit, offset=offset)


@router.get("/jobs/{job}/events")
async def events_of(request: PageRequestDep, job: JobName, limit: Limit = 50, offset: Offset = 0) -> EventList:
    """List the changes, replays, requests and decisions of a job, newest first."""
    found = await request.readable(job)
    scope = await request.scope()
    return await request.store(lambda hook: _events(hook.get_conn(), found.key, scope, limit, offset))


@router.get("/jobs/{job}/pending")
async def pending_of(request: PageRequestDep, job: JobName) -> Pending:
    """Tell what the next run of a job would read, or what its last run left, where its folders are not looked at."""
    found = await request.readable(job)
    scope = await request.scope()
    return await request.with_files(
        lambda hook, do: _of_sources(hook, found.key, scope, Pending(**do("pending", found.key)))
    )


@router.get("/jobs/{job}/lag")
async def lag_of(request: PageRequestDep, job: JobName) -> LagList:
    """Tell how far a job is behind each job and each folder that it reads, or was, where that is not looked at."""
    found = await request.readable(job)
    scope = await request.scope()
    return await request.with_files(lambda hook, do: _of_sources(hook, found.key, scope, _lags(hook, do, found.key)))


@router.get("/jobs/{job}/partitions")
async def partitions_of(request: PageRequestDep, job: JobName) -> PartitionList:
    """Tell what the newest runs of a job have read of each part of a source, those that fail first."""
    found = await request.readable(job)
    scope = await request.scope()
    return await request.store(lambda hook: _partitions(hook.get_conn(), found.key, scope))


@router.get("/jobs/{job}/graph")
async def graph_of(request: PageRequestDep, job: JobName) -> Graph:
    """Tell what a job depends on and what depends on it, as far as the user may look at it."""
    found = await request.readable(job)
    scope = await request.scope()
    return await request.all_jobs(lambda hook: _graph(hook, found.key, scope))


# ---- within the store's threads


def _job(hook: BookmarkHook, found: Owned, request: PageRequestDep, scope: UserScope, may_change: bool) -> Job:
    store, key = hook.get_conn(), found.key
    head = store.heads_or_damage([key]).get(key)
    entry = store.index_entry(key) or {}
    if not isinstance(head, Head):
        base = damaged_row(store.namespace, key, entry, head, scope)
        return Job(**base.model_dump(), **_NOTHING_MORE, default_option=hook.default_option, may_change=may_change,
                   may_look=may_look())  # fmt: skip
    edges = store.edges(key)
    seen = hidden_from(store, scope, [edge.consumer for edge in edges])
    body, damaged = _asked(store, key)
    around, plans = Surroundings.of(store, {key: head}, {key: entry}), last_plans(store, key, head)
    told = around.told_to(store, scope)
    quarantined = quarantined_counts(store, key, head)
    base = job_row(store.namespace, key, head, entry, store.now(), told)
    health = told.health(
        key,
        head,
        store.now(),
        requests=[each.made_at for each in body if each.state == OPEN],
        quarantined=set_aside(quarantined),
        gaps=missing_in(head, plans),
    )
    more: dict[str, Any] = {"lag": worst_lag(around.lags[key]), "is_deleted": is_deleted(entry, head), "health": health}
    more["failed_task"] = failed_tasks(store, {key: head}).get(key)
    result = Job(
        **base.model_copy(update=more).model_dump(),
        contexts=context_rows(head.contexts, plans, quarantined),
        consumers=[
            ConsumerRow(job=edge.consumer, run_number=edge.run_number, epoch=edge.epoch, updated_at=edge.updated_at)
            for edge in edges
            if edge.consumer not in seen
        ],
        job_state=_state(hook, key, head, scope),
        hidden_consumers=len(seen),
        requests=[
            request_row(each, request.person, may_change=may_change, hides_state=hook.hides_state) for each in body
        ],
        damaged_requests=[damaged_request(name, error, scope) for name, error in damaged.items()],
        side_runs=[side_row(record) for record in store.sides(key)[: -_SIDE_RUNS - 1 : -1]],
        default_option=hook.default_option,
        may_change=may_change,
        may_look=may_look(),
    )
    return with_names_hidden(store, scope, result, _reads(store, key, head))


def _sharded_job(hook: BookmarkHook, found: Owned, scope: UserScope, may_change: bool) -> Job:
    store = hook.get_conn()
    live = live_shards(store, found.shards)
    entries = {shard: entry for shard, (entry, _) in live.items() if not isinstance(entry, str)}
    heads = {shard: head for shard, (_, head) in live.items() if head is not None}
    around = Surroundings.of(store, heads, entries).told_to(store, scope)
    rows = [row_of(store, scope, shard, entry, head, around) for shard, (entry, head) in live.items()]
    whole = sharded_row(found.key, rows)
    return Job(**whole.model_dump(), **_NOTHING_MORE, default_option=hook.default_option, may_change=may_change,
               may_look=may_look(), shard_rows=rows)  # fmt: skip


def _state(hook: BookmarkHook, job: str, head: Head, scope: UserScope) -> dict[str, str]:
    try:
        state = shown_states(state_values(hook.get_conn(), job, head.contexts))
    except StateCorruptError as error:
        state = {STATE_CONTEXT: damage(f"can't be read: {error}", scope)}
    return dict.fromkeys(state, HIDDEN) if hook.hides_state else state


def _asked(store: BookmarkStore, job: str) -> tuple[list[Request], dict[str, StateCorruptError]]:
    """Return the requests that wait for somebody and the last of those that do not any more, and the damaged ones."""
    body, damaged = requests_or_damage(store, job, with_closed=True)
    closed = [each for each in body if each.state not in (OPEN, APPROVED)][-_CLOSED_REQUESTS:]
    return [each for each in body if each.state in (OPEN, APPROVED) or each in closed], damaged


def _of_sources(hook: BookmarkHook, job: str, scope: UserScope, result: _Told) -> _Told:
    store = hook.get_conn()
    return with_names_hidden(store, scope, result, store.head(job).contexts)


def _lags(hook: BookmarkHook, do: TaskRunner, job: str) -> LagList:
    looked_at = to_text(hook.get_conn().now())
    return LagList(lags=[LagRow(**each) for each in do("lag", job)], looked_at=looked_at)


def _runs(store: BookmarkStore, job: str, scope: UserScope, limit: int, before: RunKey | None) -> RunList:
    head = store.head(job)
    found: list[tuple[RunKey, Run | Exception]] = []
    if before is not None:
        # Attempts that failed share a number: first those of it that are left.
        same = store.runs_or_damage(job, after=before.number - 1, until=before.number, reverse=True)
        found += [(key, run) for key, run in same if key.fence < before.fence][: limit + 1]
    until = None if before is None else before.number - 1
    if len(found) <= limit and until != -1:
        found += store.runs_or_damage(job, until=until, reverse=True, limit=limit + 1 - len(found))
    page, more = found[:limit], len(found) > limit
    living = store.ancestry(job, head.epoch)
    executions = store.executions(job, [run.run_id for _, run in page if isinstance(run, Run)])
    rows = [
        run_row(row(run, living), executions.get(run.run_id))
        if isinstance(run, Run)
        else RunRow(number=key.number, fence=key.fence, state="DAMAGED", error=damage(run, scope))
        for key, run in page
    ]
    result = RunList(runs=rows, next=str(page[-1][0]) if more else None)
    return with_names_hidden(store, scope, result, _reads(store, job, head))


def _reads(store: BookmarkStore, job: str, head: Head) -> Mapping[str, ContextState]:
    """Return what a job reads, as its errors may name that; after a reset its head says nothing of it."""
    return Neighbours.of_heads(store, {job: head}).reads[job]


def _partitions(store: BookmarkStore, job: str, scope: UserScope) -> PartitionList:
    rows = [PartitionRow(**row) for row in by_partition(store, job, newest=_RUNS_OF_PARTITIONS)]
    result = PartitionList(partitions=rows, runs=_RUNS_OF_PARTITIONS)
    return with_names_hidden(store, scope, result, _reads(store, job, store.head(job)))


def _events(store: BookmarkStore, job: str, scope: UserScope, limit: int, offset: int) -> EventList:
    events = store.events(job)
    page = [event_row(event) for event in events[::-1][offset : offset + limit]]
    result = EventList(events=page, total=len(events), limit=limit, offset=offset)
    # A job that went back along with an upstream gives that as the reason, and may have nothing of it on its head then.
    is_readable = isinstance(store.heads_or_damage([job]).get(job), Head)
    return with_names_hidden(store, scope, result, Neighbours.of_job(store, job).reads[job] if is_readable else None)


def _graph(hook: BookmarkHook, job: str, scope: UserScope) -> Graph:
    result: dict[str, Any] = hook.graph(job)
    owners = job_keys(hook.get_conn())
    hidden = {
        node["name"] for node in result["nodes"] if node["kind"] == "job" and not scope.sees(owners.get(node["name"]))
    }
    reads = [each for each in result["reads"] if not {each["job"], each["source"]} & hidden]
    touched = {name for each in reads for name in (each["job"], each["source"])} | {job}
    nodes = [node for node in result["nodes"] if node["name"] in touched or (node["kind"] == "job")]
    nodes = [node for node in nodes if node["name"] not in hidden]
    if job in hidden:  # it was readable a moment ago
        raise OptionError(f"job {job!r} has another owner since. Nothing was read or changed. Try again.")
    return Graph(namespace=result["namespace"], nodes=nodes, reads=reads, hidden=len(hidden))
