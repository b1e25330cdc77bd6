"""Bring the delays per carrier and day up to the flights that `flights_clean` has published.

`wait` is released by the run of `flights_clean` that has the same DAG run id, whether or not it found anything new. The
result lies in `delays` below the Airflow Variable `flights_data` (default: `data` beside this file), where each day is
replaced when it is read again, and in `journal`, to which each run appends the days that it has read.

When `flights_clean` was reset or rewound below what this DAG has read, `delays` fails and says so. Trigger the DAG with
`on_rewind` set to `rewind` to go back along with it (`rewind_keep`: without removing what the undone runs
wrote, so the journal has their rows twice), or to `ignore` to keep what was read.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from airflow.sdk import DAG, Param

from airflow_bookmarks.operators.spark_submit import BookmarkSparkSubmitOperator
from airflow_bookmarks.sensors.bookmark import BookmarkSensor

HERE = Path(__file__).resolve().parent
DATA = f"{{{{ var.value.get('flights_data', '{HERE / 'data'}') }}}}"
UPSTREAM = "flights_clean.clean"

# [start flights_delays]
with DAG(
    "flights_delays",
    description="Delays per carrier and day, from what flights_clean has published and this DAG has not read",
    schedule="@daily",
    start_date=datetime(2013, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 2},
    params={"on_rewind": Param("fail", enum=["fail", "rewind", "rewind_keep", "ignore"])},
    tags=["bookmarks", "example"],
    doc_md=__doc__,
):
    wait = BookmarkSensor(task_id="wait", job=UPSTREAM, mode="reschedule", poke_interval=15)
    delays = BookmarkSparkSubmitOperator(
        task_id="delays",
        application=str(HERE / "jobs" / "flight_delays.py"),
        application_args=[
            f"{DATA}/delays",
            f"{DATA}/journal",
            "--upstream",
            UPSTREAM,
            "--on-rewind",
            "{{ params.on_rewind }}",
        ],
        bookmark_upstream=[UPSTREAM],
    )
    wait >> delays
# [end flights_delays]
