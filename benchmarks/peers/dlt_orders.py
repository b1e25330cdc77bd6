"""Read what is new in a table by dlt's `sql_table`, once for each line that comes in: run by `environment.Peer`.

    $ python dlt_orders.py <URL of SQLAlchemy> <the last id that counts as read> <folder for its state>

Each answer is one line: the seconds of one `pipeline.run`, and how many packages it loaded.
"""

from __future__ import annotations

import sys
import time

import dlt
from dlt.sources.sql_database import sql_table


def main(url: str, last: str, folder: str) -> None:
    """Answer until the input ends."""
    destination = dlt.destinations.duckdb(f"{folder}/loaded.duckdb")
    for _ in sys.stdin:
        begun = time.perf_counter()
        orders = sql_table(url, table="orders", incremental=dlt.sources.incremental("id", initial_value=int(last)))
        pipeline = dlt.pipeline("orders", destination=destination, dataset_name="orders", pipelines_dir=folder)
        done = pipeline.run(orders)
        print(time.perf_counter() - begun, len(done.loads_ids), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
