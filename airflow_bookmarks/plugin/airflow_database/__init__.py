"""What the page keeps in Airflow's database, and knows from there.

audit      notes changes in Airflow's audit log
schedule   when the DAGs of jobs were due
"""
