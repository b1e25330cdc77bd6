"""ULIDs: identifiers that sort by time (48 bits of milliseconds, 80 random bits, Crockford's base 32; ulid/spec)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime
    from random import Random

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def new_ulid(now: datetime, random: Random) -> str:
    """Return 26 characters that sort by `now`.

    Example:
        >>> from datetime import UTC
        >>> new_ulid(datetime(2013, 1, 1, tzinfo=UTC), Random(1))[:10]
        '017PD3WHG0'
    """
    value = (int(now.timestamp() * 1000) << 80) | random.getrandbits(80)
    return "".join(_ALPHABET[(value >> shift) & 31] for shift in range(125, -1, -5))
