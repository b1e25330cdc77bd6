"""The common part of operators that change where a job stands: their arguments, and the tries of their tasks."""
