"""What Delta and Iceberg have in common for a Spark session: how tables are described, and MERGE."""
