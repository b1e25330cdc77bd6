"""Notifications when a problem of a bookmark begins or ends."""
