"""Facts: the names of counts in plans and outputs that code relies on, and their wording."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Of a plan.
READ_AGAIN = "read_again"  # files that were read before: another version now, or read with their group (`reread`)

# Of an output: what it removes that living runs published.
REPLACED_FILES, REPLACED_ROWS, REPLACED_RUNS = "replaced_files", "replaced_rows", "replaced_runs"
PARTLY_READ = "partly_read"  # folders of the target of which this run has read only a part, 50 at most
MAYBE_PARTLY_READ = "maybe_partly_read"  # a source does not tell partitions, so it may have read a part only
REPLACED = (REPLACED_FILES, REPLACED_ROWS, REPLACED_RUNS, PARTLY_READ, MAYBE_PARTLY_READ)

REMOVED_KEYS = "removed_keys"  # of an output: how many keys the delete set of an upsert has

# Of a run, by step of the script and by reason: how many records a step left out of what was read.
LEFT_OUT = "left_out"

_RANGES = 20  # of run numbers


def counted(number: int, noun: str) -> str:
    """Return a number with what it counts.

    Example:
        >>> counted(1, "file"), counted(2000, "file")
        ('1 file', '2,000 files')
    """
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def replaced_in_words(figures: Mapping[str, Any]) -> str:
    """Return what an output with these facts removes.

    Example:
        >>> replaced_in_words({"replaced_files": 3, "replaced_rows": 460, "replaced_runs": "1-2"})
        'replaces 3 files (460 rows) of runs 1-2'
    """
    rows = figures[REPLACED_ROWS]
    counted = "rows not known" if rows is None else f"{rows} rows"
    files = figures[REPLACED_FILES]
    return f"replaces {files} file{'' if files == 1 else 's'} ({counted}) of {runs_named(figures[REPLACED_RUNS])}"


def runs_named(ranges: str) -> str:
    """Return what `runs_in_words` returns as part of a sentence.

    Example:
        >>> runs_named("3"), runs_named("1-2")
        ('run 3', 'runs 1-2')
    """
    return f"run {ranges}" if ranges.isdecimal() else f"runs {ranges}"


def runs_in_words(numbers: Sequence[int]) -> str:
    """Return run numbers as ranges, the newest 20 of them.

    Example:
        >>> runs_in_words([1, 2, 3, 7])
        '1-3, 7'
    """
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    shown = [str(first) if first == last else f"{first}-{last}" for first, last in ranges[-_RANGES:]]
    return ", ".join([*(["..."] if len(ranges) > _RANGES else []), *shown])


def replaced_in_all(figures: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what outputs of several runs of one execution remove together; nothing where none of them does.

    Example:
        >>> one = {"replaced_files": 1, "replaced_rows": 2, "replaced_runs": "1"}
        >>> replaced_in_all([one, {"rows": 3}, {**one, "replaced_rows": None}])
        {'replaced_files': 2, 'replaced_rows': None, 'replaced_runs': '1'}
    """
    told = [each for each in figures if REPLACED_FILES in each]
    if not told:
        return {}
    rows = [each.get(REPLACED_ROWS) for each in told]
    runs = dict.fromkeys(part for each in told for part in str(each.get(REPLACED_RUNS, "")).split(", "))
    partly = list(dict.fromkeys(folder for each in told for folder in each.get(PARTLY_READ, ())))
    return {
        REPLACED_FILES: sum(each[REPLACED_FILES] for each in told),
        REPLACED_ROWS: None if None in rows else sum(row or 0 for row in rows),
        REPLACED_RUNS: ", ".join(runs),
        **({PARTLY_READ: partly} if partly else {}),
        **({MAYBE_PARTLY_READ: True} if any(each.get(MAYBE_PARTLY_READ) for each in told) else {}),
    }
