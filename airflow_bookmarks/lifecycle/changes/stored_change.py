"""Decode a requested change and its preview as a request stores them. Values of other types than these are damage.

The approver sees the preview, so one that lacks a line is refused too: that line would be hidden from them.

    change    {"kind": "rewind", "to_run": "41", "clean": true}              fields that are None are left out
    preview   what `ChangePreview.as_dict` returns, of `undone_runs` the first hundred; empty of a change that takes no
              preview; of a share or hand-over whose the job was: {"owner": "flights", "shared_with": ["nights"]}
"""

from __future__ import annotations

from dataclasses import fields as fields_of
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.metadata.known import is_size
from airflow_bookmarks.lifecycle.changes.change import Change
from airflow_bookmarks.lifecycle.changes.sharing import OWNER_KINDS, Ownership

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.core.rules.audit import AuditValue
    from airflow_bookmarks.store.codec.attribute import Fields

NOT_A_TURN = ("unprotect", *OWNER_KINDS)  # they leave positions as they are, so they have no preview

_TEXTS = ("to_run", "ctx", "value", "state", "to_ctx", "from_root", "to_root", "unverified", "dag")
_FLAGS = ("clean", "renamed")
_KNOWN = frozenset(field.name for field in fields_of(Change))


def change_value(change: Change) -> dict[str, AuditValue]:
    """Return a change as it is stored."""
    value: dict[str, AuditValue] = {"kind": change.kind, "clean": change.clean}
    value |= {name: text for name in _TEXTS if (text := getattr(change, name)) is not None}
    if change.renamed:
        value["renamed"] = True
    if change.contexts is not None:
        value["contexts"] = list(change.contexts)
    return value


def change_of(fields: Fields) -> Change:
    """Return the change that a request stores.

    Raises:
        StateCorruptError: a field is not of its type, or is one that this version does not know.
    """
    for name in fields.values:
        if name not in _KNOWN:
            fields.refuse(name, "is no part of a change that this version knows")
    given: dict[str, Any] = {name: fields.optional_text(name) for name in _TEXTS}
    given |= {name: fields.flag(name) for name in _FLAGS if name in fields}
    given["contexts"] = None if fields.values.get("contexts") is None else fields.texts("contexts")
    return Change(kind=fields.text("kind"), **given)


def ownership_value(seen: Ownership) -> dict[str, AuditValue]:
    """Return whose a job is as the request for a share or hand-over stores it."""
    return {"owner": seen.owner, "shared_with": list(seen.shared_with)}


def stored_ownership(fields: Fields, change: Change, version: int) -> Ownership | None:
    """Return whose the job was when a share or hand-over was asked for; None of another change, or an older request.

    Raises:
        StateCorruptError: a field is not of its type.
    """
    if change.kind not in OWNER_KINDS or "shared_with" not in fields:
        return None
    return Ownership(version, fields.optional_text("owner"), tuple(fields.texts("shared_with")))


def preview_of(fields: Fields, change: Change, version: int) -> Mapping[str, Any]:
    """Return the preview that a request stores, without fields that this version does not show.

    Args:
        change: what the request asks for.
        version: that of the job, as the request has it.

    Raises:
        StateCorruptError: something that an approver is shown is missing, is not of its type, or is of another change
            or version.
    """
    if change.kind in NOT_A_TURN:
        return {}
    _check_counts(fields)
    _check_texts_moved(fields.map("watermarks"))
    if "state" in fields:  # a request that an older version stored has none
        _check_texts_moved(fields.map("state"))
    if fields.values.get("moved") is not None:
        _check_relocation(fields.map("moved"))
    if fields.values.get("never_read") is not None:
        _check_never_read(fields.map("never_read"))
    fields.text("job")
    fields.optional_text("holder")
    if fields.text("change") != change.kind:
        fields.refuse("change", "is not the change that is asked for")
    if fields.number("version") != version:
        fields.refuse("version", "is not the version that the request was made against")
    return {name: fields.values[name] for name in _SHOWN if name in fields}


_SHOWN = (
    "job", "change", "version", "to_run", "undone_runs", "undone_run_count", "unreadable_runs", "read_again",
    "watermarks", "state", "moved", "consumers", "written_twice", "written_twice_unknown", "files_to_clean",
    "outputs_to_clean", "files_left_by_undone_runs", "never_read", "holder",
)  # fmt: skip


def _check_counts(fields: Fields) -> None:
    fields.number("to_run")
    fields.numbers("undone_runs")
    fields.texts("written_twice")
    fields.size("files_to_clean")
    again = fields.map("read_again")
    for name in ("files", "bytes", "rows"):
        _check_size_or_none(again, name)
    consumers = fields.map("consumers")
    for name in consumers.values:
        consumers.number(name)
    # These may be absent in a request that an older version stored.
    fields.check("undone_run_count", is_size, "no count")
    fields.check("outputs_to_clean", is_size, "no count")
    if "written_twice_unknown" in fields:
        fields.texts("written_twice_unknown")
    if "unreadable_runs" in fields:
        fields.texts("unreadable_runs")
    if "files_left_by_undone_runs" in fields:
        _check_size_or_none(fields, "files_left_by_undone_runs")


def _check_never_read(never: Fields) -> None:
    for name in ("files", "bytes"):
        _check_size_or_none(never, name)
    never.numbers("runs")
    never.texts("consumers")
    never.optional_text("unknown")
    if "rows" in never:  # a request that an older version stored has neither
        _check_size_or_none(never, "rows")
    if "amounts" in never:
        amounts = never.map("amounts")
        for unit in amounts.values:
            amounts.size(unit)


def _check_relocation(moved: Fields) -> None:
    moved.text("to")
    moved.optional_text("counted_as")
    for name in ("same", "changed", "new", "unverified"):
        moved.size(name)


def _check_texts_moved(moved: Fields) -> None:
    for _, each in moved.maps():
        for name in ("before", "after"):
            _check_present(each, name)
            each.optional_text(name)


def _check_size_or_none(fields: Fields, name: str) -> None:
    _check_present(fields, name)
    if fields.values[name] is not None:
        fields.size(name)


def _check_present(fields: Fields, name: str) -> None:
    if name not in fields:
        fields.refuse(name, "is missing")
