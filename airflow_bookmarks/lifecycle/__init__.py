"""From begin to publish: recover, plan, commit, replay, clean. No Spark, no Airflow."""
