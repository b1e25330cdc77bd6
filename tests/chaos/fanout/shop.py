"""The upstreams: a process makes one run, and says on stdout when it was published.

Example:
    $ python -m tests.chaos.fanout.shop FOLDER STORE JOB DAG_RUN_ID SECONDS_OF_ITS_FILE
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.store.bookmark_store import open_store
from demo.folders import PROJECT
from tests.lifecycle.shop import Shop
from tools.patience import STUCK_S


@dataclass(frozen=True, slots=True)
class Published:
    """A run that is published: its number, and when its mark was written (seconds of the wall clock)."""

    run_number: int
    at: float


def publish(folder: Path, store: str, job: str, dag_run_id: str, seconds: int) -> Published:
    """Let a process publish one run with one more file, dated `seconds`; return when its mark was written.

    Raises:
        CalledProcessError: it failed; its stderr says why.
    """
    command = [sys.executable, "-m", __name__, str(folder), store, job, dag_run_id, str(seconds)]
    said = subprocess.run(command, cwd=PROJECT, check=True, stdout=subprocess.PIPE, timeout=STUCK_S).stdout
    return Published(**json.loads(said.splitlines()[-1]))


def main(folder: str, store_uri: str, job: str, dag_run_id: str, seconds: str) -> None:
    """Make one run, as the task `work` of the DAG `shop` does."""
    store = open_store(store_uri)
    shop = Shop(Path(folder) / job, store)
    shop.put(f"{seconds}.txt", "a line", seconds=int(seconds))
    identity = RunIdentity(f"shop/{dag_run_id}/{job}", 1, "shop", job, dag_run_id=dag_run_id)
    run = ActiveRun.begin(store, job, identity, shop.environment)
    shop.copy(run)
    run.commit()
    number = store.head(job).published
    made = store.committed_run(job, number)
    if made is None or made.published_at is None:
        raise RuntimeError(f"the run of {job!r} is not published")
    print(json.dumps({"run_number": number, "at": datetime.fromisoformat(made.published_at).timestamp()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
