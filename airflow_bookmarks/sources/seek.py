"""Make positions that no run left: for a context that is set to now, to a time or to an upstream run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from airflow_bookmarks.core.errors import OptionError, SourceMissingError
from airflow_bookmarks.core.ledger.file_ledger import Known, Ledger
from airflow_bookmarks.core.ledger.segment import bare_name
from airflow_bookmarks.core.order import TIME
from airflow_bookmarks.core.position import Position, UpstreamPosition
from airflow_bookmarks.core.rules.start import Start
from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.core.selection.listing import Listing, instant
from airflow_bookmarks.core.selection.sequence import SequenceStart, order_by
from airflow_bookmarks.core.text.instant import to_text
from airflow_bookmarks.core.timeline import living_runs
from airflow_bookmarks.files.opener import open_filesystem
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.scan import ScanSpec
from airflow_bookmarks.sources.relocation import moved_path

if TYPE_CHECKING:
    from collections.abc import Collection

    from airflow_bookmarks.core.files.file_plan import FilePlan
    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.selection.listing import FileInfo
    from airflow_bookmarks.sources.source import PlanInput
    from airflow_bookmarks.store.reader import StateReader

NOW = "now"
RETRY = "retry:"
_SHOWN = 5  # quarantined files that an error names


def reads_again(value: str) -> bool:
    """Whether a context that is set to this value may read again what it has read before."""
    return value != NOW and not value.startswith(RETRY)


def is_retried(path: str, value: str) -> bool:
    """Whether a quarantined file is let out by "retry:<path>" or "retry:*"."""
    named = value.removeprefix(RETRY)
    return named == "*" or bare_name(path) == bare_name(named)


def files_at(store: StateReader, found: PlanInput, plan: FilePlan, value: str) -> Position:
    """Return the ledger in which everything present ("now"), or older than a time, counts as read.

    A file of exactly that time is read, as with `start=`.

    Args:
        found: the present position.
        plan: the plan that led to it: its roots are listed.
        value: "now"; an ISO 8601 time with a zone; or "retry:<path>" or "retry:*", with which all stays as it is, but
            that file, or all, are in quarantine no more.

    Raises:
        OptionError: the value is none of these, or no such file is in quarantine.
        SourceError: a root is not there, or can't be listed.
    """
    if value.startswith(RETRY):
        return _retried(found, value)
    start = None if value == NOW else _start(value)
    listing, before = _listing(plan.roots, _optional(found)), found.watermark
    if start is None:
        present = Ledger.empty() if found.position is None else Ledger.from_root(found.position, found.load)
        unread = listing.take(np.flatnonzero(present.classify(listing) != Known.KNOWN))
        ledger = present.add(unread, among=listing)
        # They count as read.
        ledger = replace(ledger, quarantine=ledger.quarantine.without(unread.paths), let_out=frozenset())
    else:
        read = listing.take(np.flatnonzero(start.before(listing.times_ms)))
        ledger = Ledger.empty().add(read, among=listing)
        listing, before = read, None
    newest = None if ledger.newest_ms is None else to_text(instant(ledger.newest_ms))
    # The watermark of a sequence is that of the plan's rule, which the present watermark follows too.
    sequence = None if plan.sequence is None else SequenceStart(plan.sequence.rule, before)
    watermark = newest if sequence is None else sequence.after(plan.roots, listing)
    order = TIME if sequence is None else order_by(sequence.rule, watermark)
    return Position(ledger.root(), watermark, ledger.unsaved(), order=order, set_aside=len(ledger.quarantine))


def _retried(found: PlanInput, value: str) -> Position:
    ledger = Ledger.empty() if found.position is None else Ledger.from_root(found.position, found.load)
    held = [file.path for file in ledger.quarantine]
    wanted = [path for path in held if is_retried(path, value)]
    if not held:
        raise OptionError(f"{value}: nothing of this context is in quarantine. Nothing was changed.")
    if not wanted:
        shown = ", ".join(map(repr, held[:_SHOWN]))
        more = f" and {len(held) - _SHOWN} more" if len(held) > _SHOWN else ""
        raise OptionError(
            f"{value}: no such file of this context is in quarantine; there is {shown}{more}. Nothing was changed. "
            f"Name one of these by its whole path, or all: {RETRY}*."
        )
    let_out = ledger.let_out | {bare_name(path) for path in wanted}
    after = replace(ledger, quarantine=ledger.quarantine.without(wanted), let_out=let_out)
    left = len(after.quarantine)
    return Position(after.root(), found.watermark, after.unsaved(), keeps_watermark=True, set_aside=left)


def _optional(found: PlanInput) -> Collection[str]:
    """Return the roots that may be missing, according to the patterns of the run that led here."""
    metadata = found.file_metadata
    read = metadata.read
    if read is None:
        return frozenset()
    roots, globs = (
        tuple(moved_path(path, metadata.moves) for path in paths) for paths in (read.roots or (), read.globs)
    )
    return ScanSpec(roots, globs, FileOptions()).optional


def _listing(roots: tuple[str, ...], optional: Collection[str]) -> Listing:
    # Folders that a plain read leaves out count as read too: nothing of what is there now is to come later.
    files: dict[str, FileInfo] = {}
    missing = 0
    for root in roots:
        try:
            files |= {file.path: file for file in open_filesystem(root).list(root, recursive=True).files}
        except SourceMissingError:
            missing += 1
            if root not in optional or missing == len(roots):
                raise
    return Listing.of(files.values())


def _start(value: str) -> Start:
    try:
        start = Start.of(value)
        if start.time is None:
            raise OptionError(f"{value!r} is no time")
    except OptionError as error:
        raise OptionError(
            f"{value!r} is neither 'now' nor a time such as 2013-01-31T00:00:00Z nor retry:<quarantined file>. A "
            "context of files can be set to these. Nothing was changed."
        ) from error
    return start


def upstream_at(store: StateReader, found: PlanInput, plan: FilePlan, value: str) -> Position:
    """Return the position of a consumer that has read its upstream up to what is published "now", or to a run.

    Raises:
        OptionError: the value is neither "now" nor the number of a published, living run (0: from the beginning).
    """
    window = plan.edge
    if window is None:
        raise OptionError("the plan of an upstream context names no upstream. Nothing was changed.")
    head = store.head(window.job)
    while True:
        number = _newest(store, window.job, head) if value == NOW else _number(store, window.job, head, value)
        again = store.head(window.job)
        if (again.epoch, again.changes) == (head.epoch, head.changes):
            break
        head = again  # a run of one epoch with the number of another would be taken for one that was undone
    after = UpstreamPosition(window.job, window.output, number, head.epoch, head.changes)
    return Position(after.encode(), str(number))


def _newest(store: StateReader, job: str, head: Head) -> int:
    living = store.ancestry(job, head.epoch)
    for run in living_runs(store.runs(job, until=head.published, reverse=True), living):
        if run.state is RunState.PUBLISHED:
            return run.key.number
    return 0


def _number(store: StateReader, job: str, head: Head, value: str) -> int:
    if value.isascii() and value.isdigit() and len(value) <= 10:
        number = int(value)
        if number == 0:
            return 0
        run = store.committed_run(job, number)
        is_there = run is not None and run.state is RunState.PUBLISHED
        if run is not None and is_there and store.ancestry(job, head.epoch).has(run):
            return number
    raise OptionError(
        f"{value!r} is neither 'now' nor the number of a published run of upstream {job!r} (0: from the beginning). "
        f"Nothing was changed. 'airflow-bookmarks history {job}' lists them."
    )
