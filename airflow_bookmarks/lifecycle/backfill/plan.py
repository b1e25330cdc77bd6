"""Plan a backfill: take jobs back, and with each of them all jobs that have read what its undone runs published.

    roots       the jobs that a person takes back, each by a rewind or a reset
    downstream  each reader goes back to its newest run that has read nothing of what is undone above it, and before its
                first run where there is none; a reader that has read none of it stays, and so does what reads that
    order       each job after all that it reads: a job that begins in between is refused or goes back by itself, by its
                `on_rewind`, and never reads what another is about to take back

A plan changes nothing. `carry_out` makes it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.backfill.order import in_order, longest_way
from airflow_bookmarks.core.backfill.pace import RUNS_LOOKED_AT, PastRun, expected_seconds
from airflow_bookmarks.core.errors import (
    ChangedMeanwhileError,
    ChangeRefusedError,
    JobUnknownError,
    OptionError,
    StateCorruptError,
)
from airflow_bookmarks.core.head import Head, busy_error
from airflow_bookmarks.core.run import Run
from airflow_bookmarks.core.text.instant import from_text
from airflow_bookmarks.core.timeline import last_common_run
from airflow_bookmarks.lifecycle.changes.change import Change
from airflow_bookmarks.lifecycle.changes.preview import ChangePreview, preview
from airflow_bookmarks.lifecycle.changes.sharded_change import stands
from airflow_bookmarks.lifecycle.history.point import resolve_point
from airflow_bookmarks.lifecycle.history.sharded_point import changes_of_shards
from airflow_bookmarks.lifecycle.history.shards import shards_of
from airflow_bookmarks.lifecycle.inspect.runs import sum_of, total
from airflow_bookmarks.sources.upstream.way_back import newest_at_or_below, only_a_reset_fits
from airflow_bookmarks.store.transitions.collection import collected_until
from airflow_bookmarks.store.transitions.naming import resolve_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from airflow_bookmarks.core.errors import BookmarkError
    from airflow_bookmarks.core.position import Edge
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

_KINDS = ("reset", "rewind")


@dataclass(frozen=True, slots=True)
class BackfillStep:
    """What a backfill does to one job.

    Attributes:
        job: the key of the job.
        change: its reset or rewind.
        because: of a reader the upstreams that it goes back for, each with the last run of them that it may keep.
        dag_id, task_id: what runs the job, by the index; None: no Airflow task does.
        preview: what the change would do; None: it can't be made.
        refused: why it can't be made; None: it can.
        seconds: how long its next run is expected to take for what it reads again; None: its runs don't tell.
        stands: whether the job stands there already, so that nothing is changed.
    """

    job: str
    change: Change
    because: Mapping[str, int] = field(default_factory=dict)
    dag_id: str | None = None
    task_id: str | None = None
    preview: ChangePreview | None = None
    refused: str | None = None
    seconds: float | None = None
    stands: bool = False

    def as_dict(self, shown: Callable[[dict[str, Any]], dict[str, Any]] = dict) -> dict[str, Any]:
        """Return it as plain values; `shown` leaves out of a preview what is not to be shown."""
        seen = None if self.preview is None else shown(self.preview.as_dict())
        names = ("job", "dag_id", "task_id", "refused", "seconds", "stands")
        return {
            **{name: getattr(self, name) for name in names},
            "change": self.change.kind,
            "to_run": None if self.change.to_run is None else int(self.change.to_run),
            "clean": self.change.clean,
            "because": dict(self.because),
            "preview": seen,
        }


@dataclass(frozen=True, slots=True)
class BackfillPlan:
    """The steps of a backfill, in the order in which they are made.

    Attributes:
        namespace: that of the jobs.
        steps: one for each job that goes back.
        left_out: readers that would have to go back, and stay because a person has said so.
        unaffected: readers that have read nothing of what is undone.
        reads: the jobs among the steps that each of them reads.
    """

    namespace: str
    steps: tuple[BackfillStep, ...]
    left_out: tuple[str, ...] = ()
    unaffected: tuple[str, ...] = ()
    reads: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def refused(self) -> dict[str, str]:
        """Why jobs can't go back, by their names."""
        return {step.job: step.refused for step in self.steps if step.refused is not None}

    @property
    def versions(self) -> dict[str, int]:
        """The version of each job that was looked at and can go back."""
        return {step.job: step.preview.version for step in self.steps if step.preview is not None}

    @property
    def seconds(self) -> float | None:
        """How long the runs after it are expected to take, if jobs that don't wait for each other run together."""
        return longest_way({step.job: step.seconds for step in self.steps if not step.stands}, self.reads)

    @property
    def dag_runs(self) -> tuple[tuple[str | None, tuple[str, ...]], ...]:
        """The DAGs to trigger after it, each once, in order, with the jobs that wait for it; None: run them by hand."""
        jobs: dict[str | None, list[str]] = {}
        for step in self.steps:
            jobs.setdefault(step.dag_id, []).append(step.job)
        return tuple((dag_id, tuple(names)) for dag_id, names in jobs.items())

    def check_versions(self, expected: Mapping[str, int] | None) -> None:
        """Make sure that the plan is the one that somebody has looked at; None: nobody has.

        Raises:
            ChangedMeanwhileError: other jobs would go back, or one has another version.
        """
        if expected is None or dict(expected) == self.versions:
            return
        names = sorted(job for job in {*expected, *self.versions} if expected.get(job) != self.versions.get(job))
        raise ChangedMeanwhileError(
            f"{', '.join(map(repr, names))}: not as in the plan that was looked at. Nothing was changed. Look again "
            "and decide anew."
        )

    def as_dict(
        self, *, cost_per_hour: float | None = None, shown: Callable[[dict[str, Any]], dict[str, Any]] = dict
    ) -> dict[str, Any]:
        """Return it as plain values: sums over all jobs, and each step.

        Args:
            cost_per_hour: what an hour of a run costs; None: no cost is told.
            shown: leaves out of a preview what is not to be shown, as values of `job.state`.
        """
        moving = [step for step in self.steps if not step.stands]
        seen = [step.preview.as_dict() for step in moving if step.preview is not None]
        again = [each["read_again"] for each in seen]
        own = [step.seconds for step in moving]
        known = [seconds for seconds in own if seconds is not None]
        return {
            "namespace": self.namespace,
            "jobs": len(self.steps),
            "refused_jobs": len(self.refused),
            "undone_run_count": sum(each["undone_run_count"] for each in seen),
            "read_again": {name: total(again, name) for name in ("files", "bytes", "rows")},
            "files_to_clean": sum(each["files_to_clean"] for each in seen),
            "outputs_to_clean": sum(each["outputs_to_clean"] for each in seen),
            "seconds": self.seconds,
            "cost": None if cost_per_hour is None or len(known) < len(own) else sum(known) * cost_per_hour / 3600,
            "left_out": list(self.left_out),
            "unaffected": list(self.unaffected),
            "dag_runs": [{"dag_id": dag_id, "jobs": list(jobs)} for dag_id, jobs in self.dag_runs],
            "versions": self.versions,
            "steps": [step.as_dict(shown) for step in self.steps],
        }


def roots_at(store: BookmarkStore, jobs: Iterable[str], point: str | None, *, clean: bool = False) -> dict[str, Change]:
    """Return the change of each of some jobs that go back to one point; of a sharded job those of its virtual shards.

    Args:
        store: the store.
        jobs: by any of their names.
        point: as `resolve_point` takes it, in the history of each job: of several jobs a time fits best. None: before
            their first run.
        clean: whether what the undone runs published is removed.

    Raises:
        JobUnknownError, RunUnknownError, OptionError: there is no such job, or it has no such point.
    """
    found: dict[str, Change] = {}
    for job in jobs:
        key = resolve_name(store, job)
        shards = shards_of(store, key)
        if shards:
            asked = Change("reset" if point is None else "rewind", to_run=point, clean=clean)
            found |= changes_of_shards(store, key, store.heads(shards), asked)
        elif point is None:
            found[key] = Change("reset", clean=clean)
        else:
            kept = resolve_point(store, key, store.head(key), point)
            found[key] = Change("rewind", to_run=str(kept.key.number), clean=clean)
    return found


def plan_backfill(
    store: BookmarkStore,
    roots: Mapping[str, Change],
    *,
    downstream: bool = True,
    leave: Collection[str] = (),
    keep: Collection[str] = (),
    force: bool = False,
    done: Collection[str] = (),
) -> BackfillPlan:
    """Look at what a backfill would do, without changing anything.

    Args:
        store: the store.
        roots: the change of each job that is taken back, by any of its names: a rewind to a run number, or a reset,
            of all its contexts. With `clean` what undone runs published is removed, downstream too.
        downstream: whether readers go back as well.
        leave: readers that stay as they are, and with them what reads only those.
        keep: jobs whose output stays although the others' is cleaned.
        force: whether jobs go back that a run holds, which can't commit then.
        done: jobs that went back already, and stay as they are by now.

    Raises:
        JobUnknownError, RunUnknownError, OptionError: a root is no such job, or has no such run; no reader has a name
            of `leave`, or none of the jobs one of `keep`.
        ChangeRefusedError: jobs read each other in a circle.

    Example:
        plan = plan_backfill(store, {"flights.clean": Change("rewind", to_run="41", clean=True)})
    """
    asked = {resolve_name(store, job): _checked(job, change) for job, change in roots.items()}
    return _Planner(store, asked, leave, keep, force=force, done=done).plan(downstream=downstream)


def _checked(job: str, change: Change) -> Change:
    if change.kind not in _KINDS or change.contexts is not None:
        raise OptionError(
            f"job {job!r}: a backfill takes jobs back by a reset or a rewind of all their contexts, not by "
            f"{change.kind!r}{'' if change.contexts is None else ' of some'}. Nothing was changed."
        )
    return change


class _Planner:
    """Looks at jobs one after the other, in the order of their data."""

    def __init__(
        self,
        store: BookmarkStore,
        roots: Mapping[str, Change],
        leave: Collection[str],
        keep: Collection[str],
        *,
        force: bool,
        done: Collection[str],
    ) -> None:
        self._store, self._roots, self._force, self._done = store, roots, force, done
        self._leave = {resolve_name(store, job) for job in leave}
        self._keep = {resolve_name(store, job) for job in keep}
        self._is_clean = any(change.clean for change in roots.values())
        self._edges: dict[str, dict[str, Edge]] = {}  # by upstream and reader
        self._kept: dict[str, int] = {}  # the last run that each job keeps which goes back
        self._heads: dict[str, Head | BookmarkError] = {}

    def plan(self, *, downstream: bool) -> BackfillPlan:
        self._find_readers(downstream=downstream)
        above = self._upstreams()
        order = in_order(above)
        self._heads = self._store.heads_or_damage(list(order))
        index = self._store.index_entries(order)
        steps: list[BackfillStep] = []
        left_out, unaffected = [], []
        for job in order:
            because = {} if job in self._roots else self._because(job, above[job])
            if job not in self._roots and not because:
                unaffected.append(job)
            elif job in self._leave:
                left_out.append(job)
            else:
                steps.append(self._step(job, because, index.get(job, {})))
        self._check_names(order, [step.job for step in steps])
        taken = {step.job for step in steps}
        reads = {job: tuple(each for each in above[job] if each in taken) for job in taken}
        return BackfillPlan(self._store.namespace, tuple(steps), tuple(left_out), tuple(unaffected), reads)

    def _find_readers(self, *, downstream: bool) -> None:
        """Read the edges of the roots and of all that is below them, at any distance."""
        open_ = list(self._roots)
        while open_:
            job = open_.pop()
            if job not in self._edges:
                edges = self._store.edges(job) if downstream and job not in self._leave else []
                self._edges[job] = {edge.consumer: edge for edge in edges}
                open_ += self._edges[job]

    def _upstreams(self) -> dict[str, list[str]]:
        above: dict[str, list[str]] = {job: [] for job in self._edges}
        for upstream, readers in self._edges.items():
            for reader in readers:
                above.setdefault(reader, []).append(upstream)
        return above

    def _because(self, job: str, above: Iterable[str]) -> dict[str, int]:
        """Return the upstreams of which a reader has read undone runs, each with the last one that it may keep."""
        found: dict[str, int] = {}
        for upstream in above:
            edge = self._edges[upstream][job]
            if upstream not in self._kept:
                continue
            last = min(self._kept[upstream], self._shared(upstream, edge))
            if edge.highest > last:
                found[upstream] = last
        return found

    def _shared(self, upstream: str, edge: Edge) -> int:
        """Return the last run that a reader shares with its upstream, which may have gone back before, without it."""
        head = self._heads.get(upstream)
        if not isinstance(head, Head) or head.epoch == edge.epoch:
            return edge.highest
        common = last_common_run(edge.epoch, head.epoch, edge.highest, self._store.lines(upstream))
        return edge.highest if common is None else common

    def _step(self, job: str, because: Mapping[str, int], entry: Mapping[str, Any]) -> BackfillStep:
        tasks = {name: entry[name] for name in ("dag_id", "task_id") if isinstance(entry.get(name), str)}
        change = self._roots.get(job, Change("reset", clean=self._is_clean))
        try:
            head = self._store.head(job)
            change = self._roots.get(job) or self._back(job, head, because)
            change = replace(change, clean=change.clean and job not in self._keep)
            self._kept[job] = int(change.to_run or 0)
            seen = preview(self._store, job, change)
            if job not in self._done:
                self._check_free(job, head)
        except (ChangeRefusedError, JobUnknownError, StateCorruptError) as error:
            if job in self._roots and isinstance(error, JobUnknownError):
                raise
            self._kept.setdefault(job, 0)  # what is below is looked at all the same
            return BackfillStep(job, change, because, **tasks, refused=str(error))
        is_there = job in self._done or stands(self._store, job, head, change, seen)
        seconds = None if is_there else self._seconds(job, head, seen)
        return BackfillStep(job, change, because, **tasks, preview=seen, seconds=seconds, stands=is_there)

    def _back(self, job: str, head: Head, because: Mapping[str, int]) -> Change:
        """Return the change that takes a reader back below all that is undone above it."""
        gone, numbers = collected_until(self._store, job), list[int]()
        for upstream, target in because.items():
            kept = newest_at_or_below(self._store, job, head, upstream, target)
            if gone and (kept is None or kept.key.number <= gone):
                raise ChangeRefusedError(f"job {job!r}: {only_a_reset_fits(job, gone)}. Nothing was changed.")
            numbers.append(0 if kept is None else kept.key.number)
        if min(numbers) == 0:
            return Change("reset", clean=self._is_clean)
        return Change("rewind", to_run=str(min(numbers)), clean=self._is_clean)

    def _check_free(self, job: str, head: Head) -> None:
        """Make sure that a job may be changed now.

        Raises:
            ChangeRefusedError: it is protected, or a run holds it.
        """
        if head.protected:
            raise ChangeRefusedError(
                f"job {job!r} is protected: it needs the approval of a second person. Nothing was changed. Ask for it "
                "by itself, with --request, before the others; or leave it out."
            )
        if not self._force and head.holder(self._store.now()) is not None:
            raise ChangeRefusedError(str(busy_error(job, head)))

    def _seconds(self, job: str, head: Head, seen: ChangePreview) -> float | None:
        past = [_past(run) for run in _last_runs(self._store, job, head)]
        return expected_seconds([each for each in past if each is not None], seen.rows, seen.bytes)

    def _check_names(self, order: Collection[str], taken: Collection[str]) -> None:
        """Refuse names that a person gave and that mean nothing here.

        Raises:
            OptionError: there are some.
        """
        for names, known, what in (
            (self._leave, set(order) - self._roots.keys(), "is to be left out, and reads none of these jobs"),
            (self._keep, set(taken), "is to keep its output, and does not go back"),
        ):
            if unknown := sorted(names - known):
                raise OptionError(f"{', '.join(map(repr, unknown))} {what}. Nothing was changed.")


def _last_runs(store: BookmarkStore, job: str, head: Head) -> Sequence[Run]:
    found: list[Run] = []
    for _, run in store.runs_or_damage(job, until=head.run_number, reverse=True):
        if isinstance(run, Run) and run.state.is_committed and not run.is_empty:
            found.append(run)  # what is damaged says nothing of time, and is told by the preview
        if len(found) == RUNS_LOOKED_AT:
            break
    return found


def _past(run: Run) -> PastRun | None:
    """Return what a run has read, and how long it took; None: it was replayed since, its publish is due, or damage."""
    if run.published_at is None or run.revision > 0:
        return None
    took = from_text(run.published_at) - from_text(run.planned_at)
    try:
        measured = run.all_measured().values()
    except StateCorruptError:
        return None
    rows, size = sum_of(each.rows for each in measured), sum_of(each.plan.amount.bytes for each in measured)
    return PastRun(rows, size, max(took, timedelta(0)).total_seconds())
