"""Preview what the next enabled run of a job would read. Without Spark, without a lease, and nothing is changed.

The sources are those that the newest run recorded with its plans: their folders, and the options that affect the plan.
Each is planned as a run would plan it, from the position that the head names. Without running the script, it is not
known what it would read today; where that matters, `unknown` says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.amount import COUNT, FILES, UNIT, Amount
from airflow_bookmarks.core.errors import DatabaseError, LookRefusedError, OptionError, SourceError
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.job_state import STATE_CONTEXT
from airflow_bookmarks.core.run import RunState, names_now
from airflow_bookmarks.core.selection.listing import Listing, instant
from airflow_bookmarks.core.selection.reason import EXCLUDED, UNMATCHED
from airflow_bookmarks.core.text.count import READ_AGAIN
from airflow_bookmarks.core.text.instant import to_text
from airflow_bookmarks.core.text.redaction import redacted
from airflow_bookmarks.lifecycle.inspect.runs import sum_of, total
from airflow_bookmarks.lifecycle.state.positions import ContextReader, Waiting, entry_now, left_waiting
from airflow_bookmarks.sources.files.recorded_plan import left_out
from airflow_bookmarks.sources.registry import only_script_knows, recorded_source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.plan import Plan
    from airflow_bookmarks.core.run import PlanEntry, Run, RunKey
    from airflow_bookmarks.sources.source import OnSourceChange
    from airflow_bookmarks.store.bookmark_store import BookmarkStore


@dataclass(frozen=True, slots=True)
class PendingContext:
    """What is new in one context.

    `source` is its fingerprint. `plan` is the plan that a run would make now; None where that can't be said, for the
    reason in `unknown`. `waiting` is what a run has recorded of the files, where this process may not look at them or
    does not know all that there are.
    `rows` counts those of an upstream's runs; None: not known. `up_to_script` says what the script may let in today
    that the options of the last run leave out; None: nothing.
    """

    ctx: str
    kind: str
    source: str
    plan: Plan | None = None
    unknown: str | None = None
    rows: int | None = None
    up_to_script: str | None = None
    waiting: Waiting | None = None

    @property
    def files(self) -> int | None:
        """How many files would be read; None where that is not known, or what would be read is no files."""
        return None if self.amount is None or self.amount.unit != FILES else self.amount.count

    @property
    def has_input(self) -> bool:
        """Whether there is anything to read, in whatever it is counted."""
        return self.plan is not None and not self.plan.is_empty

    @property
    def amount(self) -> Amount | None:
        """How much would be read; None where that is not known."""
        return None if self.plan is None else self.plan.amount

    @property
    def amount_in_words(self) -> str:
        """How much would be read, in its unit."""
        return "not known" if self.amount is None else self.amount.in_words()

    @property
    def _files(self) -> Listing:
        return self.plan.files if isinstance(self.plan, FilePlan) else Listing.of([])

    @property
    def oldest(self) -> datetime | None:
        """The time of the oldest file that would be read."""
        return instant(int(self._files.times_ms.min())) if len(self._files) else None

    @property
    def newest(self) -> datetime | None:
        """The time of the newest file that would be read."""
        newest = self._files.newest_ms
        return None if newest is None else instant(newest)

    @property
    def runs(self) -> tuple[int, ...]:
        """The runs of an upstream that would be read, empty ones among them."""
        window = None if self.plan is None else self.plan.edge
        return () if window is None else tuple(number for number, _ in window.runs)

    def as_dict(self, *, with_skipped: bool = False, examples: int | None = None) -> dict[str, Any]:
        """Return it as plain values; numbers are None where they are not known.

        With `recorded_by` they are what that run left waiting at the time of `recorded_at`. `examples` is for the files
        of `with_skipped`, as in `skipped_files`.
        """
        plan, amount = self.plan, self.amount
        counted = {} if amount is None or amount.unit == FILES else {UNIT: amount.unit, COUNT: amount.count}
        figures: dict[str, Any] = {
            "ctx": self.ctx,
            "kind": self.kind,
            "source": self.source,
            "files": self.files,
            "bytes": None if amount is None else amount.bytes,
            "oldest": None if self.oldest is None else to_text(self.oldest),
            "newest": None if self.newest is None else to_text(self.newest),
            "skipped": {} if plan is None else dict(plan.skipped),
            READ_AGAIN: None if plan is None else plan.read_again,
            "unknown": self.unknown,
            "recorded_by": None,
            "recorded_at": None,
            **counted,
            **({} if self.waiting is None else _recorded(self.waiting)),
        }
        if plan is not None and plan.edge is not None:
            figures |= {"upstream": plan.edge.job, "runs": list(self.runs), "rows": self.rows}
        if with_skipped:
            figures["skipped_files"] = self.skipped_files(examples)
        return figures

    def skipped_files(self, examples: int | None = None) -> list[dict[str, Any]]:
        """Return the files that would be left out, by reason: late, settling, overwritten, expired.

        "expired" are those that the ledger has forgotten under `late_after`: read long ago, or very late. Hidden and
        nested files are only counted.

        Args:
            examples: how many of each reason at most; None: all.
        """
        named = left_out(self.plan) if isinstance(self.plan, FilePlan) else {}
        return [
            {
                "ctx": self.ctx,
                "reason": reason,
                "path": file.path,
                "bytes": file.size_bytes,
                "modified_at": to_text(file.modified),
            }
            for reason, files in named.items()
            for file in islice(files, examples)
        ]


@dataclass(frozen=True, slots=True)
class PendingInput:
    """What the next enabled run of a job has to do.

    `due` is a run that is committed and still to be published, `is_cleaning` whether undone output is still to be
    removed, `left_open` the runs that a dead driver left or that failed, which the next run settles. `holder` is who
    works on the job now: what it has planned counts as pending until it commits. `unknown` says in words why all this
    may not be the whole. `up_to_script` says what the script may make without new input; None: nothing that is known.
    """

    job: str
    namespace: str
    looked_at: datetime
    contexts: tuple[PendingContext, ...] = ()
    due: RunKey | None = None
    is_cleaning: bool = False
    left_open: tuple[RunKey, ...] = ()
    holder: str | None = None
    unknown: str | None = None
    up_to_script: str | None = None

    @property
    def is_known(self) -> bool:
        """Whether every context could be planned, and as far as is known there are no others."""
        return self.unknown is None and all(context.unknown is None for context in self.contexts)

    @property
    def count(self) -> int | None:
        """How much would be read, in the units of the contexts; None if that is not known of all input."""
        if not self.is_known:
            return None
        return sum_of(None if context.amount is None else context.amount.count for context in self.contexts)

    @property
    def is_empty(self) -> bool:
        """Whether the next run would have nothing to do: everything is known, nothing is new, nothing is due."""
        is_settled = self.due is None and not self.is_cleaning and not self.left_open
        return self.is_known and is_settled and not any(context.has_input for context in self.contexts)

    def as_dict(self, *, with_skipped: bool = False, examples: int | None = None) -> dict[str, Any]:
        """Return it as plain values. `with_skipped` lists the files that would be left out, by context.

        Of each reason these are `examples` at most; None: all. `files` and `bytes` are None where one of the contexts
        can't be counted.
        """
        contexts = [context.as_dict(with_skipped=with_skipped, examples=examples) for context in self.contexts]
        # What a run has left waiting is not everything that the next one reads.
        counted = [{"files": None, "bytes": None} if each["recorded_by"] is not None else each for each in contexts]
        return {
            "job": self.job,
            "namespace": self.namespace,
            "looked_at": to_text(self.looked_at),
            "is_empty": self.is_empty,
            "is_known": self.is_known,
            "unknown": self.unknown,
            "files": total(counted, "files"),
            "bytes": total(counted, "bytes"),
            "contexts": contexts,
            "due_run_number": None if self.due is None else self.due.number,
            "cleaning": self.is_cleaning,
            "left_open": [str(key) for key in self.left_open],
            "holder": self.holder,
        }


def pending(store: BookmarkStore, job: str) -> PendingInput:
    """Return what the next enabled run of a job would read, and what it would have to finish first.

    Args:
        job: the key of the job. One that has never run is no error: its `unknown` says so.

    Raises:
        StoreError: the state can't be read, or is damaged.

    Example:
        if pending(store, "flights.clean").is_empty: ...
    """
    now = store.now()
    head = store.snapshot(job).head
    if head is None:
        why = f"no bookmark named {job!r} in namespace {store.namespace!r}: it has never run, or has another name"
        return PendingInput(job, store.namespace, now, unknown=why)
    recent = recent_runs(store, job, head)
    entries = recorded_plans(store, job, head, recent)
    reader = ContextReader(store, job, head)
    holder = head.holder(now)
    is_left = [r for r in recent if r.key.number > head.run_number and r.state.is_open]
    return PendingInput(
        job,
        store.namespace,
        now,
        contexts=tuple(_context(store, job, reader, ctx, entry, recent) for ctx, entry in sorted(entries.items())),
        due=head.publishing,
        is_cleaning=head.cleaning is not None,
        left_open=tuple(run.key for run in is_left if holder is None or run.key.fence != head.fence),
        holder=None if holder is None else holder.run_id,
        unknown=_unknown(head, recent, entries),
        up_to_script=made_without_input(head, recent),
    )


def recent_runs(store: BookmarkStore, job: str, head: Head) -> list[Run]:
    """Return the run that committed last, those that failed beside it, and open ones, oldest first."""
    return list(store.runs(job, after=max(head.run_number - 1, 0), until=head.run_number + 1))


def recorded_plans(store: BookmarkStore, job: str, head: Head, recent: Sequence[Run]) -> dict[str, PlanEntry | None]:
    """Return how each context was planned last; None where no run is left that says it.

    Undone runs count too: they tell what the script reads, if not what is still to be read.
    """
    entries: dict[str, PlanEntry | None] = dict.fromkeys(ctx for ctx in head.contexts if ctx != STATE_CONTEXT)
    names = names_now(head.contexts)
    for run in recent:
        entries |= {names.get(ctx, ctx): entry for ctx, entry in run.plans.items()}
    silent = {ctx: head.contexts[ctx].run for ctx, entry in entries.items() if entry is None}
    holders = store.run_items(job, list(silent.values()))
    for ctx, key in silent.items():
        holder = holders.get(key)
        entries[ctx] = None if holder is None else holder.plans.get(head.contexts[ctx].planned_as(ctx))
    return {ctx: None if entry is None else entry_now(entry, head.contexts.get(ctx)) for ctx, entry in entries.items()}


def made_without_input(head: Head, recent: Sequence[Run]) -> str | None:
    """Describe what a script may make although no context has anything new; None: nothing, by its last run."""
    if STATE_CONTEXT in head.contexts:
        return "the job keeps job.state, behind which the script may find more"
    for run in recent:
        outputs = sorted(name for name, entry in run.outputs.items() if entry.metadata.when_empty == "publish")
        if outputs:
            return f"outputs {outputs} are published without new input too (when_empty='publish')"
        read = run.all_measured().values()
        has_read = any(each.plan.amount.count != 0 for each in read)  # how much, a kind need not know
        if run.state.is_committed and not run.is_empty and read and not has_read:
            return f"run {run.key.number} published rows without new input"
    return None


def _unknown(head: Head, recent: Sequence[Run], entries: Mapping[str, PlanEntry | None]) -> str | None:
    if not any(run.state.is_committed for run in recent):
        named = f" beside {', '.join(sorted(entries))}" if entries else ""
        why = "none has committed yet" if head.run_number == 0 else f"run {head.run_number} no longer exists"
        return f"what the job reads{named} is known from a committed run only, and {why}"
    if not entries and STATE_CONTEXT in head.contexts:
        return "the job has only job.state and no contexts: what it would read only its script knows"
    return None if entries else "the last run read nothing under a bookmark"


def _recorded(waiting: Waiting) -> dict[str, Any]:
    return {
        "files": waiting.files,
        "bytes": waiting.bytes,
        "oldest": None if waiting.oldest is None else to_text(waiting.oldest),
        "skipped": dict(waiting.skipped),
        "recorded_by": waiting.run_number,
        "recorded_at": to_text(waiting.looked_at),
    }


def _context(
    store: BookmarkStore, job: str, reader: ContextReader, ctx: str, entry: PlanEntry | None, recent: Sequence[Run]
) -> PendingContext:
    state = reader.state(ctx)
    if entry is None:
        kind, source = ("", "") if state is None else (state.kind, state.fingerprint)
        return PendingContext(ctx, kind, source, unknown="no run is left that says how it was read")
    try:
        source_now = recorded_source(store, job, entry)
        why = only_script_knows(entry, source_now)
        if why is not None:
            waiting = left_waiting(store, job, reader.head, ctx, recent)
            return PendingContext(ctx, entry.kind, entry.fingerprint, unknown=why, waiting=waiting)
        plan = source_now.plan(reader.found_for(ctx, source_now, recorded_on_change(entry)))
    except LookRefusedError as error:
        waiting = left_waiting(store, job, reader.head, ctx, recent)
        return PendingContext(ctx, entry.kind, entry.fingerprint, unknown=str(error), waiting=waiting)
    except (DatabaseError, OptionError, SourceError) as error:
        # What the run would raise too, or this machine can't open, is no reason to hide the other contexts.
        return PendingContext(ctx, entry.kind, entry.fingerprint, unknown=redacted(str(error)))
    rows, choice = _rows(store, plan), up_to_script(plan, entry)
    return PendingContext(ctx, entry.kind, entry.fingerprint, plan, rows=rows, up_to_script=choice)


def up_to_script(plan: Plan, entry: PlanEntry) -> str | None:
    """Describe what a plan leaves out because of the script's last options; None if nothing.

    What the script says today may let that in: patterns and filters are made from the day. Partitions that are too old
    (`partition_time`) are no such choice; where there is a filter as well, which of the two left them out is not known.

    Args:
        entry: the recorded plan, with whose options `plan` was made.
    """
    if not isinstance(plan, FilePlan):
        return None
    read = entry.file_metadata.read
    pruned = 0 if plan.partitions is None else plan.partitions.pruned
    counts = {reason: plan.skipped.get(reason, 0) for reason in (EXCLUDED, UNMATCHED)}
    left = [f"{count} files are {reason}" for reason, count in counts.items() if count]
    if pruned and read is not None and read.partition_filter is not None:
        left.append(f"{pruned} partitions are pruned, and partition_filter was {read.partition_filter!r}")
    if read is not None and read.globs:
        left.append(f"it reads by pattern ({', '.join(read.globs)})")
    return " and ".join(left) or None


def recorded_on_change(entry: PlanEntry) -> OnSourceChange:
    """Return what the script does where a position is of another source, judging by its last plan."""
    if not entry.metadata.starts_over:
        return "keep"
    return "error" if entry.metadata.starts_from is None else "reset"


def _rows(store: BookmarkStore, plan: Plan) -> int | None:
    """Return how many of the rows to be read an upstream has written; None where they were not counted."""
    window = plan.edge
    if window is None or window.replaced:
        return None
    numbers = {number for number, _ in window.runs}
    rows = [
        entry.metadata.rows
        for run in (store.runs(window.job, after=window.after, until=window.until) if numbers else ())
        if run.key.number in numbers and run.state is RunState.PUBLISHED
        for name, entry in run.outputs.items()
        if name == window.output
    ]
    known = [count for count in rows if count is not None]
    return sum(known) if len(known) == len(rows) else None
