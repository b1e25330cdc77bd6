"""What is new in a source: a planner per kind, and the registry of the kinds. No Spark."""
