"""What the command line prints: values, tables, and what a change would do."""
