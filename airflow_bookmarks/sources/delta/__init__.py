"""Delta Lake tables: what their commits have added, or changed, since the version that was read. Without Spark.

commit      one commit of a table: its actions, and whether they append, change rows or neither
log         the log of a table: its versions, commits and checkpoints, read as files
checkpoint  read a checkpoint of a log, which is Parquet
snapshot    the files of a table as of one version
excerpt     a log of our own over some files of a table, by which Delta itself reads exactly these
position    the position of a context, and its plans, as they are stored
looks       what the batches of a loop read once
window      what a run reads of the commits since a position
source      the planner
kind        the kind, for code that has only stored bytes
"""
