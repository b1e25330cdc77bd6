"""The earlier runs that a pause reads again, by their stored plans."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import OptionError, SourceChangedError
from airflow_bookmarks.lifecycle.history.rewind import resolve_run, window_runs
from airflow_bookmarks.lifecycle.history.window import window_entries
from airflow_bookmarks.lifecycle.state.verification import gone_in_words, recheck_plan
from airflow_bookmarks.sources.registry import kind_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.run import ContextState, Run
    from airflow_bookmarks.lifecycle.run.use.inputs import RunInputs
    from airflow_bookmarks.lifecycle.state.verification import OnMissing
    from airflow_bookmarks.sources.source import P, Source
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

log = logging.getLogger(__name__)


class PauseWindow:
    """The runs that a pause reads again, oldest first.

    `head` is the job's as the pause has found it, and `contexts_before` are its contexts as they were before these
    runs.
    """

    def __init__(
        self,
        store: BookmarkStore,
        job: str,
        head: Head,
        runs: Sequence[Run],
        contexts_before: Mapping[str, ContextState],
    ) -> None:
        self._store, self._job, self._head, self._runs = store, job, head, runs
        self.contexts_before = contexts_before
        self._reread: dict[str, list[Any]] = {}  # the plans of earlier runs over other jobs, which are read again

    @classmethod
    def of(cls, store: BookmarkStore, job: str, head: Head, from_run: str, to_run: str) -> PauseWindow:
        """Return the runs after `from_run` ("0": all of them) up to and including `to_run`.

        Raises:
            RunUnknownError, OptionError: the window names no run, or its ends are the wrong way round.
        """
        runs = window_runs(store, job, from_run, to_run)
        before = {} if from_run == "0" else resolve_run(store, job, head, from_run).contexts
        return cls(store, job, head, runs, before)

    @property
    def _numbers(self) -> list[int]:
        return [run.key.number for run in self._runs]

    def plan(self, ctx: str, source: Source[P], on_missing: OnMissing) -> P:
        """Return one plan that reads what these runs have read of a context.

        Raises:
            OptionError: it can't be read again. SourceSwitchedError: it was of another kind or format.
            SourceChangedError: it is no longer what they read.
        """
        stored = window_entries(self._job, ctx, source, self._runs, self._head.contexts)
        kind = kind_of(source.kind)
        plans = [kind.decode(self._store.blobs.get(entry.body)) for entry in stored]
        why_not = next(filter(None, map(kind.why_not_again, plans)), None)
        if why_not is not None:
            raise OptionError(
                f"job {self._job!r}, context {ctx!r}: what runs {self._numbers} read can't be read again: {why_not}. "
                "Nothing was read or changed."
            )
        plan: P = kind.union(plans)
        log.info("bookmark %s, context %s: pause reads again what runs %s read", self._job, ctx, self._numbers)
        if kind.reads_jobs:
            self._reread[ctx] = plans
            self._check_unmoved(ctx, source, "Nothing was read or changed")
        gone = source.recheck(plan).missing
        if gone and on_missing == "error":
            raise SourceChangedError(
                f"job {self._job!r}, context {ctx!r}: {gone_in_words(plan, gone)} that runs {self._numbers} read have "
                f"another version now, or are gone, the first: {gone[0]!r}. Nothing was read or changed. What they "
                "read then is no longer there: choose a window that ends with the run that read the present version, "
                "or leave such files out with on_missing='skip'."
            )
        return recheck_plan(self._job, ctx, source, plan, on_missing) if gone else plan

    def check_unmoved(self, inputs: RunInputs) -> None:
        """Make sure, before the publish, that what these runs have read of other jobs is their output still.

        Raises:
            SourceChangedError: one of their runs was replayed since.
        """
        for ctx, context in inputs.items():  # a context that was refused above is not among them
            self._check_unmoved(ctx, context.source, "Nothing was published")

    def _check_unmoved(self, ctx: str, source: Source[P], done: str) -> None:
        # One by one: the union of them knows only which runs the last one has read.
        moved = next(filter(None, (source.recheck(plan).moved for plan in self._reread.get(ctx, ()))), None)
        if moved is not None:
            raise SourceChangedError(
                f"job {self._job!r}, context {ctx!r}: {moved} since runs {self._numbers} read it. {done}. What they "
                "read then is no longer there: choose a window of runs that read its present output."
            )
