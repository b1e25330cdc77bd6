"""Checks after each DAG run: what bookmarks say and what targets hold, against what was counted without Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.run import Run, RunState
from airflow_bookmarks.core.text.instant import to_text
from airflow_bookmarks.lifecycle.inspect.runs import history
from demo.count import (
    Difference,
    Row,
    SourceFile,
    compare,
    count_delays,
    count_flights,
    count_journal,
    day_of,
    staged_files,
)

if TYPE_CHECKING:
    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from demo.airflow import Played
    from demo.folders import Folders

CTX = "flights"
Days = Mapping[date, SourceFile]


@dataclass(frozen=True, slots=True)
class Expected:
    """What a DAG run is to have done: the days that it read, under which number and epoch, in which attempt."""

    days: Collection[date]
    run_number: int
    epoch: int
    watermark: str | None
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class Stage:
    """One of the two jobs: its task, its target, what a delivered day becomes there, the day that an input is of.

    `here` makes a target readable on this machine, and returns where. `journal` is the target that the job appends to,
    if it has one.
    """

    dag_id: str
    task_id: str
    target: Path
    found_in: Callable[[Path], dict[date, Counter[Row]]]
    of_source: Callable[[SourceFile], Counter[Row]]
    day_of_input: Callable[[Path], date]
    here: Callable[[Path], Path] = Path
    journal: Path | None = None

    @property
    def job(self) -> str:
        return f"{self.dag_id}.{self.task_id}"

    def execution(self, dag_run_id: str) -> str:
        """Return the run id of the task in a DAG run."""
        return f"{self.dag_id}/{dag_run_id}/{self.task_id}"


def clean_stage(folders: Folders) -> Stage:
    """Return the job that cleans."""
    return Stage(
        "flights_clean", "clean", folders.clean, count_flights, lambda source: source.flights,
        lambda path: date.fromisoformat(path.stem.removeprefix("flights_")),
    )  # fmt: skip


def delays_stage(folders: Folders) -> Stage:
    """Return the job that keeps delays."""
    return Stage(
        "flights_delays", "delays", folders.delays, count_delays, SourceFile.delays, day_of, journal=folders.journal
    )


def newest(sources: Days) -> str:
    """Return the watermark that files have: the newest time of all that were read."""
    return to_text(max(source.modified_at for source in sources.values()).astimezone(UTC))


def check(store: BookmarkStore, stage: Stage, played: Played, expected: Expected, sources: Days) -> dict[str, Any]:
    """Compare what a DAG run left in the bookmark with what is expected; return its run as a row of history.

    Raises:
        Difference: the first that is found.
    """
    compare("state of the DAG run", "success", played.state)
    compare(f"state of the task {stage.task_id}", "success", played.states.get(stage.task_id))
    row = _row(store, stage, played)
    compare("days whose files were read", _text(expected.days), _text(days_read(store, stage, row)))
    compare("files read", len(expected.days), row["files"])
    rows = sum(sources[day].rows for day in expected.days)
    compare("rows read", rows, row["rows"] or 0)
    compare("run number", expected.run_number, row["number"])
    compare("epoch", expected.epoch, row["epoch"])
    compare("attempt that committed", expected.attempt, row["attempt"])
    compare("state of the run", RunState.PUBLISHED.value, row["state"])
    compare("whether the run is empty", not expected.days, row["is_empty"])
    _check_head(store, stage, expected)
    _check_xcom(played.xcom[stage.task_id], row)
    return row


def _row(store: BookmarkStore, stage: Stage, played: Played) -> dict[str, Any]:
    wanted = stage.execution(played.run_id)
    rows = [row for row in history(store, stage.job) if row["run_id"] == wanted]
    compare(f"committed runs of {wanted}", 1, len(rows))
    return rows[0]


def days_read(store: BookmarkStore, stage: Stage, row: Mapping[str, Any]) -> list[date]:
    """Return the days of the files that the stored plan of a run names."""
    run = _run(store, stage, row)
    plan = FilePlan.decode(store.blobs.get(run.plans[CTX].body))
    return [stage.day_of_input(Path(path)) for path in plan.files.paths]


def _run(store: BookmarkStore, stage: Stage, row: Mapping[str, Any]) -> Run:
    found = [run for run in store.runs(stage.job) if (run.key.number, run.key.fence) == (row["number"], row["fence"])]
    compare(f"run items {row['number']}.{row['fence']}", 1, len(found))
    return found[0]


def _check_head(store: BookmarkStore, stage: Stage, expected: Expected) -> None:
    head = store.head(stage.job)
    compare("watermark", expected.watermark, head.contexts[CTX].watermark)
    compare("last run of the bookmark", expected.run_number, head.run_number)
    compare("last published run", expected.run_number, head.published)
    compare("epoch of the bookmark", expected.epoch, head.epoch)
    compare("publish that is due", None, head.publishing)
    compare("who works on the job", None, head.lease)


def _check_xcom(pushed: Mapping[str, Any], row: Mapping[str, Any]) -> None:
    compare("run number in XCom", str(row["number"]), pushed["run_number"])
    compare("files read in XCom", row["files"], pushed["contexts"][CTX]["files"])


def check_target(stage: Stage, sources: Days) -> int:
    """Compare the target with the source files, each row once; return its rows.

    Raises:
        Difference: a day is missing, or has other rows than its file.
    """
    target = stage.here(stage.target)
    found = stage.found_in(target)
    compare("days in the target", _text(sources), _text(found))
    for day, source in sources.items():
        wanted = stage.of_source(source)
        if found[day] != wanted:
            missing, surplus = wanted - found[day], found[day] - wanted
            raise Difference(
                f"rows of {day} in the target ({missing.total()} missing, {surplus.total()} too many)",
                wanted.total(),
                found[day].total(),
            )
    compare("files left staged", [], staged_files(target))
    return sum(rows.total() for rows in found.values())


def check_journal(stage: Stage, delivered: Collection[tuple[date, int]]) -> int | None:
    """Compare the target that a job appends to with all that was delivered to it, each day with its flights once.

    Returns:
        Its rows; None for a job that appends to nothing.

    Raises:
        Difference: a row is missing, or is there twice.
    """
    if stage.journal is None:
        return None
    journal = stage.here(stage.journal)
    wanted, found = Counter(set(delivered)), count_journal(journal)
    missing, surplus = wanted - found, found - wanted
    if missing or surplus:
        days = _text({day for day, _ in missing | surplus})
        raise Difference(
            f"rows in the journal ({missing.total()} missing, {surplus.total()} too many, of {days})",
            wanted.total(),
            found.total(),
        )
    compare("files left staged", [], staged_files(journal))
    return found.total()


def _text(days: Collection[date]) -> str:
    """Return days in a form that a difference can be seen in."""
    ordered = sorted(days)
    spans: list[list[date]] = []
    for day in ordered:
        if spans and (day - spans[-1][-1]).days == 1:
            spans[-1].append(day)
        else:
            spans.append([day])
    return ", ".join(str(s[0]) if len(s) == 1 else f"{s[0]} to {s[-1]}" for s in spans) or "none"
