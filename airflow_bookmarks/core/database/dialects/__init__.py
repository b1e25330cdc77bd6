"""The SQL of each kind of database, by `core.database.dialect.Dialect`.

quoting       names and texts in a statement, for reading and for writing
postgresql    PostgreSQL
mysql         MySQL and MariaDB
sqlserver     SQL Server
oracle        Oracle
redshift      Redshift
registry      all of them by name; `databases.dialects` knows those of a user's own as well
"""
