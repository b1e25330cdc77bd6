"""A log of our own over some files of a table: where it says that they lie."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_bookmarks.sources.delta.excerpt import excerpt_of, path_of
from airflow_bookmarks.sources.delta.snapshot import TableState

STATE = TableState({"id": "t1", "partitionColumns": []}, {"minReaderVersion": 3})


def adds(table: str, *files: dict[str, Any]) -> list[dict[str, Any]]:
    info, first, second, *rest = map(json.loads, excerpt_of(STATE, files, table).splitlines())
    assert info["commitInfo"]["inCommitTimestamp"] == 0
    assert (first, second) == ({"protocol": dict(STATE.protocol)}, {"metaData": dict(STATE.metadata)})
    return [action["add"] for action in rest]


@pytest.mark.parametrize(
    ("table", "path", "uri", "place"),
    [
        ("/lake/a b", "p=x%2520y/f.parquet", "file:///lake/a%20b/p=x%2520y/f.parquet", "/lake/a b/p=x%20y/f.parquet"),
        ("file:///lake/100%", "f.parquet", "file:///lake/100%25/f.parquet", "file:///lake/100%/f.parquet"),
        ("s3a://lake/t", "f.parquet", "s3a://lake/t/f.parquet", "s3a://lake/t/f.parquet"),
        ("s3a://lake/t", "s3a://other/a%20b/f.parquet", "s3a://other/a%20b/f.parquet", "s3a://other/a b/f.parquet"),
        ("/lake/t", "/other/f.parquet", "/other/f.parquet", "/other/f.parquet"),
        ("/lake/t", "a:b/f.parquet", "file:///lake/t/a:b/f.parquet", "/lake/t/a:b/f.parquet"),
    ],
)
def test_files_are_named_by_absolute_uris(table: str, path: str, uri: str, place: str) -> None:
    (add,) = adds(table, {"path": path, "size": 1, "dataChange": True})
    assert add == {"path": uri, "size": 1, "dataChange": True}
    assert path_of({"path": path}, table)[0] == place


def test_deletion_vector_of_a_file_is_named_by_its_uri() -> None:
    """The relative one is the example in the protocol of Delta."""
    relative = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4, "cardinality": 6}
    inline = {"storageType": "i", "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"}
    files = [{"path": "a", "deletionVector": relative}, {"path": "b", "deletionVector": inline}]

    first, second = adds("s3a://mytable", *files)

    where = "s3a://mytable/ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    assert first["deletionVector"] == {**relative, "storageType": "p", "pathOrInlineDv": where}
    assert second["deletionVector"] == inline
