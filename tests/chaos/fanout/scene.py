"""The scene: all wait, the triggerer dies, an upstream publishes meanwhile, another after; nobody is missed."""

from __future__ import annotations

import json
import time
from collections import Counter as Counts
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from math import ceil
from pathlib import Path
from typing import Any

from airflow_bookmarks.store.bookmark_store import BookmarkStore, open_store
from demo.folders import Folders
from tests.chaos.fanout.airflow import Airflow, StuckError, running_airflow
from tests.chaos.fanout.counter import Asked, Counter, counting
from tests.chaos.fanout.event import noted
from tests.chaos.fanout.shop import Published, publish
from tests.chaos.fanout.waits import (
    AFTER_EARLY,
    AFTER_UP,
    CONSUMERS,
    EARLY,
    FIRST_RUN,
    FIRST_TIME,
    SECOND_RUN,
    SECOND_TIME,
    UP,
    consumer,
    has_read_the_first_run,
    is_early,
    released_by,
    task_id,
)
from tests.lifecycle.shop import Shop
from tools.servers import dynamodb_local

DAGS = Path(__file__).parent / "dags"
EVENTS = "events.jsonl"  # what the triggers have fired
PLACES = "places.jsonl"  # when the watchers had a new place
PROMISE_REQUESTS_PER_S = 4.0
_ENDED = ("success", "failed", "skipped", "upstream_failed")


@dataclass
class Figures:
    """What came of it. Seconds and milliseconds are those of this machine; counts are promises."""

    consumers: int = 0
    seconds_to_defer_all: float = 0.0
    waiting_requests: int = 0
    waiting_s: float = 0.0
    inconsistent_reads: int = 0
    operations: dict[str, int] = field(default_factory=dict)
    nobody_looked_s: float = 0.0
    seconds_to_restart: float = 0.0
    early_released: int = 0
    latency_ms: list[float] = field(default_factory=list)
    taken_ms: list[float] = field(default_factory=list)
    seconds_to_finish_all: float = 0.0
    missed: list[str] = field(default_factory=list)
    not_once: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    watchers_keep_place: bool = False
    watcher_runs: dict[str, int] = field(default_factory=dict)

    @property
    def requests_per_s(self) -> float:
        """Requests a second on the table, of all who wait together."""
        return self.waiting_requests / self.waiting_s

    @property
    def faults(self) -> list[str]:
        """What is not as promised, in words; empty when all is."""
        found = [f"missed: {name}" for name in self.missed]
        found += [f"not once: {name}" for name in self.not_once]
        found += [f"wrong summary: {name}" for name in self.wrong]
        found += [f"{self.inconsistent_reads} reads were not consistent"] if self.inconsistent_reads else []
        if self.requests_per_s > PROMISE_REQUESTS_PER_S:
            found.append(f"{self.requests_per_s:.2f} requests a second, {PROMISE_REQUESTS_PER_S:.0f} are allowed")
        for dag_id, promised in self.promised_runs.items():
            runs = self.watcher_runs.get(dag_id, 0)
            found += [] if runs == promised else [f"{dag_id} ran {runs} times, and {promised} are promised"]
        return found

    @property
    def promised_runs(self) -> dict[str, int]:
        """How many runs the watchers have to start: one for each publish.

        A watcher that can't keep its place begins at what is there. `EARLY` publishes while no triggerer runs, so its
        watcher is told of nothing then; `UP` publishes twice after both have begun anew.
        """
        return {AFTER_UP: 2, AFTER_EARLY: 1 if self.watchers_keep_place else 0}

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {**asdict(self), "requests_per_s": self.requests_per_s}

    def __str__(self) -> str:
        operations = ", ".join(f"{number} {name}" for name, number in sorted(self.operations.items()))
        lines = [
            ("consumers", f"{self.consumers}, each a deferred sensor"),
            ("all deferred after", f"{self.seconds_to_defer_all:.0f} s"),
            ("requests while all wait", f"{self.requests_per_s:.2f} a second ({operations} in {self.waiting_s:.0f} s)"),
            ("triggerer killed", f"nobody looked for {self.nobody_looked_s:.1f} s"),
            ("triggerer restarted", f"all triggers run again {self.seconds_to_restart:.1f} s after its start"),
            ("released by a publish meanwhile", f"{self.early_released}"),
            ("publish to trigger event", f"{_spread(self.latency_ms)}, of {len(self.latency_ms)}"),
            ("publish to Airflow having taken it", _spread(self.taken_ms)),
            ("publish to the last task's success", f"{self.seconds_to_finish_all:.0f} s"),
            ("watchers keep their place", "yes" if self.watchers_keep_place else "no, this Airflow does not let them"),
            ("runs that watchers started", ", ".join(f"{k} {v}" for k, v in sorted(self.watcher_runs.items()))),
            ("missed / twice / wrong", f"{len(self.missed)} / {len(self.not_once)} / {len(self.wrong)}"),
        ]
        return "\n".join(f"{name:<36}{value}" for name, value in lines)


def _spread(values_ms: Sequence[float]) -> str:
    ordered = sorted(values_ms)
    p50, p99, most = (ordered[max(0, ceil(share * len(ordered)) - 1)] for share in (0.5, 0.99, 1))
    return f"p50 {p50:.0f} ms, p99 {p99:.0f} ms, max {most:.0f} ms"


def play(root: Path, consumers: int, say: Callable[[str], None] = print) -> Figures:
    """Play the scene with so many consumers; all files lie below `root`.

    Raises:
        StuckError: something never came.
    """
    folders = Folders.make(root)
    with dynamodb_local() as endpoint, counting(endpoint) as counter:
        store = open_store(_uri(endpoint))
        store.init()
        return Scene(folders, store, _uri(endpoint), counter, consumers, say).play()


def _uri(endpoint: str) -> str:
    return f"dynamodb://bookmarks?region=eu-west-1&endpoint={endpoint}"


@dataclass
class Scene:
    """One scene. Whoever publishes goes to the store itself; Airflow goes by the counter."""

    folders: Folders
    store: BookmarkStore
    store_uri: str
    counter: Counter
    consumers: int
    say: Callable[[str], None]
    figures: Figures = field(default_factory=Figures)

    def play(self) -> Figures:
        """Play it, and return what came of it."""
        self.figures.consumers = self.consumers
        for name in (EVENTS, PLACES):
            (self.folders.root / name).touch()
        self.say("an upstream publishes a run, and its consumers read it")
        self._begin()
        self.say("Airflow starts")
        given = {
            "FANOUT_CONSUMERS": str(self.consumers),
            "FANOUT_EVENTS": str(self.folders.root / EVENTS),
            "FANOUT_PLACES": str(self.folders.root / PLACES),
        }
        with running_airflow(self.folders, _uri(self.counter.url), DAGS, given) as airflow:
            self.figures.watchers_keep_place = airflow.lets_triggers_keep_state()
            self._defer_all(airflow)
            self._watch_requests(airflow)
            self._lose_triggerer(airflow)
            second = self._publish_second(airflow)
            self._finish(airflow, second)
            self._publish_third(airflow)
            self._examine(airflow)
        return self.figures

    # ---- before Airflow

    def _begin(self) -> None:
        shop = Shop(self.folders.data / UP, self.store)
        shop.put(f"{FIRST_TIME}.txt", "a line", seconds=FIRST_TIME)
        self._publish(UP, FIRST_RUN, FIRST_TIME)
        for number in range(self.consumers):
            if has_read_the_first_run(number):
                shop.run(consumer(number), upstream=UP)

    def _publish(self, job: str, dag_run_id: str, seconds: int) -> Published:
        return publish(self.folders.data, self.store_uri, job, dag_run_id, seconds)

    # ---- with it

    def _defer_all(self, airflow: Airflow) -> None:
        started = time.monotonic()
        airflow.wait("a sensor runs", lambda: airflow.tasks_in(CONSUMERS, "running", "deferred") > 0)
        self.say(f"the first sensor runs, {time.monotonic() - started:.0f} s after the scheduler's start")
        started = time.monotonic()
        airflow.wait("all sensors are deferred", lambda: self._are_deferred(airflow))
        self.figures.seconds_to_defer_all = time.monotonic() - started
        self.say(
            f"{self.consumers} sensors are deferred, {self.figures.seconds_to_defer_all:.0f} s after the first ran"
        )
        self._wait_for_triggers(airflow)
        self._wait_for_watchers(airflow, since=0)
        if self.figures.watchers_keep_place:
            airflow.wait("both places are kept", lambda: airflow.count("SELECT count(*) FROM asset_state_store") == 2)

    def _are_deferred(self, airflow: Airflow) -> bool:
        if airflow.tasks_in(CONSUMERS, *_ENDED):
            raise StuckError(f"a sensor has ended though nothing was published: {airflow.states()}")
        return airflow.tasks_in(CONSUMERS, "deferred") == self.consumers

    def _wait_for_triggers(self, airflow: Airflow) -> None:
        triggerer = airflow.triggerer()
        airflow.wait(
            "all triggers run",
            lambda: (
                airflow.tasks_that_wait(CONSUMERS) <= airflow.started_in(triggerer)
                and airflow.count("SELECT count(*) FROM trigger WHERE triggerer_id IS NOT ?", triggerer) == 0
            ),
        )

    def _wait_for_watchers(self, airflow: Airflow, since: float) -> None:
        """Wait until both watchers know where their jobs stand."""
        airflow.wait("both watchers have a place", lambda: self._placed(since) == {UP, EARLY})

    def _placed(self, since: float) -> set[str]:
        places = noted(self.folders.root / PLACES)
        return {job for job, moments in places.items() if any(at >= since for at in moments)}

    def _watch_requests(self, airflow: Airflow) -> None:
        """Count what reaches the table while all wait and nothing happens."""
        since, wanted = time.time(), max(5, self.consumers // 5)
        airflow.wait("the poller has looked often", lambda: len(self.counter.since(since)) >= wanted)
        asked = self.counter.since(since)
        self.figures.waiting_requests, self.figures.waiting_s = len(asked), time.time() - since
        self.figures.operations = dict(Counts(one.operation for one in asked))
        self.figures.inconsistent_reads = sum(not one.is_consistent for one in asked)
        self.say(f"while all wait: {self.figures.requests_per_s:.2f} requests a second")

    def _lose_triggerer(self, airflow: Airflow) -> None:
        """Kill the triggerer, let one upstream publish meanwhile, and start the triggerer anew."""
        lost = airflow.triggerer()
        airflow.kill("triggerer")
        killed = time.time()
        self.say("the triggerer is killed")
        self._publish(EARLY, FIRST_RUN, FIRST_TIME)
        self.say("an upstream has published while no triggerer runs; the triggerer is started")
        started = time.monotonic()
        airflow.start("triggerer")
        airflow.wait("the triggerer is registered", lambda: airflow.triggerer() > lost)
        self._wait_for_triggers(airflow)
        self.figures.seconds_to_restart = time.monotonic() - started
        last = max((one.at for one in self.counter.asked if one.at < killed), default=killed)
        first = self._first_look(airflow, killed)
        self.figures.nobody_looked_s = first.at - last
        early = sum(is_early(number) for number in range(self.consumers))
        airflow.wait("the early ones are through", lambda: airflow.tasks_in(CONSUMERS, "success") == early)
        if self.figures.watchers_keep_place:
            airflow.wait("a watcher has seen it", lambda: self._watcher_runs(airflow).get(AFTER_EARLY, 0) > 0)
        else:
            self._wait_for_watchers(airflow, since=killed)
        self.figures.early_released = early
        self.say(f"all triggers run again; nobody looked for {self.figures.nobody_looked_s:.0f} s")

    def _first_look(self, airflow: Airflow, since: float) -> Asked:
        airflow.wait("the poller looks again", lambda: bool(self.counter.since(since)))
        return self.counter.since(since)[0]

    def _publish_second(self, airflow: Airflow) -> Published:
        second = self._publish(UP, SECOND_RUN, SECOND_TIME)
        self.say(f"run {second.run_number} of the upstream of all is published")
        return second

    def _finish(self, airflow: Airflow, second: Published) -> None:
        airflow.wait("all sensors have ended", lambda: airflow.tasks_in(CONSUMERS, *_ENDED) == self.consumers)
        self.figures.seconds_to_finish_all = time.time() - second.at
        self.say(f"all sensors have ended, {self.figures.seconds_to_finish_all:.0f} s after the publish")
        events = self._fired()
        self.figures.latency_ms = [
            (at - second.at) * 1000
            for number in range(self.consumers)
            if not is_early(number)
            for at in events.get(task_id(number), [])
        ]
        self.figures.taken_ms = [(at - second.at) * 1000 for at in self._taken(airflow)]

    def _taken(self, airflow: Airflow) -> list[float]:
        """Return when Airflow's database knew of the events, in seconds of the wall clock."""
        rows = airflow.rows("SELECT task_id, scheduled_dttm FROM task_instance WHERE dag_id = ?", CONSUMERS)
        late = {task_id(number) for number in range(self.consumers) if not is_early(number)}
        return [datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp() for name, at in rows if name in late]

    def _fired(self) -> dict[str, list[float]]:
        return noted(self.folders.root / EVENTS)

    def _publish_third(self, airflow: Airflow) -> None:
        """Publish once more, for the watcher, and let it look twice at nothing new."""
        airflow.wait("a watcher has seen run 2", lambda: self._watcher_runs(airflow).get(AFTER_UP, 0) > 0)
        self._publish(UP, "manual__3", SECOND_TIME + 100)
        airflow.wait("a watcher has seen run 3", lambda: self._watcher_runs(airflow).get(AFTER_UP, 0) > 1)
        since = time.time()
        airflow.wait("the poller has looked at what is no news", lambda: len(self.counter.since(since)) > 2)
        self.figures.watcher_runs = self._watcher_runs(airflow)

    def _watcher_runs(self, airflow: Airflow) -> dict[str, int]:
        rows = airflow.rows("SELECT dag_id, count(*) FROM dag_run WHERE dag_id <> ? GROUP BY 1", CONSUMERS)
        return dict(rows)

    # ---- after it

    def _examine(self, airflow: Airflow) -> None:
        found = {
            name: (state, tries)
            for name, state, tries in airflow.rows(
                "SELECT task_id, state, try_number FROM task_instance WHERE dag_id = ?", CONSUMERS
            )
        }
        pushed: dict[str, list[Any]] = {}
        for name, value in airflow.rows(
            "SELECT task_id, value FROM xcom WHERE dag_id = ? AND key = 'return_value'", CONSUMERS
        ):
            pushed.setdefault(name, []).append(json.loads(value))
        events = self._fired()
        for number in range(self.consumers):
            name = task_id(number)
            state, tries = found.get(name, ("never made", 0))
            if state != "success":
                self.figures.missed.append(f"{name} is {state}")
            if (tries, len(events.get(name, [])), len(pushed.get(name, []))) != (1, 1, 1):
                self.figures.not_once.append(
                    f"{name}: {tries} tries, {len(events.get(name, []))} events, {len(pushed.get(name, []))} results"
                )
            if _runs_in(pushed.get(name, [])) != released_by(number):
                self.figures.wrong.append(f"{name} was given {pushed.get(name)}")


def _runs_in(pushed: Sequence[Any]) -> list[tuple[str, str]]:
    summaries = pushed[0] if pushed else []
    return [(one["job"], one["run_number"]) for one in ([summaries] if isinstance(summaries, dict) else summaries)]
