"""Keep a Delta table of people up to deliveries, and an Iceberg table up to that one: new, changed and deleted people.

`land` reads the JSON files that no earlier run has read, one line for each version of a person, and merges them into
the Delta table `people`: the newest version of each stays, and a person whose line says `gone` goes.

`share` reads what has changed in that table since its last run, and merges it into the Iceberg table
`lake.shop.people`, which others read. Whatever is killed on the way, each person is there once, and nobody sees half of
a run.

Connections: `bookmarks_default`, `spark_default`. Files and tables lie below the Airflow Variable `people_data`
(default: `data` beside this file): `raw/people`, `delta/people`, and `iceberg`, the warehouse of the catalog `lake`.
The packages are those of Spark 4.1; for another Spark see the guides.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from airflow.sdk import DAG

from airflow_bookmarks.operators.spark_submit import BookmarkSparkSubmitOperator

HERE = Path(__file__).resolve().parent
DATA = f"{{{{ var.value.get('people_data', '{HERE / 'data'}') }}}}"
DELTA = "io.delta:delta-spark_4.1_2.13:4.4.0"
ICEBERG = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"

# [start people_tables]
OF_DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
OF_BOTH = {
    **OF_DELTA,
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.lake.type": "hadoop",
    "spark.sql.catalog.lake.warehouse": f"{DATA}/iceberg",
}

with DAG(
    "people_tables",
    description="People, new, changed and deleted ones, to a Delta table and from there to an Iceberg table",
    schedule="@hourly",
    start_date=datetime(2013, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    is_paused_upon_creation=True,  # until its files are there
    default_args={"retries": 2},
    tags=["bookmarks", "example"],
    doc_md=__doc__,
):
    land = BookmarkSparkSubmitOperator(
        task_id="land",
        application=str(HERE / "jobs" / "land_people.py"),
        application_args=[f"{DATA}/raw/people", f"{DATA}/delta/people"],
        packages=DELTA,
        conf=OF_DELTA,
    )
    share = BookmarkSparkSubmitOperator(
        task_id="share",
        application=str(HERE / "jobs" / "share_people.py"),
        application_args=[f"{DATA}/delta/people", "lake.shop.people"],
        packages=f"{DELTA},{ICEBERG}",
        conf=OF_BOTH,
    )
    land >> share
# [end people_tables]
