"""Tables that are read whole and compared with what they were: inserts, updates and deletes without a key that grows.

snapshot   one copy of a table: where it lies, its columns, its files; and the interface to what takes and compares them
position   the position of a context, and its plans, as they are stored
source     the planner: takes a snapshot, and compares it with the last one
kind       the kind, for code that has only stored bytes
"""
