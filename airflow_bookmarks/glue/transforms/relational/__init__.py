"""`relationalize`: flat tables of nested records.

tables     the tables: one of the records, and one of each array in them
numbering  ids of arrays, which go on from run to run
"""
