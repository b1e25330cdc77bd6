"""Decisions, each a pure function of what the state says."""
