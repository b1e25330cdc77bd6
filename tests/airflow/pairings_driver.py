"""The driver process of the pairings: one attempt of a job of the shop, held where its order says.

Started by spark-submit, or by what stands in for it, which hands the Spark conf over in the environment (`SHOP_CONF`).
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import cast

from airflow_bookmarks.core.settings import Settings
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.lifecycle.run.replay import ReplayRun
from airflow_bookmarks.lifecycle.run.session import RunSession
from airflow_bookmarks.sources.upstream.rewind import OnRewind
from airflow_bookmarks.store.bookmark_store import open_store
from tests.aborting import aborted_on_error
from tests.chaos.real.driver import say_to_file
from tests.chaos.real.order import Order
from tests.lifecycle.shop import Shop

ORDER_VARIABLE = "PAIRINGS_ORDER"
ON_REWIND_VARIABLE = "PAIRINGS_ON_REWIND"


def drive(order: Order, settings: Settings) -> None:
    """Make one run without Spark, as a script with a `with` block does: an exception aborts it."""
    store = open_store(settings.store or "")
    shop = Shop(Path(order.root), store, replace(RunEnvironment(), at=order.pass_gate))
    job, identity = settings.job or "", settings.identity("none")
    run: RunSession
    if settings.replay is None:
        run = ActiveRun.begin(store, job, identity, shop.environment)
    else:
        run = ReplayRun.begin_replay(store, job, identity, shop.environment, int(settings.replay))
    upstream = next(iter(settings.upstreams()), None)
    on_rewind = cast(OnRewind, os.environ.get(ON_REWIND_VARIABLE, "fail"))
    with aborted_on_error(run):
        shop.copy(run, upstream=upstream, on_rewind=on_rewind)
        run.commit()


def drive_spark(order: Order) -> None:
    """Make one run with Spark, which is held when all is staged and the commit is next."""
    from pyspark.sql import SparkSession

    from airflow_bookmarks.spark import BookmarkedJob

    spark = SparkSession.builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    with BookmarkedJob(spark) as job:
        lines = job.read("raw").text(f"{order.root}/raw")
        job.write(lines, "out").text(f"{order.root}/{job.name}")
        order.pass_gate(Failpoint.BEFORE_COMMIT)


def main() -> None:
    """Make the run that the environment asks for."""
    order = Order.from_text(os.environ[ORDER_VARIABLE])
    say_to_file(order)
    os.setsid()  # on another machine, so to say: Airflow signals the whole process group of a task
    conf = os.environ.get("SHOP_CONF")
    if conf is None:
        drive_spark(order)
    else:
        drive(order, Settings.from_conf(json.loads(conf)))


if __name__ == "__main__":
    main()
