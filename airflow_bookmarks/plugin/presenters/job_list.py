"""The list of jobs: those that a user may look at, searched, sorted and paged. A sharded job is one row.

The index is read whole, which is one query; heads only for the page that is shown. To sort or choose by what only the
heads say takes one request more for each hundred jobs, or, where there are very many, what was recorded of them (see
`all_jobs`). The rows that are shown are read anew in any case, with the right to look at them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from airflow_bookmarks.core.amount import in_other_units
from airflow_bookmarks.core.errors import StateCorruptError
from airflow_bookmarks.core.head import Head
from airflow_bookmarks.core.rules.shard import sharded_name
from airflow_bookmarks.core.run import Run
from airflow_bookmarks.core.text.instant import to_text
from airflow_bookmarks.lifecycle.inspect.runs import state_of, total
from airflow_bookmarks.lifecycle.inspect.sharded_list import common, groups_of
from airflow_bookmarks.plugin.presenters.bookmark import STATES, damaged_row, job_row, sharded_row, task_of
from airflow_bookmarks.plugin.presenters.health import RANKS, Surroundings, record_in
from airflow_bookmarks.plugin.presenters.sharded_job import Parts
from airflow_bookmarks.plugin.schemas.responses import JobList, RunPoint, Task
from airflow_bookmarks.store.transitions.naming import DELETED_VERSION, is_deleted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from airflow_bookmarks.core.errors import BookmarkError
    from airflow_bookmarks.lifecycle.inspect.lag import Lag
    from airflow_bookmarks.plugin.auth import UserScope
    from airflow_bookmarks.plugin.presenters.all_jobs import AllJobs, KnownJobs
    from airflow_bookmarks.plugin.schemas.responses import HealthWord, JobRow, JobState
    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from airflow_bookmarks.store.stored_item import IndexEntry

    _Found = Mapping[str, IndexEntry | Parts | str]
    _Heads = Mapping[str, Head | BookmarkError]

Sort = Literal[
    "job", "-job", "dag_id", "-dag_id", "last_commit_at", "-last_commit_at", "run_number", "-run_number",
    "epoch", "-epoch", "state", "-state", "health", "-health",
]  # fmt: skip

_T = TypeVar("_T")

_LOOKS = 3
_OF_HEADS = ("epoch", "state", "health")
# The worst first: what a list has room for.
_WORST = ("REWOUND", "REPLAYED", "STOPPED", "STALLED", "LAGGING", "UNKNOWN", "OK")
_UNREADABLE = "DAMAGED"  # the health of a job that can't be read, among the counts


@dataclass(frozen=True, slots=True)
class JobQuery:
    """The requested jobs: all whose name, DAG or task contains `search`; of this state, health, DAG, task (None: any).

    `runs` is how many of its last runs come with each; `counts` asks for how many there are of each health.
    """

    search: str = ""
    state: JobState | None = None
    health: HealthWord | None = None
    sort: Sort = "job"
    limit: int = 50
    offset: int = 0
    runs: int = 10
    dag_id: str | None = None
    task_id: str | None = None
    counts: bool = False

    @property
    def needs_heads(self) -> bool:
        """Whether only the heads of all jobs tell which ones are on the page."""
        by_heads = self.sort.removeprefix("-") in _OF_HEADS
        return by_heads or self.state is not None or self.health is not None or self.counts

    def takes(self, seen: JobStanding) -> bool:
        """Whether a job is among those, according to its head."""
        return self.health in (None, seen.health) and self.state in (None, seen.state)

    def matches(self, job: str, entry: Mapping[str, Any]) -> bool:
        """Whether a job is among those, according to the index."""
        if self.dag_id is not None and entry.get("dag_id") != self.dag_id:
            return False
        if self.task_id is not None and entry.get("task_id") != self.task_id:
            return False
        needle = self.search.strip().casefold()
        return any(needle in str(text).casefold() for text in (job, entry.get("dag_id", ""), entry.get("task_id", "")))


@dataclass(frozen=True, slots=True)
class JobStanding:
    """What a list is sorted and filtered by, according to the head of a job; `details` according to the index."""

    job: str
    state: JobState
    health: HealthWord | None
    epoch: int | None
    details: Mapping[str, Any]

    @classmethod
    def of(cls, row: JobRow, details: Mapping[str, Any]) -> JobStanding:
        """Return that of a row."""
        return cls(row.job, row.state, None if row.health is None else row.health.state, row.epoch, details)

    @property
    def counted_as(self) -> str:
        """The health under which it is counted."""
        return _UNREADABLE if self.health is None else self.health


@dataclass(frozen=True, slots=True)
class _Page:
    """The rows of a page as they are now, and what these were made from; `names` are those of all requested jobs."""

    names: Sequence[str]
    rows: list[JobRow]
    heads: _Heads
    around: Surroundings
    found: _Found


def job_list(store: BookmarkStore, scope: UserScope, wanted: JobQuery, all_jobs: AllJobs) -> JobList:
    """Return a page of jobs; deleted ones are left out."""
    listed = all_jobs.look(store, with_health=wanted.needs_heads)
    found = _candidates(store, scope, wanted, listed)
    known: dict[str, JobStanding] = {}
    if wanted.needs_heads:
        known = {job: _standing(listed, job, each) for job, each in found.items()}
        chosen = [one.job for one in _sorted([one for one in known.values() if wanted.takes(one)], wanted.sort)]
    else:
        chosen = _sorted_names(found, wanted.sort)
    page = _looked_at(store, scope, found, chosen, wanted, listed, all_jobs)
    answer = JobList(
        jobs=_in_full(store, page.rows, page.heads, page.around, wanted.runs),
        total=len(page.names),
        limit=wanted.limit,
        offset=wanted.offset,
    )
    if not wanted.needs_heads:
        return answer
    as_of = listed.as_of(_entries(found, found))
    counts = _counts(known, page)
    told = {"by_health": counts, "health_as_of": None if as_of is None else to_text(as_of)}
    unjudged = listed.count_unjudged(lambda job, entry: scope.sees(entry) and wanted.matches(job, entry))
    return answer.model_copy(update={**told, "unjudged": unjudged})


def _counts(known: Mapping[str, JobStanding], page: _Page) -> dict[str, int]:
    """Count jobs by health: those that the page shows as it shows them."""
    now = {row.job: JobStanding.of(row, {}) for row in page.rows}
    return dict(Counter((now.get(job) or each).counted_as for job, each in known.items()))


def _looked_at(
    store: BookmarkStore,
    scope: UserScope,
    found: _Found,
    names: Sequence[str],
    wanted: JobQuery,
    listed: KnownJobs,
    all_jobs: AllJobs,
) -> _Page:
    """Return a page as it is now: what the jobs were chosen by may be a while old.

    What has left its state since, or may not be looked at any more, makes room for others, a few times over; in the end
    it is left out.
    """
    for _ in range(_LOOKS):
        page, now = _cut(names, wanted), store.now()
        shown = {job: found[job] for job in page} if listed.is_live else _live(store, scope, found, page)
        entries = _entries(shown, shown)
        heads: _Heads = store.heads_or_damage(list(entries))
        around = Surroundings.of(store, heads, entries)
        all_jobs.note({job: record_in(job, heads.get(job), entry, around, now) for job, entry in entries.items()})
        rows = _rows(store, scope, shown, list(shown), heads, around.told_to(store, scope))
        seen = {row.job: JobStanding.of(row, _details(shown[row.job])) for row in rows}
        left = {job for job, one in seen.items() if wanted.takes(one) and not _is_gone(shown[job], heads.get(job))}
        gone = set(page) - left
        if not gone:
            break
        names = [job for job in names if job not in gone]
    by_job = {row.job: row for row in rows if row.job in left}
    if wanted.needs_heads:  # what is worse than it was stands before the others of the page
        in_order = [one.job for one in _sorted([seen[job] for job in by_job], wanted.sort)]
        by_job = {job: by_job[job] for job in in_order}
    return _Page(names, list(by_job.values()), heads, around, shown)


def _live(store: BookmarkStore, scope: UserScope, found: _Found, names: Sequence[str]) -> _Found:
    """Return what the index says of some jobs by now; without those that are gone, or may not be looked at any more."""
    live = store.index_entries(list(_entries(found, names)))
    shown: dict[str, IndexEntry | Parts | str] = {}
    for job in names:
        each = found[job]
        if isinstance(each, Parts):
            shards = {shard: live.get(shard, entry) for shard, entry in each.shards.items()}
            each = replace(each, shards=shards)
            if each.is_seen(scope):
                shown[job] = each
        elif isinstance(each, str):
            shown[job] = each
        elif job in live and _is_seen(scope, live[job]):
            shown[job] = live[job]
    return shown


def _is_gone(each: IndexEntry | Parts | str, head: Head | BookmarkError | None) -> bool:
    """Whether a job was deleted since the index was read; those before are no candidates."""
    return isinstance(each, dict) and isinstance(head, Head) and is_deleted(each, head)


def _standing(listed: KnownJobs, job: str, each: IndexEntry | Parts | str) -> JobStanding:
    """Return how a job was, by its record; a sharded one as the worst of its shards."""
    if not isinstance(each, Parts):
        return _recorded(listed, job, each)
    shards = [_recorded(listed, shard, entry) for shard, entry in each.shards.items()]
    health = None if any(one.health is None for one in shards) else min((one.health for one in shards), key=_rank)
    state = next(state for state in STATES if any(one.state == state for one in shards))
    return JobStanding(job, state, health, common(one.epoch for one in shards), each.entry)


def _recorded(listed: KnownJobs, job: str, entry: IndexEntry | str) -> JobStanding:
    record = listed.records.get(job)
    if isinstance(entry, str) or record is None:
        return JobStanding(job, "DAMAGED", None, None, _details(entry))
    health: HealthWord | None = None if record.health is None else record.health.value
    return JobStanding(job, record.standing, health, record.epoch, entry)


# ---- which


def _candidates(store: BookmarkStore, scope: UserScope, wanted: JobQuery, listed: KnownJobs) -> _Found:
    """Return the index entry of each requested job, or why it can't be read, by name."""
    index, damage = listed.entries, listed.damage
    everything: dict[str, IndexEntry | str] = {**index, **{job: str(why) for job, why in damage.items()}}
    shards = {job: whole for job in everything if (whole := sharded_name(job)) is not None}
    wholes = set(shards.values())
    seen = {
        job: each for job, each in everything.items() if _is_seen(scope, each) and wanted.matches(job, _details(each))
    }
    # Of what belongs together all is looked at: whether it does must not depend on who asks.
    marked = [job for job, entry in index.items() if DELETED_VERSION in entry and job in {*seen, *shards, *wholes}]
    gone = {
        job
        for job, head in store.heads_or_damage(marked).items()
        if isinstance(head, Head) and is_deleted(index[job], head)
    }
    found: dict[str, IndexEntry | Parts | str] = {job: each for job, each in seen.items() if job not in gone}
    for whole, names in groups_of(job for job in everything if job not in gone).items():
        others = [everything[job] for job in gone if job == whole or shards.get(job) == whole]
        parts = Parts({job: everything[job] for job in sorted(names)}, tuple(others))
        if not parts.is_seen(scope):
            continue  # those of its shards that may be looked at stay rows of their own
        for job in names:
            found.pop(job, None)
        if wanted.matches(whole, parts.entry) or any(job in seen for job in names):
            found[whole] = parts
    return found


def _is_seen(scope: UserScope, entry: IndexEntry | str) -> bool:
    """Whether a job may be looked at; an entry that can't be read does not name its owner."""
    return scope.may_read_unknown if isinstance(entry, str) else scope.sees(entry)


def _details(each: IndexEntry | Parts | str) -> Mapping[str, Any]:
    """Return what the index says of a job."""
    return {} if isinstance(each, str) else each.entry if isinstance(each, Parts) else each


def _entries(found: _Found, names: Iterable[str]) -> dict[str, IndexEntry]:
    """Return the index entries of the jobs whose heads tell of these rows: the job itself, or its shards."""
    wanted: dict[str, IndexEntry] = {}
    for job in names:
        each = found[job]
        if isinstance(each, Parts):
            wanted |= {shard: entry for shard, entry in each.shards.items() if not isinstance(entry, str)}
        elif not isinstance(each, str):
            wanted[job] = each
    return wanted


def _sorted_names(found: _Found, sort: Sort) -> list[str]:
    field = sort.removeprefix("-")
    names = sorted(found)
    if field != "job":
        # What has no value comes last, whichever way it is sorted.
        values = {job: _details(each).get(field) for job, each in found.items()}
        known = sorted((job for job in names if values[job] is not None), key=lambda job: _order(values[job]))
        unknown = [job for job in names if values[job] is None]
        return [*(reversed(known) if sort.startswith("-") else known), *unknown]
    return names[::-1] if sort.startswith("-") else names


def _sorted(standings: Iterable[JobStanding], sort: Sort) -> list[JobStanding]:
    field = sort.removeprefix("-")
    by_name = sorted(standings, key=lambda one: one.job)
    if field == "health":
        return sorted(by_name, key=lambda one: _rank(one.health), reverse=sort.startswith("-"))
    values = {one.job: _value(one, field) for one in by_name}
    known = [one for one in by_name if values[one.job] is not None]
    known.sort(key=lambda one: _order(values[one.job]), reverse=sort.startswith("-"))
    return known + [one for one in by_name if values[one.job] is None]


def _value(one: JobStanding, field: str) -> Any:
    return getattr(one, field) if field in ("job", "epoch", "state") else one.details.get(field)


def _rank(health: HealthWord | None) -> int:
    """Return by what jobs are sorted, the worst first: what can't be read before all else."""
    return -1 if health is None else RANKS[health]


def _order(value: Any) -> tuple[int, str]:
    """Return what numbers and texts are sorted by; a damaged entry may have the one in the place of the other."""
    return (value, "") if isinstance(value, int) else (-1, str(value))


def _cut(rows: Sequence[_T], wanted: JobQuery) -> Sequence[_T]:
    return rows[wanted.offset : wanted.offset + wanted.limit]


# ---- what of them


def _rows(
    store: BookmarkStore, scope: UserScope, found: _Found, names: Sequence[str], heads: _Heads, around: Surroundings
) -> list[JobRow]:
    rows: list[JobRow] = []
    for job in names:
        each = found[job]
        if isinstance(each, Parts):
            shards = [
                row_of(store, scope, shard, entry, heads.get(shard), around) for shard, entry in each.shards.items()
            ]
            rows.append(sharded_row(job, shards))
        else:
            rows.append(row_of(store, scope, job, each, heads.get(job), around))
    return rows


def row_of(
    store: BookmarkStore,
    scope: UserScope,
    job: str,
    entry: IndexEntry | str,
    head: Head | BookmarkError | None,
    around: Surroundings,
) -> JobRow:
    """Return the row of one bookmark by its index entry and head, each of which may be damaged."""
    if isinstance(entry, str):
        return damaged_row(store.namespace, job, {}, entry, scope)
    if isinstance(head, Head):
        return job_row(store.namespace, job, head, entry, store.now(), around)
    return damaged_row(store.namespace, job, entry, head, scope)


def _in_full(
    store: BookmarkStore, page: Sequence[JobRow], heads: _Heads, around: Surroundings, runs: int
) -> list[JobRow]:
    """Add how the jobs keep up with others, and what takes further requests: their last runs."""
    readable = {row.job: head for row in page if isinstance(head := heads.get(row.job), Head)}
    more: dict[str, dict[str, Any]] = {row.job: {"runs": []} for row in page}
    for job, task in failed_tasks(store, readable).items():
        more[job]["failed_task"] = task
    for job, head in readable.items():
        more[job]["lag"] = worst_lag(around.lags.get(job, ()))
        if runs:
            more[job]["runs"] = _points(store, job, head, runs)
    return [row.model_copy(update=more[row.job]) for row in page]


def failed_tasks(store: BookmarkStore, heads: Mapping[str, Head]) -> dict[str, Task]:
    """Return the tasks whose tries have failed, by job, for links to their logs; of what Airflow did not run, none."""
    failed = {job: head.failed for job, head in heads.items() if head.failed is not None}
    try:
        made = store.executions_of_jobs({job: each.run_id for job, each in failed.items()})
    except StateCorruptError:  # a link less: the reason stands beside it, and the doctor names the item
        return {}
    tasks = {job: task_of(execution, failed[job].attempt) for job, execution in made.items()}
    return {job: task for job, task in tasks.items() if task is not None}


def worst_lag(lags: Iterable[Lag]) -> str | None:
    """Return the worst state of a job behind the jobs that it reads; None: it reads none."""
    return min((lag.state.value for lag in lags), key=_WORST.index, default=None)


def _points(store: BookmarkStore, job: str, head: Head, limit: int) -> list[RunPoint]:
    points: list[RunPoint] = []
    living = store.ancestry(job, head.epoch)
    for key, run in store.runs_or_damage(job, reverse=True, limit=limit):
        if isinstance(run, Run):
            details = list(run.metrics.get("contexts", {}).values())
            rows = [each["rows"] for each in details if each.get("rows") is not None]
            points.append(
                RunPoint(
                    number=key.number,
                    state=state_of(run, living),
                    at=run.committed_at or run.planned_at,
                    files=total(details, "files"),
                    bytes=total(details, "bytes"),
                    rows=sum(rows) if rows else None,
                    amounts=in_other_units(details),
                )
            )
    return points[::-1]
