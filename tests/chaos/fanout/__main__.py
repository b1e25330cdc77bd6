"""Fan-out by hand: `python -m tests.chaos.fanout --consumers 200` prints its figures, and fails where one is missed."""

from __future__ import annotations

import argparse
import json
import logging
import signal
import sys
import tempfile
import time
from pathlib import Path

from demo.play import use_aws_environment
from tests.chaos.fanout.airflow import StuckError
from tests.chaos.fanout.scene import play

RESULT = Path("build/fanout.json")


def main() -> int:
    """Play the scene; return 0 where all is as promised."""
    parser = argparse.ArgumentParser("python -m tests.chaos.fanout", description="Many who wait for one upstream.")
    parser.add_argument("--consumers", type=int, default=200, help="deferred sensors, at least 10")
    parser.add_argument("--root", type=Path, help="folder for all its files, emptied; default: a temporary one")
    given = parser.parse_args()
    if given.consumers < 10:
        parser.error("--consumers: at least 10, for a consumer of each kind")
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that all it started ends with it
    use_aws_environment()
    # It would warn of a server without backups, and of many consumers that read one upstream.
    logging.getLogger("airflow_bookmarks").setLevel(logging.ERROR)
    begun = time.monotonic()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - begun:6.1f} s] {text}", flush=True)

    with tempfile.TemporaryDirectory(prefix="fanout-") as folder:
        try:
            figures = play(given.root or Path(folder) / "fanout", given.consumers, say)
        except StuckError as error:
            print(f"fanout: failed: {error}")
            return 1
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(figures.as_dict(), indent=2) + "\n")
    print(f"\n{figures}\n")
    for fault in figures.faults:
        print(f"fanout: {fault}")
    print(f"fanout: {'failed' if figures.faults else 'ok, none missed'}; figures are in {RESULT}")
    return 1 if figures.faults else 0


if __name__ == "__main__":
    sys.exit(main())
