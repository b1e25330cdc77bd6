"""The driver of a try that is to die: it runs a Spark script as it is, and kills itself at a point of the protocol.

spark-submit demo/driver.py POINT[@ATTEMPT] SCRIPT [ARGUMENT ...]

It imports only what the operator ships to a driver.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys

from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.environment import runs_in


def main(fault: str, script: str) -> None:
    """Run the script with the arguments that are left, as Spark does."""
    name, _, only = fault.partition("@")
    fatal = Failpoint(name)

    def die(point: Failpoint) -> None:
        if point is fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.argv = sys.argv[2:]
    with runs_in(lambda attempt: RunEnvironment(at=die) if only in ("", str(attempt)) else RunEnvironment()):
        runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main(*sys.argv[1:3])
