"""The history of a job: which runs are history, and what going back in it means."""
