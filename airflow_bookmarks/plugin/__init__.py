"""The page of bookmarks in Airflow: what the API server serves."""
