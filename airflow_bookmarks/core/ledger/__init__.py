"""What was read of a source: the file ledger, its segments, gaps and quarantine."""
