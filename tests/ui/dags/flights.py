"""Three jobs in a row, and two that read from them; each task is named like its job in `tests.ui.world`."""

from datetime import UTC, datetime

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, chain

with DAG("flights", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)):
    chain(*(EmptyOperator(task_id=name) for name in ("raw", "clean", "report")))

with DAG("crew", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)):
    EmptyOperator(task_id="roster")
    EmptyOperator(task_id="delays")

with DAG("billing", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)):
    chain(*(EmptyOperator(task_id=name) for name in ("invoices", "ledger")))

with DAG("weather", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)):
    for name in ("observations", "alerts", "stations", "index", "tiles", "settle"):
        EmptyOperator(task_id=name)

with DAG("trials", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)):
    for name in (
        "reset",
        "rewind",
        "set",
        "clean",
        "undo",
        "guarded",
        "turned_down",
        "raced",
        "refused",
        "keys",
        "held",
        "gone",
    ):
        EmptyOperator(task_id=name)

with DAG("without_jobs", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)):
    EmptyOperator(task_id="nothing")
