"""The model and the rules, pure: no I/O, no AWS, no Spark, no Airflow.

Here lies what everybody knows: job, run, head, plan, position, timeline, errors. Below it, `rules` decides, `selection`
says which files are read, `ledger` which were read, `text` writes, escapes and hides.
"""
