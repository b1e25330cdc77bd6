"""Find the run to which a consumer goes back when the history of its upstream has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.timeline import living_runs
from airflow_bookmarks.store.transitions.collection import collected_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.run import Run
    from airflow_bookmarks.store.reader import StateReader


def newest_at_or_below(store: StateReader, job: str, head: Head, upstream: str, target: int) -> Run | None:
    """Return the newest living run of a consumer that has read `upstream` up to run `target` at most, by each of its
    contexts; None: there is none.
    """
    candidate: Run | None = None
    for run in _living_runs_backwards(store, job, head):
        highest = highest_read(run, upstream)
        candidate = candidate or run
        if highest is None:
            continue  # it did not read this upstream: its state of it is that of an earlier run
        if highest <= target:
            return candidate
        candidate = None
    return candidate  # the oldest runs did not read this upstream at all


def highest_read(run: Run, upstream: str) -> int | None:
    """Return the highest run of an upstream that a run had read, by any of its contexts; None: it did not read it."""
    edge = run.edges.get(upstream)
    return None if edge is None else max([edge["run_number"], *edge.get("contexts", {}).values()])


_CLEAN = "--clean removes what"
_NO_CLEAN = (
    ", and is left out where rows can't be taken back, as of Delta, Iceberg and database tables: remove them by hand"
)


def way_back(store: StateReader, job: str, upstream: str, target: int) -> str:
    """Say in a sentence how a person takes a consumer back by hand, with the command."""
    head, gone = store.head(job), collected_until(store, job)
    kept = newest_at_or_below(store, job, head, upstream, target)
    if kept is not None and kept.key.number > gone:
        return (
            f"By hand: 'airflow-bookmarks rewind {job} --to {kept.key.number} --clean --reason \"...\"', its newest "
            f"run that has read {upstream!r} no further than run {target}; {_CLEAN} its later runs published"
            f"{_NO_CLEAN}"
        )
    if gone:
        return f"By hand {only_a_reset_fits(job, gone)}"
    return (
        f"By hand only a reset fits, because each of its runs has read further than run {target} of {upstream!r}: "
        f"'airflow-bookmarks reset {job} --clean --reason \"...\"'; {_CLEAN} it published{_NO_CLEAN}; it reads "
        "everything again"
    )


def only_a_reset_fits(job: str, gone: int) -> str:
    """Say that the run to which a consumer would go back was collected, and how a person goes on."""
    return (
        f"only a reset fits, because its runs up to {gone} were collected, and the one to go back to is among them: "
        f"empty its target, then 'airflow-bookmarks reset {job} --reason \"...\"'; it reads everything again"
    )


def _living_runs_backwards(store: StateReader, job: str, head: Head) -> Iterator[Run]:
    return living_runs(store.runs(job, until=head.run_number, reverse=True), store.ancestry(job, head.epoch))
