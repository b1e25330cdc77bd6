"""File systems: list, stat, open, move and delete on local disk and object stores. No Spark.

`filesystem` is the protocol, `local`, `s3` and `hadoop` implement it, `opener` opens the one that a path lies on,
`access` says how a job reaches it, and `permission` what a process may look at.
"""
