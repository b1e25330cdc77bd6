"""Run a job over arrivals: once for each, and once more after a crash."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from airflow_bookmarks.core.errors import MisuseError, OptionError
from airflow_bookmarks.core.option import check_choice
from airflow_bookmarks.files.local import LocalFileSystem
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.testing.arrival import Arrival, ArrivedRow
from airflow_bookmarks.testing.crash import SimulatedCrash, crash_point
from airflow_bookmarks.testing.driver import DriverStore
from airflow_bookmarks.testing.result import RunResult, RunResults, names_planned, result_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_bookmarks.core.run import PlanEntry
    from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint

OnError: TypeAlias = Literal["raise", "keep"]


@dataclass(frozen=True, slots=True)
class RunSetup:
    """What a job function gets for one run.

    Args:
        store: the store to pass to `BookmarkedJob(..., store=...)`: that of the test, for this run alone.
        folder: the folder in which the input has arrived.
        run_id: the name of the execution, the same in the attempt after a crash; you may pass it to `BookmarkedJob`.
        attempt: the number of the attempt, which you may pass to `BookmarkedJob` too.
        session: the Spark session of the test; None if it has none.
    """

    store: BookmarkStore
    folder: Path
    run_id: str
    attempt: int
    session: SparkSession | None = None

    @property
    def spark(self) -> SparkSession:
        """The Spark session of the test.

        Raises:
            MisuseError: the test passed none.
        """
        if self.session is None:
            raise MisuseError(
                "the job function uses a Spark session, and the test gives none: run_over(..., spark=spark)."
            )
        return self.session


JobFunction: TypeAlias = Callable[[RunSetup], object]
Step: TypeAlias = Arrival | Sequence[Arrival]


def run_over(
    job_function: JobFunction,
    arrivals: Iterable[Step],
    *,
    store: BookmarkStore,
    folder: str | Path,
    spark: SparkSession | None = None,
    crash_at: Failpoint | str | None = None,
    on_error: OnError = "raise",
) -> RunResults:
    """Run a job once for each step of arrivals, and return what each run did.

    With `crash_at`, the first attempt at each step dies at that point of the protocol and a second one follows, as
    after a kill: control leaves the job there, nothing is tidied up in the store, and staged output stays. The process
    itself survives, so the script's `finally` blocks and `atexit` functions still run.

    Args:
        job_function: a function that runs the job: it opens `BookmarkedJob` with the `store` of the `RunSetup` that it
            is called with.
        arrivals: what arrives before each run: one arrival, several, or none (`[]`).
        store: the store for the bookmarks: the fixture `bookmark_store`, or `memory_store()`.
        folder: a local folder in which the input arrives; created if it does not exist.
        spark: the session that the job function gets; default: none.
        crash_at: a point: "before_commit" (everything written, nothing committed), "committed" (committed, nothing
            published), "moved" (partly published), or any other of `Failpoint`. Default: no crash.
        on_error: what an error of the job function does: "raise" (default) ends the test, "keep" stores it in the
            result of its run and continues with the next step.

    Raises:
        OptionError: an argument is invalid; or, with `crash_at`, no run reached that point.
        MisuseError: the job function did not use the store that it was given.

    Example:
        >>> import tempfile
        >>> from airflow_bookmarks.spark import BookmarkedJob
        >>> from airflow_bookmarks.testing import memory_store
        >>> def count(run):
        ...     with BookmarkedJob(name="counter", store=run.store) as job:
        ...         job.state("runs").set(job.state("runs").get(0) + 1)
        ...         return job.state("runs").get()
        >>> with memory_store() as store, tempfile.TemporaryDirectory() as folder:
        ...     results = run_over(count, [[], []], store=store, folder=folder, crash_at="committed")
        >>> [(result.step, result.attempt, result.committed, result.published) for result in results]
        [(1, 1, (1,), ()), (1, 2, (2,), (1, 2)), (2, 1, (3,), ()), (2, 2, (4,), (3, 4))]
    """
    check_choice("on_error", on_error, OnError)
    if not isinstance(store, BookmarkStore):
        raise OptionError(
            f"store={store!r}: expected an open store. Nothing arrived or was run. Take the fixture bookmark_store, "
            "memory_store(), or open_store('<uri>')."
        )
    point = None if crash_at is None else crash_point(crash_at)
    stage = _Stage(job_function, store, _local(folder), spark, on_error)
    for step in [_step(step) for step in arrivals]:
        stage.play(step, point)
    stage.check_crashed(point)
    return stage.results()


@dataclass(slots=True)
class _Stage:
    """One call of `run_over`, in progress."""

    job_function: JobFunction
    store: BookmarkStore
    folder: Path
    spark: SparkSession | None
    on_error: OnError
    runs: list[RunResult] = field(default_factory=list)
    arrived: list[Arrival] = field(default_factory=list)
    _leaving: list[Arrival] = field(default_factory=list)
    _gone: list[Arrival] = field(default_factory=list)

    def play(self, step: Sequence[Arrival], crash_at: Failpoint | None) -> None:
        number = self.runs[-1].step + 1 if self.runs else 1
        for arrival in step:
            arrival.arrive(self.folder)
            self.arrived.append(arrival)
        self._leaving += [arrival for arrival in step if arrival.vanish is not None]
        run_id = f"test/{number}/{self.store.new_id()}"  # another one than in any other call over this store
        self._try(RunSetup(self.store, self.folder, run_id, 1, self.spark), number, crash_at)
        if self.runs[-1].crashed_at is not None:
            self._try(RunSetup(self.store, self.folder, run_id, 2, self.spark), number, None)

    def _try(self, given: RunSetup, step: int, crash_at: Failpoint | None) -> None:
        driver = DriverStore(self.store, crash_at, self._planned)
        setup = RunSetup(driver, given.folder, given.run_id, given.attempt, given.session)
        returned, error = None, None
        try:
            returned = self.job_function(setup)
        except SimulatedCrash:
            if driver.crashed_at is None:
                raise  # of another run_over, in which this one is called
        except Exception as failed:  # a user's job function may raise anything: raised again, or kept for the result
            if driver.crashed_at is None and self.on_error == "raise":
                raise
            error = failed if driver.crashed_at is None else None  # a dead driver fails in whatever it still does
        if error is None and not driver.is_used:
            raise MisuseError(
                f"the job function did not use the store that it was given in step {step}, so nothing can be told of "
                "its run. Open the job with it: BookmarkedJob(..., store=run.store)."
            )
        base = str(self.folder)
        self.runs.append(result_of(self.store, driver, base, step, given.attempt, error, returned))

    def _planned(self, entry: PlanEntry) -> None:
        """Let vanish what a run has planned to read, and is about to."""
        names = names_planned(self.store, entry.kind, entry.body, str(self.folder)) if self._leaving else ()
        for arrival in [arrival for arrival in self._leaving if arrival.name in names]:
            self._leaving.remove(arrival)
            self._gone.append(arrival)
            if arrival.vanish is not None:
                arrival.vanish(self.folder)

    def check_crashed(self, point: Failpoint | None) -> None:
        if point is None or not self.runs or any(run.crashed_at for run in self.runs):
            return
        raise OptionError(
            f"crash_at={point.value!r}: none of the {len(self.runs)} runs came by that point, so the test shows "
            "nothing of it. A run with nothing new moves nothing, one without an output stages nothing, and one with "
            "pause or disable commits nothing. Choose another point, or let something arrive."
        )

    def results(self) -> RunResults:
        stayed = [arrival for arrival in self.arrived if arrival not in self._gone]
        current: dict[str, Sequence[ArrivedRow]] = {}
        for arrival in self.arrived:
            if arrival in self._gone:
                current.pop(arrival.name, None)  # with what had that name before
            else:
                current[arrival.name] = arrival.rows
        return RunResults(tuple(self.runs), _all_rows(arrival.rows for arrival in stayed), _all_rows(current.values()))


def _all_rows(parts: Iterable[Sequence[ArrivedRow]]) -> tuple[ArrivedRow, ...]:
    return tuple(row for rows in parts for row in rows)


def _step(step: Step) -> Sequence[Arrival]:
    arrivals = [step] if isinstance(step, Arrival) else step
    if not isinstance(arrivals, Sequence) or not all(isinstance(arrival, Arrival) for arrival in arrivals):
        raise OptionError(
            f"{step!r} is no step of arrivals. Nothing arrived or was run. A step is an arrival, as files.new(...) "
            "makes it, or a list of them; [] where nothing arrives."
        )
    names = [arrival.name for arrival in arrivals]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise OptionError(
            f"{twice[0]!r} arrives twice before one run, which could only read the last of it. Nothing arrived or was "
            "run. Let the second arrive in a later step."
        )
    return arrivals


def _local(folder: str | Path) -> Path:
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", str(folder)):
        raise OptionError(
            f"folder={str(folder)!r} is no local folder. Nothing arrived or was run. Input arrives in local folders "
            "alone; take tmp_path of pytest."
        )
    path = Path(LocalFileSystem().canonical(str(Path(folder).absolute())))
    path.mkdir(parents=True, exist_ok=True)
    return path
