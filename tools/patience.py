"""How long tests, tools and demo wait for something that takes seconds before they take it for stuck."""

from __future__ import annotations

# Not a bound on speed: a machine that does ten other things at once is 20 times as slow, and none is slower than this.
STUCK_S = 1800.0
