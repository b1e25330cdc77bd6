from __future__ import annotations

from tests.lifecycle.conftest import shop, store

__all__ = ["shop", "store"]
