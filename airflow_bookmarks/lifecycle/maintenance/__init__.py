"""Upkeep of the store: collection of history, export and import, doctor."""
