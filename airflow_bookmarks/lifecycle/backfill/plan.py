"""Plan a backfill: take jobs back, and with each of them all jobs that have read what its undone runs published.

    roots       the jobs that a person takes back, each by a rewind or a reset
    downstream  each reader goes back to its newest run up to which no run has read anything of what is undone above it,
                and before its first run where there is none; a reader that has read none of it stays. One that was left
                behind when an upstream went back earlier is taken now
    order       each job after all that it reads: a job that begins in between is refused or goes back by itself, by its
                `on_rewind`, and never reads what another is about to take back

A plan changes nothing. `carry_out` makes it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.backfill.order import in_order, longest_way
from airflow_bookmarks.core.backfill.pace import RUNS_LOOKED_AT, PastRun, expected_seconds
from airflow_bookmarks.core.errors import (
    ChangedMeanwhileError,
    ChangeRefusedError,
    CleanRefusedError,
    JobUnknownError,
    OptionError,
    StateCorruptError,
)
from airflow_bookmarks.core.head import Head, busy_error
from airflow_bookmarks.core.run import Run
from airflow_bookmarks.core.text.instant import from_text
from airflow_bookmarks.lifecycle.backfill.reader import ReaderHistory, still_shared
from airflow_bookmarks.lifecycle.changes.change import Change
from airflow_bookmarks.lifecycle.changes.preview import ChangePreview, preview
from airflow_bookmarks.lifecycle.changes.sharded_change import stands
from airflow_bookmarks.lifecycle.history.point import resolve_point
from airflow_bookmarks.lifecycle.history.sharded_point import changes_of_shards
from airflow_bookmarks.lifecycle.history.shards import shards_of
from airflow_bookmarks.lifecycle.history.timeline_switch import former_names
from airflow_bookmarks.lifecycle.inspect.runs import sum_of, total
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
        is_root: whether a person has named it. Else, where `because` is empty, it goes back for what undone runs have
            left in its targets.
        doubts: what going back takes with it that the figures do not tell.
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
    is_root: bool = False
    doubts: tuple[str, ...] = ()

    def as_dict(self, shown: Callable[[dict[str, Any]], dict[str, Any]] = dict) -> dict[str, Any]:
        """Return it as plain values; `shown` leaves out of a preview what is not to be shown."""
        seen = None if self.preview is None else shown(self.preview.as_dict())
        names = ("job", "dag_id", "task_id", "refused", "seconds", "stands", "is_root")
        return {
            **{name: getattr(self, name) for name in names},
            "change": self.change.kind,
            "to_run": None if self.change.to_run is None else int(self.change.to_run),
            "clean": self.change.clean,
            "because": dict(self.because),
            "doubts": list(self.doubts),
            "preview": seen,
        }


@dataclass(frozen=True, slots=True)
class BackfillRequest:
    """What a backfill is asked for; see `plan_backfill`. Names are keys."""

    roots: Mapping[str, Change]
    downstream: bool = True
    leave: frozenset[str] = frozenset()
    keep: frozenset[str] = frozenset()
    force: bool = False
    done: frozenset[str] = frozenset()

    @property
    def is_clean(self) -> bool:
        """Whether what undone runs published is removed."""
        return any(change.clean for change in self.roots.values())


@dataclass(frozen=True, slots=True)
class BackfillPlan:
    """The steps of a backfill, in the order in which they are made.

    Attributes:
        request: what was asked for.
        namespace: that of the jobs.
        steps: one for each job that goes back.
        left_out: readers that would have to go back, and stay because a person has said so.
        unaffected: readers that have read nothing of what is undone.
        reads: the jobs among the steps that each of them reads.
    """

    request: BackfillRequest
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
        return longest_way({step.job: 0.0 if step.stands else step.seconds for step in self.steps}, self.reads)

    @property
    def dag_runs(self) -> tuple[tuple[str | None, tuple[str, ...]], ...]:
        """The DAGs to trigger after it, in order, with the jobs that wait for it; None: run them by hand.

        Each comes once, after all whose jobs its own jobs read; where DAGs wait for each other, as often as it takes.
        """
        dags = {step.job: step.dag_id for step in self.steps}
        # What no DAG runs is run by itself.
        runs = {job: f"~{job}" if dag_id is None else dag_id for job, dag_id in dags.items()}
        above: dict[str, set[str]] = {run: set() for run in runs.values()}
        for job, upstreams in self.reads.items():
            above[runs[job]] |= {runs[each] for each in upstreams} - {runs[job]}
        try:
            order = in_order({run: sorted(each) for run, each in above.items()})
        except ChangeRefusedError:
            return tuple((dag_id, tuple(jobs)) for dag_id, jobs in groupby(dags, dags.__getitem__))
        in_turn = [job for run in order for job, its in runs.items() if its == run]
        return tuple((dag_id, tuple(jobs)) for dag_id, jobs in groupby(in_turn, dags.__getitem__))

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
        keep: jobs whose output stays although the others' is cleaned; of a sharded job all of its virtual shards.
        force: whether jobs go back that a run holds, which can't commit then.
        done: jobs that went back already, and stay as they are by now.

    Raises:
        JobUnknownError, RunUnknownError, OptionError: a root is no such job, or has no such run; no reader has a name
            of `leave`, or none of the jobs one of `keep`.
        ChangeRefusedError: jobs read each other in a circle.

    Example:
        plan = plan_backfill(store, {"flights.clean": Change("rewind", to_run="41", clean=True)})
    """
    if not roots:
        raise OptionError("a backfill takes at least one job back. Nothing was changed.")
    asked: dict[str, Change] = {}
    for job, change in roots.items():
        key = resolve_name(store, job)
        if key in asked:
            raise OptionError(f"{job!r} is another name of a job that is named already. Nothing was changed.")
        asked[key] = _checked(job, change)
    return plan_again(
        store,
        BackfillRequest(asked, downstream, _keys(store, leave), _keys(store, keep), force=force, done=frozenset(done)),
    )


def plan_again(store: BookmarkStore, request: BackfillRequest) -> BackfillPlan:
    """Look anew at what a backfill would do; for the errors see `plan_backfill`."""
    return _Planner(store, request).plan()


def _keys(store: BookmarkStore, names: Collection[str]) -> frozenset[str]:
    """Return the keys of some jobs, of a sharded job those of its virtual shards."""
    if isinstance(names, str):
        raise OptionError(f"{names!r} is one name, and a list of names was expected. Nothing was changed.")
    keys = [resolve_name(store, name) for name in names]
    return frozenset(shard for key in keys for shard in (shards_of(store, key) or [key]))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None  # a damaged entry may hold anything


def _checked(job: str, change: Change) -> Change:
    if change.kind not in _KINDS or change.contexts is not None:
        raise OptionError(
            f"job {job!r}: a backfill takes jobs back by a reset or a rewind of all their contexts, not by "
            f"{change.kind!r}{'' if change.contexts is None else ' of some'}. Nothing was changed."
        )
    return change


class _Planner:
    """Looks at jobs one after the other, in the order of their data."""

    def __init__(self, store: BookmarkStore, request: BackfillRequest) -> None:
        self._store, self._request, self._roots = store, request, request.roots
        self._edges: dict[str, dict[str, Edge]] = {}  # by upstream and reader
        self._kept: dict[str, int] = {}  # the last run that each job keeps which goes back
        self._heads: dict[str, Head | BookmarkError] = {}

    def plan(self) -> BackfillPlan:
        self._find_readers()
        above = self._upstreams()
        order = in_order(above)
        self._heads = self._store.heads_or_damage(list(order))
        index = self._store.index_entries(order)
        steps: list[BackfillStep] = []
        left_out, unaffected = [], []
        for job in order:
            dag_id, task_id = (_text(index.get(job, {}).get(name)) for name in ("dag_id", "task_id"))
            begun = BackfillStep(job, self._reset, {}, dag_id, task_id, is_root=job in self._roots)
            step = self._step(begun, above[job])
            if step is None:
                unaffected.append(job)
            elif job in self._request.leave and job not in self._roots:
                left_out.append(job)
                self._kept.pop(job, None)
            else:
                steps.append(step)
        self._check_names(order)
        taken = {step.job for step in steps}
        reads = {job: tuple(each for each in above[job] if each in taken) for job in taken}
        return BackfillPlan(
            self._request, self._store.namespace, tuple(steps), tuple(left_out), tuple(unaffected), reads
        )

    @property
    def _reset(self) -> Change:
        return Change("reset", clean=self._request.is_clean)

    def _find_readers(self) -> None:
        """Read the edges of the roots and of all that is below them, at any distance."""
        open_ = list(self._roots)
        while open_:
            job = open_.pop()
            if job not in self._edges:
                is_followed = self._request.downstream and job not in self._request.leave
                self._edges[job] = {edge.consumer: edge for edge in self._store.edges(job)} if is_followed else {}
                open_ += self._edges[job]

    def _upstreams(self) -> dict[str, list[str]]:
        above: dict[str, list[str]] = {job: [] for job in self._edges}
        for upstream, readers in self._edges.items():
            for reader in readers:
                above.setdefault(reader, []).append(upstream)
        return above

    def _step(self, step: BackfillStep, above: Iterable[str]) -> BackfillStep | None:
        """Return what is to be done to a job; None: nothing is, and it is none of the roots."""
        job = step.job
        try:
            head = self._head(job)
            history = ReaderHistory(self._store, job, head)
            step = replace(step, because=self._because(job, history, above))
            change = self._change(step, head, history)
            if change is None:
                return None
            step = replace(step, change=replace(change, clean=change.clean and job not in self._request.keep))
            return self._looked_at(step, head, history)
        except (ChangeRefusedError, JobUnknownError, StateCorruptError) as error:
            if step.is_root and isinstance(error, JobUnknownError):
                raise
            self._kept.setdefault(job, 0)  # what is below is looked at all the same
            return replace(step, refused=str(error))

    def _looked_at(self, step: BackfillStep, head: Head, history: ReaderHistory) -> BackfillStep:
        job, kept = step.job, int(step.change.to_run or 0)
        self._kept[job] = kept
        _check_names_of_contexts(self._store, job, head, kept)
        seen = preview(self._store, job, step.change)
        is_there = job in self._request.done or stands(self._store, job, head, step.change, seen)
        if is_there:
            return replace(step, preview=seen, stands=True)
        self._check_free(job, head)
        put_away = history.put_away_above(kept) if step.change.clean else ""
        if put_away and not step.is_root:  # nobody has asked for this job to be cleaned
            instead = f"Keep its output ('--keep {job}'), or leave it out ('--leave {job}')."
            raise CleanRefusedError(job, put_away, instead)
        doubts = tuple(dict.fromkeys([*history.lost_by(kept), *filter(None, [put_away])]))
        return replace(step, preview=seen, seconds=self._seconds(job, head, seen), doubts=doubts)

    def _head(self, job: str) -> Head:
        head = self._heads.get(job)
        if isinstance(head, Head):
            return head
        return self._store.head(job)  # which says what is wrong

    def _because(self, job: str, history: ReaderHistory, above: Iterable[str]) -> dict[str, int]:
        """Return the upstreams of which a reader has read undone runs, each with the last one that it may keep."""
        found: dict[str, int] = {}
        for upstream in above:
            edge, head = self._edges[upstream][job], self._heads.get(upstream)
            shared = still_shared(self._store, upstream, head, edge) if isinstance(head, Head) else None
            lasts = [last for last in (self._kept.get(upstream), shared) if last is not None]
            if lasts and history.has_read_above(upstream, min(lasts), edge):
                found[upstream] = min(lasts)
        return found

    def _change(self, step: BackfillStep, head: Head, history: ReaderHistory) -> Change | None:
        """Return the change that takes a job back far enough; None: it may stay as it is."""
        asked = self._roots.get(step.job)
        if step.because:
            last = history.last_below(step.because)
            if asked is None or last < int(asked.to_run or 0):
                return self._back_to(last) if asked is None else replace(self._back_to(last), clean=asked.clean)
        if asked is not None or not self._request.is_clean or head.epoch == 1:
            return asked
        # What runs have left that were undone before, of which no edge tells, goes with what the others leave.
        stays = self._back_to(history.newest())
        return None if stands(self._store, step.job, head, stays, preview(self._store, step.job, stays)) else stays

    def _back_to(self, last: int) -> Change:
        return self._reset if last == 0 else replace(self._reset, kind="rewind", to_run=str(last))

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
        if not self._request.force and head.holder(self._store.now()) is not None:
            raise ChangeRefusedError(str(busy_error(job, head)))

    def _seconds(self, job: str, head: Head, seen: ChangePreview) -> float | None:
        past = [_past(run) for run in _last_runs(self._store, job, head)]
        return expected_seconds([each for each in past if each is not None], seen.rows, seen.bytes)

    def _check_names(self, order: Collection[str]) -> None:
        """Refuse names that a person gave and that mean nothing here.

        Raises:
            OptionError: there are some.
        """
        for names, known, what in (
            (self._request.leave, set(order) - self._roots.keys(), "is to be left out, and reads none of these jobs"),
            (self._request.keep, set(order), "is to keep its output, and is none of these jobs"),
        ):
            if unknown := sorted(names - known):
                raise OptionError(f"{', '.join(map(repr, unknown))} {what}. Nothing was changed.")


def _check_names_of_contexts(store: BookmarkStore, job: str, head: Head, kept: int) -> None:
    """Refuse to go back to a run under which a context had another name: the script would read everything again.

    Raises:
        ChangeRefusedError: one had.
    """
    run = store.committed_run(job, kept) if kept else None
    for ctx, former in former_names(head, run).items():
        raise ChangeRefusedError(
            f"job {job!r} can't go back to its run {kept} with the others: its context {ctx!r} was called {former!r} "
            f"then, so the script would read everything again. Nothing was changed. Do it by hand: rewind it to run "
            f"{kept}, then 'airflow-bookmarks rename-context {job} {former} {ctx}'; or leave it out."
        )


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
