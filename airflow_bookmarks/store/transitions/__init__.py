"""The transitions of the state, each one transaction on any table."""
