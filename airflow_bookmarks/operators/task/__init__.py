"""What all operators share: one try of a task with a bookmark, whatever submits it."""
