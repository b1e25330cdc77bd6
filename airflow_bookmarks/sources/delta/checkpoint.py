"""Read a checkpoint of a Delta log: all that was still true at its version, as Parquet.

A checkpoint is one file, or several with a part each; or one with a unique name, Parquet or JSON, which may name more
files below `_sidecars`.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.sources.delta.commit import Action, actions_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from airflow_bookmarks.files.filesystem import FileSystem

# Reads the columns of a Parquet file that stand for actions, each row as one of them.
ReadParquet = Callable[["FileSystem", str], Iterator[Action]]

WANTED = ("add", "metaData", "protocol", "sidecar")
# What repeats `stats` and `partitionValues` of a file with types.
PARSED = ("stats_parsed", "partitionValues_parsed")
# pyarrow gives a map as a list of pairs; only later versions than drivers have can be asked for dicts.
_MAPS = ("partitionValues", "tags", "configuration", "options")


def by_arrow(files: FileSystem, path: str) -> Iterator[Action]:
    """Read a Parquet file by pyarrow, which has to be installed; see `ReadParquet`."""
    from pyarrow import parquet

    with files.open(path) as body:
        file = parquet.ParquetFile(io.BytesIO(body.read()))
    names = [name for name in WANTED if name in file.schema_arrow.names]
    for batch in file.iter_batches(columns=names):
        yield from plain_actions(map(_with_maps, batch.to_pylist()))


def arrow() -> ReadParquet | None:
    """Return what reads Parquet by pyarrow; None where that is not installed."""
    return None if find_spec("pyarrow") is None else by_arrow


def _with_maps(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row, or a struct in one, with its maps as dicts."""
    found: dict[str, Any] = {}
    for name, value in row.items():
        if name in _MAPS and isinstance(value, list):
            found[name] = dict(value)
        elif isinstance(value, dict) and name not in PARSED:  # columns may have any name
            found[name] = _with_maps(value)
        else:
            found[name] = value
    return found


def plain_actions(rows: Iterable[dict[str, Any]]) -> Iterator[Action]:
    """Return the actions in rows of a checkpoint as a commit has them: without what is NULL, or said twice."""
    for row in rows:
        for name, action in row.items():
            if action is not None:
                kept = {key: value for key, value in action.items() if value is not None and key not in PARSED}
                yield {name: kept}


def checkpoint_actions(files: FileSystem, paths: Sequence[str], read: ReadParquet) -> Iterator[Action]:
    """Return the actions of a checkpoint, with those of its sidecars.

    Args:
        paths: its files.
        read: reads Parquet.
    """
    for path in paths:
        for action in _actions(files, path, read):
            sidecar = action.get("sidecar")
            if sidecar is None:
                yield action
            else:
                folder = path.rpartition("/")[0]
                yield from read(files, f"{folder}/_sidecars/{sidecar['path']}")


def _actions(files: FileSystem, path: str, read: ReadParquet) -> Iterator[Action]:
    if not path.endswith(".json"):
        yield from read(files, path)
        return
    with files.open(path) as body:
        yield from actions_of(body.read())
