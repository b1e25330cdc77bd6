"""The history of a job: which runs count, and what going back in it means."""
