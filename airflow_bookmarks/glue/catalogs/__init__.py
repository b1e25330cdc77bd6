"""Where tables and connections are looked up: the Data Catalog, or Spark's own catalog.

lookup        which catalog a run looks in, and types as Spark has them
table         a table and its partitions, as a catalog has them
data_catalog  the AWS Glue Data Catalog, by its API
hive          Spark's own catalog, by its SQL
formats       of what format the files of a table are
connections   connections to databases, by name or by URL
"""
