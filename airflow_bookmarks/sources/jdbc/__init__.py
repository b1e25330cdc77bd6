"""Tables and queries of a database as a source: what is new is what has a later key."""
