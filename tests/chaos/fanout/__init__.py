"""Fan-out: one upstream, many who wait for it in a real Airflow, and a triggerer that is killed while they wait.

counter  stands before DynamoDB Local and counts what reaches the table
airflow  API server, scheduler, DAG processor and triggerer, each a process of its own
dags     the consumers: deferred sensors of all kinds, and two DAGs that watchers start
shop     the upstreams, run by processes of their own
scene    what happens, in which order, and what came of it
"""
