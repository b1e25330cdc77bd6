"""One side of a benchmark in a process of its own, which plays a round whenever it is told to.

Sides are measured in turns, so that what else the machine does hinders all of them alike. A side is a context manager
of a module in this package that yields a function: what a round is told goes in, what it came to comes out, both plain
JSON.

    $ python -m benchmarks.side planning known '{"root": ..., "store": ...}'      # then one line of JSON for each round
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

Told: TypeAlias = dict[str, Any]
Play: TypeAlias = Callable[[Told], Told]

_MEMORY = Path("/proc/self/status")


class Side:
    """A side that runs; `started` is what it had to say when it was ready, with `ready_s`, the seconds until then."""

    def __init__(self, name: str, process: subprocess.Popen[str]) -> None:
        self._name, self._process = name, process
        begun = time.perf_counter()
        self.started = {**self._answer(), "ready_s": time.perf_counter() - begun}

    def play(self, **told: Any) -> Told:
        """Play one round.

        Raises:
            RuntimeError: the side ended; what it said of that is on stderr.
        """
        if self._process.stdin is None:
            raise RuntimeError(f"{self._name} was started without an input")
        self._process.stdin.write(json.dumps(told) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> Told:
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            raise RuntimeError(f"{self._name} ended with {self._process.wait()} before it answered; see above")
        answer: Told = json.loads(line)
        return answer


@contextmanager
def side(module: str, name: str, **given: Any) -> Iterator[Side]:
    """Start a side, and end it with the block."""
    command = [sys.executable, "-m", "benchmarks.side", module, name, json.dumps(given)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield Side(f"{module}.{name}", process)
    finally:
        if process.stdin is not None:
            process.stdin.close()  # which ends the rounds
        process.wait()


def peak_mb() -> float:
    """Return how much memory this process has had at most, in MB (10^6 bytes)."""
    if _MEMORY.exists():
        # Not getrusage: what it tells of a process that was started with vfork includes the peak of its parent.
        line = next(line for line in _MEMORY.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024 / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6  # in bytes where there is no /proc: macOS


def _main() -> None:
    module, name, given = sys.argv[1:]
    # What others print must not come among the answers.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    begin = getattr(importlib.import_module(f"benchmarks.{module}"), name)
    with begin(**json.loads(given)) as play:
        print(json.dumps({"peak_mb": peak_mb()}), file=answers)
        for line in sys.stdin:
            print(json.dumps({**play(json.loads(line)), "peak_mb": peak_mb()}), file=answers)


if __name__ == "__main__":
    _main()
