"""What a witness keeps of each job: where it stood at each version, and what its runs read, staged and came to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_bookmarks.core.run import RunKey
from tests.chaos.sim.habit import Habit
from tests.chaos.sim.reading import Reading


@dataclass(frozen=True)
class Intent:
    """What a person asks for, as the witness has to know it to say where it leads."""

    kind: str
    contexts: tuple[str, ...] | None = None
    ctx: str = ""
    value: str = ""
    clean: bool = False


@dataclass(frozen=True)
class State:
    """What a job has consumed at one version: per context path and version, or run and revision; and living runs.

    `newest` is per context the latest time of a file that was read.
    """

    known: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    living: tuple[int, ...] = ()
    newest: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Look:
    """What a process saw of a job when it read its head: what lives, in which revision, and what is published."""

    version: int
    revisions: Mapping[str, str]
    published: frozenset[int]


class JobWitness:
    """What is known of one job."""

    def __init__(self, upstreams: Mapping[str, str], habit: Habit, *, appends: bool) -> None:
        self.upstreams, self.habit, self.appends = upstreams, habit, appends
        self.states: dict[int, State] = {0: State()}
        self.version_of: dict[int, int] = {}
        self.before_epoch: dict[int, int] = {}
        self.kinds: dict[int, str] = {}
        self.owners: dict[int, str] = {}
        self.nonces: dict[int, str] = {}
        self.readings: dict[int, dict[str, Reading]] = {}
        self.staged: dict[int, dict[str, Counter[str]]] = {}
        self.run_states: dict[RunKey, str] = {}
        self.items: dict[RunKey, Mapping[str, Any]] = {}  # of runs as they were last, also of collected ones
        self.fences: dict[RunKey, tuple[int, ...]] = {}
        self.committed: dict[int, RunKey] = {}
        self.rows: dict[int, dict[str, Counter[str]]] = {}
        self.rows_of: dict[tuple[str, str], dict[str, Counter[str]]] = {}  # by run and revision
        self.sound: dict[int, Counter[str]] = {}  # rows of what a run read, and of nothing that it left to the next
        self.final: dict[int, dict[str, Reading]] = {}
        self.parts: dict[int, dict[str, set[str]]] = {}
        self.cleaned: set[int] = set()
        self.collected: set[int] = set()
        self.dropped: set[int] = set()
        self.own_commits: set[str] = set()
        self.commits_by: dict[str, list[RunKey]] = {}
        self.marked: set[int] = set()  # fences of runs, and of their revisions, that were published
        self.revisions: dict[int, int] = {}
        self.cleaned_before: dict[int, frozenset[int]] = {}  # by run: what was cleaned when its last replay committed
        self.abandoned_at: dict[RunKey, tuple[int, int]] = {}
        self.version = 0

    @property
    def state(self) -> State:
        return self.states[self.version]

    def look(self) -> Look:
        """Return how it stands for those who read it."""
        living = self.state.living
        published = {n for n in living if self.run_states.get(self.committed[n]) == "PUBLISHED"}
        return Look(self.version, {str(n): str(self.revisions.get(n, 0)) for n in living}, frozenset(published))
