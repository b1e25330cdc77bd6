"""The members of a run that say who holds the lease of the job, and give it back: for enabled and replayed runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.option import Option
from airflow_bookmarks.core.run import RunKey
from airflow_bookmarks.lifecycle.run.checks.expectation import Expects
from airflow_bookmarks.lifecycle.run.use.recording import RecordsUse
from airflow_bookmarks.lifecycle.state.guard import guarded
from airflow_bookmarks.lifecycle.state.job_state import KeepsState
from airflow_bookmarks.lifecycle.state.manifest import WritesManifests
from airflow_bookmarks.lifecycle.state.positions import ReadsContexts

if TYPE_CHECKING:
    from airflow_bookmarks.core.plan import Plan
    from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
    from airflow_bookmarks.lifecycle.protocol.source_cleanup import Disposal
    from airflow_bookmarks.lifecycle.run.leased import LeasedRun
    from airflow_bookmarks.store.bookmark_store import LeaseGrant


class LeaseHolder(ReadsContexts, KeepsState, Expects, WritesManifests, RecordsUse):
    """The part of a run that keeps its `LeasedRun`."""

    option = Option.ENABLE

    def __init__(self, leased: LeasedRun) -> None:
        super().__init__(leased.grant.job)
        self._leased = leased
        self._store, self._stopwatch = leased.store, leased.stopwatch

    @property
    def _grant(self) -> LeaseGrant:
        return self._leased.grant

    @property
    def _environment(self) -> RunEnvironment:
        return self._leased.environment

    # ---- identity

    @property
    def job(self) -> str:
        return self._grant.job

    @property
    def run_number(self) -> int:
        """The number under which this run will commit."""
        return self._grant.run_number

    @property
    def epoch(self) -> int | None:
        """The epoch in which this run will commit."""
        return self._grant.base.epoch

    @property
    def execution_id(self) -> str:
        """The run id of the execution that makes this run."""
        return self._grant.identity.run_id

    @property
    def token(self) -> str:
        """What tells this run's output from that of any other: for sinks of the user's own, to write idempotently."""
        return f"{self._store.namespace}/{self.job}/{self.epoch}/{self.run_number}/{self._grant.fence}"

    @property
    def file_token(self) -> str:
        """The part of published file names that tells this run, and each revision of it, from any other."""
        return f"run-{self._run_key}"

    @property
    def _run_key(self) -> RunKey:
        """The name under which this run stages and publishes."""
        return RunKey(self.run_number, self._grant.fence)

    @property
    def _manifest_part(self) -> str | None:
        is_first = self._grant.first_run in (None, self.run_number)
        return None if is_first else f"run-{self.run_number}"

    # ---- read

    @guarded
    def dispose(self, ctx: str, disposal: Disposal) -> None:
        """Set what becomes of the files of a context once this run is published; called before it is planned.

        Raises:
            MisuseError: it was planned before.
        """
        self._inputs.dispose(ctx, disposal)

    def plan_of(self, ctx: str) -> Plan | None:
        """Return what this run reads from a context; see `RunSession.plan_of`."""
        return self._inputs[ctx].plan if ctx in self._inputs else None

    def keep_files(self, ctx: str, why: str) -> None:
        """Let the files of a context stay after all, for good: not all of them are known to have been read."""
        self._inputs.kept[ctx] = why

    # ---- end

    @property
    def goes_on(self) -> bool:
        """Whether this run has ended, and the job is held for the next run of this execution: see `following`."""
        return self._leased.next is not None

    def leave(self) -> None:
        """Give the job back between two runs of an execution that is not finished; otherwise do nothing."""
        self._leased.leave()

    @guarded
    def abort(self, error: str, *, is_failure: bool = True, exit_code: int | None = None) -> None:
        """Give the job back without a commit: state and targets stay as they were.

        `is_failure`: nobody makes this run instead, so the job counts as failed. `exit_code` is that with which the
        driver is about to end, if it is known.

        After the commit nothing is taken back: a failed publish stays due, for the next run.
        """
        if self._leased.is_over:
            self._leased.let_go(error, exit_code=exit_code)
            return
        # A replay has no item of its own, and marks nothing on the run that it makes again.
        is_kept = self._unmet is not None and self._run_key == self._grant.key
        self._leased.fail(self._with_unmet(error), is_kept=is_kept, is_failure=is_failure, exit_code=exit_code)

    def _check_running(self, what: str) -> None:
        self._leased.check_running(what)
        self._check_expectations()
