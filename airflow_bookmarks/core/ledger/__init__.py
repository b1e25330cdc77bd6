"""What was read of a source.

file_ledger  which files a context has read: path and version of each, exact and compact
root         the document that names the segments of a ledger, or holds them
segment      the versions of many files, sorted, 16 bytes a file
seen         which numbers or days of a source were ever listed
gap          what is missing between the first and the last of them
quarantine   files that could not be parsed
xxhash64     Spark's `xxhash64`, for many texts at once
"""
