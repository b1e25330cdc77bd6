"""Arrivals of files in a local folder, in the order and the state in which files arrive in production.

    from airflow_bookmarks.testing import files

    files.new("month=1/a.csv", [{"id": 1, "delay": 5}])

Names are paths below the folder of the test. The suffix gives the format of the rows: `.csv` (with a header), `.json`
or `.jsonl` (one record per line), `.txt` (one column, `value`), each also with `.gz`. Pass any other as `content=`.

File times are set by `os.utime` and depend on the files in the folder, never on the clock: the first file has the time
`FIRST_TIME`, and each new one is a minute younger than the youngest there. Only `history` is random, and it has a seed.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from math import isinf, isnan
from pathlib import Path, PurePosixPath
from random import Random
from typing import TYPE_CHECKING, TypeAlias

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.files.input import is_hidden
from airflow_bookmarks.testing.arrival import Arrival, ArrivedRow

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Rows: TypeAlias = "Sequence[ArrivedRow]"

FIRST_TIME = datetime(2024, 1, 1, tzinfo=UTC)
_APART_NS = 60 * 1_000_000_000

_CORRUPT = {".csv": b'"no end\x00\n', ".json": b'{"no": "end\n', ".jsonl": b'{"no": "end\n', ".txt": b"\xff\xfe\xff"}


# ---- one file


def new(name: str, rows: Rows = (), *, content: bytes | None = None) -> Arrival:
    """Return a file that arrives after all others, as most files do.

    Args:
        name: its path below the folder: "a.csv", "month=1/a.csv".
        rows: its rows; default: none.
        content: its bytes, for a format that is not written here; `rows` are then the rows that a job can read from it.

    Raises:
        OptionError: the name is not a path below a folder, Spark would not read it, or the rows can't be written in
            this format.

    Example:
        >>> new("a.txt", [{"value": "one"}, {"value": "two"}]).rows
        ({'value': 'one'}, {'value': 'two'})
    """
    return _arrival(name, rows, content, lambda folder: _newest_ns(folder) + _APART_NS)


def late(name: str, rows: Rows = (), *, content: bytes | None = None, by: timedelta = timedelta(days=1)) -> Arrival:
    """Return a file that arrives now with an old time: older than the youngest file there by `by` (default: a day).

    Raises:
        OptionError: see `new`; or `by` is not positive. On arrival: no file is there, so none can be late.
    """
    if not isinstance(by, timedelta) or by <= timedelta(0):
        raise OptionError(f"late({name!r}, by={by!r}): expected a positive timedelta. Nothing was written.")
    by_ns = by // timedelta(microseconds=1) * 1000
    return _arrival(name, rows, content, lambda folder: _newest_ns(_with_files(folder, "late", name)) - by_ns)


def tied(name: str, rows: Rows = (), *, content: bytes | None = None) -> Arrival:
    """Return a file that has exactly the time of the youngest file there.

    Raises:
        OptionError: see `new`. On arrival: no file is there to be tied with.
    """
    return _arrival(name, rows, content, lambda folder: _newest_ns(_with_files(folder, "tied", name)))


def overwritten(name: str, rows: Rows = (), *, content: bytes | None = None) -> Arrival:
    """Return a file that replaces the one of the same name, with other content and a new time.

    Raises:
        OptionError: see `new`. On arrival: there is no such file, or it has that content already.
    """
    _check_name(name)
    body = _body(name, rows, content)

    def time_ns(folder: Path) -> int:
        path = folder / name
        if not path.is_file() or path.read_bytes() == body:
            why = "has that content already" if path.is_file() else "is not there"
            raise OptionError(
                f"overwritten({name!r}): the file {why}, so this arrival would overwrite nothing. Nothing was written. "
                "Let new(...) of that name arrive in an earlier step, with other rows."
            )
        return _newest_ns(folder) + _APART_NS

    return _arrival(name, rows, content, time_ns)


def empty(name: str) -> Arrival:
    """Return a new file without any bytes.

    Raises:
        OptionError: see `new`.
    """
    return new(name, content=b"")


def corrupt(name: str, *, content: bytes | None = None) -> Arrival:
    """Return a new file that can't be parsed in the format of its name.

    Compressed text is truncated; CSV and JSON have an unterminated record, which Spark reads as NULLs unless the job
    says otherwise (docs/guides/quarantine.md); any other file is not of the format that its name says.

    Args:
        name: see `new`.
        content: its bytes; default: broken content that fits the name.

    Raises:
        OptionError: see `new`.
    """
    _check_name(name)
    if content is None:
        suffix = PurePosixPath(name).suffix
        broken = gzip.compress(b"no end" * 100, mtime=0)[:-12]
        content = broken if suffix == ".gz" else _CORRUPT.get(suffix, b"no file of this format")
    return new(name, content=content)


def vanishing(name: str, rows: Rows = (), *, content: bytes | None = None) -> Arrival:
    """Return a new file that is there while a run plans, and gone as soon as its plan is stored, before it is read.

    The job's `on_missing` decides what happens then. A run with `pause` or `disable` stores no plan, so the file stays.

    Raises:
        OptionError: see `new`.
    """
    arrival = new(name, rows, content=content)
    return Arrival(name, arrival.rows, arrival.arrive, vanish=lambda folder: (folder / name).unlink())


# ---- other columns


def with_added_column(name: str, rows: Rows, column: str, value: object) -> Arrival:
    """Return a new file whose rows are `rows` with one more column at the end, which holds `value` in each.

    Raises:
        OptionError: see `new`; or the rows have that column already.

    Example:
        >>> with_added_column("b.csv", [{"id": 2}], "carrier", "UA").rows
        ({'id': 2, 'carrier': 'UA'},)
    """
    if any(column in row for row in rows):
        raise OptionError(
            f"with_added_column({name!r}): the rows have the column {column!r} already. Nothing was written. Name "
            "another one, or leave it out of the rows."
        )
    return new(name, [{**row, column: value} for row in rows])


def with_other_type(name: str, rows: Rows, column: str, value: object) -> Arrival:
    """Return a new file whose rows hold `value` in a column of another type, such as text in place of a number.

    Raises:
        OptionError: see `new`; or a row has no such column, or already has a value of that type there.

    Example:
        >>> with_other_type("b.csv", [{"id": 2}], "id", "two").rows
        ({'id': 'two'},)
    """
    for row in rows:
        if column not in row or type(row[column]) is type(value):
            has = f"a {type(value).__name__} there already" if column in row else f"only {list(row)}"
            raise OptionError(
                f"with_other_type({name!r}): {value!r} gives the column {column!r} no other type: a row has {has}. "
                "Nothing was written. Give a value of another type, for a column of the rows."
            )
    return new(name, [{**row, column: value} for row in rows])


# ---- many


def history(steps: int, row: Callable[[int], ArrivedRow], *, seed: int, suffix: str = ".csv") -> list[list[Arrival]]:
    """Return random arrivals for a number of runs: new, late, tied, overwritten and empty files, or nothing.

    The same seed gives the same arrivals. No file is overwritten before a run could read it, and each row arrives once.

    Args:
        steps: the number of runs.
        row: a function that makes the row of a number, from 1; all rows must differ.
        seed: the seed for the order and the kinds of arrivals.
        suffix: the suffix of the names, which gives the format; see `new`. Default: ".csv".

    Raises:
        OptionError: `steps` is not positive; or see `new`.

    Example:
        >>> [[arrival.name for arrival in step] for step in history(3, lambda n: {"id": n}, seed=1)]
        [['0001.csv'], ['0001.csv', '0002.csv'], []]
    """
    if not isinstance(steps, int) or isinstance(steps, bool) or steps < 1:
        raise OptionError(f"history(steps={steps!r}): expected a positive number. Nothing was written.")
    return _History(Random(seed), row, suffix).steps(steps)


class _History:
    def __init__(self, random: Random, row: Callable[[int], ArrivedRow], suffix: str) -> None:
        self._random, self._row, self._suffix = random, row, suffix
        self._rows, self._names = 0, 0
        self._known: list[str] = []  # what earlier steps brought, and what can be overwritten

    def steps(self, count: int) -> list[list[Arrival]]:
        steps = [[self._new(new)]]
        steps[0] += [self._new(tied) for _ in range(self._random.randint(0, 1))]
        while len(steps) < count:
            self._known = sorted({*self._known, *(arrival.name for arrival in steps[-1] if arrival.rows)})
            steps.append(self._step())
        return steps[:count]

    def _step(self) -> list[Arrival]:
        overwrites = self._random.sample(self._known, self._random.randint(0, 1))
        step = [overwritten(name, self._some_rows()) for name in overwrites]
        step += [self._new(self._random.choice((new, late, tied))) for _ in range(self._random.randint(0, 2))]
        return [*step, empty(self._name())] if self._random.random() < 0.2 else step

    def _new(self, kind: Callable[[str, Rows], Arrival]) -> Arrival:
        return kind(self._name(), self._some_rows())

    def _name(self) -> str:
        self._names += 1
        return f"{self._names:04}{self._suffix}"

    def _some_rows(self) -> list[ArrivedRow]:
        first, count = self._rows + 1, self._random.randint(1, 3)
        self._rows += count
        return [self._row(number) for number in range(first, first + count)]


# ---- writing


def _arrival(name: str, rows: Rows, content: bytes | None, time_ns: Callable[[Path], int]) -> Arrival:
    _check_name(name)
    body = _body(name, rows, content)

    def arrive(folder: Path) -> None:
        path, at = folder / name, time_ns(folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
        os.utime(path, ns=(at, at))

    return Arrival(name, tuple(dict(row) for row in rows), arrive)


def _check_name(name: str) -> None:
    parts = name.split("/") if isinstance(name, str) else []
    if not parts or any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise OptionError(
            f"{name!r} is no path below the folder of the test. Nothing was written. Give, for example, 'a.csv' or "
            "'month=1/a.csv'."
        )
    if any(map(is_hidden, parts)):
        raise OptionError(
            f"{name!r}: Spark reads no name that begins with '.' or '_' or ends in '._COPYING_', so nothing of it "
            "would ever arrive. Nothing was written. Give it another name."
        )


def _newest_ns(folder: Path) -> int:
    times = [path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()]
    return max(times, default=int(FIRST_TIME.timestamp()) * 1_000_000_000 - _APART_NS)


def _with_files(folder: Path, kind: str, name: str) -> Path:
    if not any(path.is_file() for path in folder.rglob("*")):
        raise OptionError(
            f"{kind}({name!r}): no file is in {str(folder)!r} yet, so none can be {kind}. Nothing was written. Let "
            "new(...) arrive before it."
        )
    return folder


def _body(name: str, rows: Rows, content: bytes | None) -> bytes:
    if content is not None:
        if not isinstance(content, bytes):
            raise OptionError(f"content of {name!r} is {type(content).__name__}: expected bytes. Nothing was written.")
        return content
    path = PurePosixPath(name)
    is_packed = path.suffix == ".gz"
    text = _text(name, PurePosixPath(path.stem).suffix if is_packed else path.suffix, rows)
    return gzip.compress(text.encode(), mtime=0) if is_packed else text.encode()


def _text(name: str, suffix: str, rows: Rows) -> str:
    if any(list(row) != list(rows[0]) for row in rows):
        raise OptionError(f"the rows of {name!r} have different columns. Nothing was written. Give each the same.")
    match suffix:
        case ".csv":
            return _csv(name, rows)
        case ".json" | ".jsonl":
            return "".join(f"{json.dumps(row, default=partial(_json_value, name))}\n" for row in rows)
        case ".txt":
            return _lines(name, rows)
    raise OptionError(
        f"{name!r}: rows are written as .csv, .json, .jsonl or .txt, each also with .gz. Nothing was written. Give the "
        "bytes of any other format as content=, and what a job can read of them as rows."
    )


def _json_value(name: str, value: object) -> str:
    if isinstance(value, date | time | Decimal):
        return str(value)
    raise OptionError(
        f"{name!r} can't hold {value!r}: a value of JSON is text, a number, a time, a bool, None, or a list or map "
        "of these. Nothing was written."
    )


def _csv(name: str, rows: Rows) -> str:
    """Return rows as Spark reads them: nothing for NULL, quotes around an empty text, NaN and infinity by its names."""
    if not rows:
        return ""
    lines = [",".join(_quoted(column) for column in rows[0])]
    lines += [",".join(_csv_value(name, value) for value in row.values()) for row in rows]
    if "" in lines:
        raise OptionError(
            f"{name!r}: a line would be empty, because its one column is None or it has none, and Spark reads no such "
            "line. Nothing was written. Give the rows a second column, or write them as .json."
        )
    return "".join(f"{line}\n" for line in lines)


def _csv_value(name: str, value: object) -> str:
    match value:
        case None:
            return ""
        case float() if isnan(value) or isinf(value):
            return "NaN" if isnan(value) else "Inf" if value > 0 else "-Inf"
        case bytes() | Mapping() | list() | tuple() | set():
            raise OptionError(
                f"{name!r} can't hold {value!r}: a value of CSV is text, a number, a time or None. Nothing was written."
            )
    return _quoted(str(value))


def _quoted(text: str) -> str:
    is_plain = text and text == text.strip() and not any(sign in text for sign in ',"\r\n')
    return text if is_plain else '"' + text.replace('"', '""') + '"'


def _lines(name: str, rows: Rows) -> str:
    if any(list(row) != ["value"] for row in rows):
        raise OptionError(f"{name!r} is text, whose one column is 'value'. Nothing was written. Give rows of that.")
    return "".join(f"{row['value']}\n" for row in rows)
