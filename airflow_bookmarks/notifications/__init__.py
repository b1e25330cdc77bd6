"""Notifications when a bookmark gets into trouble, and out of it."""
