"""What the kinds of source that read tables share.

stored_body  how positions and plans are stored
versioned    tables that keep versions (Delta, Iceberg): options, errors, counts
"""
