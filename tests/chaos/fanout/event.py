"""What the triggers have done: files with a line for each event, written by the triggerer and read by the scene."""

from __future__ import annotations

import json
import time
from pathlib import Path


def note(events: Path, who: str) -> None:
    """Append that something happens to the trigger of `who` now."""
    line = json.dumps({"who": who, "at": time.time()}) + "\n"
    with events.open("ab", buffering=0) as file:  # one write: the lines of two triggers don't mix
        file.write(line.encode())


def noted(events: Path) -> dict[str, list[float]]:
    """Return when it has happened to the trigger of each, in seconds of the wall clock."""
    found: dict[str, list[float]] = {}
    for line in events.read_text().splitlines():
        said = json.loads(line)
        found.setdefault(said["who"], []).append(said["at"])
    return found
