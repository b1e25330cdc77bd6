"""Answers: what the page is told, in types. Times are ISO 8601 in UTC, sizes are bytes."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

Watermarks = dict[str, str | None]
Orders = dict[str, str | None]  # names of core.order by context; None: how its watermarks compare is not known
JobState = Literal["NEW", "IDLE", "RUNNING", "EXPIRED", "DUE", "DAMAGED"]
HealthWord = Literal["FAILED", "STUCK", "LATE", "REWOUND", "LAGGING", "WAITING", "PAUSED", "TAKEN BACK", "OK", "NEW"]


class ResponseModel(BaseModel):
    """What every answer is: known in full, and not changed once made."""

    model_config = ConfigDict(extra="forbid", frozen=True)


# ---- jobs


class Task(ResponseModel):
    """The task that made a run, for a link to its log."""

    dag_id: str
    dag_run_id: str
    task_id: str
    map_index: int
    try_number: int


class HealthNote(ResponseModel):
    """One thing about a job: its state, the reason in words, and since when it is so (null: not known)."""

    state: HealthWord
    reason: str
    since: str | None = None


class HealthRow(HealthNote):
    """The health of a job: the worst that is known of it, and `more`, worst first."""

    more: list[HealthNote] = []


class Holder(ResponseModel):
    """Who works on a job, and until when others leave it alone."""

    run_id: str
    attempt: int
    since: str
    until: str


class RunPoint(ResponseModel):
    """One run in a small line over time; `amounts` has by its unit what it read that is not counted in files."""

    number: int
    state: str
    at: str
    files: int | None
    bytes: int | None
    rows: int | None
    amounts: dict[str, int | None] = {}


class JobRow(ResponseModel):
    """Where a job stands.

    `state`: NEW (has never committed), IDLE, RUNNING (a run holds it), EXPIRED (a run held it and its lease ran out),
    DUE (something is committed and still to be published, or undone and still to be removed), DAMAGED (can't be read,
    for the reason in `damaged`). `health` is what a person has to know first; null: it can't be read. `lag` is the
    worst of its states behind the jobs that it reads; None: it reads none.
    `failed_task` is the task whose try has failed, where `health` is FAILED and Airflow ran it.
    `is_deleted`: its bookmark was deleted, and it has not run since. `dag_id` is the DAG that owns the job, and
    `former_owners` are those that did before; `shared_with` lists DAGs that may run it too.

    A sharded job is one row, with counts of the virtual shards that there are, that a run holds, that have something to
    publish or to remove, and that can't be read; these are null for any other job. A number or name that its shards do
    not share is null; `version` is the sum, `watermark` the highest by its `order`, `last_commit_at` the last. `state`
    is the first of DAMAGED, RUNNING, EXPIRED, DUE, IDLE, NEW that a shard is in; `damaged` and `holder` are those of
    one shard.
    """

    job: str
    namespace: str
    state: JobState
    dag_id: str | None = None
    task_id: str | None = None
    map_index: int | None = None
    former_owners: list[str] = []
    shared_with: list[str] = []
    run_number: int | None = None
    published: int | None = None
    data_run_number: int | None = None
    due_run_number: int | None = None
    cleaning: bool | None = None
    protected: bool | None = None
    is_deleted: bool = False
    epoch: int | None = None
    version: int | None = None
    watermark: Watermarks = {}
    order: Orders = {}
    holder: Holder | None = None
    first_seen_at: str | None = None
    last_commit_at: str | None = None
    health: HealthRow | None = None
    failed_task: Task | None = None
    lag: str | None = None
    runs: list[RunPoint] = []
    damaged: str | None = None
    shards: int | None = None
    held_shards: int | None = None
    due_shards: int | None = None
    damaged_shards: int | None = None


class JobList(ResponseModel):
    """A page of the jobs that the user may look at; `total` counts all of them that were asked for.

    `by_health` counts all that were searched for, by their health, where that was asked for: whichever of it is shown.
    Jobs that can't be read count as DAMAGED. What is shown of each job is as it is now. `health_as_of` is as of when it
    is known which jobs are of which health or state, where that was asked for: a job that has changed since may be
    missing. `unjudged` is how many more jobs may be among those, because their health is only just read for the first
    time: they are in none of the numbers.
    """

    jobs: list[JobRow]
    total: int
    by_health: dict[str, int] | None = None
    health_as_of: str | None = None
    unjudged: int = 0
    limit: int
    offset: int


class Gaps(ResponseModel):
    """What is missing between the first and the last number, or day, that a context has ever seen.

    `ranges` are the highest missing ones, `4..6` or `8`; `more_ranges` counts those below, and `lost` the numbers lower
    still, which are no longer known one by one. `words` says it all.
    """

    unit: str
    of: str
    missing: int
    first: str
    last: str
    ranges: list[str]
    more_ranges: int
    lost: int
    words: str


class ContextRow(ResponseModel):
    """Where one context stands; `position` says it in words.

    `set_by` is what a person names to set it, None where it can't be set or its kind is not known here; `upstream` is
    the job that it reads. `gaps` is None where nobody looks for them, and `newest_partition` where partitions don't
    tell their time. `reads_parts`: its runs read one part of the source each. `quarantined` counts the files that are
    set aside because they can't be parsed; None: not known, since its position is damaged.
    """

    ctx: str
    kind: str
    source: str
    watermark: str | None
    order: str | None = None
    run_number: int
    set_in_epoch: int | None
    position: str
    set_by: Literal["time", "run", "text"] | None = None
    upstream: str | None = None
    gaps: Gaps | None = None
    newest_partition: str | None = None
    reads_parts: bool = False
    quarantined: int | None = 0


class ConsumerRow(ResponseModel):
    """How far another job has read this one."""

    job: str
    run_number: int
    epoch: int
    updated_at: str | None


class SideRow(ResponseModel):
    """A pause or disable run: it read, and changed nothing."""

    option: str
    run_id: str
    attempt: int
    from_run: str | None
    to_run: str | None
    made_at: str | None
    contexts: dict[str, dict[str, Any]]


class RequestRow(ResponseModel):
    """A change of a protected job that somebody asked for."""

    id: str
    state: str
    job: str
    change: dict[str, Any]
    who: str
    why: str
    made_at: str
    valid_until: str
    version: int
    preview: dict[str, Any]
    decided_by: str | None
    may_approve: bool


class DamagedRequest(ResponseModel):
    """A request that can't be read, and so neither approved nor rejected; `why` says also what to do."""

    id: str
    why: str


class Job(JobRow):
    """All that is to be known of a job at one look.

    `hidden_consumers` counts those that the user may not look at. `default_option` is that of the connection, for tasks
    that name none; `job_state` has the values of `job.state` as short JSON texts, `(hidden)` where the connection hides
    them; `side_runs` are the newest runs with another option. `may_change`: whether the user may. `may_look`: whether
    the deployment lets the page look at any files; without it, it refuses what has to.

    A sharded job has its virtual shards as `shard_rows`, and nothing of what each shard has for itself. `sharded_job`
    is the job of which this one is a virtual shard; null also where the user may not look at all of that.
    """

    contexts: list[ContextRow]
    job_state: dict[str, str]
    consumers: list[ConsumerRow]
    hidden_consumers: int
    requests: list[RequestRow]
    damaged_requests: list[DamagedRequest] = []
    side_runs: list[SideRow]
    default_option: str | None
    may_change: bool
    may_look: bool
    shard_rows: list[JobRow] = []
    sharded_job: str | None = None


# ---- runs, files, events


class Window(ResponseModel):
    """What a run read of a context: from one watermark to another."""

    before: str | None
    after: str | None


class RunRow(ResponseModel):
    """One run; `state` UNDONE: a reset, rewind, set or undo left it out. DAMAGED: it can't be read, for `error`.

    `amounts` has by its unit what it read that is not counted in files, `left_out` by step of the script, and then by
    reason, how many records a step left out.
    """

    number: int
    fence: int
    state: str
    epoch: int | None = None
    revision: int | None = None
    run_id: str | None = None
    attempt: int | None = None
    option: str | None = None
    is_empty: bool | None = None
    files: int | None = None
    bytes: int | None = None
    amounts: dict[str, int | None] = {}
    read_again: int | None = None
    rows: int | None = None
    rows_written: int | None = None
    watermark: Watermarks = {}
    order: Orders = {}
    window: dict[str, Window] = {}
    version: int | None = None
    planned_at: str | None = None
    committed_at: str | None = None
    published_at: str | None = None
    seconds: dict[str, str] = {}
    contexts: dict[str, dict[str, Any]] = {}
    outputs: dict[str, dict[str, Any]] = {}
    left_out: dict[str, dict[str, int]] = {}
    error: str | None = None
    task: Task | None = None


class RunList(ResponseModel):
    """Runs, newest first; `next` is the `before` of the next page, None on the last one."""

    runs: list[RunRow]
    next: str | None


class FileRow(ResponseModel):
    """A file that a run read."""

    ctx: str
    path: str
    bytes: int
    modified_at: str
    state: str


class FileList(ResponseModel):
    """A page of the files of a run.

    `unlisted` are the contexts of whose input no file is named, such as tables, with their kinds.
    """

    files: list[FileRow]
    total: int
    unlisted: dict[str, str]
    limit: int
    offset: int


class EventRow(ResponseModel):
    """A change, a replay, a request or a decision: who, when, why.

    `who_kind` says how the name is known: airflow (logged in), aws (caller identity), os (user of the operating
    system), task (a task of Airflow), told (a program or the person said it); None: not known.
    """

    kind: str
    who: str | None
    who_kind: str | None = None
    at: str | None
    why: str | None
    to_run: int | None = None
    ctx: str | None = None
    value: str | None = None
    run: str | None = None
    name: str | None = None
    held_by: str | None = None
    dag: str | None = None
    owner_before: str | None = None
    owner_after: str | None = None
    renamed: bool | None = None
    request: str | None = None
    change: dict[str, Any] | None = None
    forced: bool | None = None
    version_before: int | None = None
    epoch_before: int | None = None
    epoch_after: int | None = None
    watermarks_before: Watermarks | None = None
    watermarks_after: Watermarks | None = None


class EventList(ResponseModel):
    """A page of the events of a job, newest first."""

    events: list[EventRow]
    total: int
    limit: int
    offset: int


# ---- pending, lag, graph


class LagRow(ResponseModel):
    """How far a job is behind one of its sources.

    With `recorded_by` its folders were not looked at: that run left this much at the time of `recorded_at`. What is not
    counted in files has a `count` of its `unit`.
    """

    job: str
    source: str
    kind: str
    contexts: list[str]
    state: str
    consumed: int | None
    published: int | None
    runs: int | None
    files: int | None
    bytes: int | None
    seconds: int | None
    why: str | None
    unit: str | None = None
    count: int | None = None
    recorded_by: int | None = None
    recorded_at: str | None = None


class LagList(ResponseModel):
    """How far a job is behind each of its sources, as looked up at `looked_at`."""

    lags: list[LagRow]
    looked_at: str


class Moved(ResponseModel):
    """A number before and after a change."""

    before: int
    after: int


class Changed(ResponseModel):
    """What a change did. `said` tells it in words; `audited`: Airflow's own log has a row of it.

    `shards` counts the virtual shards that it changed, and `unchanged_shards` those that stood there already; null: the
    job has none.
    """

    job: str
    change: str
    said: str
    audited: bool
    to_run: int | None = None
    undone_run_count: int | None = None
    unreadable_runs: list[str] = []
    files_to_clean: int | None = None
    outputs_to_clean: int | None = None
    epoch: Moved | None = None
    version: Moved | None = None
    watermarks: dict[str, Window] = {}
    protected: bool | None = None
    owner: str | None = None
    shared_with: list[str] | None = None
    request: str | None = None
    requested_by: str | None = None
    approved_by: str | None = None
    shards: int | None = None
    unchanged_shards: int | None = None


class Requested(ResponseModel):
    """A request that was made or turned down."""

    request: RequestRow
    said: str
    audited: bool


# ---- who


class May(ResponseModel):
    """What a user may do with jobs that belong to no DAG of this Airflow."""

    read_jobs_without_dag: bool
    change_jobs_without_dag: bool


class Me(ResponseModel):
    """Who is logged in. `may_look`: whether the deployment lets the page read files, as every clean has to."""

    name: str
    may: May
    may_look: bool
    package_version: str


# ---- refusals
