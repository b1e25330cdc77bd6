"""The code of docs/contributing/sources.md is code of tests, so it runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "contributing" / "sources.md"
FILES = ("lifecycle/sqlite_keys.py", "spark/test_own_source.py", "testing/test_source_conformance.py")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=[block.splitlines()[0] for block in BLOCKS])
def test_code_of_the_page_is_code_of_a_test(block: str) -> None:
    assert any(block in (ROOT / "tests" / name).read_text() for name in FILES), block
