"""The domain model and its rules, pure: no I/O, no AWS, no Spark, no Airflow.

This level holds the shared model: job, run, head, plan, position, timeline, errors. Below it, `rules` decides,
`selection` says which files are read, `ledger` which were read, and `text` formats, escapes and redacts.
"""
