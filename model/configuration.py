"""Which drivers, sinks and events a search has, and which rules it leaves out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from model.state import (
    Attempt,
    Database,
    Driver,
    FileName,
    Head,
    Place,
    Published,
    Row,
    Rows,
    Run,
    State,
    Token,
    Written,
)

FILES = "staged files"
OWN = "sink that commits by itself"
TABLE = "stage table"
SECOND = "second sink that commits by itself"

_FIRST_ROW: Row = (0, 1)


@dataclass(frozen=True)
class Configuration:
    """One search.

    Every run stages files, but where a stage table is the only sink; they are judged where `sinks` names them.
    `has_published_run` begins with a run 1 that is published and finished, for replays.
    """

    name: str
    drivers: tuple[Driver, ...]
    sinks: tuple[str, ...] = (FILES,)
    events: tuple[str, ...] = ()  # "arrival" of file 1, "overwrite" of file 0
    kill: Attempt | None = None
    change: str | None = None  # "reset", "rewind" to the last run or "rewind1" to run 1, each with or without "+clean"
    losable_replies: int = 0
    has_exceptions: bool = False
    overwrites: bool = False
    # Each run deletes what it found in the target before it wrote: a list, and nothing replaces it.
    purges: bool = False
    is_delta: bool = False
    upserts: bool = False  # into the table, by file: a row replaces that of another version
    has_published_run: bool = False
    without: frozenset[str] = frozenset()

    def keeps(self, rule: str) -> bool:
        """Say whether a rule holds in this search."""
        return rule not in self.without

    @cached_property
    def judges_files(self) -> bool:
        return FILES in self.sinks

    @cached_property
    def has_own_sink(self) -> bool:
        return OWN in self.sinks

    @cached_property
    def has_second(self) -> bool:
        return SECOND in self.sinks

    @cached_property
    def has_table(self) -> bool:
        return TABLE in self.sinks

    @cached_property
    def stages_files(self) -> bool:
        return self.sinks != (TABLE,)

    @cached_property
    def first_step_of_staging(self) -> str:
        return "stage 0" if self.stages_files else "create table"

    @cached_property
    def first_step_of_publish(self) -> str:
        return "publish 0" if self.stages_files else "transact"

    def place(self, epoch: int, number: int, fence: int) -> Place:
        """Return where a run item stages."""
        return (number, fence) if self.keeps("place_fence") else (epoch, number)

    def file_name(self, number: int, place: Place, part: int, fence: int) -> FileName:
        """Return the name of a published file."""
        return (place, part, fence) if self.keeps("rp_names") else (number, part)

    def file_names(self, run: Run, place: Place) -> frozenset[FileName]:
        """Return every name that a run may have published from a place."""
        return frozenset(self.file_name(run.number, place, part, fence) for part in (0, 1) for fence in run.fences)

    def first_state(self) -> State:
        """Return the state in which the search begins: file 0 is there, no driver has begun."""
        empty = State(
            source=(1, 0),
            head=Head(),
            runs=(),
            staged=frozenset(),
            target=frozenset(),
            own_sink=frozenset(),
            drivers=self.drivers,
            events=self.events,
            kill=self.kill,
            change=self.change,
            losable_replies=self.losable_replies,
        )
        return self._after_a_run(empty) if self.has_published_run else empty

    def _after_a_run(self, empty: State) -> State:
        """Return the state after run 1 read file 0 under fence 1."""
        rows: Rows = frozenset({_FIRST_ROW})
        place, token = self.place(1, 1, 1), Token(1, 1, 1)
        run = Run(
            key=(1, 1),
            state="PUBLISHED",
            fence=1,
            epoch=1,
            number=1,
            plan=rows,
            is_placed=True,
            landed=token if self.has_own_sink else None,
            after=rows,
            place=place,
            revision=0,
            fences=(1,),
            deletions=frozenset(),
        )
        file = Published(self.file_name(1, place, 0, 1), 1, 1, rows, place)
        return empty._replace(
            head=Head(version=1, run_number=1, published=1, position=rows, fence=1),
            runs=(run,),
            target=frozenset({file}) if self.stages_files else frozenset(),
            own_sink=frozenset({Written(token, rows)}) if self.has_own_sink else frozenset(),
            database=Database(token=1, target=((1, _FIRST_ROW),)) if self.has_table else Database(),
        )
