"""The kind `iceberg`: a run stages a snapshot, and its publish brings it into the table.

stage     the id of the snapshot, stored before the write (`spark.sinks.iceberg` writes, and tags it)
publish   is it there? else bring it in, and ask again
sweep     of runs that are given up: expire the snapshot, so that no late driver can bring it in; drop the tag
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import OptionError, SourceError
from airflow_bookmarks.core.run import OutputEntry, RunKey
from airflow_bookmarks.sinks.failure import ICEBERG_SINK
from airflow_bookmarks.sinks.iceberg.publish import IcebergPublication
from airflow_bookmarks.sinks.iceberg.tables import Standing
from airflow_bookmarks.sinks.iceberg.target import IcebergOutput, IcebergTarget
from airflow_bookmarks.sinks.iceberg.token import WapId
from airflow_bookmarks.sinks.sink import StagedSink
from airflow_bookmarks.sinks.staging import stats_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_bookmarks.core.rules.territory import Territory
    from airflow_bookmarks.sinks.iceberg.tables import IcebergTables, TableHistory
    from airflow_bookmarks.sinks.sink import StoredOutput
    from airflow_bookmarks.sinks.staging import StagingRequest

_NO_SPARK = (
    "only a Spark with Iceberg reaches the table, and this process has no Spark session. Run the job, whose driver has "
    "one"
)
_ROOT_ITEM = "HEAD, staging"


class IcebergSink(StagedSink):
    """Iceberg tables. `tables` is how they are reached; None: this process has no Spark, and publishes none of them."""

    kind = ICEBERG_SINK
    clears_as_it_publishes = True  # it drops the tag; a look at all snapshots after each run would find no more

    def __init__(self, tables: IcebergTables | None = None) -> None:
        self._tables = tables

    def stage(
        self, territory: Territory, key: RunKey, output: str, request: StagingRequest
    ) -> tuple[OutputEntry, str | None]:
        """See `StagedSink.stage`: the place is the id of the snapshot."""
        root = f"{request.target}{_tail(territory)}"
        return OutputEntry(self.kind, request.target, str(WapId(territory, key, output)), stats_of(request)), root

    def prepare(self, output: StoredOutput) -> IcebergPublication | None:
        """See `StagedSink.prepare`: the table is not asked before the publish.

        Raises:
            SourceError: this process has no Spark.
        """
        wap_id, target = _wap_id_of(output), _target_of(output)
        stored = IcebergOutput.of_stats(output.entry.stats)
        has_changed_nothing = bool(stored.keys) and stored.staged is None  # then an upsert makes no snapshot
        if output.entry.is_left_out or has_changed_nothing:
            return None
        return IcebergPublication(str(output), self._reached, target, stored, wap_id, output.entry.metadata.rows or 0)

    def is_unpublished(self, output: StoredOutput) -> bool:
        """See `StagedSink.is_unpublished`: Iceberg publishes in one commit of the table."""
        if output.entry.is_left_out:
            return True
        wap_id, stored = _wap_id_of(output), IcebergOutput.of_stats(output.entry.stats)
        history = self._reached.history(_target_of(output))
        return history is not None and history.standing(wap_id, stored.before) is Standing.STAGED

    def check_root(self, territory: Territory, root: str) -> None:
        """See `StagedSink.check_root`."""
        _target_of_root(territory, root)

    def sweep(self, territory: Territory, root: str, fence: int) -> None:
        """See `StagedSink.sweep`: what was published keeps its snapshot, and loses its tag."""
        target = _target_of_root(territory, root)
        history = self._reached.history(target)
        if history is None:
            return
        for name in _of_runs(history.tags, territory, fence):
            self._reached.drop_tag(target, name)
        left = _given_up(history, territory, fence)
        if left:
            self._reached.expire(target, left)

    @property
    def _reached(self) -> IcebergTables:
        if self._tables is None:
            raise SourceError(_NO_SPARK)
        return self._tables

    def holds_rows_once(self, entry: OutputEntry) -> bool:
        """See `Sink.holds_rows_once`: in a table that gets them by key, or all anew."""
        written = IcebergOutput.of_stats(entry.stats)
        return written.replaces

    def why_not_clean(self, entry: OutputEntry) -> str | None:
        """Return why: rows of a table don't tell which run has written them."""
        return f"went to an Iceberg table ({entry.target}), whose rows don't tell which run has written them"

    def why_not_replay(self, entry: OutputEntry) -> str | None:
        """Return why: see `why_not_clean`."""
        return f"it wrote to an Iceberg table ({entry.target}), whose rows don't tell which run has written them"


def _given_up(history: TableHistory, territory: Territory, fence: int) -> list[int]:
    """Return the snapshots that runs of a job have staged under this fence or a lower one, and never published."""
    current = list(history.ancestry())
    seen = {each.id for each in current}
    published = {each.published for each in current}
    staged = {each.wap_id: each for each in history.snapshots.values() if each.wap_id is not None}
    ids = [each for each in _of_runs(staged, territory, fence) if each not in published]
    return [each.id for wap_id in ids for each in history.staged_as(wap_id) if each.id not in seen]


def _of_runs(names: Iterable[str], territory: Territory, fence: int) -> list[str]:
    """Return those of the names that are ids of a job's runs, under this fence or a lower one."""
    found = []
    for name in names:
        parsed = WapId.parse(name, territory)
        if parsed is not None and parsed.key.fence <= fence:
            found.append(name)
    return found


def _wap_id_of(output: StoredOutput) -> str:
    """Return the id under which a run has staged an output: under one of its own fences.

    Raises:
        OutOfBoundsError: state names another one.
    """
    run, place = output.run, output.entry.place
    fences = {run.key.fence, *run.fences}
    own = {str(WapId(output.territory, RunKey(run.key.number, fence), output.name)) for fence in fences}
    if place not in own:
        item = f"RUN {run.key}, output {output.name!r}"
        raise output.territory.refuse(item, place, "it is no id of what this run has staged for this output")
    return place


def _target_of(output: StoredOutput) -> IcebergTarget:
    try:
        return IcebergTarget.of_entry(output.entry)
    except OptionError as error:
        item = f"RUN {output.run.key}, output {output.name!r}"
        raise output.territory.refuse(item, output.entry.target, "it is no name of an Iceberg table") from error


def _tail(territory: Territory) -> str:
    return f"/{territory.namespace}/{territory.job}"


def _target_of_root(territory: Territory, root: str) -> IcebergTarget:
    tail = _tail(territory)
    why = f"the tables for which this job stages are listed as <catalog>.<namespace>.<table>{tail}"
    if not root.endswith(tail):
        raise territory.refuse(_ROOT_ITEM, root, why)
    try:
        return IcebergTarget.parse(root.removesuffix(tail))
    except OptionError as error:
        raise territory.refuse(_ROOT_ITEM, root, why) from error
