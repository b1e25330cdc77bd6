"""A world: jobs, who acts on them, and the real store and lifecycle between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from airflow_bookmarks.core.ledger import file_ledger as ledger
from airflow_bookmarks.files.opener import register_filesystem
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.sinks.staging import Mode
from airflow_bookmarks.sources.upstream.rewind import OnRewind
from airflow_bookmarks.store import blobs as blob
from airflow_bookmarks.store import bookmark_store
from airflow_bookmarks.store.blobs import INLINE_BYTES
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.chaos.sim.files import SCHEME, FaultyFiles, SimFiles
from tests.chaos.sim.habit import PLAIN, Habit
from tests.chaos.sim.pilot import Mix, SeededPilot
from tests.chaos.sim.record import JobWitness
from tests.chaos.sim.scheduler import EPOCH, Decision, Pilot, Process, Scheduler
from tests.chaos.sim.sink import RowSink
from tests.chaos.sim.table import FaultyTable, SimTable
from tests.chaos.sim.witness import NAMESPACE, Witness

LAKE = f"{SCHEME}://lake"


@dataclass(frozen=True)
class JobSpec:
    """One job of a world: what it reads, and what it writes how."""

    name: str
    upstream: str | None = None
    contexts: tuple[str, ...] = ("raw",)
    mode: Mode = Mode.APPEND
    outputs: tuple[str, ...] = ("out",)
    sinks: tuple[str, ...] = ()  # outputs that commit by themselves
    policy: OnRewind = "rewind"
    habit: Habit = PLAIN

    @property
    def upstreams(self) -> dict[str, str]:
        return {} if self.upstream is None else dict.fromkeys(self.contexts, self.upstream)

    def target(self, output: str) -> str:
        """Return the folder that an output is published to."""
        return f"{LAKE}/{self.name}/{output}"


@dataclass(frozen=True)
class Settings:
    """What one world is made of. `roles` are names of actors; each draws what it does from its own name."""

    seed: int
    jobs: tuple[JobSpec, ...]
    roles: tuple[str, ...]
    mix: Mix
    eras: int = 1
    has_etags: bool = False
    has_blobs: bool = False
    page_items: int = 1000

    theme: str = "mixed"
    quiet_runs: int = 0
    is_behind: bool = False  # consumers have no quiet runs
    spread: int = 250

    @classmethod
    def of(cls, seed: int) -> Settings:
        """Draw a world: the plain one, and in half of them how its jobs read, and who looks back at what was read."""
        plain, random = cls.plain(seed), Random(f"{seed}/habits")
        if random.random() < 0.5:
            return plain
        jobs = tuple(
            replace(
                spec, habit=Habit.of(random, is_consumer=spec.upstream is not None, appends=spec.mode is Mode.APPEND)
            )
            for spec in plain.jobs
        )
        more = [f"window {spec.name} 1" for spec in jobs if random.random() < 0.4]
        more += [f"rival {spec.name}" for spec in jobs if spec.habit.on_missing == "skip"]
        return replace(plain, jobs=jobs, roles=(*plain.roles, *more))

    @classmethod
    def of_two_sinks(cls, seed: int) -> Settings:
        """Draw a world whose first job writes to two tables that commit by themselves, and somebody who decides."""
        drawn = cls.of(seed)
        first = drawn.jobs[0]  # a consumer would have to say which of the outputs it reads
        roles = [
            role
            for role in drawn.roles
            if not role.startswith("replay copy") and not any(f" {other.name} " in role for other in drawn.jobs[1:])
        ]
        more = ["decide copy"] if Random(f"{seed}/decide").random() < 0.7 else []
        return replace(drawn, jobs=(replace(first, sinks=("sink", "sink2")),), roles=(*roles, "task copy a 1", *more))

    @classmethod
    def plain(cls, seed: int) -> Settings:
        """Draw a world in which each run reads all that is new: a theme says which jobs and actors meet in it."""
        random = Random(f"{seed}/settings")
        theme = random.choice(sorted(_THEMES))
        jobs = _jobs(random, theme)
        return cls(
            seed,
            jobs,
            _roles(random, theme, jobs),
            Mix.of(random),
            eras=random.choice([1, 1, 1, 2]),
            has_etags=random.random() < 0.5,
            has_blobs=random.random() < 0.3,
            page_items=random.choice([2, 5, 1000]),
            theme=theme,
            is_behind=random.random() < 0.5,
            quiet_runs=random.choice(_QUIET.get(theme, [0, 0, 0, 1])),
            spread=random.choice([20, 60, 120, 250]),
        )


# Per theme: actors that are there, and those of which some are.
_THEMES: dict[str, tuple[list[str], list[str]]] = {
    "takeovers": (["task copy a 1", "task copy a 2"], ["task copy b 1", "kill copy", "task copy a 3", "admin copy 1"]),
    "changes": (["task copy a 1", "admin copy 1"], ["task copy b 1", "admin copy 2", "task copy a 2", "collect"]),
    "replays": (["replay copy 1"], ["replay copy 2", "task copy a 1", "admin copy 1", "task copy b 1", "kill copy"]),
    "chain": (["task copy a 1", "task down a 1"], ["replay copy 1", "admin copy 1", "task copy b 1", "task down b 1"]),
    "cleans": (["replay copy 1", "admin copy 1"], ["replay copy 2", "admin copy 2", "task copy a 1"]),
    "sinks": (["task copy a 1", "task copy a 2"], ["task copy b 1", "admin copy 1", "kill copy", "pause copy"]),
    "mixed": (
        ["task copy a 1"],
        ["task copy b 1", "task copy a 2", "kill copy", "admin copy 1", "replay copy 1", "collect", "pause copy"],
    ),
}
_QUIET = {"replays": [0, 1, 2], "chain": [0, 1, 2], "changes": [0, 1, 2], "cleans": [1, 2]}


def _jobs(random: Random, theme: str) -> tuple[JobSpec, ...]:
    mode = random.choice([Mode.APPEND, Mode.APPEND, Mode.OVERWRITE, Mode.OVERWRITE_PARTITIONS])
    kinds = {"sinks": ["sink", "both"], "mixed": ["files", "sink", "both", "two outputs"]}
    kind = random.choice(kinds.get(theme, ["files", "files", "two outputs"] if theme != "chain" else ["files"]))
    contexts = random.choice([("raw",), ("raw",), ("raw", "ref")])
    outputs = {"sink": (), "two outputs": ("out", "other")}.get(kind, ("out",))
    jobs = [JobSpec("copy", None, contexts, mode, outputs, ("sink",) if kind in ("sink", "both") else ())]
    if theme == "chain":
        policy: OnRewind = random.choice(["rewind", "rewind_keep", "fail", "ignore"])
        jobs.append(JobSpec("down", "copy", ("up",), policy=policy))
        if random.random() < 0.3:
            jobs.append(JobSpec("last", "down", ("up",), policy="rewind"))
    return tuple(jobs)


def _roles(random: Random, theme: str, jobs: Sequence[JobSpec]) -> tuple[str, ...]:
    always, others = _THEMES[theme]
    if theme == "chain":
        others = [*others, "admin down 1", "replay down 1", "collect"]
        others += [f"task {spec.name} a 1" for spec in jobs[2:]]
    some = random.sample(others, random.randrange(0, min(4, len(others)) + 1))
    return (*always, *(f"lander {number}" for number in range(random.choice([1, 1, 2]))), *some)


class World:
    """Everything of one world; `sim.life` says what goes on in it."""

    def __init__(self, settings: Settings, pilot: Pilot | None = None, *, is_traced: bool = False) -> None:
        self.settings = settings
        self.scheduler = Scheduler(
            pilot or SeededPilot(settings.seed, settings.mix), settings.seed, is_traced=is_traced
        )
        self.table = SimTable(page_items=settings.page_items)
        self.files = SimFiles()
        self.sinks = {spec.name: RowSink(spec.name, self.scheduler) for spec in settings.jobs}
        self.witness = Witness(self.table, self.files, self.scheduler, self.sinks)
        self.witness.jobs |= {
            spec.name: JobWitness(spec.upstreams, spec.habit, appends=spec.mode is Mode.APPEND)
            for spec in settings.jobs
        }
        self.faulty_table = FaultyTable(self.table, self.scheduler, self.witness.on_got)
        self.faulty_files = FaultyFiles(self.files, self.scheduler, self.witness.on_listed)
        self.scheduler.stop = lambda: bool(self.witness.violations)
        self.serial = 0
        self.cut_off: set[str] = set()  # consumers whose unread runs were collected
        BookmarkStore(self.table, NAMESPACE, clock=lambda: self.scheduler.now).init()
        for ctx in ("raw", "ref"):
            self.files.folders.add(self.root(ctx))

    @property
    def jobs(self) -> Mapping[str, JobSpec]:
        return {spec.name: spec for spec in self.settings.jobs}

    @property
    def now_ms(self) -> int:
        """The time of what is written now, in ms since 1970 UTC."""
        return int((self.scheduler.now - EPOCH).total_seconds() * 1000) + 1_767_571_200_000

    def root(self, ctx: str) -> str:
        """Return the folder in which the files of a context land."""
        return f"{LAKE}/{ctx}"

    def random(self, name: str) -> Random:
        """Return the randomness of one actor: it does the same whoever else is there."""
        return Random(f"{self.settings.seed}/{name}")

    def store(self, process: Process) -> BookmarkStore:
        """Return the store as one process has it: over the faulty table, by its own clock."""
        clock = self.scheduler.clock(process)
        return BookmarkStore(self.faulty_table, NAMESPACE, clock=clock, random=self.random(process.name))

    def environment(self, process: Process) -> RunEnvironment:
        """Return what a process uses of its machine."""

        def start_thread(body: Callable[[], None]) -> None:
            self.scheduler.spawn(process, body, f"{process.name} renewer")

        return RunEnvironment(
            clock=self.scheduler.clock(process),
            monotonic=self.scheduler.monotonic,
            sleep=self.scheduler.sleep,
            start_thread=start_thread,
            wait=self.scheduler.wait,
        )

    def process(self, name: str, start: int = 0, *, is_exempt: bool = False) -> Process:
        """Return a new process."""
        return Process(name, start, is_exempt=is_exempt)

    def spawn(self, process: Process, body: Callable[[], object]) -> None:
        """Start a process with its main actor."""
        self.scheduler.spawn(process, body, process.name, is_main=True)


@contextmanager
def present(world: World) -> Iterator[None]:
    """Make `world` the one in which `sim://` lies and blobs are stamped; one at a time."""
    register_filesystem(SCHEME, lambda: world.faulty_files)
    stamps: Any = blob.__dict__["utc_now"]
    blob.__dict__["utc_now"] = lambda: world.scheduler.now
    if world.settings.has_blobs:
        _set_inline_bytes(60, 0)
    try:
        yield
    finally:
        blob.__dict__["utc_now"] = stamps
        _set_inline_bytes(_INLINE_BYTES, _LEDGER_BYTES)


_INLINE_BYTES, _LEDGER_BYTES = INLINE_BYTES, ledger.INLINE_BYTES


def _set_inline_bytes(payloads: int, segments: int) -> None:
    """Say up to which size payloads and ledger segments lie inline: a world's are small, and are to be blobs too."""
    bookmark_store.__dict__["INLINE_BYTES"] = payloads
    makers: list[Any] = [ledger.Ledger.empty, ledger.Ledger.from_root]
    for maker in makers:
        maker.__func__.__kwdefaults__["inline_bytes"] = segments


@dataclass(frozen=True)
class Outcome:
    """What became of a world."""

    settings: Settings
    violations: tuple[str, ...]
    steps: int
    faults: Mapping[str, int]
    judged: Mapping[str, int]
    trace: tuple[str, ...] = ()
    decisions: tuple[Decision, ...] = field(default=())

    def alone(self, **changes: object) -> Settings:
        """Return the settings with something changed."""
        return replace(self.settings, **changes)  # type: ignore[arg-type]
