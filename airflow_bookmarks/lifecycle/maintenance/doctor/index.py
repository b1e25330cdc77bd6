"""The index of jobs: an entry for each job that has a head, and names that lead to one."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import NameInvalidError, StateCorruptError
from airflow_bookmarks.core.job import check_name
from airflow_bookmarks.lifecycle.maintenance.doctor.finding import Finding, Severity
from airflow_bookmarks.store.codec import item
from airflow_bookmarks.store.transitions.collection import job_partitions
from airflow_bookmarks.store.transitions.naming import alias_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.lifecycle.maintenance.doctor.survey import Survey
    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from airflow_bookmarks.store.table import Attributes

_NAME = "Restore the entry from a backup; until then no run may begin under that name: it would read everything."


def names_to_examine(store: BookmarkStore, *, with_lost: bool) -> tuple[list[str], list[Finding]]:
    """Return the names of all jobs, and what is wrong with the index itself.

    `with_lost` adds jobs that the index has lost, for which the whole table is scanned: the right to do so can't be
    bounded to a namespace.
    """
    names, found = set[str](), list[Finding]()
    try:
        index = dict(store.jobs())
    except StateCorruptError as error:
        index = {}
        found.append(Finding("index-unreadable", "", Severity.ERROR, str(error), "JOBS", _NAME))
    with suppress(StateCorruptError):  # of which job, its own examination says
        if with_lost:
            names = {partition.removeprefix(f"{store.namespace}#JOB#") for partition in job_partitions(store)}
    for name in index:
        found += _entry(store, name, index)
    return sorted({*names, *index}), found


def _entry(store: BookmarkStore, name: str, index: Mapping[str, Attributes]) -> Iterator[Finding]:
    try:
        check_name("job", name)
        key = alias_of(index[name], name)
        target = None if key is None else store.look(key).head
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
            f"the index says that {name!r} is a name of {key!r}, which is only a name itself: nobody follows it twice"
        )
        yield Finding("alias-dangling", name, Severity.ERROR, what, "JOBS", _NAME)


# ---- an entry that is gone


def examine_index(survey: Survey, head: Head) -> Iterator[Finding]:
    """Find that the index has no entry of a job, or of a name that it was given."""
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
    """Return the number up to which runs were collected, as what is left tells it; None where it does not.

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
        turning = item.turning_of(head.epoch, line)
        states += turning.contexts.values()
        held.add(turning.data_run_number)
        due.append(turning.dropped)
    held |= {state.run.number for state in states} | {key.number for key in due if key is not None}
    for execution in survey.executions.values():
        held |= {number for number in (execution.last_run, execution.replaying) if number is not None}
    newest = {n: run.key.number for run in survey.living() for n, o in run.outputs.items() if o.schema is not None}
    return held | set(newest.values())
