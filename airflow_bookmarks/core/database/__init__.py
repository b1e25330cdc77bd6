"""Rules for tables of a database, read by key and written through a stage table: text of SQL in, text of SQL out."""
