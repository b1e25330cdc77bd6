"""The kind `iceberg`: a run stages a snapshot of the table that nobody reads, and its publish brings it into the table.

That is what Iceberg calls write-audit-publish: the snapshot carries an id of the run (`wap.id`), and the procedure
`cherrypick_snapshot` brings in one snapshot for each such id, whoever calls it, and however often.

token     the id of a run's snapshot, which is also the name of its tag
target    the table that an output goes to, and what state keeps of it
tables    what the sink asks of Iceberg, and what the snapshots of a table tell; the driver's Spark session answers
publish   the publish of one output
sink      stage, publish and sweep
"""
