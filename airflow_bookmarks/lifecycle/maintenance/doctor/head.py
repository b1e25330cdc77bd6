"""Check heads: numbers against runs and lines, the lease, what is due, the entry in the job index, and requests."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import NameInvalidError, StateCorruptError
from airflow_bookmarks.core.job import check_name
from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.core.text.instant import to_text
from airflow_bookmarks.files.opener import open_filesystem
from airflow_bookmarks.lifecycle.changes.approval import APPROVED, ASK_ANEW, decoded_requests
from airflow_bookmarks.lifecycle.maintenance.doctor.finding import (
    RESTORE,
    RESTORE_ALONE,
    RESTORE_HEAD,
    Finding,
    Severity,
)
from airflow_bookmarks.store.codec import item
from airflow_bookmarks.store.codec.item import EVENT_PREFIX
from airflow_bookmarks.store.stored_item import item_bytes
from airflow_bookmarks.store.transitions.approval import requests_among
from airflow_bookmarks.store.transitions.collection import job_partitions
from airflow_bookmarks.store.transitions.importing import is_claimed
from airflow_bookmarks.store.transitions.naming import alias_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.run import Run
    from airflow_bookmarks.lifecycle.maintenance.doctor.survey import Survey
    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from airflow_bookmarks.store.stored_item import IndexEntry

LEASE_GRACE = timedelta(hours=1)  # a lease that ended so long ago is no longer renewed
HEAD_BYTES = 4096


def examine_head(survey: Survey) -> Iterator[Finding]:
    """Find what is wrong with the head, or that it is gone."""
    head = survey.head
    if head is None:
        if survey.runs and not survey.unreadable:
            what = f"job {survey.job!r} has {len(survey.runs)} run items and no head: its bookmark is lost"
            yield Finding("head-missing", survey.job, Severity.ERROR, what, "HEAD", RESTORE_HEAD)
        return
    yield from examine_index(survey, head)
    yield from _lease(survey, head)
    yield from _numbers(survey, head)
    yield from _publishing(survey, head)
    key = survey.store.keys(survey.job).head
    size = item_bytes(key.pk, key.sk, survey.items[key])
    if size > HEAD_BYTES:
        what = f"the head has {size} bytes and should stay below {HEAD_BYTES}: each run reads and writes it"
        mend = "Use shorter names, or split the job: each context and staging root takes room there."
        yield Finding("head-large", survey.job, Severity.WARNING, what, "HEAD", mend)


def examine_import(survey: Survey) -> Iterator[Finding]:
    """Find an import that was begun and not finished: nothing else of such a job has a meaning yet."""
    head = survey.head
    if head is None or head.lease is None or not is_claimed(head):
        return
    what = (
        f"an import of job {survey.job!r} was begun at {to_text(head.lease.since)} and has not ended: what is there is "
        "not whole, and no run may begin"
    )
    mend = "If it is not at work any more, import the same document again, which goes on from there."
    yield Finding("import-unfinished", survey.job, Severity.ERROR, what, "HEAD", mend)


def _lease(survey: Survey, head: Head) -> Iterator[Finding]:
    lease = head.lease
    if lease is None or lease.is_held(survey.now - LEASE_GRACE):
        return
    left = [str(run.key) for run in survey.runs.values() if run.state.is_open and run.run_id == lease.run_id]
    opened = f", and its run {left[0]} is open" if left else ""
    what = (
        f"{lease.run_id!r} (attempt {lease.attempt}) holds the lease, which ended at {lease.expires_at.isoformat()}"
        f"{opened}: its driver is gone"
    )
    mend = "Free the job under the next fence; the next run settles what is open or due."
    yield Finding("lease-dangling", survey.job, Severity.WARNING, what, "HEAD", mend, True)


def _numbers(survey: Survey, head: Head) -> Iterator[Finding]:
    committed = survey.committed
    top = max(committed, default=0)
    if head.run_number > survey.collected and head.run_number not in committed:
        what = f"the head says that run {head.run_number} is the last committed one, and there is no such run"
        yield Finding("head-ahead", survey.job, Severity.ERROR, what, "HEAD", RESTORE)
    fence = max((run.key.fence for run in survey.runs.values()), default=0)
    version = max((run.version or 0 for runs in committed.values() for run in runs), default=0)
    epoch = max(survey.lines, default=1)
    if top > head.run_number or fence > head.fence or epoch > head.epoch or version > head.version:
        what = (
            f"the head is behind its own items: it says run {head.run_number}, fence {head.fence}, epoch {head.epoch}, "
            f"version {head.version}; there are run {top}, fence {fence}, epoch {epoch}, version {version}. It was put "
            "back by hand, or from an older backup than the rest"
        )
        yield Finding("head-behind", survey.job, Severity.ERROR, what, "HEAD", RESTORE_ALONE)
    published = [n for n, runs in committed.items() if any(run.state is RunState.PUBLISHED for run in runs)]
    wrong = []
    if head.published > head.run_number or max(published, default=0) > head.published:
        wrong.append(f"published {head.published}, and the last published run is {max(published, default=0)}")
    if _is_wrong_data_run(survey, head):
        wrong.append(f"data_run_number {head.data_run_number}, which is no committed run with data")
    for part in wrong:
        what = f"the numbers of the head don't fit its runs (run_number {head.run_number}): {part}"
        yield Finding("head-inconsistent", survey.job, Severity.ERROR, what, "HEAD", RESTORE)


def _is_wrong_data_run(survey: Survey, head: Head) -> bool:
    if head.data_run_number == 0:
        return False
    return all(run.is_empty for run in survey.committed.get(head.data_run_number, ()))


def _publishing(survey: Survey, head: Head) -> Iterator[Finding]:
    due = None if head.publishing is None else survey.runs.get(head.publishing)
    if head.publishing is not None and due is None:
        what = f"the head says that run {head.publishing} is to be published, and there is no such run item"
        yield Finding("publish-unknown", survey.job, Severity.ERROR, what, "HEAD", RESTORE_ALONE)
    elif due is not None and due.state is not RunState.COMMITTED:
        what = f"the head says that run {head.publishing} is to be published, and that run is {due.state.value}"
        yield Finding("publish-not-committed", survey.job, Severity.ERROR, what, "HEAD", RESTORE)
    for run in survey.living():
        if run.state is RunState.COMMITTED and run.key != head.publishing:
            yield lost_publish(survey, head, run)


def lost_publish(survey: Survey, head: Head, run: Run) -> Finding:
    """Return the finding that a committed run of the living line waits for a publish that is no longer due."""
    what = f"run {run.key} is committed but not published, and the head does not list it as due: no run will publish it"
    gone = unpublishable(survey, run)
    is_free = head.publishing is None and head.lease is None and head.cleaning is None
    mend = "Name it on the head as due; the next run publishes it."
    if gone:
        mend = f"What it staged is gone ({gone[0]!r}): rewind the job to before this run, so that it is done again."
    elif not is_free:
        mend = "Run it when nothing else is due and no run holds the job: then the publish can be noted as due."
    return Finding(
        "publish-lost", survey.job, Severity.ERROR, what, f"RUN {run.key}", mend, is_repairable=is_free and not gone
    )


def unpublishable(survey: Survey, run: Run) -> list[str]:
    """Return the files that a committed run staged and that are neither there any more nor published."""
    return [path for output in run.outputs.values() for path in _gone(survey.moves_of(output))]


def _gone(moves: list[tuple[str, str]]) -> list[str]:
    if not moves:
        return []
    files = open_filesystem(moves[0][1])
    staged = files.stat([source for source, _ in moves])
    there = files.stat([target for _, target in moves])
    pairs = zip(moves, staged, there, strict=True)
    return [source for (source, _), a, b in pairs if a is None and b is None]


_NAME = "Restore the entry from a backup; until then no run may begin under that name: it would read everything."


def names_to_examine(store: BookmarkStore, *, with_lost: bool) -> tuple[list[str], list[Finding]]:
    """Return the names of all jobs, and what is wrong with the index itself.

    `with_lost` adds jobs that are missing from the index, for which the whole table is scanned: that right can't be
    limited to a namespace.
    """
    names, found = set[str](), list[Finding]()
    try:
        index = dict(store.jobs())
    except StateCorruptError as error:
        index = {}
        found.append(Finding("index-unreadable", "", Severity.ERROR, str(error), "JOBS", _NAME))
    with suppress(StateCorruptError):  # the examination of that job names it
        if with_lost:
            names = {partition.removeprefix(f"{store.namespace}#JOB#") for partition in job_partitions(store)}
    for name in index:
        found += _entry(store, name, index)
    return sorted({*names, *index}), found


def _entry(store: BookmarkStore, name: str, index: Mapping[str, IndexEntry]) -> Iterator[Finding]:
    try:
        check_name("job", name)
        key = alias_of(index[name], name)
        target = None if key is None else store.snapshot(key).head
    except (NameInvalidError, StateCorruptError) as error:
        yield Finding("entry-unreadable", name, Severity.ERROR, f"the index has {name!r}: {error}", "JOBS", _NAME)
        return
    if key is None:
        return
    if target is None:
        what = f"the index says that {name!r} is a name of job {key!r}, and there is no such job"
        yield Finding("alias-dangling", name, Severity.ERROR, what, "JOBS", _NAME)
    elif alias_of(index.get(key), key) is not None:
        what = (
            f"the index says that {name!r} is a name of {key!r}, which is itself an alias; an alias has to name a job"
        )
        yield Finding("alias-dangling", name, Severity.ERROR, what, "JOBS", _NAME)


# ---- an entry that is gone


def examine_index(survey: Survey, head: Head) -> Iterator[Finding]:
    """Find that the index lacks an entry of a job, or of a name that it was given."""
    yield from _lost_names(survey)
    if survey.index is not None:
        return
    until = collected_before(survey, head)
    mend = "Write the entry"
    mend += "." if not until else f", with the note that runs up to {until} were collected."
    if until is None:
        mend = (
            "Restore the entry from a backup: it alone says which runs were collected, or came with an import, and "
            "what is left does not tell it."
        )
    what = f"job {survey.job!r} has a head and no entry in the index of jobs, so no list shows it"
    yield Finding("index-missing", survey.job, Severity.WARNING, what, "JOBS", mend, until is not None)


def _lost_names(survey: Survey) -> Iterator[Finding]:
    given = {str(event["name"]) for event in survey.events if event.get("kind") in _NAMING and "name" in event}
    for name in sorted(given):
        with suppress(NameInvalidError, StateCorruptError):  # which is a finding of its own
            if alias_of(survey.store.index_entry(name), name) is None:
                what = f"{name!r} was made a name of job {survey.job!r}, and the index does not say so any more"
                yield Finding("alias-lost", survey.job, Severity.ERROR, what, "JOBS", _NAME)


_NAMING = ("rename", "adopt")


def collected_before(survey: Survey, head: Head) -> int | None:
    """Return the number up to which runs were collected, judging by what is left; None where that is unclear.

    A collection takes the oldest runs, and leaves among them those that something refers to. A missing run above one
    that nothing refers to was not collected, but lost.
    """
    if any(event.get("kind") == "import" for event in survey.events):
        return None  # the entry also said which runs belong to another store
    until = max((n for n in range(1, head.run_number + 1) if n not in survey.committed), default=0)
    left = {number for number in survey.committed if number < until}
    return until if left <= _held(survey, head, until) else None


def _held(survey: Survey, head: Head, until: int) -> set[int]:
    """Return the numbers of the runs that a collection up to `until` leaves; see `lifecycle.maintenance.retention`."""
    later = [run for run in survey.runs.values() if run.key.number > until]
    states = [*head.contexts.values(), *(state for run in later for state in run.contexts.values())]
    held = {head.data_run_number, *(run.data_run_number for run in later)}
    due = [head.publishing]
    line = survey.items.get(survey.store.keys(survey.job).line(head.epoch))
    if line is not None and head.epoch in survey.lines:
        line_change = item.line_change_of(head.epoch, line)
        states += line_change.contexts.values()
        held.add(line_change.data_run_number)
        due.append(line_change.dropped)
    held |= {state.run.number for state in states} | {key.number for key in due if key is not None}
    for execution in survey.executions.values():
        held |= {number for number in (execution.last_run, execution.replaying) if number is not None}
    newest = {n: run.key.number for run in survey.living() for n, o in run.outputs.items() if o.schema is not None}
    return held | set(newest.values())


# ---- requests for approval


def examine_requests(survey: Survey) -> Iterator[Finding]:
    """Find requests that are damaged, that belong to no bookmark, or were approved and not carried out."""
    items = requests_among(survey.items.items())
    if survey.head is None:
        if items and not survey.runs and not survey.unreadable:  # runs without a head are a finding of its check
            what = f"job {survey.job!r} has {len(items)} request(s) for approval and no head: its bookmark is lost"
            where = EVENT_PREFIX + min(items)
            yield Finding("request-orphaned", survey.job, Severity.ERROR, what, where, RESTORE_HEAD)
        return
    found, damaged = decoded_requests(survey.job, items, survey.head, survey.now)
    for request_id, error in damaged.items():
        what = f"request {request_id} can't be read: {error}"
        where = EVENT_PREFIX + request_id
        yield Finding("request-damaged", survey.job, Severity.WARNING, what, where, ASK_ANEW)
    for request in found:
        if request.state == APPROVED:
            what = (
                f"request {request.id} ({request.change.kind}, asked for by {request.who.name!r}) is approved, and its "
                f"change is not made; it expires at {to_text(request.valid_until)}"
            )
            mend = "Approve it once more, which makes the change, or reject it."
            where = EVENT_PREFIX + request.id
            yield Finding("request-not-made", survey.job, Severity.NOTICE, what, where, mend)
