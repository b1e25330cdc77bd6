"""Sources: a planner of new input for each kind, and the registry of the kinds. No Spark."""
