"""The consumers: as many deferred sensors as `FANOUT_CONSUMERS` says; and what runs on each publish."""

import os
from datetime import UTC, datetime

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Asset, AssetWatcher

from tests.chaos.fanout.timed import TimedSensor, TimedWatcher
from tests.chaos.fanout.waits import AFTER_EARLY, AFTER_UP, CONSUMERS, EARLY, UP, condition, task_id

COUNT = int(os.environ["FANOUT_CONSUMERS"])

with DAG(
    CONSUMERS, schedule="@once", start_date=datetime(2026, 1, 1, tzinfo=UTC), catchup=False, max_active_tasks=COUNT + 1
):
    for number in range(COUNT):
        TimedSensor(task_id=task_id(number), deferrable=True, timeout=7200, **condition(number))

for dag_id, job in ((AFTER_UP, UP), (AFTER_EARLY, EARLY)):
    watcher = AssetWatcher(name=job, trigger=TimedWatcher(job, os.environ["FANOUT_PLACES"]))
    published = Asset(f"{job}.published", watchers=[watcher])
    with DAG(dag_id, schedule=[published], start_date=datetime(2026, 1, 1, tzinfo=UTC)):
        EmptyOperator(task_id="run")
