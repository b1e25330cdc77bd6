"""Databases: connect, run statements and transactions, for sources and sinks that are tables. No Spark.

`address` is the text that names a database, `access` finds the `login` for it, `parameters` translates what a login
says about TLS for JDBC and for Python's clients, `client` opens a connection by it, and `database` runs statements.
`redshift` is a connection to Redshift, whose client is another one. `dialects` knows the SQL of each kind of database.
SQLAlchemy and the clients are imported when a database is opened.
"""
