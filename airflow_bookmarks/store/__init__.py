"""The state store: the `Table` protocol, and the transitions of the state on any table.

`backends` are the tables, `codec` encodes objects as items, `transitions` are grouped by what they change; `reader`
reads state, `blobs` holds what is too large for an item, `shelf` caches segments of ledgers, `opener` opens the table
that an address (`uri`) names, `stored_item` is what other packages may know of items, and `bookmark_store` is what they
open. The table, its conditions and operations are private to the store.
"""
