"""What the tests of the command line share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """Name a store in a file."""
    return f"sqlite:///{tmp_path}/bookmarks.db"
