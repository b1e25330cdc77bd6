"""The kinds of run: enabled, replayed, detached, empty; `session` is the protocol that all of them follow."""
