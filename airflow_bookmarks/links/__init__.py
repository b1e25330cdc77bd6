"""Links from Airflow's tasks."""
