"""Facts: the names of counts that a plan states and that others read."""

from __future__ import annotations

READ_AGAIN = "read_again"  # files that were read before: another version now, or read with their group (`reread`)
