"""The arrivals at the input of a job before a run, of any kind of input."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

ArrivedRow: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Arrival:
    """One piece of input, and how it arrives. The functions of `testing.files` make them.

    For input of another kind, a test makes them itself.

    Args:
        name: its name in the job's plan; for a file, the path below the folder of the test.
        rows: the rows that a job can read from it. A later arrival of the same name replaces them.
        arrive: put it there; called with the folder of the test.
        vanish: remove it again; called with that folder as soon as a run has planned to read it as a file. None
            (default): it stays.

    Example:
        >>> arrival = Arrival("note.txt", ({"value": "a"},), lambda folder: (folder / "note.txt").write_text("a"))
        >>> arrival.rows
        ({'value': 'a'},)
    """

    name: str
    rows: tuple[ArrivedRow, ...]
    arrive: Callable[[Path], object]
    vanish: Callable[[Path], object] | None = None
