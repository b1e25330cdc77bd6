"""Owners: the DAG that a job belongs to, and which others may run it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

DAG_ID, FORMER_OWNERS, FORMER_NAMES = "dag_id", "former_owners", "former_names"
"""Attributes of an index entry: the owner, DAGs that owned the job before it, names that its owners had before."""


def may_run(owner: str | None, shared_with: Collection[str], dag_id: str | None) -> bool:
    """Whether a run of a DAG (None: a manual run) may take a job; a job without an owner is open to all.

    Example:
        >>> may_run("a", ["b"], "b"), may_run("a", ["b"], "c"), may_run("a", [], None), may_run(None, [], "c")
        (True, False, True, True)
    """
    return owner is None or dag_id is None or dag_id == owner or dag_id in shared_with


def owner_in(entry: Mapping[str, Any] | None) -> str | None:
    """Return the owner that an index entry names; None if it names none."""
    dag_id = (entry or {}).get(DAG_ID)
    return dag_id if isinstance(dag_id, str) else None


def former_in(entry: Mapping[str, Any] | None, name: str = FORMER_OWNERS) -> list[str]:
    """Return what an index entry lists under `name`: former owners, or names that an owner had before."""
    listed = (entry or {}).get(name)
    return [each for each in listed if isinstance(each, str)] if isinstance(listed, list) else []


def owners_in(entry: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return every DAG that owns or ever owned a job, the present owner first; none if it never had one.

    Example:
        >>> owners_in({"dag_id": "b", "former_owners": ["a", "b"]})
        ('b', 'a')
    """
    owner = owner_in(entry)
    return tuple(dict.fromkeys([*([] if owner is None else [owner]), *former_in(entry)]))


def owners_after(entry: Mapping[str, Any] | None, owner: str | None, to: str, *, is_renamed: bool) -> tuple[str, ...]:
    """Return every DAG that owns or ever owned a job once its `owner` has handed it over to the DAG `to`.

    Example:
        >>> owners_after({"dag_id": "a"}, "a", "b", is_renamed=False)
        ('b', 'a')
        >>> owners_after({"dag_id": "a"}, "a", "b", is_renamed=True)
        ('b',)
    """
    left = [] if is_renamed or owner is None else [owner]
    return owners_in({DAG_ID: to, FORMER_OWNERS: [*former_in(entry), *left]})
