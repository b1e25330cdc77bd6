"""The kinds of run: enabled, replayed, detached, empty."""
