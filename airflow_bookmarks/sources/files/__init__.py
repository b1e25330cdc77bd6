"""The planner of the kind `files`: compares a listing with the ledger of files that were read."""
