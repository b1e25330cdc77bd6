"""Tests of a driver load nothing that its cell of the matrix has not installed: no Airflow, no tool of other tests."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.repository.loaded_imports import loaded_packages
from tools.matrix.cells import CELLS, Cell

_ROOT = Path(__file__).parents[2]
_DRIVERS = [cell for cell in CELLS if not cell.has_project]


@pytest.mark.seldom
@pytest.mark.parametrize("cell", _DRIVERS, ids=lambda cell: cell.name)
def test_tests_of_a_driver_load_what_is_installed_there(cell: Cell) -> None:
    installed = _with_what_they_need([*cell.requirements, *(line.partition("==")[0] for line in cell.overrides)])
    known = packages_distributions()
    loaded = loaded_packages(_collected(cell), _ROOT)
    absent = {
        package: str(module.relative_to(_ROOT))
        for package, module in loaded.items()
        if installed.isdisjoint(canonicalize_name(name) for name in known.get(package, [package]))
    }
    assert absent == {}
    assert {"pytest", "boto3"} <= set(loaded)


def test_what_an_import_loads_is_found_wherever_it_stands(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("import first\n")
    (package / "inner.py").write_text("if True:\n    from second.part import name\ndef late():\n    import third\n")
    test = tmp_path / "test_it.py"
    test.write_text(
        "from typing import TYPE_CHECKING\nimport pytest\nfrom package import inner\n"
        "if TYPE_CHECKING:\n    import fourth\n"
        "pytest.importorskip('fifth')\nimport fifth\n"
    )
    assert loaded_packages([test], tmp_path) == {
        "pytest": test,
        "first": package / "__init__.py",
        "second": package / "inner.py",
    }


def _collected(cell: Cell) -> list[Path]:
    """Return what pytest imports of a cell: its modules of tests, and those that prepare them."""
    tests = [path for folder in cell.tests for path in (_ROOT / folder).rglob("test_*.py")]
    before = {parent / "conftest.py" for path in tests for parent in path.parents if parent.is_relative_to(_ROOT)}
    inner = [path for folder in cell.tests for path in (_ROOT / folder).rglob("conftest.py")]
    return [*tests, *inner, *(path for path in before if path.exists())]


def _with_what_they_need(requirements: Iterable[str]) -> set[str]:
    """Return the names of distributions that come with these, themselves among them."""
    names: set[str] = set()
    ahead = [Requirement(line) for line in requirements]
    seen = set()
    while ahead:
        wanted = ahead.pop()
        if str(wanted) in seen:
            continue
        seen.add(str(wanted))
        names.add(canonicalize_name(wanted.name))
        for line in requires(wanted.name) or ():
            needed = Requirement(line)
            if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in ("", *wanted.extras)):
                ahead.append(needed)
    return names
