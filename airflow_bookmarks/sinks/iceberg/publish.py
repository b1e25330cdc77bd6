"""Bring the snapshot of a run into its table: once, whoever does it, and however often."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import SourceError
from airflow_bookmarks.core.rules.mode import Mode
from airflow_bookmarks.sinks.iceberg.tables import PickRefusedError, Standing

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_bookmarks.sinks.iceberg.tables import IcebergTables
    from airflow_bookmarks.sinks.iceberg.target import IcebergOutput, IcebergTarget
    from airflow_bookmarks.sinks.sink import PublishSteps

log = logging.getLogger(__name__)

_TRIES = 5  # each asks first what the one before has done


@dataclass(frozen=True, slots=True)
class IcebergPublication:
    """The publish of one output; `what` names it, `wap_id` is the id of its snapshot, which has `rows`."""

    what: str
    tables: IcebergTables
    target: IcebergTarget
    output: IcebergOutput
    wap_id: str
    rows: int

    def publish(self, check_held: Callable[[str], None], steps: PublishSteps) -> int:
        """See `Publication.publish`.

        Raises:
            SourceError: it can't be done, or not now.
        """
        if self.output.mode is not Mode.APPEND or self.output.keys:
            check_held(f"replace rows of {self.target}")
        self._bring_in()
        steps.done()
        self.tables.drop_tag(self.target, self.wap_id)
        return self.rows

    def _bring_in(self) -> None:
        failed: SourceError | None = None
        for _ in range(_TRIES):
            standing = self._standing()
            if standing is Standing.PUBLISHED:
                return
            if standing is not Standing.STAGED or self.output.staged is None:
                raise SourceError(self._why_lost(standing)) from failed
            try:
                self._bring(self.output.staged)
                return
            except PickRefusedError as error:
                if self._standing() is Standing.PUBLISHED:
                    return
                raise SourceError(self._why_refused(error)) from error
            except SourceError as error:
                log.info("bookmark: %s: tried again, because %s", self.what, error)
                failed = error
        if self._standing() is not Standing.PUBLISHED:
            raise failed or SourceError(f"the Iceberg table {self.target} did not take what the run has staged")

    def _bring(self, staged: int) -> None:
        if not self.output.replaces:
            self.tables.pick(self.target, staged)
            return
        history = self.tables.history(self.target)
        if history is not None and history.current != self.output.before:
            # Iceberg asks only whether the table stands on the way: a rollback does, and its rows would be back.
            raise PickRefusedError(
                f"the table stands at snapshot {history.current or 'none'}, and the run has staged over "
                f"{self.output.before or 'none'}"
            )
        if history is not None and self.wap_id not in history.tags:
            self.tables.tag(self.target, self.wap_id, staged)
        self.tables.forward(self.target, self.wap_id)

    def _standing(self) -> Standing:
        history = self.tables.history(self.target)
        return Standing.GONE if history is None else history.standing(self.wap_id, self.output.before)

    def _why_lost(self, standing: Standing) -> str:
        if standing is Standing.UNKNOWN:
            return (
                f"whether the rows of the run are in the Iceberg table {self.target} is not known: the snapshots that "
                "would tell have expired. Look for them in the table"
            )
        return (
            f"what the run has staged for the Iceberg table {self.target} is gone: the table was made anew, or the tag "
            f"{self.wap_id!r} was removed and the snapshot has expired"
        )

    def _why_refused(self, error: PickRefusedError) -> str:
        return (
            f"Iceberg does not take what the run has staged for {self.target} any more, because others have committed "
            f"to the table since, or rolled it back: {error}. No row of the run is in the table"
        )
