"""Bring orders from a shop's database into a report in another one: new, changed and deleted ones.

`land` reads what was committed to `public.orders` since its last run, by `updated_at` and `id`, and appends it to
Parquet. The shop deletes an order by setting `is_deleted` and `updated_at`, and of such an order only its key goes on.
What a transaction has written that is still open after `settle_for` is the next run's.

`report` reads what `land` has published, and upserts it into `reporting.orders`, which has each order once. The report
itself is a view; `jobs/orders_by_day.sql` makes it and that table, once.

Connections: `shop`, `dw` (both PostgreSQL), `bookmarks_default`, `spark_default`. The Parquet lies in `orders` below
the Airflow Variable `shop_data` (default: `data` beside this file).
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from airflow.sdk import DAG, Param

from airflow_bookmarks.operators.spark_submit import BookmarkSparkSubmitOperator

HERE = Path(__file__).resolve().parent
DATA = f"{{{{ var.value.get('shop_data', '{HERE / 'data'}') }}}}"
DRIVER = "org.postgresql:postgresql:42.7.14"

# [start orders_report]
with DAG(
    "orders_report",
    description="Orders of a shop, new, changed and deleted ones, through Parquet to a table for reports",
    schedule="@hourly",
    start_date=datetime(2013, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=True,  # until its databases are there
    default_args={"retries": 2},
    params={"settle_for": Param(60, type="integer", minimum=0)},  # seconds
    tags=["bookmarks", "example"],
    doc_md=__doc__,
):
    land = BookmarkSparkSubmitOperator(
        task_id="land",
        application=str(HERE / "jobs" / "land_orders.py"),
        application_args=[f"{DATA}/orders", "--settle-for", "{{ params.settle_for }}"],
        bookmark_databases=["shop"],
        packages=DRIVER,
    )
    report = BookmarkSparkSubmitOperator(
        task_id="report",
        application=str(HERE / "jobs" / "report_orders.py"),
        application_args=["--upstream", "orders_report.land"],
        bookmark_upstream=["orders_report.land"],
        bookmark_databases=["dw"],
        packages=DRIVER,
    )
    land >> report
# [end orders_report]
