"""The members of a run that only record what the script has read and written: the same for all kinds of run."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.run.use.inputs import RunInputs
from airflow_bookmarks.lifecycle.run.use.outputs import RunOutputs
from airflow_bookmarks.lifecycle.state.guard import Guarded, guarded

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from airflow_bookmarks.core.position import Greatest
    from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
    from airflow_bookmarks.sinks.staging import Staged


class RecordsUse(Guarded):
    """The part of a run that keeps its `RunInputs` and `RunOutputs`, one thread at a time."""

    def __init__(self, job: str) -> None:
        super().__init__()
        self._inputs, self._outputs = RunInputs(job), RunOutputs(job)

    @property
    def _environment(self) -> RunEnvironment:
        raise NotImplementedError

    def _check_running(self, what: str) -> None:
        raise NotImplementedError

    # ---- read

    @property
    def has_input(self) -> bool:
        """Whether a context that was planned so far has anything to read."""
        return self._inputs.has_input

    @guarded
    def set_schema(self, ctx: str, schema: str, change: Mapping[str, Any] | None = None) -> None:
        """Keep the schema (JSON) with which a context was read, for later runs, and how it differs from before."""
        self._inputs[ctx].schema, self._inputs[ctx].schema_change = schema, change

    @guarded
    def set_failed(self, ctx: str, error: str) -> None:
        """Record that a planned context could not be read: this run can't commit, even if the error is caught."""
        self._inputs[ctx].failure = error

    @guarded
    def set_rows(self, ctx: str, rows: int | None) -> None:
        """Keep the number of rows that were read from a context (None: not known)."""
        self._inputs[ctx].rows = rows

    @guarded
    def set_greatest(self, ctx: str, greatest: Greatest) -> None:
        """Keep the greatest value that was read of the column that gives the watermark of a context."""
        self._inputs[ctx].greatest = greatest

    @guarded
    def count_left_out(self, step: str, reason: str, number: int) -> None:
        """Add to the count of what a step of the script left out of what was read; see `RunSession`.

        Raises:
            MisuseError: the run is over.
        """
        self._check_running(f"count what {step!r} left out")
        self._inputs.leave_out(step, reason, number)

    # ---- write

    @guarded
    def begin_write(self, output: str) -> None:
        """Record that the script is about to write an output, which then has to be staged before the commit.

        Raises:
            MisuseError: the run is over.
        """
        self._check_running(f"write {output!r}")
        self._outputs.begin_write(output)

    @guarded
    def refuse_write(self, output: str, error: BaseException) -> None:
        """Record why a begun write came to nothing."""
        self._outputs.refuse_write(output, error)

    @contextmanager
    def writing(self, output: str) -> Iterator[None]:
        """Record an error of the block as the reason why an output is not written."""
        try:
            yield
        except BaseException as error:  # whatever ends the block, an interrupt too: the output is not whole
            self.refuse_write(output, error)
            raise

    @guarded
    def staged(self, output: str, staged: Staged) -> None:
        """Record what is staged for an output: nothing of it is visible before the end of the run."""
        self._outputs.stage(output, staged)
        self._environment.at(Failpoint.STAGED)
