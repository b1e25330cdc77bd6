"""Where the state lies: the `Table` protocol, and the transitions of the state on any table.

`backends` are the tables, `codec` writes objects as items, `transitions` are grouped by what they change; `reader`
looks, `blobs` holds what is too large for an item, `shelf` the segments of ledgers that were read, `opener` opens the
table that an address (`uri`) names, and `bookmark_store` is what everybody else opens.
"""
