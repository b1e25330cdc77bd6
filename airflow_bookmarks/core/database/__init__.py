"""Rules for tables of a database: text of SQL in, text of SQL out, without a connection.

sink_table    the table that an output goes to, and how names and texts are quoted
stage_name    the names of stage tables, and what they tell
catalog       what a database tells of a table: its columns, its unique keys
publish_sql   the token row, the stage table, and what the transaction of a publish does
upsert        rows that replace those with the same key
"""
