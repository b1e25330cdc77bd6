"""Triggers: what the triggerer does while tasks wait, and the watcher of assets."""
