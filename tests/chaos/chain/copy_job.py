"""The script that each stage submits: it copies the lines that are new to it.

Its arguments: the folder of the chain, its line-up, the stage, the DAG run, the try, and what to do where its upstream
went back.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import cast

from pyspark.sql import DataFrame, SparkSession

from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.environment import runs_in
from airflow_bookmarks.sources.upstream.rewind import OnRewind
from airflow_bookmarks.spark import BookmarkedJob
from tests.chaos.chain.lineup import Lineup, LineupName, lineup_below
from tests.chaos.chain.order import Deed, Order
from tests.chaos.chain.stage import RAW, job, upstream
from tests.chaos.chain.target import CONTEXT
from tests.chaos.kill import killed_at


def main(root: Path, lineup: Lineup, stage: str, dag_run: str, attempt: int, on_rewind: OnRewind) -> None:
    """Make the run as the script of a user does, and do what this try was told."""
    order = Order.given(root, stage, dag_run, attempt)
    spark = SparkSession.builder.getOrCreate()
    with disturbed(order), BookmarkedJob(spark) as bookmarked:
        lines = read(bookmarked, root, lineup, stage, on_rewind)
        lineup.targets[stage].write(bookmarked, lines)
        if order is not None and order.deed is Deed.FAIL:
            raise ValueError("the last line of the block fails")


def read(bookmarked: BookmarkedJob, root: Path, lineup: Lineup, stage: str, on_rewind: OnRewind) -> DataFrame:
    """Return the lines that are new to a stage."""
    before = upstream(stage)
    if before is None:
        return bookmarked.read(CONTEXT).text(f"{root}/{RAW}")
    return lineup.targets[before].read(bookmarked, job(before), on_rewind)


def disturbed(order: Order | None) -> AbstractContextManager[None]:
    """Have the job of the block die at the point of the order, or wait there."""
    if order is None or order.deed is Deed.FAIL:
        return nullcontext()
    return killed_at(order.point) if order.deed is Deed.DIE else runs_in(lambda _: waiting_once(order))


def waiting_once(order: Order) -> RunEnvironment:
    """Return an environment that waits where a run first comes to the point."""
    waited: list[Failpoint] = []

    def at(point: Failpoint) -> None:
        if point == order.point and not waited:
            waited.append(point)
            order.wait()

    return RunEnvironment(at=at)


if __name__ == "__main__":
    _, chain, lined_up, of_stage, of_dag_run, of_try, on_rewind = sys.argv
    folder = Path(chain)
    main(
        folder,
        lineup_below(folder, LineupName(lined_up)),
        of_stage,
        of_dag_run,
        int(of_try),
        cast("OnRewind", on_rewind),
    )
