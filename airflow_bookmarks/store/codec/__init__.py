"""How core's objects are written as attributes of items, and read back."""
