"""What the triggers have fired: a file with a line for each event, written by the triggerer and read at the end."""

from __future__ import annotations

import json
import time
from pathlib import Path


def note(events: Path, task_id: str) -> None:
    """Append that the trigger of a task fires now."""
    line = json.dumps({"task_id": task_id, "at": time.time()}) + "\n"
    with events.open("ab", buffering=0) as file:  # one write: the lines of two triggers don't mix
        file.write(line.encode())


def fired(events: Path) -> dict[str, list[float]]:
    """Return when the trigger of each task has fired, in seconds of the wall clock."""
    found: dict[str, list[float]] = {}
    for line in events.read_text().splitlines():
        said = json.loads(line)
        found.setdefault(said["task_id"], []).append(said["at"])
    return found
