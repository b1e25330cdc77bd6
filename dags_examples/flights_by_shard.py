"""Find the late flights in new deliveries, four tasks at a time, each with a share of the files.

The files are in 64 virtual shards, and each of these is a job with a bookmark of its own (`flights_by_shard.late~00` to
`~63`). So `TASKS` can be changed at any time, up to 64: nothing is read twice, nothing is left out.

The folders lie below the Airflow Variable `flights_data` (default: `data` beside this file): one CSV file per day in
`raw/flights`, the result in `late/flights`. Connections: `bookmarks_default`, `spark_default`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from airflow.sdk import DAG

from airflow_bookmarks.core.rules.shard import shards
from airflow_bookmarks.operators.spark_submit import BookmarkSparkSubmitOperator

HERE = Path(__file__).resolve().parent
DATA = f"{{{{ var.value.get('flights_data', '{HERE / 'data'}') }}}}"
TASKS = 4

with DAG(
    "flights_by_shard",
    description="New deliveries of flights shared out among mapped tasks: each file is read once, by one of them",
    schedule="@daily",
    start_date=datetime(2013, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 2},
    tags=["bookmarks", "example"],
    doc_md=__doc__,
):
    # [start flights_by_shard]
    BookmarkSparkSubmitOperator.partial(
        task_id="late",
        application=str(HERE / "jobs" / "late_flights.py"),
        application_args=[f"{DATA}/raw/flights", f"{DATA}/late/flights"],
    ).expand(bookmark_shard=shards(TASKS))
    # [end flights_by_shard]
