"""What is new in a source: a planner per kind. No Spark."""
