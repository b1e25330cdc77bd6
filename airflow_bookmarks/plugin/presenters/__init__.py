"""What the store says, as the page is told it."""
