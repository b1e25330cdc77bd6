"""From begin to publish, and all that looks at it or changes it. No Spark, no Airflow.

`protocol` has the steps of the commit protocol, `run` the kinds of run, `state` what a run keeps; `history` says which
runs count, `inspect` looks and changes nothing, `changes` is what people do, `maintenance` keeps the store.
"""
