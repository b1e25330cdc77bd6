"""The planner of the kind `files`: a listing against the ledger of what was read."""
