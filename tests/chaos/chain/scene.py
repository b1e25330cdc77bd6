"""The scene: round after round lands files, starts the three DAGs, makes trouble, and counts the rows of each stage."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from airflow_bookmarks.cli.command import STORE_VARIABLE
from airflow_bookmarks.core.text.instant import to_text, utc_now
from airflow_bookmarks.store.bookmark_store import open_store
from demo import session
from demo.airflow_home import environment
from demo.class_archive import java_options, kept_archive
from demo.folders import Folders
from tests.chaos.chain.api import Api, set_password
from tests.chaos.chain.lake import Lake
from tests.chaos.chain.lineup import LineupName, lineup_below
from tests.chaos.chain.order import Deed, Gate, Held, Order, open_gate
from tests.chaos.chain.stage import LINEUP_VARIABLE, RAW, ROOT_VARIABLE, STAGES, TASK, from_there_on, job, upstream
from tests.chaos.chain.story import HOLDS, Follow, Kind, LetGo, Round, Trouble, tell
from tests.chaos.fanout.airflow import Airflow, StuckError, running_airflow
from tests.quick_spark import JAVA_OPTIONS
from tools.patience import STUCK_S
from tools.servers import dynamodb_local

DAGS = Path(__file__).parent / "dags"
_HELPS = 3  # how often a person helps a stage in one round
_NO_REPLAY = "can't be replayed"


@dataclass
class Figures:
    """What came of it. `troubles` counts what happened, `tries` those of the tasks that submit."""

    seed: int
    rounds: int = 0
    troubles: Counter[Kind] = field(default_factory=Counter)
    tries: dict[str, int] = field(default_factory=dict)
    runs: dict[str, int] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def __str__(self) -> str:
        lines = [
            ("seed", f"{self.seed}"),
            ("rounds", f"{self.rounds} in {self.seconds:.0f} s"),
            *((str(kind), f"{number}") for kind, number in sorted(self.troubles.items())),
            *((f"stage {stage}: tries / runs", f"{self.tries[stage]} / {self.runs[stage]}") for stage in self.tries),
            ("rows landed", f"{self.rows.get(RAW, 0)}"),
            *((f"rows of stage {stage}", f"{self.rows.get(stage, 0)}") for stage in STAGES),
            ("each row once at each stage", "no" if self.faults else "yes"),
        ]
        return "\n".join(f"{name:<36}{value}" for name, value in lines)


def play(
    root: Path,
    rounds: int,
    seed: int,
    say: Callable[[str], None] = print,
    lineup_name: LineupName = LineupName.PLAIN,
) -> Figures:
    """Play so many rounds, up to the first that does not end as it should; all files lie below `root`.

    Raises:
        StuckError: something never came.
    """
    folders = Folders.make(root)
    password = set_password(folders.passwords)
    lineup = lineup_below(folders.data, lineup_name)
    with dynamodb_local() as endpoint, open_gate() as gate, lineup.running() as more:
        uri = f"dynamodb://bookmarks?region=eu-west-1&endpoint={endpoint}"
        store = open_store(uri)
        store.init()
        settings = {**_settings(folders, uri, say), LINEUP_VARIABLE: lineup.name, **more}
        with running_airflow(folders, uri, DAGS, settings) as airflow:
            airflow.limit_s = STUCK_S
            known = "SELECT count(*) FROM dag WHERE is_stale = 0"
            airflow.wait("the DAGs are known", lambda: airflow.count(known) == len(STAGES))
            say("Airflow runs, and knows the DAGs")
            lake = Lake(folders.data, lineup, store)
            scene = Scene(airflow, Api(airflow.url, password), lake, gate, uri, say, Figures(seed))
            points = {stage: target.points for stage, target in lineup.targets.items()}
            return scene.play(tell(seed, rounds, points, replays=lineup.takes_back))


def _settings(folders: Folders, uri: str, say: Callable[[str], None]) -> dict[str, str]:
    archive = kept_archive(environment(folders, uri, ""), say)
    options = f"{JAVA_OPTIONS} {java_options(archive)}"  # halves short drivers
    return {
        "AIRFLOW_CONN_SPARK_DEFAULT": '{"conn_type": "spark", "host": "local[1]"}',
        "SPARK_SUBMIT_OPTS": environment(folders, uri, options)["SPARK_SUBMIT_OPTS"],
        # A task that is marked failed or cleared learns of it by its heartbeat.
        "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "1",
        # What a task that was killed has started keeps the lines to its supervisor open.
        "AIRFLOW__WORKERS__SOCKET_CLEANUP_TIMEOUT": "1",
        ROOT_VARIABLE: str(folders.data),
    }


@dataclass
class Scene:
    """One scene. What it does to Airflow and to bookmarks is what a person can do, and SIGKILL."""

    airflow: Airflow
    api: Api
    lake: Lake
    gate: Gate
    store_uri: str
    say: Callable[[str], None]
    figures: Figures
    ends: dict[int, datetime] = field(default_factory=dict)  # when each round had ended
    made: dict[str, int] = field(default_factory=dict)  # how many runs each stage had made when the round began

    def play(self, story: list[Round]) -> Figures:
        """Play the rounds, up to the first that does not end as it should."""
        begun = time.monotonic()
        for each in story:
            self._play_round(each)
            self.figures.rounds, self.figures.seconds = each.number, time.monotonic() - begun
            if self.figures.faults:
                break
        self._count()
        return self.figures

    def _play_round(self, told: Round) -> None:
        begun = time.monotonic()
        conf = self._take_back(told)
        self.made = {stage: self.lake.runs_made(stage) for stage in STAGES}
        for file in told.files:
            self.lake.land(file)
        with self._trouble(told) as trouble:
            for stage in STAGES if told.begins_together else ():
                self._trigger(stage, _dag_run(told.number), conf)
            for stage in STAGES:
                if not told.begins_together:
                    self._trigger(stage, _dag_run(told.number), conf)
                held = self._disturb(told, stage) if stage == trouble else None
                self._see_through(told, stage, conf, held)
        faults = list(self.lake.faults())
        self.figures.faults = [f"round {told.number}: {fault}" for fault in faults]
        self.figures.troubles[told.trouble.kind] += 1
        self.ends[told.number] = utc_now()
        tries = ", ".join(f"{stage} {number}" for stage, number in self._tries(f"{_dag_run(told.number)}%").items())
        rows = sum(len(file.lines) for file in told.files)
        self.say(
            f"round {told.number}: {len(told.files)} files, {rows} rows; {told.trouble}; tries {tries}; "
            f"{'NOT EQUAL' if faults else 'equal'}; {time.monotonic() - begun:.0f} s"
        )

    def _trigger(self, stage: str, dag_run: str, conf: Mapping[str, str]) -> None:
        """Begin a DAG run; it knows the number that the next run of its upstream has at least in this round."""
        before = upstream(stage)
        more = {} if before is None else {"upstream_run": str(self.made[before] + 1)}
        self.api.trigger(stage, dag_run, {**conf, **more})

    # ---- what is taken back or made again, before anything new lands

    def _take_back(self, told: Round) -> dict[str, str]:
        """Rewind the chain or clear a finished task where the round says so; return the conf for its DAG runs."""
        trouble = told.trouble
        if trouble.kind is Kind.REWOUND:
            self._rewind(STAGES, told.number - 1 - trouble.back)
        elif trouble.kind is Kind.CLEARED:
            self._clear(told)
        return {"on_rewind": "ignore"} if self._keeps_what_was_replayed(trouble) else {}

    def _keeps_what_was_replayed(self, trouble: Trouble) -> bool:
        """Whether a person says in this round that what was replayed need not be read again: its rows are the same.

        Whoever goes back to before a replay meets it anew. A task that is cleared while it runs is replayed too, where
        its run had finished by then.
        """
        match trouble.kind:
            case Kind.RESTARTED:
                return True
            case Kind.CLEARED if trouble.follow is Follow.KEEP:
                return True
            case Kind.CLEARED | Kind.REWOUND:
                return any(self.figures.troubles[kind] for kind in (Kind.CLEARED, Kind.RESTARTED))
        return False

    def _clear(self, told: Round) -> None:
        trouble, number = told.trouble, told.number - told.trouble.back
        stage, dag_run = trouble.stage, _dag_run(number)
        attempt = self._tries(dag_run)[stage] + 1
        if trouble.is_killed_too:
            self._order(trouble, dag_run, attempt, Deed.DIE)
        self.api.clear(stage, dag_run, TASK)
        self._wait_for_end(stage, dag_run)
        Order.withdraw(self.lake.root)
        if self._state(stage, dag_run) != "success" and not self._was_refused(trouble, dag_run):
            raise StuckError(f"{stage} of {dag_run} was cleared, and is {self._state(stage, dag_run)}")
        if trouble.follow is Follow.AGAIN:
            self._rewind(from_there_on(stage)[1:], number - 1)

    def _was_refused(self, trouble: Trouble, dag_run: str) -> bool:
        """Whether the task failed because its run can't be replayed, in a story where that is so."""
        return trouble.follow is Follow.REFUSED and self.airflow.has_logged(trouble.stage, dag_run, TASK, _NO_REPLAY)

    def _rewind(self, stages: tuple[str, ...], number: int) -> None:
        """Take stages back to where they were when a round had ended, the last one first; 0: before the first round.

        Where none of the runs of that time is left, back to the beginning: what was undone since is to be read again.
        What they wrote is removed; where it can't be told apart it stays, and what is read again replaces it.
        """
        clean = ["--clean"] if self.lake.lineup.takes_back else []
        moment = to_text(self.ends[number]) if number else None
        for stage in reversed(stages):
            is_left = moment is not None and self.lake.has_run_of(stage, moment)
            verb = ["rewind", job(stage), "--to", moment] if moment and is_left else ["reset", job(stage)]
            command = [str(Path(sys.executable).with_name("airflow-bookmarks")), *verb, *clean, "--yes"]
            settings = {**self.airflow.settings, STORE_VARIABLE: self.store_uri}
            session.run([*command, "--reason", f"as after round {number}"], settings)

    # ---- what goes wrong

    @contextmanager
    def _trouble(self, told: Round) -> Iterator[str | None]:
        """Order what goes wrong in a driver of this round; yield the stage in which one will be held, if any."""
        trouble = told.trouble
        deeds = {Kind.DRIVER: Deed.DIE, Kind.FAILS: Deed.FAIL, **dict.fromkeys(HOLDS, Deed.WAIT)}
        deed = deeds.get(trouble.kind)
        if deed is not None:
            self._order(trouble, _dag_run(told.number), 1, deed)
        yield trouble.stage if deed is Deed.WAIT else None
        Order.withdraw(self.lake.root)

    def _order(self, trouble: Trouble, dag_run: str, attempt: int, deed: Deed) -> None:
        Order(trouble.stage, dag_run, attempt, deed, trouble.point, self.gate.port).give(self.lake.root)

    def _disturb(self, told: Round, stage: str) -> Held:
        """Wait until the driver stands where the round says, and do to its try what the round says."""
        arrived: list[Held] = []

        def has_arrived() -> bool:
            held = self.gate.arrived()
            arrived.extend([held] if held is not None else [])
            if not arrived and self._has_ended(stage, _dag_run(told.number)):
                raise StuckError(f"{stage} has ended, and its driver was never held: {told.trouble}")
            return bool(arrived)

        self.airflow.wait(f"the driver of {stage} comes", has_arrived)
        (held,) = arrived
        self._strike(told, stage, held)
        if told.trouble.let_go is LetGo.AFTER_TRY:
            self.airflow.wait(f"the try of {stage} is over", lambda: self._is_lost(stage, told, held))
        if told.trouble.let_go is not LetGo.AFTER_STAGE:
            held.go_on()
        return held

    def _strike(self, told: Round, stage: str, held: Held) -> None:
        match told.trouble.kind:
            case Kind.JVM:
                held.jvm.kill()
            case Kind.WORKER:
                held.task.kill()
            case Kind.MARKED:
                self.api.mark_failed(stage, _dag_run(told.number), TASK)
            case Kind.RESTARTED:
                self.api.clear(stage, _dag_run(told.number), TASK)

    def _is_lost(self, stage: str, told: Round, held: Held) -> bool:
        """Whether the try that was struck is over, also for Airflow."""
        found = self.airflow.rows(
            "SELECT state, try_number FROM task_instance WHERE dag_id = ? AND run_id = ? AND task_id = ?",
            stage,
            _dag_run(told.number),
            TASK,
        )
        return held.task_has_ended and not any(state in ("running", "restarting") and n == 1 for state, n in found)

    # ---- to its end

    def _see_through(self, told: Round, stage: str, conf: Mapping[str, str], held: Held | None) -> None:
        """Wait until a stage has ended, help it where it failed, and wait for a driver that was held."""
        dag_run = _dag_run(told.number)
        self._wait_for_end(stage, dag_run)
        if held is not None:
            self.airflow.wait(f"the task process of {stage} has ended", lambda: held.task_has_ended)
        helps = 0
        while self._needs_more(stage, dag_run):
            helps += 1
            if helps > _HELPS:
                raise StuckError(f"{stage} of {dag_run} was helped {_HELPS} times in vain; {self.airflow.states()}")
            dag_run = self._help(told, stage, dag_run, conf, helps)
            self._wait_for_end(stage, dag_run)
        if held is not None:
            held.go_on()
            self.airflow.wait(f"the driver of {stage} that was held has ended", lambda: held.has_ended)

    def _needs_more(self, stage: str, dag_run: str) -> bool:
        """Whether a stage has left something. Also one that went well: it may have begun before all was published."""
        if self._state(stage, dag_run) == "failed":
            return self.lake.has_something_to_do(stage)
        return self.lake.has_something_new(stage)

    def _help(self, told: Round, stage: str, dag_run: str, conf: Mapping[str, str], number: int) -> str:
        """Do what a person does: clear the task that failed, or begin another DAG run; return the id of the run.

        Another one waits for something new, and for that alone.
        """
        has_failed = self._state(stage, dag_run) == "failed"
        if has_failed and (told.helps_by_clearing or not self.lake.has_something_new(stage)):
            self.api.clear(stage, dag_run, TASK)
            return dag_run
        again = f"{_dag_run(told.number)}-again-{number}"
        self._trigger(stage, again, conf)
        return again

    def _wait_for_end(self, stage: str, dag_run: str) -> None:
        self.airflow.wait(f"{stage} of {dag_run} has ended", lambda: self._has_ended(stage, dag_run))

    def _has_ended(self, stage: str, dag_run: str) -> bool:
        return self._state(stage, dag_run) in ("success", "failed")

    def _state(self, stage: str, dag_run: str) -> str:
        ((state,),) = self.airflow.rows("SELECT state FROM dag_run WHERE dag_id = ? AND run_id = ?", stage, dag_run)
        return str(state)

    # ---- counting

    def _tries(self, dag_run: str = "%") -> dict[str, int]:
        """Return how many tries the tasks that submit have had, by stage."""
        sql = "SELECT dag_id, sum(try_number) FROM task_instance WHERE task_id = ? AND run_id LIKE ? GROUP BY 1"
        return dict(sorted(self.airflow.rows(sql, TASK, dag_run)))

    def _count(self) -> None:
        self.figures.tries = self._tries()
        self.figures.runs = {stage: self.lake.runs_made(stage) for stage in self.figures.tries}
        self.figures.rows = {name: self.lake.rows(name).total() for name in (RAW, *STAGES)}


def _dag_run(number: int) -> str:
    return f"round-{number:03d}"
