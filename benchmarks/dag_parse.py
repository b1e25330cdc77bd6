"""A process that parses DAG files as Airflow does, and answers in one line of JSON how long that took.

    python -P benchmarks/dag_parse.py FIRST.py SECOND.py

It imports what a DAG processor has imported before it forks a parser, so that the first file pays for what DAG files
import, and the second only for its operators. Times are those of the processor: parsing waits for nothing, and by the
clock a shared machine adds what others do. Whoever turns to the network is refused and counted: by an audit hook, which
sees the calls of the interpreter itself, whoever makes them and by whatever name.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

# Not socket.bind: urllib3 binds a port of the loopback when it is imported, to see whether there is IPv6.
_NETWORK = ("socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo")
_NAMES = ("socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo")
_HEAVY = ("boto3", "botocore", "numpy", "pyspark")


class NetworkRefusedError(OSError):
    """Raised when the network is asked for while a DAG file is parsed."""


def main(files: list[str]) -> None:
    """Parse the files, one after the other."""
    from airflow.dag_processing.dagbag import DagBag
    from airflow.serialization.serialized_objects import DagSerialization

    touched: list[str] = []

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _NETWORK or event in _NAMES:
            touched.append(f"{event}{arguments}")
            raise NetworkRefusedError(touched[-1])

    sys.addaudithook(refuse)
    parsed = []
    for file in files:
        begun = time.process_time()
        bag = DagBag(dag_folder=file)
        bagged = time.process_time()
        for dag in bag.dags.values():
            DagSerialization.serialize_dag(dag)
        ended = time.process_time()
        parsed.append(
            {
                "operators": sum(len(dag.tasks) for dag in bag.dags.values()),
                "errors": dict(bag.import_errors),
                "parse_ms": (bagged - begun) * 1000,
                "serialise_ms": (ended - bagged) * 1000,
            }
        )
    heavy = [name for name in _HEAVY if name in sys.modules]
    print(json.dumps({"files": parsed, "network": touched, "heavy": heavy}))


if __name__ == "__main__":
    main(sys.argv[1:])
