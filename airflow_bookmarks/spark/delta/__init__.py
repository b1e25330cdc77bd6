"""Delta tables as a source of Spark.

context    plan and read a table: `job.read(ctx).delta(...)`
reader     the frames of a plan, by Delta's own reader
"""
