"""What each run of a job under test has read, committed and published."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, overload

from airflow_bookmarks.core.amount import FILES, Amount
from airflow_bookmarks.core.files.file_list import decode_moves
from airflow_bookmarks.lifecycle.inspect.runs import kinds_of
from airflow_bookmarks.lifecycle.state.summary import Summary
from airflow_bookmarks.lifecycle.state.summary_sums import joined
from airflow_bookmarks.sources.registry import UNNAMED, files_in
from airflow_bookmarks.store.codec.item import payload_of

if TYPE_CHECKING:
    from airflow_bookmarks.core.run import Payload
    from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from airflow_bookmarks.store.stored_item import SideRecord
    from airflow_bookmarks.testing.arrival import ArrivedRow
    from airflow_bookmarks.testing.driver import DriverStore

_PLAN = "plan:"  # of the attributes of a side record that hold a plan


@dataclass(frozen=True, slots=True)
class RunResult:
    """What one call of the job function did.

    Args:
        step: the number of the step, from 1.
        attempt: 1, or 2 for the attempt that follows a crash.
        read: the names of what was planned to be read, by context; for files, the paths below the folder of the test.
            For an attempt that did not commit, what it was about to read. () for a source of your own without files.
        skipped: how much was left out, by context and reason (docs/guides/left_out.md).
        committed: the numbers of the runs that were committed.
        published: the numbers of the runs that became visible, including runs that an earlier attempt committed.
        visible: the names of what became visible with them, by output; for files, the paths below the target.
        rows_read: rows per context; None if they were not counted (`count_rows` of `job.read`).
        rows_written: rows per output of the committed runs; None if they were not counted.
        summary: what the operator would return (`job.summary`); None if this attempt did not commit and publish a run
            of its own, and for pause and disable.
        crashed_at: the point at which the attempt died; None if it did not.
        error: the error that it failed with; None if it did not fail.
        returned: the return value of the job function.
    """

    step: int
    attempt: int
    read: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    skipped: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    committed: tuple[int, ...] = ()
    published: tuple[int, ...] = ()
    visible: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rows_read: Mapping[str, int | None] = field(default_factory=dict)
    rows_written: Mapping[str, int | None] = field(default_factory=dict)
    summary: Mapping[str, Any] | None = None
    crashed_at: Failpoint | None = None
    error: Exception | None = None
    returned: object = None

    @property
    def is_committed(self) -> bool:
        """Whether this call committed a run."""
        return bool(self.committed)

    @property
    def is_published(self) -> bool:
        """Whether something was published, and everything that this call committed was."""
        return bool(self.published) and set(self.committed) <= set(self.published)


@dataclass(frozen=True, slots=True)
class RunResults(Sequence[RunResult]):
    """The results of all runs, in their order.

    Args:
        runs: one for each call of the job function.
        arrived_rows: all rows that ever arrived, including those of input that was overwritten later.
        current_rows: the rows of the input that is there at the end; for overwritten input, the last ones.
    """

    runs: tuple[RunResult, ...]
    arrived_rows: tuple[ArrivedRow, ...]
    current_rows: tuple[ArrivedRow, ...]

    @overload
    def __getitem__(self, index: int) -> RunResult: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[RunResult]: ...
    def __getitem__(self, index: int | slice) -> RunResult | Sequence[RunResult]:
        return self.runs[index]

    def __len__(self) -> int:
        return len(self.runs)

    def __iter__(self) -> Iterator[RunResult]:
        return iter(self.runs)


# ---- from what a driver has done


def result_of(
    store: BookmarkStore,
    driver: DriverStore,
    base: str,
    step: int,
    attempt: int,
    error: Exception | None,
    value: object,
) -> RunResult:
    """Return what a driver did in one try of a step.

    Args:
        store: the store of the test, which answers even if the driver is dead.
        base: the folder of the test, which the names in a result leave out.
        value: what the job function returned.
    """
    contexts, outputs = _measured(driver)
    return RunResult(
        step=step,
        attempt=attempt,
        read=_read(store, driver, base),
        skipped=_skipped(driver),
        committed=tuple(run.key.number for _, run in driver.committed),
        published=tuple(run.key.number for _, run in driver.published),
        visible=_visible(store, driver),
        rows_read=_rows_in_all(contexts),
        rows_written=_rows_in_all(outputs),
        summary=_summary(driver),
        crashed_at=driver.crashed_at,
        error=error,
        returned=value,
    )


_Measured: TypeAlias = "list[tuple[str, Mapping[str, Any]]]"


def _measured(driver: DriverStore) -> tuple[_Measured, _Measured]:
    """Return the facts of contexts, and of outputs, of each run that ended, by their names."""
    contexts: _Measured = []
    outputs: _Measured = []
    for _, run in driver.committed:
        contexts += run.metrics.get("contexts", {}).items()
        outputs += [(name, output.stats) for name, output in run.outputs.items()]
    for _, record in driver.side_records.values():
        contexts += _figures_in(record, "contexts")
        outputs += _figures_in(record, "outputs")
    return contexts, outputs


def _figures_in(record: SideRecord, name: str) -> _Measured:
    """Return what a side record has of contexts or outputs, by their names."""
    found = record.get(name)
    return (
        [(key, figures) for key, figures in found.items() if isinstance(figures, dict)]
        if isinstance(found, dict)
        else []
    )


def _rows_in_all(measured: _Measured) -> dict[str, int | None]:
    sums: dict[str, int | None] = {}
    for name, figures in measured:
        rows, before = figures.get("rows"), sums.get(name, 0)
        sums[name] = None if rows is None or before is None else before + rows
    return sums


def _read(store: BookmarkStore, driver: DriverStore, base: str) -> dict[str, tuple[str, ...]]:
    bodies = [(ctx, entry.kind, entry.body) for (_, _, ctx), entry in driver.plans.items()]
    for _, record in driver.side_records.values():
        figures = dict(_figures_in(record, "contexts"))
        plans = [(name.removeprefix(_PLAN), value) for name, value in record.items() if name.startswith(_PLAN)]
        # Earlier versions named no kind in the record of a pause or disable run: what has another unit is no files.
        kinds = kinds_of(record)
        of_files = [(ctx, value) for ctx, value in plans if Amount.of_stats(figures.get(ctx, {})).unit == FILES]
        bodies += [(ctx, kinds.get(ctx, UNNAMED), payload_of(value)) for ctx, value in of_files]
    read: dict[str, tuple[str, ...]] = {}
    for ctx, kind, body in bodies:
        read[ctx] = read.get(ctx, ()) + names_planned(store, kind, body, base)
    return read


def names_planned(store: BookmarkStore, kind: str, body: Payload, base: str) -> tuple[str, ...]:
    """Return the names of the files that a stored plan reads, without the `base` that they begin with.

    Only plans of files name them; the result is () for any other kind.
    """
    files = files_in(kind, store.blobs.get(body))
    paths = () if files is None else files.paths
    return tuple(path.removeprefix(f"{base}/") for path in paths)


def _skipped(driver: DriverStore) -> dict[str, dict[str, int]]:
    figures = [(ctx, entry.stats) for (_, _, ctx), entry in driver.plans.items()]
    figures += [found for _, record in driver.side_records.values() for found in _figures_in(record, "contexts")]
    skipped: dict[str, dict[str, int]] = {}
    for ctx, found in figures:
        counts = skipped.setdefault(ctx, {})
        for reason, count in (found.get("skipped") or {}).items():
            counts[reason] = counts.get(reason, 0) + count
    return skipped


def _visible(store: BookmarkStore, driver: DriverStore) -> dict[str, tuple[str, ...]]:
    visible: dict[str, tuple[str, ...]] = {}
    for _, run in driver.published:
        for name, output in run.outputs.items():
            moves = [] if output.publish is None else decode_moves(store.blobs.get(output.publish))
            names = (target.removeprefix(f"{output.target}/") for _, target in moves)
            visible[name] = (*visible.get(name, ()), *names)
    return visible


def _summary(driver: DriverStore) -> dict[str, Any] | None:
    if not driver.own or driver.crashed_at is not None:
        return None
    last = driver.own[-1][0]
    made = [Summary.of(run, driver.namespace, job) for job, run in driver.own if job == last]
    return joined(made).as_dict()
