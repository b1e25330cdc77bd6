"""Reasons why a listed file is not read: the words of counts, logs, the page and `pending --skipped`."""

from __future__ import annotations

# Not input at all, by name or kind: only counted.
HIDDEN = "hidden"  # a name of Spark's own or of a writer still at it
NESTED = "nested"  # in a folder that is no partition, where only partitions are descended into
SPECIAL = "special"  # no file that Spark could open: a pipe, a link that leads nowhere, a key with `//` in it
MARKER = "marker"  # an empty object that stands for a folder
EXCLUDED = "excluded"  # its name does not match `pathGlobFilter`, or `exclusions` name it; read once they let it in
EMPTY_PARTITIONS = "empty_partitions"  # no file: a partition that a catalog lists and whose folder is empty or missing

# Input that this run does not read; whether a later one does is the reason's own.
OTHER_SHARDS = "other_shards"  # another virtual shard reads it
BEFORE_START = "before_start"  # the job begins after it; it counts as read
LATE = "late"  # older than the newest file that was read by more than `late_after`
EXPIRED = "expired"  # older than the ledger remembers under `late_after`: read long ago, or very late
SETTLING = "settling"  # too young; the next run looks again
UNMATCHED = "unmatched"  # its name does not match `sequence`, and on_unmatched="skip"; read once the expression fits it
TOUCHED = "touched"  # read before, the same etag with another time now, and on_touch says so
OVER_BOUND = "over_bound"  # more than `max_files`, `max_bytes` or `window`, or one frame, takes; the next run reads it
OVERWRITTEN = "overwritten"  # read before, another version now, and on_overwrite="ignore"
QUARANTINED = "quarantined"  # this version of it can't be parsed; read when its context is set to "retry:..."
MISSING = "missing"  # planned, and changed or gone before the commit; the next run reads what is there then
NO_KEY = "no_key"  # a row of a table whose key is NULL, and not on_null="include_once" in a first run
NOT_COMPARED = "not_compared"  # a row within `lookback`, read with other columns than its table has now
