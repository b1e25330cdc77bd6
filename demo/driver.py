"""The driver of a try that is to die: it runs a Spark script as it is, and kills itself at a point of the protocol.

spark-submit demo/driver.py POINT[@ATTEMPT] SCRIPT [ARGUMENT ...]
"""

from __future__ import annotations

import runpy
import sys

from airflow_bookmarks.testing.kill import killed_at


def main(fault: str, script: str) -> None:
    """Run the script with the arguments that are left, as Spark does."""
    sys.argv = sys.argv[2:]
    with killed_at(fault):
        runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main(*sys.argv[1:3])
