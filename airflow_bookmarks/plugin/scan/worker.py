"""The child process that reads files for the API server: one errand, from its standard input to its output.

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
    """Do the errand under the limits of the command line: seconds of life, seconds of processor time, bytes."""
    life_s, processor_s, memory = map(int, sys.argv[1:])
    _limit(life_s, processor_s, memory)
    errand = json.load(sys.stdin)
    out, sys.stdout = sys.stdout, sys.stderr  # what anything else prints is no answer
    _tell(out, _answer(errand))


def _limit(life_s: int, processor_s: int, memory: int) -> None:
    for what, most in ((resource.RLIMIT_CPU, processor_s), (resource.RLIMIT_AS, memory), (resource.RLIMIT_CORE, 0)):
        _, hard = resource.getrlimit(what)
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (least, least))
    signal.alarm(life_s)


def _answer(errand: Mapping[str, Any]) -> dict[str, Any]:
    from airflow_bookmarks.core.errors import BookmarkError
    from airflow_bookmarks.files.permission import Prefix, looking_below
    from airflow_bookmarks.plugin.scan.errand import ERRANDS
    from airflow_bookmarks.store.bookmark_store import open_store

    session = None
    if errand["credentials"]:
        from boto3.session import Session

        session = Session(**errand["credentials"])
    try:
        store = open_store(errand["store"], session=session)
        with looking_below(*map(Prefix.of, errand["prefixes"])):
            return {"answer": ERRANDS[errand["what"]](store, errand["job"], **errand["arguments"])}
    except BookmarkError as error:
        return {"error": type(error).__name__, "message": str(error)}


def _tell(out: IO[str], answer: Mapping[str, Any]) -> None:
    json.dump(answer, out)
    out.flush()


if __name__ == "__main__":
    main()
