"""The world at one moment. All of it is immutable and hashable: a state that was seen is not searched again."""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

Row: TypeAlias = tuple[int, int]  # a source file and its version: the model's files have one row each
Rows: TypeAlias = frozenset[Row]
RunKey: TypeAlias = tuple[int, int]  # run number and fence
Attempt: TypeAlias = tuple[str, int]  # run_id and attempt
Place: TypeAlias = tuple[int, int]  # where a run item stages: run number and fence
FileName: TypeAlias = tuple[Place, int, int] | tuple[int, int]

NO_ROWS: Final[Rows] = frozenset()
INNOCENT: Final[Attempt] = ("innocent", 0)  # an attempt that a kill fenced though it did not name it
OPEN: Final = ("PLANNED", "FAILED")
DONE: Final = "done"
SECOND_LANDED, SECOND_LEFT_OUT, FIRST_LEFT_OUT = "both landed", "second left out", "first left out"
ASKED, COMMITTED, GIVEN_UP = "asked", "committed", "given up"


class Lease(NamedTuple):
    """Who works on the job now."""

    run_id: str
    attempt: int
    fence: int


class Token(NamedTuple):
    """Under what a sink that commits by itself takes an output. A Delta-like burn lies between two fences."""

    epoch: int
    run_number: int
    fence: float


class Written(NamedTuple):
    """What a sink that commits by itself holds under a token; no rows: the token is burned."""

    token: Token
    rows: Rows | None


class Head(NamedTuple):
    """The HEAD item."""

    version: int = 0
    epoch: int = 1
    run_number: int = 0
    published: int = 0
    lease: Lease | None = None
    position: Rows = NO_ROWS
    fence: int = 0
    killed: frozenset[Attempt] = frozenset()
    cleaning: tuple[RunKey, ...] = ()
    publishing: RunKey | None = None


class Run(NamedTuple):
    """A RUN item, one per number and fence; a replay adds a revision to it."""

    key: RunKey
    state: str
    fence: int
    epoch: int
    number: int
    plan: Rows
    is_placed: bool
    landed: Token | None
    after: Rows
    place: Place
    revision: int
    fences: tuple[int, ...]
    deletions: frozenset[FileName]
    second: str = ""  # of a second sink that commits by itself: SECOND_LANDED, or which of both is left out
    settled: str = ""  # of a run that landed in one of both: ASKED, and then what a person has decided
    purged: frozenset[FileName] = frozenset()  # what its script had purged, also where a revision deletes other files


class Staged(NamedTuple):
    """A staged file."""

    place: Place
    fence: int
    part: int
    rows: Rows


class Published(NamedTuple):
    """A file of the target."""

    name: FileName
    run_number: int
    epoch: int
    rows: Rows
    place: Place


class Load(NamedTuple):
    """What one task of Spark has inserted into a stage table, in one transaction."""

    fence: int
    part: int
    rows: Rows


class StageTable(NamedTuple):
    """A stage table, with the fence of the driver that created it, and every load, repeated ones included."""

    name: Place
    fence: int
    loads: tuple[Load, ...]


class Database(NamedTuple):
    """A database with a target table: the target's rows with their epochs, each as often as it was inserted."""

    tables: tuple[StageTable, ...] = ()
    token: int | None = None  # the fence in the token row; None: there is no such row
    target: tuple[tuple[int, Row], ...] = ()


class Publication(NamedTuple):
    """What a publisher carries with it: the run as it was when it began, and what it has opened for a copy."""

    key: RunKey
    place: Place
    deletions: frozenset[FileName]
    revision: int
    opened: frozenset[Staged] = frozenset()


class Cleaning(NamedTuple):
    """The undone runs whose output is being removed."""

    keys: tuple[RunKey, ...]


Task: TypeAlias = Publication | Cleaning | RunKey | None


class Driver(NamedTuple):
    """A driver: its next step, and what it keeps in memory."""

    run_id: str
    attempt: int
    kind: str = "run"
    step: str = "begin"
    fence: int = 0
    version: int = 0
    epoch: int = 0
    run_number: int = 0
    position: Rows = NO_ROWS
    plan: Rows = NO_ROWS
    rows: Rows = NO_ROWS
    landed: Token | None = None
    task: Task = None
    has_adopted: bool = False
    found: Token | None = None  # under which the rows of an open run had landed
    found_second: Token | None = None  # the same of a second sink that commits by itself
    purged: frozenset[FileName] = frozenset()  # what a purge found when the script called it
    outcome: str | None = None

    def rows_of(self, part: int) -> Rows:
        """Return the rows of one of the two parts in which a driver writes."""
        return frozenset(row for row in self.rows if min(row[0], 1) == part)


class State(NamedTuple):
    """All of it."""

    source: tuple[int, int]  # the versions of two files; 0: not there
    head: Head
    runs: tuple[Run, ...]
    staged: frozenset[Staged]
    target: frozenset[Published]
    own_sink: frozenset[Written]
    drivers: tuple[Driver, ...]
    events: tuple[str, ...]  # what is yet to happen to the source files
    kill: Attempt | None  # the attempt that an operator is going to kill
    change: str | None  # the reset or rewind that is yet to happen
    losable_replies: int
    database: Database = Database()
    second_sink: frozenset[Written] = frozenset()


def run_of(state: State, key: RunKey) -> Run | None:
    """Return the RUN item of a key."""
    for run in state.runs:
        if run.key == key:
            return run
    return None


def stored_run(state: State, key: RunKey) -> Run:
    """Return the RUN item of a key that is known to be there."""
    run = run_of(state, key)
    if run is None:
        raise KeyError(key)
    return run


def with_run(state: State, run: Run) -> State:
    """Put a RUN item."""
    others = [each for each in state.runs if each.key != run.key]
    return state._replace(runs=tuple(sorted([*others, run], key=_key)))


def publication_of(run: Run) -> Publication:
    """Return what a publisher of the run carries with it."""
    return Publication(run.key, run.place, run.deletions, run.revision)


def _key(run: Run) -> RunKey:
    return run.key


def written_under(state: State, token: Token) -> Written | None:
    """Return what the sink that commits by itself holds under exactly this token."""
    return next((each for each in state.own_sink if each.token == token), None)
