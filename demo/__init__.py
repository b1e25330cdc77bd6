"""The demonstration: the example DAGs on real data, with faults, and each row counted without Spark.

python -m demo         play seven steps and compare; state by STORE=dynamodb (a local moto server) or STORE=sqlite,
                       files by FILES=local or FILES=s3 (moto as well); the last step where PostgreSQL is installed
python -m demo up      the same DAGs in a running Airflow
python -m demo down    stop it
"""
