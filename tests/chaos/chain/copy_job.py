"""The script that each stage submits: it copies the lines that are new to it.

Its arguments: the folder of the chain, the stage, the DAG run, the try, and what to do where its upstream went back.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import cast

from pyspark.sql import DataFrame, SparkSession

from airflow_bookmarks.lifecycle.protocol.failpoint import FAULT_VARIABLE
from airflow_bookmarks.sources.upstream import OnRewind
from airflow_bookmarks.spark import BookmarkedJob
from tests.chaos.chain.order import Deed, Order
from tests.chaos.chain.stage import RAW, job, upstream


def main(root: Path, stage: str, dag_run: str, attempt: int, on_upstream_rewind: OnRewind) -> None:
    """Make the run as the script of a user does, and do what this try was told."""
    order = Order.given(root, stage, dag_run, attempt)
    if order is not None:
        prepare(order)
    spark = SparkSession.builder.getOrCreate()
    with BookmarkedJob(spark) as bookmarked:
        lines = read(bookmarked, root, stage, on_upstream_rewind)
        bookmarked.write(lines, "lines").text(f"{root}/{stage}")
        if order is not None and order.deed is Deed.FAIL:
            raise ValueError("the last line of the block fails")


def read(bookmarked: BookmarkedJob, root: Path, stage: str, on_upstream_rewind: OnRewind) -> DataFrame:
    """Return the lines that are new to a stage."""
    before = upstream(stage)
    if before is None:
        return bookmarked.read("new").text(f"{root}/{RAW}")
    return bookmarked.read("new", on_upstream_rewind=on_upstream_rewind).upstream(job(before))


def prepare(order: Order) -> None:
    """Have the fault of the package done at the point, or the wait instead of it."""
    if order.deed is Deed.FAIL:
        return
    os.environ[FAULT_VARIABLE] = order.point
    if order.deed is Deed.WAIT:
        kill = os.kill

        def wait_instead(pid: int, number: signal.Signals) -> None:
            os.kill = kill
            os.environ.pop(FAULT_VARIABLE)
            order.wait()

        os.kill = wait_instead  # type: ignore[assignment]


if __name__ == "__main__":
    _, chain, of_stage, of_dag_run, of_try, on_rewind = sys.argv
    main(Path(chain), of_stage, of_dag_run, int(of_try), cast("OnRewind", on_rewind))
