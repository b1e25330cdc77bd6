"""Apache Iceberg tables: what their snapshots have appended, or changed, since the one that was read. Without Spark.

snapshots   the snapshots of a table, and what each did
window      what a run reads of the snapshots since a position
position    the position of a context, and its plans, as they are stored
source      the planner
look        the snapshots as pyiceberg tells them, where there is no Spark
kind        the kind, for code that has only stored bytes
"""
