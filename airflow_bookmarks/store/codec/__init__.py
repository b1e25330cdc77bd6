"""Encode core's objects as attributes of items, and decode them."""
