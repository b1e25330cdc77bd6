"""The demonstration: the example DAGs on real data, with faults, and each row counted without Spark.

python -m demo         play six steps and compare; STORE=dynamodb (a local moto server) or STORE=sqlite
python -m demo up      the same DAGs in a running Airflow
python -m demo down    stop it
"""
