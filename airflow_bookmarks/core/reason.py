"""Why something that a listing showed is not read: the words of counts, logs, the page and `pending --skipped`."""

from __future__ import annotations

# No input at all, by name or kind: counted only.
HIDDEN = "hidden"  # a name of Spark's own or of a writer still at it
NESTED = "nested"  # in a folder that is no partition, where only partitions are descended into
SPECIAL = "special"  # no file that Spark could open: a pipe, a link that leads nowhere, a key with `//` in it
MARKER = "marker"  # an empty object that stands for a folder

# Input that this run does not read; whether a later one does is the reason's own.
OTHER_SHARDS = "other_shards"  # another virtual shard reads it
BEFORE_START = "before_start"  # the job begins after it; it counts as read
LATE = "late"  # older than the newest file by more than `late_after`
EXPIRED = "expired"  # older than the ledger remembers under `late_after`: read long ago, or very late
SETTLING = "settling"  # too young; the next run looks again
OVERWRITTEN = "overwritten"  # read before, another version now, and on_overwrite="ignore"
MISSING = "missing"  # planned, and changed or gone before the commit; the next run reads what is there then
