"""Iceberg tables in Spark.

session    the tables that a session reaches, by SQL: also for `spark.sinks.iceberg`
context    plan and read a table: `job.read(ctx).iceberg(...)`
reader     the frames of a plan, by Iceberg's own reader
"""
