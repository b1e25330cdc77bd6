"""Six steps of the demo: what lands, what is played, and what has to come of it. `demo.orders` is the seventh."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from airflow_bookmarks.core.run import RunState
from airflow_bookmarks.lifecycle.changes.change import rewind
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from demo.check import CTX, Days, Expected, Stage, check, check_journal, check_target, newest
from demo.count import Difference, compare, count_sources
from demo.report import Line, Report

if TYPE_CHECKING:
    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from demo.airflow import Airflow, Played
    from demo.landing import Landing

Say = Callable[[str], None]

_NOTHING_YET = Expected(days=(), run_number=0, epoch=1, watermark=None)
_FIRST_RUN = datetime(2013, 4, 1, tzinfo=UTC)
_LATE_DAY = date(2013, 2, 14)
_BEFORE_ANYTHING = datetime(2012, 12, 24, tzinfo=UTC)
_CORRECTED_DAY = date(2013, 1, 15)
_CORRECTED_AT = datetime(2013, 3, 15, 9, 30, tzinfo=UTC)


@dataclass(slots=True)
class Demonstration:
    """Plays the steps, keeps what is expected of the next one, and checks after each DAG run."""

    landing: Landing
    store: BookmarkStore
    airflow: Airflow
    clean: Stage
    delays: Stage
    say: Say
    report: Report
    clean_expected: Expected = _NOTHING_YET
    delays_expected: Expected = _NOTHING_YET
    delivered: set[tuple[date, int]] = field(default_factory=set)
    dag_runs: int = 0
    playing: str = "no DAG yet"

    def play(self) -> None:
        """Play all steps.

        Raises:
            Difference: what was found is not what was expected; it names step and DAG.
        """
        for number, step in enumerate((arrive, rest, arrive_late, die, correct, go_back), 1):
            try:
                step(self, number)
            except Difference as found:
                raise found.at(f"step {number}, {self.playing}") from found

    # ---- one DAG run each

    def next_date(self) -> datetime:
        """Return the logical date of the next two DAG runs: one for both, so that they have one run id."""
        self.dag_runs += 1
        return _FIRST_RUN + timedelta(days=self.dag_runs)

    def both(self, step: int, what: str, days: Collection[date]) -> None:
        """Play both DAGs, and make sure that they read exactly `days`."""
        moment = self.next_date()
        self.run_clean(step, what, days, moment)
        self.run_delays(step, what, days, moment)

    def run_clean(
        self,
        step: int,
        what: str,
        days: Collection[date],
        moment: datetime,
        *,
        attempt: int = 1,
        fault: str | None = None,
    ) -> None:
        """Play the DAG that cleans; `fault` kills its driver, `attempt` is the one that then commits."""
        sources = count_sources(self.landing.folder)
        before = self.clean_expected
        self.clean_expected = replace(
            before,
            days=days,
            run_number=before.run_number + 1,
            attempt=attempt,
            watermark=newest(sources),
        )
        played = self._played(self.clean, moment, fault=fault)
        self._check(step, what, self.clean, played, self.clean_expected, sources)

    def run_delays(
        self, step: int, what: str, days: Collection[date], moment: datetime, *, on_rewind: str = "fail"
    ) -> None:
        """Play the DAG that keeps delays; its watermark is the run of the other that it has read up to."""
        before = self.delays_expected
        self.delays_expected = replace(
            before,
            days=days,
            run_number=before.run_number + 1,
            watermark=str(self.clean_expected.run_number),
        )
        sources = count_sources(self.landing.folder)
        # A set: what is read again after a rewind is a row that the journal had, and has once.
        self.delivered |= {(day, sources[day].rows) for day in days}
        played = self._played(self.delays, moment, on_rewind=on_rewind)
        self._check(step, what, self.delays, played, self.delays_expected, sources)
        released_by = played.xcom["wait"]["run_number"]
        compare("run that released it, empty or not", str(self.clean_expected.run_number), released_by)

    def refused_delays(self, step: int, what: str, moment: datetime) -> None:
        """Play the DAG that keeps delays, and make sure that it fails, names the rewind, and leaves all as it was."""
        head = self.store.head(self.delays.job)
        played = self._played(self.delays, moment)
        compare("state of the DAG run", "failed", played.state)
        compare("state of the task that waits", "success", played.states["wait"])
        compare("whether the error names the rewind", True, "REWOUND" in played.log.read_text(errors="replace"))
        after = self.store.head(self.delays.job)
        compare("version of the bookmark", head.version, after.version)
        compare("last run of the bookmark", head.run_number, after.run_number)
        compare("epoch of the bookmark", head.epoch, after.epoch)
        compare("watermark", head.contexts[CTX].watermark, after.contexts[CTX].watermark)
        compare("who works on the job", None, after.lease)
        rows = check_target(self.delays, count_sources(self.landing.folder))
        line = Line(
            step=step,
            what=what,
            dag_id=self.delays.dag_id,
            job=self.delays.job,
            state=played.state,
            files_read=0,
            files_known=None,
            rows_read=0,
            rows_in_target=rows,
            rows_appended=check_journal(self.delays, self.delivered),
            watermark=after.contexts[CTX].watermark,
            run_number=None,
            epoch=after.epoch,
            attempt=played.tries[self.delays.task_id],
            seconds=round(played.seconds, 1),
            log=str(played.log),
        )
        self._note(line)

    def _played(
        self, stage: Stage, moment: datetime, *, fault: str | None = None, on_rewind: str | None = None
    ) -> Played:
        self.say(f"  {stage.dag_id}: playing" + (f", its driver is killed at {fault}" if fault else ""))
        self.playing = stage.dag_id
        conf = {} if on_rewind is None else {"on_rewind": on_rewind}
        return self.airflow.play(stage.dag_id, moment, conf=conf, fault=fault)

    def _check(self, step: int, what: str, stage: Stage, played: Played, expected: Expected, sources: Days) -> None:
        row = check(self.store, stage, played, expected, sources)
        figures = row["contexts"][CTX]
        line = Line(
            step=step,
            what=what,
            dag_id=stage.dag_id,
            job=stage.job,
            state=played.state,
            files_read=row["files"],
            files_known=None if stage is self.delays else figures["known"],
            rows_read=row["rows"] or 0,
            rows_in_target=check_target(stage, sources),
            rows_appended=check_journal(stage, self.delivered),
            watermark=row["watermark"].get(CTX),
            run_number=row["number"],
            epoch=row["epoch"],
            attempt=row["attempt"],
            seconds=round(played.seconds, 1),
            log=str(played.log),
        )
        self._note(line)

    def _note(self, line: Line) -> None:
        self.report.lines.append(line)
        appended = "" if line.rows_appended is None else f" and {line.rows_appended} appended"
        self.say(
            f"  {line.dag_id}: {line.state}, {line.files_read} files and {line.rows_read:,} rows read, "
            f"{line.rows_in_target:,} rows in the target{appended}, as counted without Spark ({line.seconds:.1f} s)"
        )


# ---- the steps


def arrive(demo: Demonstration, step: int) -> None:
    """Let a month land, and play both DAGs."""
    demo.say(f"step {step}: 31 days land")
    demo.both(step, "31 days", demo.landing.land(31))


def rest(demo: Demonstration, step: int) -> None:
    """Play both DAGs with nothing new: the empty run of the first releases the second."""
    demo.say(f"step {step}: nothing new lands")
    demo.both(step, "nothing new", [])


def arrive_late(demo: Demonstration, step: int) -> None:
    """Let another month land, with a file that is older than all that was read."""
    demo.say(f"step {step}: 28 days land, {_LATE_DAY} with a time before anything that was read")
    demo.both(step, "28 days, one late", demo.landing.land(28, {_LATE_DAY: _BEFORE_ANYTHING}))


def die(demo: Demonstration, step: int) -> None:
    """Kill the driver before its commit, and on other days after it: each row is there once all the same."""
    demo.say(f"step {step}: 7 days land, the driver is killed between staging and commit")
    days, moment, what = demo.landing.land(7), demo.next_date(), "killed before commit"
    demo.run_clean(step, what, days, moment, attempt=2, fault=f"{Failpoint.BEFORE_COMMIT}@1")
    _check_gave_up_first_attempt(demo)
    demo.run_delays(step, what, days, moment)
    demo.say(f"step {step}: 7 more days land, the driver is killed between commit and publish")
    days, moment, what = demo.landing.land(7), demo.next_date(), "killed after commit"
    demo.run_clean(step, what, days, moment, attempt=1, fault=f"{Failpoint.COMMITTED}@1")
    _check_published_by_another(demo)
    demo.run_delays(step, what, days, moment)


def _check_gave_up_first_attempt(demo: Demonstration) -> None:
    number = demo.clean_expected.run_number
    runs = demo.store.runs(demo.clean.job, after=number - 1, until=number)
    compare(
        f"attempts of run {number} and what became of them",
        [(1, RunState.ABANDONED), (2, RunState.PUBLISHED)],
        [(run.attempt, run.state) for run in runs],
    )


def _check_published_by_another(demo: Demonstration) -> None:
    number = demo.clean_expected.run_number
    (run,) = demo.store.runs(demo.clean.job, after=number - 1, until=number)
    # A driver notes how long its publish took with its mark; this one did not live to.
    if "publish" in run.metrics["seconds"]:
        raise Difference("who published", "somebody else than the driver, which was killed", "the driver")


def correct(demo: Demonstration, step: int) -> None:
    """Deliver a file of the first month again, with other content: its day is replaced, and nothing else."""
    demo.say(f"step {step}: the file of {_CORRECTED_DAY} is delivered again, corrected")
    demo.landing.correct(_CORRECTED_DAY, _CORRECTED_AT)
    demo.both(step, "1 day corrected", [_CORRECTED_DAY])


def go_back(demo: Demonstration, step: int) -> None:
    """Rewind the first job to its first run: the second one stops until told, then goes back along.

    What the second one has appended since is in its journal once, though it reads all of that again.
    """
    demo.say(f"step {step}: {demo.clean.job} is rewound to its first run")
    rewind(demo.store, demo.clean.job, 1, reason="to show that it can be done", who="demo")
    demo.clean_expected = replace(demo.clean_expected, epoch=2)
    after_the_first_run = sorted({*_days_after(demo, 31), _CORRECTED_DAY})
    moment, what = demo.next_date(), "rewound to run 1"
    demo.run_clean(step, what, after_the_first_run, moment)
    demo.refused_delays(step, "upstream rewound: fail", moment)
    demo.say(f"step {step}: {demo.delays.job} is told to go back along")
    moment = demo.next_date()
    demo.run_clean(step, "nothing new", [], moment)
    demo.delays_expected = replace(demo.delays_expected, epoch=2)
    demo.run_delays(step, "goes back along", after_the_first_run, moment, on_rewind="rewind")


def _days_after(demo: Demonstration, first: int) -> list[date]:
    return sorted(count_sources(demo.landing.folder))[first:]
