"""The loops of a job: which run of one a job is, and what comes after it."""
