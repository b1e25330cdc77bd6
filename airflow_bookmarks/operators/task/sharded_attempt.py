"""One try of a task that works on several virtual shards: each is a job, and the try is done when all of them are."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import BookmarkError, ChangeRefusedError, NotCommittedError
from airflow_bookmarks.core.rules.shard import shard_name
from airflow_bookmarks.lifecycle.protocol.finish import ExecutionOutcome, finish, outcome, side_summary
from airflow_bookmarks.lifecycle.state.partitions_left import joined
from airflow_bookmarks.lifecycle.state.summary_sums import joined_shards

if TYPE_CHECKING:
    from airflow_bookmarks.core.job import RunIdentity
    from airflow_bookmarks.core.rules.shard import ShardShare
    from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
    from airflow_bookmarks.lifecycle.state.partitions_left import PartitionsLeft
    from airflow_bookmarks.lifecycle.state.summary import Summary
    from airflow_bookmarks.operators.task.attempt import Attempt
    from airflow_bookmarks.operators.task.task_config import OnClear, OnConflict
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ShardedAttempt:
    """One try of a task with a share of a sharded job; the counterpart of `Attempt` for a whole job."""

    whole: Attempt
    share: ShardShare

    @property
    def store(self) -> BookmarkStore:
        return self.whole.store

    @property
    def job(self) -> str:
        return self.whole.job

    @property
    def identity(self) -> RunIdentity:
        return self.whole.identity

    @property
    def environment(self) -> RunEnvironment:
        return self.whole.environment

    @property
    def parts(self) -> list[Attempt]:
        """The try, for each virtual shard of its share."""
        return [replace(self.whole, job=shard_name(self.job, number)) for number in self.share.numbers]

    def finish_earlier(self) -> Summary | None:
        """Publish what earlier tries of this series committed; None where a shard is left, for which Spark has to run.

        The driver then works on all shards of the share: those that are done read what has come since, if anything.
        """
        if not self.whole.is_retry:
            return None
        made = [summary for part in self.parts if (summary := self._made(part)) is not None]
        return joined_shards(self.job, made) if len(made) == len(self.share.numbers) else None

    def cleared(self, on_clear: OnClear) -> tuple[int | None, Summary | None]:
        """Say what becomes of a try whose task was cleared after shards were finished: the summary to return, if any.

        Raises:
            ChangeRefusedError: shards were finished before, and `on_clear` is not "skip". A replay is of one run, and
                each shard has its own.
        """
        before = [summary for part in self.parts if (summary := self._finished_before(part)) is not None]
        if not before:
            return None, None
        if on_clear != "skip":
            raise ChangeRefusedError(
                f"job {self.job!r}: {self.identity.run_id!r} has finished {len(before)} virtual shards, its task was "
                f"cleared, and bookmark_on_clear is {on_clear!r}. Nothing was read or changed; Spark was not started. "
                f"Set bookmark_on_clear='skip', or rewind the shards ({before[0].job!r} ...), whose next runs then "
                "read that input again."
            )
        return None, joined_shards(self.job, before) if len(before) == len(self.share.numbers) else None

    def check_free(self, on_conflict: OnConflict) -> None:
        """Make sure that this try may begin with each of its shards; raises as `Attempt.check_free` does."""
        for part in self.parts:
            part.check_free(on_conflict)

    def finish(self) -> Summary:
        """Make sure that each shard is published, once Spark has ended well.

        Raises:
            NotCommittedError: the driver ended without a commit of some of them; this try is fenced there.
            PublishError: a commit can't be published; it stays due.
        """
        made: list[Summary] = []
        missing: list[NotCommittedError] = []
        for part in self.parts:
            try:
                made.append(part.finish())
            except NotCommittedError as error:
                missing.append(error)
        if missing:
            raise NotCommittedError(
                f"job {self.job!r}: {len(made)} of {len(self.share.numbers)} virtual shards are committed and "
                f"published, the others are as before and are read again. Does the script loop over "
                f"BookmarkedJob(spark).shards()? The first that is missing: {missing[0]}"
            ) from missing[0]
        return joined_shards(self.job, made)

    def settle(self, error: Exception, exit_code: int | None = None) -> Summary | None:
        """Say what became of the shards after Spark failed; return the summary if all of them are published.

        None means that the task has to fail with `error`, which then has a note on where the bookmark stands.
        `exit_code` is that of the driver, if it is known.
        """
        try:
            for part in self.parts:
                part.fence_ended(exit_code)
            made = [summary for part in self.parts if (summary := self._made(part)) is not None]
        except BookmarkError as also:
            error.add_note(f"bookmark {self.job}: what became of its shards could not be settled: {also}")
            return None
        if len(made) == len(self.share.numbers):
            log.warning("bookmark %s: Spark failed after all shards were committed; the task succeeds", self.job)
            return joined_shards(self.job, made)
        error.add_note(
            f"bookmark {self.job}: {len(made)} of {len(self.share.numbers)} virtual shards are committed and "
            "published; a retry reads the rest."
        )
        return None

    def partitions_left(self) -> PartitionsLeft:
        """Return the partitions that are not read in one of the shards."""
        return joined({part.job: part.partitions_left() for part in self.parts})

    def fence(self, store: BookmarkStore) -> None:
        """Fence this try for each of its shards: if its driver is still alive, it can't commit any more."""
        for part in self.parts:
            part.fence(store)

    def side_summary(self, option: str) -> Summary:
        """Return what the pause or disable runs of the shards did."""
        made = [side_summary(self.store, part.job, self.identity, option) for part in self.parts]
        return replace(joined_shards(self.job, made), option=option)

    def _made(self, part: Attempt) -> Summary | None:
        """Return what this series of tries committed for a shard, published if it was not; None: nothing."""
        state, seen = outcome(self.store, part.job, self.identity.run_id)
        if state not in (ExecutionOutcome.FINISHED, ExecutionOutcome.DUE) or not part.has_begun(seen.execution):
            return None
        return finish(self.store, part.job, self.identity, self.environment)

    def _finished_before(self, part: Attempt) -> Summary | None:
        """Return what this task did for a shard before it was cleared, without what this series of tries did."""
        execution = self.store.execution(part.job, self.identity.run_id)
        if execution is None or part.has_begun(execution):
            return None
        return part.cleared("skip")[1]
