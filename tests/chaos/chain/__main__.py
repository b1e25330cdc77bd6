"""The chain by hand: `python -m tests.chaos.chain --rounds 20` says what came of each round; a difference ends it."""

from __future__ import annotations

import argparse
import logging
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from random import SystemRandom
from urllib.error import HTTPError

from demo.play import use_aws_environment
from tests.chaos.chain.lineup import LineupName
from tests.chaos.chain.scene import Figures, play
from tests.chaos.fanout.airflow import StuckError


def main() -> int:
    """Play the scene; return 0 where each row was there once after each round."""
    parser = argparse.ArgumentParser(
        "python -m tests.chaos.chain", description="Three DAGs in a row, and much trouble."
    )
    parser.add_argument("--rounds", type=int, default=20, help="at least 3; in the middle one the chain is rewound")
    parser.add_argument("--seed", type=int, help="of what lands and what goes wrong; default: another one each time")
    parser.add_argument(
        "--mixed", action="store_true", help="over a Delta table, a table of PostgreSQL and an Iceberg table"
    )
    parser.add_argument("--root", type=Path, help="folder for all its files, emptied; default: a temporary one")
    given = parser.parse_args()
    if given.rounds < 3:
        parser.error("--rounds: at least 3, for something that can be rewound")
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that all it started ends with it
    use_aws_environment()
    logging.getLogger("airflow_bookmarks").setLevel(logging.ERROR)  # it would warn of a server without backups
    seed = SystemRandom().randrange(1_000_000) if given.seed is None else given.seed
    root = given.root or Path(tempfile.mkdtemp(prefix="chain-"))
    lineup_name = LineupName.MIXED if given.mixed else LineupName.PLAIN
    figures = _play(root / "chain" if given.root is None else root, given.rounds, seed, lineup_name)
    if figures is not None and not figures.faults:
        print(f"\n{figures}\n\nchain: ok, each row once at each stage after each round")
        if given.root is None:
            shutil.rmtree(root)
        return 0
    again = f"--seed {seed} --rounds {given.rounds}{' --mixed' if given.mixed else ''}"
    print(f"chain: failed; {again} plays it again; all its files and logs are in {root}")
    return 1


def _play(root: Path, rounds: int, seed: int, lineup_name: LineupName) -> Figures | None:
    begun = time.monotonic()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - begun:6.1f} s] {text}", flush=True)

    say(f"{lineup_name}, seed {seed}, {rounds} rounds")
    try:
        figures = play(root, rounds, seed, say, lineup_name)
    except (StuckError, RuntimeError, HTTPError) as error:
        print(f"chain: {error}")
        return None
    if figures.faults:
        print(f"\n{figures}\n")
    for fault in figures.faults:
        print(f"chain: {fault}")
    return figures


if __name__ == "__main__":
    sys.exit(main())
