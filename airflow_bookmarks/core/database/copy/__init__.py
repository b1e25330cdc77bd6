"""Loads into Redshift: files in S3, a manifest that names them, and one transaction around one COPY. Untried.

No Redshift server has run these statements yet: they follow its documentation, and golden files keep their text.

columns    how a column is written to Parquet, loaded, and brought into the target
manifest   the list of the files that one COPY loads
load       the statements of a publish, and the digest by which it knows them
token      the table of fences beside the targets, locked as a whole
"""
