"""What people do to a bookmark: reset, rewind, set, undo, rename, share, approve."""
