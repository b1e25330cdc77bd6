"""Kinds that an installed package names by an entry point are known without a call of `register`."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_bookmarks.sources.registry import GROUP
from tests.installed import install, printed

MODULE = """
from tests.sources.test_kind import Counts

class Keys(Counts):
    name = "keys"

class Files(Counts):
    name = "files"

def leave():
    raise SystemExit("not configured")
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return a folder with two installed packages."""
    (tmp_path / "their_kinds.py").write_text(MODULE)
    install(tmp_path, GROUP, "theirs", keys="their_kinds:Keys", files="their_kinds:Files", other="their_kinds:Keys")
    install(tmp_path, GROUP, "broken", broken="no_such_module:Kind", twice="their_kinds:Keys")
    install(tmp_path, GROUP, "again", twice="their_kinds:Files", leaving="their_kinds:leave")
    return tmp_path


def told(site: Path, code: str) -> list[str]:
    return printed(site, f"import sys\nfrom airflow_bookmarks.sources.registry import *\n{code}")


def test_kind_of_an_installed_package_is_known_once_it_is_asked_for(site: Path) -> None:
    code = """
print("their_kinds" in sys.modules)
kind = find_kind("keys")
print(kind.name, kind.__class__.__module__, kind is kind_of("keys"))
"""
    assert told(site, code) == ["False", "keys their_kinds True"]


def test_kind_of_this_package_is_not_replaced(site: Path) -> None:
    code = 'print(type(find_kind("files")).__name__, "their_kinds" in sys.modules)'
    assert told(site, code) == ["FileKind False"]


def test_name_that_no_package_has_stays_unknown(site: Path) -> None:
    assert told(site, 'print(find_kind("absent"), repr(why_unknown("absent")))') == ["None ''"]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (
            "broken",
            "(no_such_module:Kind) can't be loaded: ModuleNotFoundError: No module named 'no_such_module'. Mend it, "
            "and restart this process.",
        ),
        (
            "leaving",
            "(their_kinds:leave) can't be loaded: SystemExit: not configured. Mend it, and restart this process.",
        ),
        ("other", "(their_kinds:Keys) is no class of a kind with that name."),
        ("twice", "(their_kinds:Files, their_kinds:Keys) is that of several packages: remove all but one."),
    ],
)
def test_entry_point_that_gives_no_kind_is_named_where_its_kind_is_needed(site: Path, name: str, why: str) -> None:
    code = f"""
from airflow_bookmarks.core.errors import StateCorruptError
print(find_kind("keys").name, find_kind({name!r}))
try:
    kind_of({name!r})
except StateCorruptError as error:
    print(error)
"""
    known, error = told(site, code)
    assert known == "keys None"
    assert error.endswith(f"The entry point {name!r} of the group 'airflow_bookmarks.sources' {why}")
