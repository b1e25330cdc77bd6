"""The list of jobs: those that a user may look at, searched, sorted and paged. A sharded job is one row.

The index is read whole, which is one query; heads only for the page that is shown. To sort or choose by what only the
heads say takes one request more for each hundred jobs. What took long to read is kept for a while; the rows that are
shown never are.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from airflow_bookmarks.core.amount import in_other_units
from airflow_bookmarks.core.head import Head
from airflow_bookmarks.core.rules.shard import sharded_name
from airflow_bookmarks.core.run import Run
from airflow_bookmarks.lifecycle.inspect.runs import state_of, total
from airflow_bookmarks.lifecycle.inspect.sharded_list import groups_of
from airflow_bookmarks.plugin.presenters.bookmark import damaged_row, job_row, sharded_row
from airflow_bookmarks.plugin.presenters.health import Surroundings, rank_of
from airflow_bookmarks.plugin.presenters.sharded_job import Parts
from airflow_bookmarks.plugin.schemas.responses import JobList, RunPoint
from airflow_bookmarks.store.transitions.naming import DELETED_VERSION, is_deleted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from airflow_bookmarks.core.errors import BookmarkError
    from airflow_bookmarks.lifecycle.inspect.lag import Lag
    from airflow_bookmarks.plugin.auth import UserScope
    from airflow_bookmarks.plugin.presenters.all_heads import AllHeads
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

    def takes(self, row: JobRow) -> bool:
        """Whether a job is among those, according to its head."""
        is_of_health = self.health is None or (row.health is not None and row.health.state == self.health)
        return is_of_health and self.state in (None, row.state)

    def matches(self, job: str, entry: Mapping[str, Any]) -> bool:
        """Whether a job is among those, according to the index."""
        if self.dag_id is not None and entry.get("dag_id") != self.dag_id:
            return False
        if self.task_id is not None and entry.get("task_id") != self.task_id:
            return False
        needle = self.search.strip().casefold()
        return any(needle in str(text).casefold() for text in (job, entry.get("dag_id", ""), entry.get("task_id", "")))


def job_list(store: BookmarkStore, scope: UserScope, wanted: JobQuery, all_heads: AllHeads) -> JobList:
    """Return a page of jobs; deleted ones are left out."""
    found, by_health = _candidates(store, scope, wanted, all_heads), None
    if wanted.needs_heads:
        everything = _rows_by_heads(store, scope, found, all_heads)
        by_health = Counter(_UNREADABLE if row.health is None else row.health.state for row in everything)
        chosen = [row.job for row in _sorted([row for row in everything if wanted.takes(row)], wanted.sort)]
    else:
        chosen = _sorted_names(found, wanted.sort)
    names, rows, heads, around = _looked_at(store, scope, found, chosen, wanted)
    jobs = _in_full(store, rows, heads, around, wanted.runs)
    return JobList(jobs=jobs, total=len(names), limit=wanted.limit, offset=wanted.offset, by_health=by_health)


def _looked_at(
    store: BookmarkStore, scope: UserScope, found: _Found, names: Sequence[str], wanted: JobQuery
) -> tuple[Sequence[str], list[JobRow], _Heads, Surroundings]:
    """Return the names of all requested jobs, the rows of a page as they are now, and what these were made from.

    The heads that those were chosen by may be a while old. What has left its state since makes room for others, a few
    times over; in the end it is left out.
    """
    for _ in range(_LOOKS):
        page = _cut(names, wanted)
        entries = _entries(found, page)
        heads: _Heads = store.heads_or_damage(list(entries))
        around = Surroundings.of(store, heads, entries)
        rows = _rows(store, scope, found, page, heads, around.told_to(store, scope))
        gone = {row.job for row in rows if not wanted.takes(row)}
        if not gone:
            break
        names = [job for job in names if job not in gone]
    return names, [row for row in rows if row.job not in gone], heads, around


def _rows_by_heads(store: BookmarkStore, scope: UserScope, found: _Found, all_heads: AllHeads) -> list[JobRow]:
    heads, around = all_heads.with_surroundings(store, _entries(found, found))
    return _rows(store, scope, found, list(found), heads, around)


# ---- which


def _candidates(store: BookmarkStore, scope: UserScope, wanted: JobQuery, all_heads: AllHeads) -> _Found:
    """Return the index entry of each requested job, or why it can't be read, by name."""
    index, damage = all_heads.index_of(store)
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


def _sorted(rows: Iterable[JobRow], sort: Sort) -> list[JobRow]:
    field = sort.removeprefix("-")
    by_name = sorted(rows, key=lambda row: row.job)
    if field == "health":
        return sorted(by_name, key=lambda row: rank_of(row.health), reverse=sort.startswith("-"))
    known = [row for row in by_name if getattr(row, field) is not None]
    known.sort(key=lambda row: _order(getattr(row, field)), reverse=sort.startswith("-"))
    return known + [row for row in by_name if getattr(row, field) is None]


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
    for job, head in readable.items():
        more[job]["lag"] = worst_lag(around.lags.get(job, ()))
        if runs:
            more[job]["runs"] = _points(store, job, head, runs)
    return [row.model_copy(update=more[row.job]) for row in page]


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
