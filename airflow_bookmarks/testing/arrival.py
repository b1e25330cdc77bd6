"""The arrivals at the input of a job before a run, of any kind of input."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

ArrivedRow: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Arrival:
    """One piece of input, and how it arrives. The generators (`testing.files`) make them.

    A test that has input of its own kind makes them itself.

    Args:
        name: under which the job's plan has it: of a file, the path below the folder that it arrives in.
        rows: what a job can read of it. A later arrival of the same name replaces them.
        arrive: brings it; given the folder of the test.
        vanish: takes it away again; called as soon as a run has planned to read it as a file. None: it stays.

    Example:
        >>> arrival = Arrival("note.txt", ({"value": "a"},), lambda folder: (folder / "note.txt").write_text("a"))
        >>> arrival.rows
        ({'value': 'a'},)
    """

    name: str
    rows: tuple[ArrivedRow, ...]
    arrive: Callable[[Path], object]
    vanish: Callable[[Path], object] | None = None
