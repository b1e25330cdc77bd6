"""The sink of tables of Redshift: rows in files below a folder in S3, brought into the target by one transaction.

place     where an output is staged and what it goes to, as state keeps it
client    reach Redshift, and load the files of a manifest: the one seam that a test without a server replaces
staging   what a driver does around the write of its files: checks, manifest, token row
publish   the transaction
sink      the kind `redshift`
"""
