"""`python -m demo`: play; `python -m demo up`: a running Airflow; `python -m demo down`: stop it."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from types import FrameType

from demo.folders import PROJECT
from demo.lake import KINDS as FILE_KINDS
from demo.play import play
from demo.store import KINDS
from demo.up import down, up

BUILD = PROJECT / "build"


def main() -> int:
    """Do what the command line says; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m demo", description="The example DAGs on real data.")
    parser.add_argument("command", nargs="?", choices=("play", "up", "down"), default="play")
    arguments = parser.parse_args()
    store = os.environ.get("STORE") or "dynamodb"
    if store not in KINDS:
        parser.error(f"STORE={store!r} in the environment: expected one of {', '.join(KINDS)}")
    files = os.environ.get("FILES") or "local"
    if files not in FILE_KINDS:
        parser.error(f"FILES={files!r} in the environment: expected one of {', '.join(FILE_KINDS)}")
    if files != "local" and arguments.command == "up":
        parser.error(f"FILES={files!r} in the environment: 'up' keeps files on this disk; only the demonstration can")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)
    match arguments.command:
        case "up":
            return up(BUILD / "up", store)
        case "down":
            return down(BUILD / "up")
        case _:
            return play(BUILD / "demo", store, files)


def _stop(number: int, frame: FrameType | None) -> None:
    """Leave through all `with` blocks, which end what they started; a second signal does not cut that short."""
    for other in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(other, signal.SIG_IGN)
    print(f"\ndemo: stopped by {signal.Signals(number).name}", file=sys.stderr)
    raise SystemExit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
