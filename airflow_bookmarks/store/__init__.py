"""The state store: the `Table` protocol, and the transitions of the state on any table.

`backends` are the tables, `codec` encodes objects as items, `transitions` are grouped by what they change; `reader`
reads state, `blobs` holds what is too large for an item, `shelf` caches segments of ledgers, `opener` opens the table
that an address (`uri`) names, and `bookmark_store` is what other packages open.
"""
