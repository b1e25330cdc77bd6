"""Make the DAGs of the folder known to the Airflow of this environment: `python -m tests.ui.flows`."""

from __future__ import annotations

import os

from airflow.dag_processing.bundles.manager import DagBundlesManager

from tests.airflow.compat import DagBag, sync_bag_to_db


def main() -> None:
    """Read the folder, and serialise what is in it, as the DAG processor does."""
    DagBundlesManager().sync_bundles_to_db()  # type: ignore[no-untyped-call]
    bag = DagBag(dag_folder=os.environ["AIRFLOW__CORE__DAGS_FOLDER"])
    if bag.import_errors:
        raise RuntimeError(f"DAGs can't be read: {bag.import_errors}")
    sync_bag_to_db(bag, "dags-folder", None)


if __name__ == "__main__":
    main()
