"""One thing that a person may have to know of a script: the line, the verdict, what it is, and a note."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_bookmarks.glue.inventory.surface import Support


@dataclass(frozen=True, slots=True)
class ScriptFinding:
    """One thing that a script uses: where, what, whether it runs here, and what a person should know of it."""

    line: int
    support: Support
    what: str
    note: str = ""
