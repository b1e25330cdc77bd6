"""Sinks: from a DataFrame to a place."""
