"""Promises of the seam for kinds of source: what a kind is, its own modules say, and nobody else asks by name."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.errors import OptionError, StateCorruptError
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.selection.listing import Listing
from airflow_bookmarks.sources.files.kind import FileKind
from airflow_bookmarks.sources.kind import SourceKind
from airflow_bookmarks.sources.registry import KINDS, find_kind, kind_of
from airflow_bookmarks.sources.source import PlanInput
from tests.syntax import parsed

PACKAGE = Path(__file__).parents[2] / "airflow_bookmarks"
DECODERS = frozenset({"FilePlan", "UpstreamPlan"})
NAMES = frozenset(KINDS)
KIND_CLASSES = frozenset({"FileSource", "UpstreamSource", "FileKind", "UpstreamKind"})

# Modules that still take stored plans apart, or compare kinds by name. None may be added.
TAKE_PLANS_APART: frozenset[str] = frozenset()
NAME_KINDS: frozenset[str] = frozenset(
    {
        "store/codec/item.py",
    }
)


class Counts(SourceKind[Any]):
    """A kind that can do no more than it has to."""

    name = "counts"

    def decode(self, body: bytes) -> int:
        return int(body)

    def union(self, plans: object) -> int:
        return 0

    def knows(self, found: PlanInput, plan: int) -> bool:
        return False

    def advance(self, plan: int, found: PlanInput) -> None:
        return None


@pytest.fixture(scope="module")
def modules() -> dict[str, ast.Module]:
    """Return the modules outside `sources` by name; the driver's readers are of one kind each."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if not name.startswith(("sources/", "spark/readers/")) and name != "core/plan.py":
            found[name] = parsed(path.read_text(encoding="utf-8"))
    return found


def takes_plans_apart(tree: ast.Module) -> bool:
    """Whether a module decodes stored plans of one kind."""
    return any(
        isinstance(node, ast.Attribute)
        and node.attr in ("decode", "page")
        and isinstance(node.value, ast.Name)
        and node.value.id in DECODERS
        for node in ast.walk(tree)
    )


def is_text_of_kind(node: ast.expr) -> bool:
    """Whether an expression is the name of a kind as text, or has one among others."""
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return any(map(is_text_of_kind, node.elts))
    return isinstance(node, ast.Constant) and node.value in NAMES


def is_kind(node: ast.expr) -> bool:
    """Whether an expression is the kind of something."""
    return (isinstance(node, ast.Attribute) and node.attr == "kind") or (
        isinstance(node, ast.Name) and node.id == "kind"
    )


def names_kinds(tree: ast.Module) -> bool:
    """Whether a module asks for one kind by its name, be it by its class."""
    return any(compares_kind(node) or is_name_of_class(node) for node in ast.walk(tree))


def compares_kind(node: ast.AST) -> bool:
    """Whether the kind of something is compared with a name."""
    sides = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
    return any(map(is_kind, sides)) and any(map(is_text_of_kind, sides))


def is_name_of_class(node: ast.AST) -> bool:
    """Whether this is the name that a class gives for its kind."""
    if not isinstance(node, ast.Attribute) or node.attr not in ("kind", "name"):
        return False
    return isinstance(node.value, ast.Name) and node.value.id in KIND_CLASSES


def test_stored_plans_are_taken_apart_by_their_kind_alone(modules: dict[str, ast.Module]) -> None:
    assert {name for name, tree in modules.items() if takes_plans_apart(tree)} == TAKE_PLANS_APART


def test_kinds_are_compared_by_name_in_no_other_place(modules: dict[str, ast.Module]) -> None:
    assert {name for name, tree in modules.items() if names_kinds(tree)} == NAME_KINDS


def test_each_kind_is_registered_under_its_name() -> None:
    assert {name: kind.name for name, kind in KINDS.items()} == {name: name for name in KINDS}


def test_unknown_kind_is_refused_and_says_what_is_known() -> None:
    assert find_kind("floppy") is None
    known = r"\('delta', 'files', 'iceberg', 'jdbc', 'jdbc-snapshot', 'upstream' are\)"
    with pytest.raises(StateCorruptError, match=f"'floppy'.*{known}.*Install the package"):
        kind_of("floppy")


def test_kind_that_can_not_seek_refuses_and_names_itself() -> None:
    with pytest.raises(OptionError, match=r"kind 'counts' can't be set to a value"):
        Counts().seek(None, PlanInput(), 1, "now")  # type: ignore[arg-type]  # it looks at nothing


def test_union_of_no_plans_is_empty() -> None:
    assert FileKind().union([]).is_empty
    assert FileKind().decode(FilePlan(Listing.of([]), ("/raw",), 0, 0).encode()).is_empty
