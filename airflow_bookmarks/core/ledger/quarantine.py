"""Quarantine: files that could not be parsed, recorded with the reason and left out until they are released.

A record is about one version of one path: another version of that path is read as any new file. The record is part of
the position of its context (`core/ledger/file_ledger.py`), so a rewind, a reset and an undo include it, and so do
export and import.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from airflow_bookmarks.core.errors import QuarantineFullError
from airflow_bookmarks.core.ledger.segment import bare_name
from airflow_bookmarks.core.text.redaction import redacted

if TYPE_CHECKING:
    import numpy.typing as npt

    from airflow_bookmarks.core.selection.listing import FileInfo, Listing

ERROR_LENGTH = 300

# The record is written with each position. Where more files than this can't be parsed, something else is wrong: another
# format, another schema.
MAX_FILES = 1000
MAX_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class QuarantinedFile:
    """One version of a file that could not be parsed.

    `version`, `size_bytes` and `modified_ms` are those of `core.listing.FileInfo`; `error` says why, in up to 300
    characters; `run_number` is the run that found it.
    """

    path: str
    version: str
    size_bytes: int
    modified_ms: int
    error: str
    run_number: int

    @classmethod
    def of(cls, file: FileInfo, error: str, run_number: int) -> QuarantinedFile:
        """Return the record of a file; of its error what fits, redacted, in one line."""
        line = " ".join(redacted(error).split())
        kept = line if len(line) <= ERROR_LENGTH else f"{line[: ERROR_LENGTH - 3]}..."
        return cls(file.path, file.version, file.size_bytes, file.modified_ms, kept, run_number)

    @classmethod
    def parse(cls, row: Any) -> QuarantinedFile:
        """Return what `astuple` gave, as JSON has it.

        Raises:
            TypeError: it is something else.
        """
        found = cls(*row)
        texts, numbers = (found.path, found.version, found.error), (found.size_bytes, found.modified_ms)
        are_numbers = all(isinstance(number, int) for number in (*numbers, found.run_number))
        if not are_numbers or not all(isinstance(text, str) for text in texts):
            raise TypeError(f"no record of a quarantined file: {row!r}")
        return replace(found, error=redacted(found.error))  # earlier versions stored it raw


@dataclass(frozen=True, slots=True, eq=False)
class Quarantine:
    """The quarantined files of one context, by path without its scheme; a value: each change returns another one.

    Example:
        >>> from airflow_bookmarks.core.selection.listing import FileInfo
        >>> broken = FileInfo("s3a://lake/raw/a.csv", 10, 1_000)
        >>> held = Quarantine().add([QuarantinedFile.of(broken, "it has one column, and 2 are expected", 7)])
        >>> [file.path for file in held], len(held.without(["s3://lake/raw/a.csv"]))
        (['s3a://lake/raw/a.csv'], 0)
    """

    _files: Mapping[str, QuarantinedFile] = field(default_factory=dict)

    @classmethod
    def parse(cls, rows: Iterable[Any]) -> Quarantine:
        """Return what `rows` gave.

        Raises:
            TypeError: it is something else.
        """
        files = [QuarantinedFile.parse(row) for row in rows]
        return cls({bare_name(file.path): file for file in files})

    def rows(self) -> list[list[Any]]:
        """Return it as JSON has it, ascending by path: the same record gives the same rows."""
        return [list(astuple(file)) for _, file in sorted(self._files.items())]

    def __len__(self) -> int:
        return len(self._files)

    def __iter__(self) -> Iterator[QuarantinedFile]:
        return (file for _, file in sorted(self._files.items()))

    def holds(self, listing: Listing) -> npt.NDArray[np.bool_]:
        """Say for each file whether this version of it is quarantined."""
        is_held = np.zeros(len(listing), np.bool_)
        if not self._files:
            return is_held
        for row, path in enumerate(listing.paths):
            held = self._files.get(bare_name(path))
            is_held[row] = held is not None and held.version == listing.file(row).version
        return is_held

    def add(self, files: Iterable[QuarantinedFile]) -> Quarantine:
        """Return it with these files, each in place of an older version.

        Raises:
            QuarantineFullError: there would be too many of them.
        """
        grown = Quarantine({**self._files, **{bare_name(file.path): file for file in files}})
        size = len(json.dumps(grown.rows()))
        if len(grown) > MAX_FILES or size > MAX_BYTES:
            raise QuarantineFullError(len(grown), size, MAX_FILES, MAX_BYTES)
        return grown

    def without(self, paths: Iterable[str]) -> Quarantine:
        """Return it without these paths, in whatever version: they are read again, or were."""
        gone = {bare_name(path) for path in paths} & self._files.keys()
        return Quarantine({name: file for name, file in self._files.items() if name not in gone}) if gone else self

    def since(self, before_ms: int) -> Quarantine:
        """Return it without files that are older: a ledger that forgot them reads none of them anyway."""
        kept = {name: file for name, file in self._files.items() if file.modified_ms >= before_ms}
        return self if len(kept) == len(self._files) else Quarantine(kept)
