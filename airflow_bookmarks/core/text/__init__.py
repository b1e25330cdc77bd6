"""Text: times, identifiers, escapes, what must not be shown."""
