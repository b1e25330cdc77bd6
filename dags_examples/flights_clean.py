"""Clean the flights that were delivered since the last run.

The folders lie below the Airflow Variable `flights_data` (default: `data` beside this file): one CSV file per day in
`raw/flights`, the result in `clean/flights`. Connections: `bookmarks_default`, `spark_default`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from airflow.sdk import DAG

from airflow_bookmarks.operators.spark_submit import BookmarkSparkSubmitOperator

HERE = Path(__file__).resolve().parent
DATA = f"{{{{ var.value.get('flights_data', '{HERE / 'data'}') }}}}"

# [start flights_clean]
with DAG(
    "flights_clean",
    description="Deliveries of flights, one CSV file per day, to clean Parquet: each file is read once",
    schedule="@daily",
    start_date=datetime(2013, 1, 1, tzinfo=UTC),
    catchup=False,  # a run reads all that is new, whenever it starts: there is nothing to catch up with
    max_active_runs=1,
    default_args={"retries": 2},
    tags=["bookmarks", "example"],
    doc_md=__doc__,
):
    BookmarkSparkSubmitOperator(
        task_id="clean",
        application=str(HERE / "jobs" / "clean_flights.py"),
        application_args=[f"{DATA}/raw/flights", f"{DATA}/clean/flights"],
        bookmark_option="enable",
    )
# [end flights_clean]
