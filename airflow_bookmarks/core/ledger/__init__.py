"""What of a source was read: the file ledger, its segments, what is missing and what is set aside."""
