"""Clean flights as soon as a delivery says that it is complete, by a file named `READY`.

The file only wakes the DAG. What is read is decided by the bookmark: two deliveries that wake it once, one that wakes
it twice, or a run that fails and is tried again, and each file is read once all the same. For S3, put a queue of its
event notifications in the place of the file (`MessageQueueTrigger` of the provider common.messaging).

The folders lie below `flights_data`, here from the environment (`AIRFLOW_VAR_FLIGHTS_DATA`), since triggers take no
templates; default: `data` beside this file. Files in `raw/flights`, the result in `clean/arrived`.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from airflow.providers.standard.triggers.file import FileDeleteTrigger
from airflow.sdk import DAG, Asset, AssetWatcher

from airflow_bookmarks.operators.spark_submit import BookmarkSparkSubmitOperator

HERE = Path(__file__).resolve().parent
DATA = os.environ.get("AIRFLOW_VAR_FLIGHTS_DATA", f"{HERE / 'data'}")

# [start flights_on_arrival]
arrived = Asset(
    "flights_arrived",
    watchers=[AssetWatcher(name="ready", trigger=FileDeleteTrigger(filepath=f"{DATA}/raw/READY"))],
)

with DAG(
    "flights_on_arrival",
    description="Clean the flights when a delivery is complete; the event wakes, the bookmark decides what is read",
    schedule=[arrived],
    start_date=datetime(2013, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 2},
    tags=["bookmarks", "example"],
    doc_md=__doc__,
):
    BookmarkSparkSubmitOperator(
        task_id="clean",
        application=str(HERE / "jobs" / "clean_flights.py"),
        application_args=[f"{DATA}/raw/flights", f"{DATA}/clean/arrived"],
        skip_when_empty=True,
    )
# [end flights_on_arrival]
