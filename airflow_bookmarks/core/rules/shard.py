"""Shards: split the input of a job into 64 fixed parts, and assign these to today's number of tasks.

    file --hash--> virtual shard 00..63 --owner--> task 0..n-1
          for ever: a job of its own     changes with n, and nothing but this does

What a file belongs to never changes, so its bookmark is always the same one, whichever task works on it. How many tasks
there are is a matter of each DAG run.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.job import check_name

VIRTUAL_SHARDS = 64

ShardBy = Literal["path", "partition"]
Shard = tuple[int, int] | range | str


_OF = re.compile(r"\s*(\d{1,3})\s*/\s*(\d{1,3})\s*", re.ASCII)
_RANGE = re.compile(r"\s*(\d{1,3})\s*:\s*(\d{1,3})\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class VirtualShard:
    """One of the 64 fixed parts of a source: its number, and what of a file is hashed."""

    number: int
    by: ShardBy = "path"

    def __str__(self) -> str:
        return f"shard {self.number:02}/{VIRTUAL_SHARDS} by {self.by}"


_KEY, _COLUMN = "key", "column "


@dataclass(frozen=True, slots=True)
class TableShard:
    """One of the 64 fixed parts of a table: its number, and the column whose hash assigns a row; None: the key.

    Example:
        >>> str(TableShard(7)), str(TableShard(7, "region"))
        ('shard 07/64 by key', 'shard 07/64 by column region')
    """

    number: int
    column: str | None = None

    @property
    def by(self) -> str:
        """What is hashed, as fingerprints have it."""
        return _KEY if self.column is None else f"{_COLUMN}{self.column}"

    def __str__(self) -> str:
        return f"shard {self.number:02}/{VIRTUAL_SHARDS} by {self.by}"


def said_as(by: str) -> str:
    """Return what is hashed as a script says it.

    Example:
        >>> said_as("path"), said_as("column region"), said_as("key")
        ("shard_by='path'", "shard_by='region'", 'no shard_by (the key of the table)')
    """
    return "no shard_by (the key of the table)" if by == _KEY else f"shard_by={by.removeprefix(_COLUMN)!r}"


_TEXT = re.compile(rf" shard \d\d/{VIRTUAL_SHARDS} by (\w+|{_COLUMN}.+)\Z", re.ASCII | re.DOTALL)


def shard_by_of(fingerprint: str) -> str | None:
    """Return what is hashed for the source that a fingerprint names; None if it is not sharded.

    Example:
        >>> shard_by_of(f"files:/lake/raw {VirtualShard(7)}"), shard_by_of("files:/lake/raw")
        ('path', None)
    """
    found = _TEXT.search(fingerprint)
    return None if found is None else found[1]


def check_shard_by(by: str) -> None:
    """Make sure that `by` is one of the things of a file that can be hashed.

    Raises:
        OptionError: it is not.
    """
    if by not in get_args(ShardBy):
        raise OptionError(f"shard_by={by!r}: expected 'path' or 'partition'. Nothing was read or changed.")


# ---- the jobs


def shard_name(job: str, number: int) -> str:
    """Return the name of the job that virtual shard `number` of `job` is.

    Raises:
        NameInvalidError: `job` is too long for three more characters.

    Example:
        >>> shard_name("flights.clean", 7)
        'flights.clean~07'
    """
    return check_name("job", f"{job}~{number:02}")


_SHARD = re.compile(r"(.+)~(\d\d)", re.ASCII | re.DOTALL)


def sharded_name(name: str) -> str | None:
    """Return the job that `name` is a virtual shard of, by its form; None if it is no shard.

    Example:
        >>> sharded_name("flights.clean~07"), sharded_name("flights.clean"), sharded_name("flights.clean~64")
        ('flights.clean', None, None)
    """
    found = _SHARD.fullmatch(name)
    return None if found is None or int(found[2]) >= VIRTUAL_SHARDS else found[1]


def shard_names(job: str) -> list[str]:
    """Return the names of the 64 jobs that a sharded job consists of."""
    return [shard_name(job, number) for number in range(VIRTUAL_SHARDS)]


# ---- which task works on which virtual shards


@cache
def owners(tasks: int) -> tuple[int, ...]:
    """Return for each virtual shard the task, 0 to `tasks` - 1, that works on it.

    One task has all. Each further task takes `64 // n` of them, n being the number of tasks with it, one by one:
    each time the highest one of the task that has most at that moment (of several, the lowest task). So, for every n:

    * each virtual shard has one task;
    * a task has `floor(64 / n)` or `ceil(64 / n)`: taking from the fullest keeps all others within one of each other;
    * from n - 1 to n tasks exactly `floor(64 / n)` move, all to the new task. It has to have as many.

    Raises:
        OptionError: fewer than 1 task or more than 64.

    Example:
        >>> sorted(Counter(owners(3)).items())
        [(0, 21), (1, 22), (2, 21)]
    """
    if not 1 <= tasks <= VIRTUAL_SHARDS:
        raise OptionError(
            f"{tasks} tasks share {VIRTUAL_SHARDS} virtual shards: expected 1 to {VIRTUAL_SHARDS} tasks, so that each "
            "has one. Nothing was read or changed."
        )
    owner = [0] * VIRTUAL_SHARDS
    for new in range(1, tasks):
        for _ in range(VIRTUAL_SHARDS // (new + 1)):
            sizes = Counter(owner)
            giver = max(range(new), key=lambda task: (sizes[task], -task))
            owner[max(number for number in range(VIRTUAL_SHARDS) if owner[number] == giver)] = new
    return tuple(owner)


@dataclass(frozen=True, slots=True)
class ShardShare:
    """The virtual shards of one task, ascending. `text` is their form in settings: `i/n`, or `lo:hi` for a range."""

    text: str
    numbers: tuple[int, ...]

    @classmethod
    def of(cls, given: Shard) -> ShardShare:
        """Return what `shard=` asks for: `(i, n)`, task i of n from 0; `range(lo, hi)`; or the text of one of them.

        Raises:
            OptionError: it is neither, or lies outside of 0 to 63.

        Example:
            >>> ShardShare.of((1, 40)).numbers, ShardShare.of("62:64").numbers
            ((32,), (62, 63))
        """
        if isinstance(given, str):
            return cls._parsed(given)
        if isinstance(given, range):
            return cls._of_range(given)
        if isinstance(given, tuple) and len(given) == 2 and all(type(value) is int for value in given):
            return cls._of_task(*given)
        raise _refused(given)

    @classmethod
    def _parsed(cls, text: str) -> ShardShare:
        if found := _OF.fullmatch(text):
            return cls._of_task(int(found[1]), int(found[2]))
        if found := _RANGE.fullmatch(text):
            return cls._of_range(range(int(found[1]), int(found[2])))
        raise _refused(text)

    @classmethod
    def _of_task(cls, task: int, tasks: int) -> ShardShare:
        owner = owners(tasks)
        if not 0 <= task < tasks:
            raise _refused(f"{task}/{tasks}")
        return cls(f"{task}/{tasks}", tuple(number for number in range(VIRTUAL_SHARDS) if owner[number] == task))

    @classmethod
    def _of_range(cls, numbers: range) -> ShardShare:
        if numbers.step != 1 or not 0 <= numbers.start < numbers.stop <= VIRTUAL_SHARDS:
            raise _refused(numbers)
        return cls(f"{numbers.start}:{numbers.stop}", tuple(numbers))


def _refused(given: object) -> OptionError:
    return OptionError(
        f"shard={given!r}: expected (i, n) or 'i/n' for task i of n, counted from 0, or range(lo, hi) or 'lo:hi' for "
        f"the virtual shards lo to hi - 1, within 0 to {VIRTUAL_SHARDS}. Nothing was read or changed."
    )


# ---- for mapped tasks


def shards(tasks: int) -> list[str]:
    """Return what `tasks` mapped tasks are given, one each, as `bookmark_shard`.

    Raises:
        OptionError: fewer than 1 task or more than 64.

    Example:
        >>> shards(3)
        ['0/3', '1/3', '2/3']
    """
    owners(tasks)
    return [f"{task}/{tasks}" for task in range(tasks)]


def ranges(*parts: range) -> list[str]:
    """Return the `bookmark_shard` arguments of mapped tasks, one each, where you choose who works on what.

    Raises:
        OptionError: two of them overlap, or together they leave a hole in 0 to 63.

    Example:
        >>> ranges(range(0, 4), range(4, 64))
        ['0:4', '4:64']
    """
    taken = [ShardShare.of(part) for part in parts]
    counts = Counter(number for share in taken for number in share.numbers)
    twice = [number for number, count in sorted(counts.items()) if count > 1]
    if twice:
        raise OptionError(
            f"ranges{parts}: they overlap, virtual shard {twice[0]} is in two of them. Nothing was read or changed."
        )
    missing = [number for number in range(VIRTUAL_SHARDS) if number not in counts]
    if missing:
        raise OptionError(
            f"ranges{parts}: they leave a hole, virtual shard {missing[0]} is in none of them, and what belongs there "
            f"would never be read. Nothing was read or changed. Together they have to cover range({VIRTUAL_SHARDS})."
        )
    return [share.text for share in taken]
