"""The race by hand: `python -m tests.chaos.writers --seconds 600 --writers 200 --seed 1` prints its figures."""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from pathlib import Path
from random import SystemRandom

from tests.chaos.writers.race import Race
from tests.databases.servers import new_database
from tools.servers import DatabaseServer, mariadb, postgresql

_SPARE = 60  # connections for readers


def main() -> int:
    """Play the race on both kinds of database; return 0 where no row was lost or read twice."""
    parser = argparse.ArgumentParser("python -m tests.chaos.writers", description="Many writers, out of order.")
    parser.add_argument("--seconds", type=float, default=600, help="for which PostgreSQL is written")
    parser.add_argument("--writers", type=int, default=200, help="of PostgreSQL at a time; a quarter in MariaDB")
    parser.add_argument("--longest", type=float, default=30, help="seconds for which a transaction is open at most")
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(10**6))
    parser.add_argument("--only", choices=["postgresql", "mariadb"], help="one kind of database")
    given = parser.parse_args()
    logging.getLogger("airflow_bookmarks").setLevel(logging.ERROR)
    print(f"seed {given.seed}")
    most = given.writers * 2 + _SPARE  # some end what others have prepared
    settings = {"max_connections": str(most), "max_prepared_transactions": str(most)}
    is_right = True
    if given.only != "mariadb":
        with postgresql(settings) as server:
            is_right &= _play(server, given, given.writers, given.seconds)
    if given.only != "postgresql":
        with mariadb(max_connections=most) as server:
            is_right &= _play(server, given, max(1, given.writers // 4), given.seconds / 2)
    return 0 if is_right else 1


def _play(server: DatabaseServer, given: argparse.Namespace, writers: int, seconds: float) -> bool:
    with new_database(server) as login, tempfile.TemporaryDirectory(prefix="writers-") as folder:
        print(f"{server.dialect}: {writers} writers for {seconds:.0f} s, up to {given.longest:.0f} s a transaction")
        figures = Race(login, Path(folder), seconds, writers, given.longest, given.seed).play()
    print(*figures, sep="\n", flush=True)
    return all(each.is_right for each in figures)


if __name__ == "__main__":
    sys.exit(main())
