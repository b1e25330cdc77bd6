"""What the page may send, and what it is told."""
