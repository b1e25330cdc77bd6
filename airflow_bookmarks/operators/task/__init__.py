"""The common part of all operators: one try of a task with a bookmark, however it is submitted."""
