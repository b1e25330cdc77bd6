"""The check that Spark is a classic one: frames that hold records of any shape need RDDs, which Spark Connect lacks."""

from __future__ import annotations

import os
from importlib.util import find_spec

_WHY = (
    "scripts written for AWS Glue need a classic Spark session, and this one is a client of Spark Connect, which has "
    "no RDDs. Nothing was read or changed. Start it by spark-submit with a master that is no sc:// address; or "
    "write it with BookmarkedJob, which works on Spark Connect."
)


def check_classic(session: object | None = None) -> None:
    """Make sure that Spark is not a client of Spark Connect.

    Args:
        session: the session to look at; None: what this process would open.

    Raises:
        ImportError: it is one.
    """
    if session is None:
        is_client = find_spec("py4j") is None or any(
            map(os.environ.get, ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"))
        )
    else:
        is_client = type(session).__module__.startswith("pyspark.sql.connect")
    if is_client:
        raise ImportError(_WHY)
