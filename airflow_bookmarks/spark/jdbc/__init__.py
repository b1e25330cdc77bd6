"""Tables and queries of a database as a source of Spark.

context      plan and read what is new in a table by key: `job.read(ctx).jdbc(...)`
reader       the frames of a plan, by Spark's own JDBC source
snapshot     compare a whole table with what it was: `compare="snapshot"`
comparison   take snapshots of a table, and compare two of them
numbers      which column of a table has a number that Spark's type does not hold
queries      ask a database by Spark, where this Python has no client for it
"""
