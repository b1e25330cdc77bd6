"""Where a benchmark keeps bookmarks: an SQLite file or DynamoDB Local, with the Airflow connection that leads there."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from airflow_bookmarks.store.bookmark_store import open_store
from benchmarks.wire import Wire, wire
from tools.servers import dynamodb_local

SQLITE, DYNAMODB, DYNAMODB_BY_AWS = "sqlite", "dynamodb-local", "dynamodb-local+aws_conn_id"
BACKENDS = (SQLITE, DYNAMODB, DYNAMODB_BY_AWS)
_KEY = "local"  # the local server takes any, and none is an error


@dataclass(frozen=True, slots=True)
class StatePlace:
    """A new, empty store. `wire` counts who comes through `counted`, and is None where there are no requests."""

    backend: str
    uri: str
    connections: dict[str, str]
    counted: dict[str, str]
    wire: Wire | None


@contextmanager
def state_place(backend: str) -> Iterator[StatePlace]:
    """Make a store of one of `BACKENDS`; `connections` are the environment variables of Airflow's connections to it."""
    with TemporaryDirectory(prefix="bench-state-") as folder:
        if backend == SQLITE:
            uri = f"sqlite:///{Path(folder) / 'bookmarks.db'}?namespace=bench"
            _create(uri)
            connections = _connections(uri)
            yield StatePlace(backend, uri, connections, connections, None)
            return
        os.environ.setdefault("AWS_ACCESS_KEY_ID", _KEY)
        os.environ.setdefault("AWS_SECRET_ACCESS_KEY", _KEY)
        extra = {"aws_conn_id": "aws_bench"} if backend == DYNAMODB_BY_AWS else {}
        with dynamodb_local() as endpoint, wire(endpoint) as counting:
            direct, through = _uri(endpoint), _uri(counting.url)
            _create(direct)
            yield StatePlace(backend, direct, _connections(direct, **extra), _connections(through, **extra), counting)


def _create(uri: str) -> None:
    store = open_store(f"{uri}&create=true" if uri.startswith("sqlite") else uri)
    store.init()
    store.table.close()


def _uri(endpoint: str) -> str:
    return f"dynamodb://bench?region=eu-west-1&namespace=bench&endpoint={endpoint}"


def _connections(uri: str, **extra: str) -> dict[str, str]:
    return {
        "AIRFLOW_CONN_BOOKMARKS_DEFAULT": json.dumps({"conn_type": "bookmarks", "extra": {"store": uri, **extra}}),
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[1]"}),
        "AIRFLOW_CONN_AWS_BENCH": json.dumps({"conn_type": "aws", "login": _KEY, "password": _KEY}),
        "AWS_ACCESS_KEY_ID": _KEY,
        "AWS_SECRET_ACCESS_KEY": _KEY,
    }
