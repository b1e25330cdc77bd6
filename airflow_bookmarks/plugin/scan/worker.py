"""The child process that reads files for the API server: one task, from its standard input to its output.

It limits itself before it imports anything that input could mislead: its processor time, its address space, and how
long it lives if its parent is gone. The state that it reads may be anything that a driver wrote.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def main() -> None:
    """Do the task under the limits of the command line: seconds of life, seconds of processor time, bytes."""
    life_s, processor_s, memory = map(int, sys.argv[1:])
    _limit(life_s, processor_s, memory)
    task = json.load(sys.stdin)
    out, sys.stdout = sys.stdout, sys.stderr  # what anything else prints is no answer
    _write(out, _answer(task))


def _limit(life_s: int, processor_s: int, memory: int) -> None:
    for what, most in ((resource.RLIMIT_CPU, processor_s), (resource.RLIMIT_AS, memory), (resource.RLIMIT_CORE, 0)):
        _, hard = resource.getrlimit(what)
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (least, least))
    signal.alarm(life_s)


def _answer(task: Mapping[str, Any]) -> dict[str, Any]:
    from airflow_bookmarks.core.errors import BookmarkError
    from airflow_bookmarks.files.permission import Prefix, looking_below
    from airflow_bookmarks.plugin.scan.task import TASKS
    from airflow_bookmarks.store.bookmark_store import open_store

    session = None
    if task["credentials"]:
        from boto3.session import Session

        session = Session(**task["credentials"])
    try:
        store = open_store(task["store"], session=session)
        with looking_below(*map(Prefix.of, task["prefixes"])):
            return {"answer": TASKS[task["what"]](store, task["job"], **task["arguments"])}
    except BookmarkError as error:
        return {"error": type(error).__name__, "message": str(error)}


def _write(out: IO[str], answer: Mapping[str, Any]) -> None:
    json.dump(answer, out)
    out.flush()


if __name__ == "__main__":
    main()
