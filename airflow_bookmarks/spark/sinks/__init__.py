"""Sinks: write a DataFrame to a target."""
