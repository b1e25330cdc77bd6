"""The table of docs/getting-started/choosing_a_sink.md is what the sinks make of these files.

After a change, `python -m pytest tests/spark/test_choosing_a_sink.py` prints the table that the page has to have.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.spark import BookmarkedJob
from tests.spark.lake import Lake

PAGE = Path(__file__).parents[2] / "docs" / "getting-started" / "choosing_a_sink.md"
SCHEMA = "id INT, amount INT, month INT"

Step = tuple[str, Callable[[Lake], object]]


def correct(lake: Lake) -> None:
    lake.put("month=1/a.csv", "1,110", "2,80", folder="raw/orders")


def put(name: str, *lines: str) -> Callable[[Lake], object]:
    return lambda lake: lake.put(name, *lines, folder="raw/orders")


def at_first(lake: Lake) -> None:
    lake.put("month=1/a.csv", "1,100", "2,80", folder="raw/orders")
    lake.put("month=1/b.csv", "3,200", folder="raw/orders")


STEPS: list[Step] = [
    ("at first", at_first),
    ("new: `month=2/c.csv`, 50", put("month=2/c.csv", "4,50")),
    ("late: `month=1/late.csv`, 30", put("month=1/late.csv", "5,30")),
    ("corrected: `month=1/a.csv`, 110 instead of 100", correct),
    ("deleted: `month=1/b.csv`", lambda lake: (lake.root / "raw/orders/month=1/b.csv").unlink()),
    ("new: `month=1/d.csv`, 10", put("month=1/d.csv", "6,10")),
]
COLUMNS: list[dict[str, Any]] = [
    {"mode": "append"},
    {"mode": "overwrite"},
    {"mode": "overwrite", "dynamic": True},
]


def amount(lake: Lake, path: str) -> int:
    return int(lake.spark.read.parquet(lake.path(path)).selectExpr("sum(amount)").collect()[0][0])


def in_files(lake: Lake) -> int:
    paths = (lake.root / "raw/orders").rglob("*.csv")
    return sum(int(line.split(",")[1]) for path in paths for line in path.read_text().splitlines())


def run(lake: Lake, name: str, *, mode: str, dynamic: bool = False) -> None:
    with lake.job(name) as job:
        orders = job.read("orders").schema(SCHEMA).csv(lake.path("raw/orders"))
        out = job.write(orders, "orders").mode(mode)
        if dynamic:
            out = out.option("partitionOverwriteMode", "dynamic")
        out.partitionBy("month").parquet(lake.path(name))


def run_of_the_page(lake: Lake) -> None:
    """Run the code that the page shows, on the folders of a test."""
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)
    names = {"spark": lake.spark, "BookmarkedJob": partial(BookmarkedJob, name="reread", store=lake.store)}
    exec(code.replace("/lake/", f"{lake.root}/"), names)  # noqa: S102


@pytest.mark.seldom
def test_table_of_the_page_is_what_the_sinks_hold(lake: Lake) -> None:
    rows = []
    for step, arrive in STEPS:
        arrive(lake)
        for at, column in enumerate(COLUMNS):
            run(lake, f"sink{at}", **column)
        run_of_the_page(lake)
        held = [amount(lake, f"sink{at}") for at in range(len(COLUMNS))]
        rows.append(f"| {step} | {in_files(lake)} | {' | '.join(map(str, held))} | {amount(lake, 'orders')} |")
    begins = tuple(f"| {step} |" for step, _ in STEPS)
    shown = [line for line in PAGE.read_text().splitlines() if line.startswith(begins)]
    print("\n".join(rows))
    assert shown == rows
