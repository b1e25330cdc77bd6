"""The code of docs/contributing/sources.md, sinks.md and dialects.md is code of tests, so it runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = {
    "sources.md": ("lifecycle/sqlite_keys.py", "spark/test_own_source.py", "testing/test_source_conformance.py"),
    "dialects.md": ("databases/sqlite_dialect.py",),
    "sinks.md": ("testing/own_sink.py", "testing/test_own_sink.py"),
}
BLOCKS = [
    pytest.param(names, block, id=f"{page}: {block.splitlines()[0]}")
    for page, names in FILES.items()
    for block in re.findall(
        r"^```python\n(.*?)^```$",
        (ROOT / "docs" / "contributing" / page).read_text(),
        flags=re.MULTILINE | re.DOTALL,
    )
]


@pytest.mark.parametrize(("names", "block"), BLOCKS)
def test_code_of_the_page_is_code_of_a_test(names: tuple[str, ...], block: str) -> None:
    assert any(block in (ROOT / "tests" / name).read_text() for name in names), block
