"""The story: what lands in each round and what goes wrong there. A function of the seed, so it can be told again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from random import Random

from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from tests.chaos.chain.stage import STAGES

Points = Mapping[str, Sequence[Failpoint]]
ALL_POINTS: Points = dict.fromkeys(STAGES, tuple(Failpoint))
_LAST_HOUR_S = 3600
_FIRST_TIME = 1_700_000_000  # of the files: seconds since 1970


class Kind(StrEnum):
    """What can go wrong in a round."""

    DRIVER = "driver killed"
    JVM = "spark-submit killed"
    WORKER = "task process killed"
    FAILS = "script fails"
    MARKED = "marked failed"
    RESTARTED = "cleared while it runs"
    CLEARED = "finished task cleared"
    REWOUND = "chain rewound"


HOLDS = (Kind.JVM, Kind.WORKER, Kind.MARKED, Kind.RESTARTED)  # the driver is held meanwhile, and goes on after that
KILLS = (Kind.DRIVER, Kind.JVM, Kind.WORKER, Kind.MARKED)


class LetGo(StrEnum):
    """When a driver goes on that was held while its try was lost."""

    AT_ONCE = "at once"
    AFTER_TRY = "after its try"
    AFTER_STAGE = "after its stage"


class Follow(StrEnum):
    """What a person does with the stages behind one that was replayed."""

    KEEP = "those behind keep what they have read"  # on_rewind="ignore": the rows are the same
    AGAIN = "those behind are rewound too"  # with their output removed, so that they read it again
    REFUSED = "the replay is refused"  # and all stays as it is


@dataclass(frozen=True, slots=True)
class RawFile:
    """A file that lands; `seconds` is the time that it says it has, which may be older than what was read long ago."""

    name: str
    lines: tuple[str, ...]
    seconds: int


@dataclass(frozen=True, slots=True)
class Trouble:
    """What goes wrong in a round.

    `stage` is where; `point` is where its driver stands then; `let_go` is for one that is held. `back` is how many
    rounds ago the run was made that is cleared, or how many are taken back; `follow` is for a clear, and so is
    `is_killed_too`: the driver of the replay is killed at the point.
    """

    kind: Kind
    stage: str
    point: Failpoint
    let_go: LetGo
    follow: Follow
    back: int
    is_killed_too: bool

    def __str__(self) -> str:
        match self.kind:
            case Kind.REWOUND:
                return f"{self.kind} by {_rounds(self.back)}"
            case Kind.CLEARED:
                killed = f", its replay killed at {self.point}" if self.is_killed_too else ""
                return f"{self.kind}: {self.stage} of {_rounds(self.back)} ago{killed}; {self.follow}"
            case Kind.FAILS:
                return f"{self.kind}: {self.stage}"
            case _ if self.kind in HOLDS:
                return f"{self.kind}: {self.stage} at {self.point}; its driver goes on {self.let_go}"
        return f"{self.kind}: {self.stage} at {self.point}"


@dataclass(frozen=True, slots=True)
class Round:
    """One round: what lands and what goes wrong.

    `begins_together`: all DAG runs begin at once, and the later ones wait; else each begins when the one before has
    ended. `helps_by_clearing` is how a stage is helped that has failed for good.
    """

    number: int
    files: tuple[RawFile, ...]
    trouble: Trouble
    begins_together: bool
    helps_by_clearing: bool


def tell(seed: int, rounds: int, points: Points = ALL_POINTS, *, replays: bool = True) -> list[Round]:
    """Return the story of so many rounds, three at least; the chain is rewound once, in the middle.

    Args:
        seed: of all that is random.
        rounds: how many.
        points: those to which the drivers of each stage come.
        replays: whether a run that has finished is made again where its task is cleared. Else that is refused: rows of
            a table don't tell which run has written them.
    """
    random = Random(seed)
    rewound = rounds // 2 + 1
    kinds = _kinds(random, rounds, rewound)
    story = [_round(random, number, kind, points) for number, kind in enumerate(kinds, 1)]
    return story if replays else [replace(told, trouble=_refused(told.trouble)) for told in story]


def _refused(trouble: Trouble) -> Trouble:
    """Return a trouble as it is where nothing is replayed: no driver begins, so none is killed."""
    return replace(trouble, follow=Follow.REFUSED, is_killed_too=False)


def _kinds(random: Random, rounds: int, rewound: int) -> list[Kind]:
    """Deal all kinds out, one deck after the other. In the first round there is nothing yet that could be cleared."""
    dealt = _dealt(random)
    kinds = [next(dealt) for _ in range(rounds)]
    if kinds[0] is Kind.CLEARED:
        kinds[:2] = reversed(kinds[:2])
    kinds[rewound - 1] = Kind.REWOUND
    return kinds


def _dealt(random: Random) -> Iterator[Kind]:
    deck = [kind for kind in Kind if kind is not Kind.REWOUND]
    while True:
        yield from random.sample(deck, len(deck))


def _round(random: Random, number: int, kind: Kind, points: Points) -> Round:
    files = tuple(_file(random, number, place) for place in range(random.randint(1, 3)))
    most = number - 2 if kind is Kind.REWOUND else number - 1
    stage = random.choice(STAGES)
    trouble = Trouble(
        kind=kind,
        stage=stage,
        point=random.choice(points[stage]),
        let_go=random.choice([*LetGo]),
        follow=random.choice([Follow.KEEP, Follow.AGAIN]),
        back=random.randint(1, max(1, min(3, most))),
        is_killed_too=random.random() < 0.5,
    )
    return Round(number, files, trouble, begins_together=random.random() < 0.5, helps_by_clearing=random.random() < 0.5)


def _file(random: Random, number: int, place: int) -> RawFile:
    name = f"{number:03d}-{place}"
    lines = [f"row {row} of {name}" for row in range(random.randint(1, 5))]
    lines += random.choices(lines, k=random.randint(0, 2))  # the same row twice is two rows
    seconds = _FIRST_TIME + number * 60 - random.choice([0, 0, random.randrange(_LAST_HOUR_S)])
    return RawFile(f"{name}.txt", tuple(lines), seconds)


def _rounds(number: int) -> str:
    return "1 round" if number == 1 else f"{number} rounds"
