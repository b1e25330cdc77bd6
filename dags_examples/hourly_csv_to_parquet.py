"""Turn the weather reports of each hour, CSV files from the airports, into Parquet, a partition per day.

Files come late, come twice, come while the DAG runs: what a run reads is what no earlier run has read, and not "the
hour before". A report that is younger than five minutes may still be written, and is left to the next run. In an hour
without reports Spark is not started.

The folders lie below the Airflow Variable `flights_data` (default: `data` beside this file): CSV files in
`raw/weather`, the result in `weather`. Connections: `bookmarks_default`, `spark_default`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from airflow.sdk import DAG

from airflow_bookmarks.operators.spark_submit import BookmarkSparkSubmitOperator

HERE = Path(__file__).resolve().parent
DATA = f"{{{{ var.value.get('flights_data', '{HERE / 'data'}') }}}}"

# [start hourly_csv_to_parquet]
with DAG(
    "hourly_csv_to_parquet",
    description="Weather reports, CSV files of each hour, to Parquet by day; no Spark in an hour without any",
    schedule="@hourly",
    start_date=datetime(2013, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 2},
    tags=["bookmarks", "example"],
    doc_md=__doc__,
):
    BookmarkSparkSubmitOperator(
        task_id="convert",
        application=str(HERE / "jobs" / "convert_weather.py"),
        application_args=[f"{DATA}/raw/weather", f"{DATA}/weather"],
        skip_when_empty=True,
    )
# [end hourly_csv_to_parquet]
