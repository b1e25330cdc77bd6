"""Readers: from a plan to a DataFrame."""
