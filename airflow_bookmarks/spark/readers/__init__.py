"""Readers: turn a plan into a DataFrame."""
