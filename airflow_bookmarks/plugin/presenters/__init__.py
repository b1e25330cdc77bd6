"""Presenters: turn state from the store into answers for the page."""
