"""Where the state lies: the table protocol, its implementations, and the transitions on any of them."""
