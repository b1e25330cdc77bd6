"""Clean the flights, with the option of the bookmark to be picked in Airflow's trigger form.

Scheduled runs take `enable`. A run that is triggered with `pause` or `disable` writes without moving the bookmark, and
the next one goes on from where it stood. Folders and connections are those of `flights_clean`; the result lies in
`clean/chosen`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from airflow.sdk import DAG

from airflow_bookmarks.operators.params import bookmark_arguments, bookmark_params
from airflow_bookmarks.operators.spark_submit import BookmarkSparkSubmitOperator

HERE = Path(__file__).resolve().parent
DATA = f"{{{{ var.value.get('flights_data', '{HERE / 'data'}') }}}}"

# [start choose_at_trigger]
with DAG(
    "choose_at_trigger",
    description="Clean the flights; enable, pause or disable the bookmark for one run in the trigger form",
    schedule="@daily",
    start_date=datetime(2013, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 2},
    params=bookmark_params(),
    tags=["bookmarks", "example"],
    doc_md=__doc__,
):
    BookmarkSparkSubmitOperator(
        task_id="clean",
        application=str(HERE / "jobs" / "clean_flights.py"),
        application_args=[f"{DATA}/raw/flights", f"{DATA}/clean/chosen"],
        **bookmark_arguments(),
    )
# [end choose_at_trigger]
