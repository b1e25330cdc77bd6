"""The chain: three DAGs of a real Airflow, each of which reads what the one before has published, and much trouble.

stage     the three stages: their DAGs, jobs, folders
story     what lands in which round, and what goes wrong there: made from a seed, before anything runs
order     how a driver is told where to die, to fail or to wait, and the gate at which it waits
target    what a stage writes to, whatever its kind, and text files as such
tables    a Delta table, a table of PostgreSQL and an Iceberg table as such
lineup    which targets the stages have, and what runs beside Airflow for them
copy_job  the PySpark script that each stage submits
dags      the three DAGs; the later ones wait by a deferred sensor for what they have not consumed, or for the next run
api       a person at Airflow: triggers, clears, marks failed
lake      raw files, targets and bookmarks, and whether each row is there once
scene     the rounds, one after the other, and what came of them
"""
