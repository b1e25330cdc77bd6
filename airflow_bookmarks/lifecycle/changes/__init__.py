"""Changes that people make to a bookmark: reset, rewind, set, undo, rename, share, approve."""
