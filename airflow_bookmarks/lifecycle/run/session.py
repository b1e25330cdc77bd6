"""The protocol that every kind of run follows: what a script, a reader and a writer ask of their run.

    plan -> (quarantine, start_over) -> read -> place -> write -> staged -> commit     or abort

Enabled, replayed and detached runs implement it; an empty run is an enabled one whose contexts have nothing to read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from airflow_bookmarks.core.files.file_plan import FilePlan
    from airflow_bookmarks.core.option import Option
    from airflow_bookmarks.core.plan import Plan
    from airflow_bookmarks.core.position import Greatest
    from airflow_bookmarks.core.run import ContextState
    from airflow_bookmarks.lifecycle.protocol.source_cleanup import Disposal
    from airflow_bookmarks.lifecycle.run.checks.expectation import Condition
    from airflow_bookmarks.lifecycle.state.job_state import JobState
    from airflow_bookmarks.lifecycle.state.manifest import Manifests
    from airflow_bookmarks.lifecycle.state.summary import Summary
    from airflow_bookmarks.lifecycle.state.verification import OnMissing
    from airflow_bookmarks.sinks.staging import Staged, StagingRequest
    from airflow_bookmarks.sources.source import OnSourceChange, P, Source


class RunSession(Protocol):
    """A run between its begin and its end, `commit` or `abort`."""

    # ---- identity

    @property
    def job(self) -> str:
        """The job's name."""
        ...

    @property
    def option(self) -> Option:
        """The option in force."""
        ...

    @property
    def execution_id(self) -> str:
        """The run id of the execution that makes this run."""
        ...

    @property
    def run_number(self) -> int | None:
        """The number under which this run commits; None if it takes none."""
        ...

    @property
    def epoch(self) -> int | None:
        """The epoch in which this run commits; None if it is part of no history."""
        ...

    @property
    def token(self) -> str:
        """What tells this run's output from that of any other, for sinks of the user's own."""
        ...

    @property
    def file_token(self) -> str:
        """The part of published file names that tells this run from any other."""
        ...

    # ---- what earlier runs left

    def position(self, ctx: str) -> bytes | None:
        """Return the stored position of a context; None if it has none."""
        ...

    def watermark(self, ctx: str) -> str | None:
        """Return the committed watermark of a context; None if it has none."""
        ...

    def context_state(self, ctx: str) -> ContextState | None:
        """Return where a context stands; None if it was never read."""
        ...

    def known_schema(self, ctx: str) -> str | None:
        """Return the schema (JSON) with which the last run that moved this context read it."""
        ...

    def state(self, name: str) -> JobState:
        """Return the value `name` that the job keeps from run to run."""
        ...

    # ---- read

    @property
    def has_input(self) -> bool:
        """Whether a context that was planned so far has anything to read."""
        ...

    @property
    def may_quarantine(self) -> bool:
        """Whether this run may leave planned files out because they can't be parsed."""
        ...

    @property
    def compares_columns(self) -> bool:
        """Whether the columns of a read are compared with those of the run before."""
        ...

    @property
    def manifests(self) -> Manifests | None:
        """Where each plan is written down; None: nowhere."""
        ...

    def write_manifests(self, manifests: Manifests | None) -> None:
        """Write down each plan from now on."""
        ...

    def dispose(self, ctx: str, disposal: Disposal) -> None:
        """Set what becomes of the files of a context once this run is published; called before it is planned."""
        ...

    def keep_files(self, ctx: str, why: str) -> None:
        """Let the files of a context stay after all."""
        ...

    def plan(
        self,
        ctx: str,
        source: Source[P],
        *,
        on_missing: OnMissing = "error",
        on_source_change: OnSourceChange = "error",
        moved_from: str | None = None,
    ) -> P:
        """Fix what this run reads from one context, before the first byte is read."""
        ...

    def plan_of(self, ctx: str) -> Plan | None:
        """Return what this run reads from a context; None if it has not planned it."""
        ...

    def quarantine(self, ctx: str, corrupt: Mapping[str, str]) -> FilePlan:
        """Leave planned files that can't be parsed out of the plan of a context; return what is left of it."""
        ...

    def start_over(self, ctx: str) -> Any:
        """Plan a context again, from its beginning; call it before anything of it is read."""
        ...

    def schema_before(self, ctx: str) -> str | None:
        """Return the schema (JSON) of the run from which a planned context goes on; None where it starts anew."""
        ...

    def set_schema(self, ctx: str, schema: str, change: Mapping[str, Any] | None = None) -> None:
        """Take the schema (JSON) with which a context was read, and how it differs from the one before."""
        ...

    def set_failed(self, ctx: str, error: str) -> None:
        """Record that a planned context could not be read, which blocks the commit."""
        ...

    def set_rows(self, ctx: str, rows: int | None) -> None:
        """Keep the number of rows that were read from a context (None: not known)."""
        ...

    def set_greatest(self, ctx: str, greatest: Greatest) -> None:
        """Keep the greatest value that was read of the column that gives the watermark of a context."""
        ...

    def count_left_out(self, step: str, reason: str, number: int) -> None:
        """Add to the count of what a step of the script left out of what was read, which the run record shows.

        `step` is a name of the script's own ("mapped"), `reason` says what was left out ("dropped records").
        """
        ...

    # ---- check and write

    def expect(self, condition: Condition, message: str) -> None:
        """Check a condition; if it is false, this run can't commit any more."""
        ...

    def begin_write(self, output: str) -> None:
        """Record that the script is about to write an output, which then has to be staged before the commit."""
        ...

    def refuse_write(self, output: str, error: BaseException) -> None:
        """Record why a begun write came to nothing."""
        ...

    def writing(self, output: str) -> AbstractContextManager[None]:
        """Record an error of the block as the reason why an output is not written."""
        ...

    def place(self, output: str, place: StagingRequest) -> str:
        """Return the folder in which to stage an output."""
        ...

    def place_landings(self, places: Mapping[str, StagingRequest]) -> Mapping[str, str]:
        """Return where outputs land that commit by themselves: asked for all of them before the first is written."""
        ...

    def is_to_land(self, place: StagingRequest, made_from: Sequence[str], has_rows: Callable[[], bool]) -> bool:
        """Return whether an output that commits by itself is written in this run: all its input is planned by now.

        `has_rows` tells whether there is anything to write, and is asked only where it matters.
        """
        ...

    def leave_out(self, output: str, place: StagingRequest, staged: Staged) -> None:
        """Record an output that commits by itself and is not written in this run."""
        ...

    def staged(self, output: str, staged: Staged) -> None:
        """Record what is staged for an output."""
        ...

    # ---- end

    def commit(self) -> Summary:
        """End the run with its effect, and publish what was staged."""
        ...

    def abort(self, error: str, *, exit_code: int | None = None) -> None:
        """End the run without an effect; after its commit, take nothing back.

        `exit_code` is that with which the driver is about to end, if it is known.
        """
        ...

    @property
    def goes_on(self) -> bool:
        """Whether this run has ended, and another one follows in its loop."""
        ...

    def following(self) -> RunSession:
        """Return the next run of the loop."""
        ...

    def leave(self) -> None:
        """Give up what is held for the next run of a loop that ends here."""
        ...
