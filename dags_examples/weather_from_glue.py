"""Run a script that was written for AWS Glue, unmodified, on plain Spark: `glue=True` brings what it imports.

The bookmark of the script is one of this package: its `transformation_ctx` reads what no earlier run has read, and what
it writes is visible once it has committed. In an hour without reports Spark is not started.

The folders lie below the Airflow Variable `flights_data` (default: `data` beside this file): CSV files in
`raw/weather`, the result in `weather_from_glue`. Connections: `bookmarks_default`, `spark_default`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from airflow.sdk import DAG

from airflow_bookmarks.operators.spark_submit import BookmarkSparkSubmitOperator

HERE = Path(__file__).resolve().parent
DATA = f"{{{{ var.value.get('flights_data', '{HERE / 'data'}') }}}}"

# [start weather_from_glue]
with DAG(
    "weather_from_glue",
    description="Weather reports to Parquet, by the script that did it in AWS Glue",
    schedule="@hourly",
    start_date=datetime(2013, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 2},
    tags=["bookmarks", "example", "glue"],
    doc_md=__doc__,
):
    BookmarkSparkSubmitOperator(
        task_id="weather",
        application=str(HERE / "jobs" / "glue_weather.py"),
        application_args=["--source", f"{DATA}/raw/weather", "--target", f"{DATA}/weather_from_glue"],
        glue=True,
        skip_when_empty=True,
    )
# [end weather_from_glue]
