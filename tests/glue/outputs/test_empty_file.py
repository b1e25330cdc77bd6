"""A direct write of a frame without rows leaves no file, and takes none of anybody else's away."""

from __future__ import annotations

import gzip
import logging
import os
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.glue.outputs.write import write_options
from tests.glue.outputs.conftest import Script

SPARKS_NAME = "part-00000-01234567-89ab-cdef-0123-456789abcdef-c000"


def write(script: Script, rows: list[Any], format: str, **options: Any) -> None:
    write_options(
        script.run,
        script.frame(rows, "id int, name string"),
        connection_type="s3",
        connection_options={"path": str(script.root / "out"), "compression": options.pop("compression", "none")},
        format=format,
        format_options=options,
    )


def contents(script: Script) -> dict[str, bytes]:
    files = [f for f in (script.root / "out").iterdir() if not f.name.startswith((".", "_"))]
    return {file.name: file.read_bytes() for file in files}


def put(script: Script, name: str, content: bytes) -> Path:
    file = script.root / "out" / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(content)
    return file


XML = pytest.param("xml", {"rowTag": "order"}, marks=pytest.mark.needs("xml"))


@pytest.mark.seldom
@pytest.mark.parametrize(
    ("format", "options"),
    [
        ("parquet", {}),
        ("orc", {}),
        ("json", {}),
        ("json", {"compression": "gzip"}),
        ("csv", {}),
        ("csv", {"separator": "|", "quoteChar": "'", "compression": "bzip2"}),
        ("csv", {"writeHeader": False, "compression": "gzip"}),
        XML,
    ],
)
def test_file_without_rows_goes(script: Script, format: str, options: dict[str, Any]) -> None:
    write(script, [(1, "a")], format, **options)
    before = contents(script)

    write(script, [], format, **options)

    assert contents(script) == before


@pytest.mark.parametrize("format", ["parquet", "csv", "json"])
def test_files_of_other_programs_stay(script: Script, format: str) -> None:
    for name in ("notes.txt", "_SUCCESS.csv", "flag", "part-00000.csv", "x.json", f"{SPARKS_NAME}.txt"):
        put(script, name, b"")
    for name in ("header.csv", "part-00000.json"):
        put(script, name, b"id,name\n")
    put(script, "other.parquet", b"PAR1")
    before = contents(script)

    write(script, [], format)

    assert contents(script) == before


@pytest.mark.seldom
def test_row_that_looks_like_a_header_stays(script: Script) -> None:
    write(script, [(1, "a")], "csv", writeHeader=False)
    put(script, f"{SPARKS_NAME}.csv", b"id,other\n")
    put(script, f"{SPARKS_NAME}.csv.gz", gzip.compress(b"\n"))
    before = contents(script)

    write(script, [], "csv")

    assert contents(script) == before


@pytest.mark.seldom
@pytest.mark.needs("xml")
def test_rows_under_another_tag_stay(script: Script) -> None:
    write(script, [(1, "a")], "xml", rowTag="order")
    before = contents(script)

    write(script, [], "xml", rowTag="customer")

    assert contents(script) == before


def test_old_file_stays(script: Script) -> None:
    os.utime(put(script, f"{SPARKS_NAME}.json", b""), (1, 1))

    write(script, [], "json")

    assert set(contents(script)) == {f"{SPARKS_NAME}.json"}


@pytest.mark.seldom
@pytest.mark.parametrize("ignores", ["true", "false"])
def test_damaged_file_stays_and_fails_no_write(script: Script, caplog: pytest.LogCaptureFixture, ignores: str) -> None:
    script.spark.conf.set("spark.sql.files.ignoreCorruptFiles", ignores)
    put(script, f"{SPARKS_NAME}.parquet", b"PAR1 torn")

    with caplog.at_level(logging.INFO, "airflow_bookmarks"):
        write(script, [], "parquet")

    assert f"{SPARKS_NAME}.parquet" in contents(script)
    assert "none is removed" in caplog.text


def test_at_most_one_file_goes(script: Script) -> None:
    os.utime(put(script, f"{SPARKS_NAME}.json", b""), ns=(0, os.stat(script.root).st_mtime_ns - 60_000_000_000))

    write(script, [], "json")

    assert set(contents(script)) == {f"{SPARKS_NAME}.json"}


@pytest.mark.seldom
def test_many_files_are_looked_at_by_one_job(script: Script) -> None:
    for number in range(40):
        name = SPARKS_NAME.replace("01234567", f"{number:08x}")
        put(script, f"{name}.csv", b"id,name\n1,a\n")
    context = script.spark.sparkContext

    context.setJobGroup("write", "the write of a frame without rows")
    write(script, [], "csv")

    assert len(contents(script)) == 40
    assert len(context.statusTracker().getJobIdsForGroup("write")) <= 4
    context.setJobGroup("", "")
