"""Decisions, each a pure function of the state."""
