"""Text: times, identifiers, escaping and redaction."""
