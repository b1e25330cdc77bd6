"""The guide to leaving AWS Glue: its commands run here, and print what the page says. After a change of the output:

$ python -m tests.glue.test_guide      # writes the blocks anew
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from airflow_bookmarks.glue.__main__ import PROGRAM, main
from airflow_bookmarks.glue.bookmarks.requests import STORE_VARIABLE
from airflow_bookmarks.glue.settings import GLUE_PREFIX, GlueSettings
from airflow_bookmarks.store.bookmark_store import open_store

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "leave-glue.md"
SHOWN_ROOT = "/srv/glue/etl"  # as long as a folder of `write_anew`, so that columns keep their width
STARTED = datetime(2026, 11, 2, 1, tzinfo=UTC)

ORDERS = """
import sys
from awsglue.context import GlueContext
from awsglue.job import Job
from awsglue.utils import getResolvedOptions
from pyspark.context import SparkContext

args = getResolvedOptions(sys.argv, ["JOB_NAME", "target"])
glueContext = GlueContext(SparkContext.getOrCreate())
job = Job(glueContext)
job.init(args["JOB_NAME"], args)
orders = glueContext.create_dynamic_frame.from_catalog("shop", "orders", transformation_ctx="orders")
glueContext.write_dynamic_frame.from_options(orders, "s3", {"path": args["target"]}, "glueparquet")
job.commit()
"""
SCRIPTS = {
    "orders.py": ORDERS,
    "people.py": ORDERS.replace(', transformation_ctx="orders"', "")
    .replace('args["JOB_NAME"], args', '"people", args')
    .replace('args["target"]', '"s3://lake/people"')
    .replace('"JOB_NAME", "target"', '"JOB_NAME"'),
    "clicks.py": ORDERS.replace("orders = glueContext.create_dynamic_frame.from_catalog(", "glueContext.forEachBatch("),
}


def build(root: Path) -> None:
    """Make three scripts, a folder of orders, and what Glue says of the bookmark of the first."""
    (root / "scripts").mkdir(parents=True)
    for name, text in SCRIPTS.items():
        (root / "scripts" / name).write_text(text.lstrip(), encoding="utf-8")
    (root / "orders").mkdir()
    for hours in (-2, 24, 48):
        time = STARTED - timedelta(hours=hours)
        path = root / "orders" / f"{time:%d}.csv"
        path.touch()
        os.utime(path, (time.timestamp(), time.timestamp()))
    timestamps = {"RUN": "2", "HIGH_BAND": "900000", "CURR_RUN_START_TIME": STARTED.isoformat(), "INCLUDE_LIST": ""}
    state = {"orders": {"jsonClass": "HadoopDataSourceJobBookmarkState", "timestamps": timestamps}}
    entry = {"JobName": "orders", "Version": 4, "Run": 3, "Attempt": 0, "RunId": "jr_0a02"}
    document = {"JobBookmarkEntry": {**entry, "JobBookmark": json.dumps(state)}}
    (root / "orders.json").write_text(json.dumps(document), encoding="utf-8")
    open_store(f"sqlite:///{root}/bookmarks.db").init()


def consoles() -> list[tuple[int, list[str]]]:
    """Return the console blocks of the page: the number of the first line of each from 0, and its lines."""
    found: list[tuple[int, list[str]]] = []
    lines = PAGE.read_text(encoding="utf-8").split("\n")
    for at, line in enumerate(lines):
        if line == "```console":
            end = lines.index("```", at)
            found.append((at + 1, lines[at + 1 : end]))
    return found


def transcript(lines: list[str], root: Path) -> list[str]:
    """Run the commands of a block; return them with what each prints."""
    printed: list[str] = []
    for line in lines:
        if not line.startswith(f"$ {PROGRAM} "):
            continue
        words = shlex.split(line.removeprefix(f"$ {PROGRAM} ").replace(SHOWN_ROOT, str(root)))
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), contextlib.chdir(root):
            main(words)
        printed += [line, *out.getvalue().replace(str(root), SHOWN_ROOT).rstrip("\n").split("\n")]
    return printed


def play(set_variable: Callable[[str, str], None], root: Path) -> Iterator[tuple[int, list[str], list[str]]]:
    """Run all blocks in one world, in the order of the page."""
    build(root)
    set_variable(STORE_VARIABLE, f"sqlite:///{root}/bookmarks.db")
    for at, lines in consoles():
        yield at, lines, transcript(lines, root)


def without_chance(lines: list[str]) -> list[str]:
    """Return lines without what the length of a path and the clock decide."""
    text = re.sub(r'(RUN_START_TIME\\": \\")[^\\]+', r"\1<time>", "\n".join(lines))
    return [re.sub(r"  +", "  ", line) for line in text.split("\n")]


def test_commands_of_the_page_print_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = list(play(monkeypatch.setenv, tmp_path))
    assert len(blocks) == 2
    for _, shown, printed in blocks:
        assert without_chance(printed) == without_chance(shown)


def test_table_of_settings_has_each_of_them_and_no_other() -> None:
    rows = re.findall(rf"^\| `{re.escape(GLUE_PREFIX)}(\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(rows) == sorted(field.name for field in fields(GlueSettings))


def write_anew() -> None:
    """Write what the commands print into the page."""
    with tempfile.TemporaryDirectory(prefix="", dir="/tmp") as folder:
        blocks = list(play(os.environ.__setitem__, Path(folder)))
    lines = PAGE.read_text(encoding="utf-8").split("\n")
    for at, shown, printed in reversed(blocks):
        lines[at : at + len(shown)] = printed
    PAGE.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    write_anew()
