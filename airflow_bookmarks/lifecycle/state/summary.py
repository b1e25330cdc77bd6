"""Report what a run, or an execution of several runs, did: its summary for XCom and callers, its lines in the log."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.amount import COUNT, FILES, UNIT, Amount
from airflow_bookmarks.core.ledger.gap import shown_gaps
from airflow_bookmarks.core.rules.mode import Mode
from airflow_bookmarks.core.selection.partition_time import NEWEST_PARTITION
from airflow_bookmarks.core.selection.reason import QUARANTINED
from airflow_bookmarks.core.text.count import (
    LEFT_OUT,
    READ_AGAIN,
    REMOVED_KEYS,
    REPLACED,
    REPLACED_FILES,
    replaced_in_words,
)
from airflow_bookmarks.core.text.escaping import escaped
from airflow_bookmarks.lifecycle.state.discard import DISCARDED, discarded_in_words

if TYPE_CHECKING:
    import logging
    from collections.abc import Mapping

    from airflow_bookmarks.core.files.file_plan import FilePlan
    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.plan import Plan
    from airflow_bookmarks.core.run import ContextState, OutputEntry, Run
    from airflow_bookmarks.store.bookmark_store import BookmarkStore


@dataclass(frozen=True, slots=True)
class Summary:
    """What a finished run did. `run_number`, `epoch` and `version` are None for pause and disable runs.

    Where an execution made several runs, in batches, it has the sums over all of them, from `first_run_number` on.
    `left_out` counts by step of the script, and then by reason, what a step left out of what was read.
    """

    job: str
    namespace: str
    run_id: str
    option: str
    run_number: int | None = None
    epoch: int | None = None
    version: int | None = None
    is_empty: bool = False
    is_published: bool = False
    contexts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    outputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    seconds: Mapping[str, str] = field(default_factory=dict)
    first_run_number: int | None = None
    left_out: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, run: Run, namespace: str, job: str) -> Summary:
        """Return the summary of a committed run."""
        measured = run.metrics.get("contexts", {})
        return cls(
            job=job,
            namespace=namespace,
            run_id=run.run_id,
            option=run.option,
            run_number=run.key.number,
            epoch=run.epoch,
            version=run.version,
            is_empty=run.is_empty,
            is_published=True,
            contexts={ctx: _context_figures(figures, run.contexts.get(ctx)) for ctx, figures in measured.items()},
            outputs={
                name: {key: output.stats.get(key) for key in ("rows", "files", "bytes")} | _where_any(output.stats)
                for name, output in run.outputs.items()
            },
            seconds=run.metrics.get("seconds", {}),
            left_out=run.metrics.get(LEFT_OUT, {}),
        )

    def in_words(self) -> str:
        """Return it as a line for a log: the run, the files of each context, the rows of each output."""
        parts = [f"run {self.run_number}" if self.run_number is not None else f"a {self.option} run"]
        if self.first_run_number is not None:
            parts = [f"runs {self.first_run_number} to {self.run_number}"]
        parts += [f"{ctx}: {_read_in_words(figures)}" for ctx, figures in self.contexts.items()]
        parts += [_written_in_words(name, figures) for name, figures in self.outputs.items()]
        counts = ((step, reason, count) for step, found in self.left_out.items() for reason, count in found.items())
        parts += [f"{reason} of {step}: {count}" for step, reason, count in counts]
        return ", ".join(parts)

    def as_dict(self) -> dict[str, Any]:
        """Return it as one plain dict. Numbers that other jobs compare are text, because XCom sends some through
        float. `first_run_number` is there only where an execution made several runs, `left_out` only where a step of
        the script left something out.
        """
        several = {} if self.first_run_number is None else {"first_run_number": _text(self.first_run_number)}
        left_out = {LEFT_OUT: {step: dict(counts) for step, counts in self.left_out.items()}} if self.left_out else {}
        return {
            "job": self.job,
            "namespace": self.namespace,
            "run_id": self.run_id,
            "option": self.option,
            "run_number": _text(self.run_number),
            "epoch": _text(self.epoch),
            "version": _text(self.version),
            "is_empty": self.is_empty,
            "is_published": self.is_published,
            "contexts": {ctx: dict(figures) for ctx, figures in self.contexts.items()},
            "outputs": {name: dict(figures) for name, figures in self.outputs.items()},
            "seconds": dict(self.seconds),
            **several,
            **left_out,
        }


def _context_figures(figures: Mapping[str, Any], state: ContextState | None) -> dict[str, Any]:
    kept = {key: figures.get(key) for key in ("files", "bytes", "rows", "listed", "known", READ_AGAIN, "skipped")}
    kept |= {key: figures[key] for key in (UNIT, COUNT) if key in figures}
    before = figures.get("watermark_before")
    after = before if state is None else state.watermark
    where_any = {key: figures[key] for key in _WHERE_ANY if key in figures}
    if (gaps := shown_gaps(figures)) is not None:
        where_any["gaps"] = gaps
    return {**kept, **where_any, "watermark_from": before, "watermark_to": after}


def _read_in_words(figures: Mapping[str, Any]) -> str:
    again, amount = figures.get(READ_AGAIN), Amount.of_stats(figures)
    if amount.count is None and amount.unit == FILES:  # as a run of an unknown kind of source leaves it as well
        return "not known how much"
    return f"{amount.in_words()}{f' ({again} read again)' if again else ''}"


def _where_any(figures: Mapping[str, Any]) -> dict[str, Any]:
    told = (REMOVED_KEYS, *REPLACED) if not figures.get("discarded") else (*DISCARDED, *REPLACED)
    return {key: figures[key] for key in told if key in figures}


def _written_in_words(name: str, figures: Mapping[str, Any]) -> str:
    rows = "rows not counted" if figures["rows"] is None else f"{figures['rows']} rows written"
    rows += f", {figures[REMOVED_KEYS]} keys to delete" if REMOVED_KEYS in figures else ""
    discarded = f", {discarded_in_words(name, figures)} discarded" if figures.get("discarded") else ""
    return f"{name}: {rows}{discarded}" + (f", {replaced_in_words(figures)}" if REPLACED_FILES in figures else "")


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)


_WHERE_ANY = ("upstream", "schema_change", "partitions", NEWEST_PARTITION)
_PARTITION_LINES = 50  # a source may have many thousands


# ---- the log: one line a step, each with the word bookmark, the job and the context


def log_found(log: logging.Logger, job: str, ctx: str, kind: str, watermark: str | None, head: Head) -> None:
    """Log where a context stands before it is planned."""
    state = head.contexts.get(ctx)
    if state is None:
        log.info("bookmark %s, context %s (%s): no position yet, starting at the beginning", job, ctx, kind)
        return
    log.info(
        "bookmark %s, context %s (%s): found position of run %s in epoch %d, watermark %s",
        job,
        ctx,
        kind,
        state.run.number,
        head.epoch,
        escaped(str(watermark)),  # of a sequence it is made of the name of a file
    )


def log_planned(log: logging.Logger, job: str, ctx: str, plan: Plan) -> None:
    """Log what a run will read of how much, and what it leaves."""
    from airflow_bookmarks.core.files.file_plan import FilePlan  # numpy comes with it, which a DAG file does not need

    if isinstance(plan, FilePlan):
        _log_files(log, job, ctx, plan)
    log.info("bookmark %s, context %s: %s", job, ctx, plan.summary())


def _log_files(log: logging.Logger, job: str, ctx: str, plan: FilePlan) -> None:
    if plan.skipped.get("nested"):
        log.warning(
            "bookmark %s, context %s: %d files lie in folders that are no partition (name=value) and are not read, as "
            "by Spark; .option('recursiveFileLookup', True) reads them",
            job,
            ctx,
            plan.skipped["nested"],
        )
    _log_partitions(log, job, ctx, plan)
    if plan.seen is not None and plan.seen.missing:
        log.warning("bookmark %s, context %s: %s", job, ctx, escaped(plan.seen.in_words()))


def _log_partitions(log: logging.Logger, job: str, ctx: str, plan: FilePlan) -> None:
    if plan.partitions is None:
        return
    skipped = plan.partitions.skipped
    for folder in skipped[:_PARTITION_LINES]:
        log.info("bookmark %s, context %s: partition %s has nothing new", job, ctx, escaped(folder))
    if len(skipped) > _PARTITION_LINES:
        log.info(
            "bookmark %s, context %s: and %d more partitions of %d have nothing new",
            job,
            ctx,
            len(skipped) - _PARTITION_LINES,
            plan.partitions.listed,
        )
    newest = plan.stats().get(NEWEST_PARTITION)
    if plan.partitions.pruned or newest is not None:
        log.info(
            "bookmark %s, context %s: %d partitions listed, %d pruned before they were listed%s",
            job,
            ctx,
            plan.partitions.listed,
            plan.partitions.pruned,
            "" if newest is None else f"; the newest begins at {newest}",
        )


def log_committed(log: logging.Logger, job: str, ctx: str, number: int, state: ContextState) -> None:
    """Log where a context stands after the commit."""
    moved = "moved to" if state.run.number == number else "stays at"
    log.info(
        "bookmark %s, context %s: run %d committed, position %s run %d, watermark %s",
        job,
        ctx,
        number,
        moved,
        state.run.number,
        escaped(str(state.watermark)),
    )


def warn_of_repetition(
    log: logging.Logger, job: str, plans: Mapping[str, Plan], outputs: Mapping[str, OutputEntry]
) -> None:
    """Warn where files are read again and an output appends: the rows of the first reading stay beside the new ones.

    The script decides which output a context goes into, so each output that appends is named.
    """
    again = {ctx: count for ctx, plan in plans.items() if (count := plan.read_again)}
    appended = sorted(name for name, entry in outputs.items() if entry.metadata.mode == Mode.APPEND)
    if not again or not appended:
        return
    told = ", ".join(f"{count} of context {ctx!r}" for ctx, count in sorted(again.items()))
    log.warning(
        "bookmark %s: files that were read before are read again (%s), and output %s appends: rows of the former "
        "reading stay there beside the new ones. Overwrite partitions under reread='partition' to replace them",
        job,
        told,
        ", ".join(map(repr, appended)),
    )


# ---- of an execution of several runs


def batches_until(store: BookmarkStore, job: str, last: Run, first_run: int | None) -> list[Run]:
    """Return the runs of the loop that made `last`, oldest first: itself, and the batches of the execution before it.

    Each but the last of an execution says that it is not the last. `first_run` is the first one that the execution ever
    made, maybe before its task was cleared. Runs of others may lie between its tries; what was undone since does not
    count. Of files in quarantine each run but the first is given those alone that it found itself.
    """
    runs, living = [last], None
    if first_run is None or first_run >= last.key.number:
        return runs
    for run in store.runs(job, after=first_run - 1, until=last.key.number - 1, reverse=True):
        if not run.state.is_committed:
            continue
        if run.run_id != last.run_id:
            continue  # another execution, between two tries of this one
        if run.is_last:
            break  # an earlier series of tries
        living = living or store.ancestry(job, last.epoch)
        if living.has(run):
            runs.append(run)
    first, *later = runs[::-1]
    return [first, *map(_with_own_quarantine, later)]


def _with_own_quarantine(run: Run) -> Run:
    """Return a run that counts only the files which it put in quarantine itself."""
    contexts = {}
    for ctx, figures in run.metrics.get("contexts", {}).items():
        skipped = {reason: count for reason, count in (figures.get("skipped") or {}).items() if reason != QUARANTINED}
        own = figures.get("quarantined", 0)
        contexts[ctx] = {**figures, "skipped": {**skipped, QUARANTINED: own} if own else skipped}
    return replace(run, metrics={**run.metrics, "contexts": contexts})
