"""The tries of a task that changes jobs: each change is made once for a task with its retries.

A try signs the audit event of a change, in the name of its author, and looks for the marks of its series before it
changes anything:

    try 1   looks, changes, and its worker dies before Airflow hears of it
    try 2   looks, finds the event of try 1, and returns what that did

Clearing a task begins a new series: a person asks for the change again. A series is told by Airflow's `max_tries`, as a
clear raises it and a retry leaves it; `retries` in the DAG file may have changed since. Earlier versions signed without
it, and their marks are of this series from the first try on that it has by the file.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.job import airflow_run_id
from airflow_bookmarks.core.job_state import hidden
from airflow_bookmarks.core.text.identity import Signature
from airflow_bookmarks.core.text.instant import to_text
from airflow_bookmarks.lifecycle.changes.approval import requests

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context

    from airflow_bookmarks.lifecycle.changes.approval import Request
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

log = logging.getLogger(__name__)

_TRY, _SERIES = " (try ", ", series "


@dataclass(frozen=True, slots=True)
class ChangeSeries:
    """The tries of a task since it was triggered or cleared; `max_tries` is Airflow's, `attempt` this try.

    `first` is the try it began with, as far as the DAG file tells: for marks of earlier versions.
    """

    run_id: str
    dag_run: str
    max_tries: int
    first: int
    attempt: int

    @classmethod
    def of(cls, context: Context, retries: int) -> ChangeSeries:
        """Return the series of the try that has this context, of a task with so many retries."""
        ti, dag_run = context["ti"], context["dag_run"]
        map_index = -1 if ti.map_index is None else ti.map_index
        # A DAG run that is deleted and made again under its old id counts its tries from 1, and is another one.
        started = "" if dag_run.start_date is None else f", DAG run of {to_text(dag_run.start_date)}"
        run_id = airflow_run_id(ti.dag_id, ti.run_id, ti.task_id, map_index)
        first = min(ti.max_tries - retries + 1, ti.try_number)
        return cls(run_id, started, ti.max_tries, first, ti.try_number)

    @property
    def mark(self) -> Signature:
        """The name under which this try makes a change."""
        return Signature(self._signed(str(self.attempt)), "task")

    def has(self, name: str) -> bool:
        """Whether this series made a change under `name`: by this try, an earlier one, or a later one, which was begun
        because this one was taken for dead.
        """
        number = name.rpartition(_TRY)[2].partition(",")[0].removesuffix(")")
        if not number.isdecimal():
            return False
        if name == self._signed(number):
            return True
        return name == f"{self.run_id}{_TRY}{number}{self.dag_run})" and int(number) >= self.first

    def _signed(self, number: str) -> str:
        return f"{self.run_id}{_TRY}{number}{self.dag_run}{_SERIES}{self.max_tries})"


def change_of(store: BookmarkStore, job: str, series: ChangeSeries) -> dict[str, Any] | None:
    """Return what a try of this series changed, from its audit event; None where none did."""
    events: Sequence[Mapping[str, Any]] = store.events(job)
    # What goes with a change, the unlock before a clean, is by the same name and begins no epoch.
    found = next((e for e in events if "epoch_before" in e and series.has(str(e["who"]))), None)
    if found is None:
        return None
    log.info("bookmark %s: %s has made this change at %s; it is not made again", job, found["who"], found["at"])
    before, after = found["watermarks_before"], found["watermarks_after"]
    return {
        "job": job,
        "change": found["kind"],
        "to_run": found["to_run"],
        "undone_run_count": None,
        "files_to_clean": None,
        "outputs_to_clean": None,
        "epoch": {"before": found["epoch_before"], "after": found["epoch_after"]},
        "version": {"before": found["version_before"], "after": found["version_before"] + 1},
        "watermarks": {ctx: {"before": before.get(ctx), "after": after.get(ctx)} for ctx in sorted({*before, *after})},
        "changed": True,
    }


def request_of(store: BookmarkStore, job: str, series: ChangeSeries, *, hides_state: bool) -> dict[str, Any] | None:
    """Return what a try of this series asked for; None where none did. `hides_state` is as for `as_asked`."""
    for asked in requests(store, job, with_closed=True):
        if series.has(asked.why.rpartition("[")[2].removesuffix("]")):
            log.info("bookmark %s: this task has filed request %s, which is %s", job, asked.id, asked.state)
            return as_asked(asked, hides_state=hides_state)
    return None


def as_asked(asked: Request, *, hides_state: bool) -> dict[str, Any]:
    """Return a request as the result of a task: the job is not changed yet.

    `hides_state`: without the values of `job.state`, since the result of a task is seen by all who may see the task.
    """
    row = hidden(asked.as_dict()) if hides_state else asked.as_dict()
    return {
        "job": asked.job,
        "change": asked.change.kind,
        "changed": False,
        "request": asked.id,
        "state": asked.state,
        "valid_until": row["valid_until"],
        "preview": row["preview"],
    }
