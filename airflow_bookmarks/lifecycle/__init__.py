"""Everything from the begin of a run to its publish, and what inspects or changes the result. No Spark, no Airflow.

`protocol` has the steps of the commit protocol, `run` the kinds of run, `state` what a run keeps, `history` which runs
count, `inspect` read-only views, `changes` what people do, `maintenance` the upkeep of the store.
"""
