"""The names that code relies on among what is stored with plans, outputs and the contexts of a run, by their types.

A name that is not here is for people only: it is kept as it is, and nothing reads it to decide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from airflow_bookmarks.core.errors import StateCorruptError
from airflow_bookmarks.core.text.instant import from_text, to_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Check: TypeAlias = Callable[[Any], bool]


def is_size(value: object) -> bool:
    """Whether a value is a number of bytes or rows: from 0."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def is_moment(value: object) -> bool:
    """Whether a value is a time in exactly the spelling that `to_text` writes."""
    if not isinstance(value, str):
        return False
    try:
        return to_text(from_text(value)) == value
    except (ValueError, OverflowError):
        return False


def is_text(value: object) -> bool:
    """Whether a value is text."""
    return isinstance(value, str)


def is_texts(value: object) -> bool:
    """Whether a value is a list of texts; before it is stored, that may be a tuple."""
    return isinstance(value, (list, tuple)) and all(isinstance(each, str) for each in value)


def is_map_of(is_valid: Check) -> Check:
    """Return the check for a map whose values are all valid."""
    return lambda value: isinstance(value, dict) and all(is_valid(each) for each in value.values())


def value_of(stored: Mapping[str, Any], name: str, default: Any = None) -> Any:
    """Return what is stored under one of the known names; `default` where it is not there.

    Raises:
        StateCorruptError: it is not what its readers rely on.
    """
    if name not in stored:
        return default
    return _checked(stored[name], name, KNOWN[name], "what is stored with a plan or an output")


def option_of(options: Mapping[str, Any], name: str, default: Any = None) -> Any:
    """Return one of the options that are stored with a plan of files; `default` where it is not there, or null.

    None of the options means anything by a null, and earlier versions took one for an option that is not there. Of the
    known names some do, such as the `rows` of an output, which are null where they were not counted.

    Raises:
        StateCorruptError: it is not what opens its source again.
    """
    value = options.get(name)
    if value is None:
        return default
    return _checked(value, name, _OPTIONS[name], "the options that are stored with a plan of files")


def _checked(value: Any, name: str, rule: tuple[Check, str], where: str) -> Any:
    is_valid, what = rule
    if not is_valid(value):
        raise StateCorruptError(
            f"{name!r} of {where} is {what}. Nothing was read or changed. Restore the table from a backup, or reset "
            "the job."
        )
    return value


def _is_text_or_none(value: object) -> bool:
    return value is None or isinstance(value, str)


def _is_size_or_none(value: object) -> bool:
    return value is None or is_size(value)


def _is_whole_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_id(value: object) -> bool:
    return isinstance(value, str) and value.isascii() and value.isdigit()


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_map(value: object) -> bool:
    return isinstance(value, dict)


def _is_gaps(value: object) -> bool:
    return isinstance(value, dict) and all(
        is_valid(value.get(name)) for names, is_valid in _GAPS for name in names.split()
    )


_GAPS: tuple[tuple[str, Check], ...] = (
    ("unit of first last seen", is_text),
    ("missing more_ranges lost", is_size),
    ("ranges", is_texts),
)
_SIZE, _TEXT, _TEXT_OR_NONE = (is_size, "no count"), (is_text, "no text"), (_is_text_or_none, "no text")
_SIZE_OR_NONE, _FLAG = (_is_size_or_none, "no count"), (_is_flag, "neither true nor false")
KNOWN: Mapping[str, tuple[Check, str]] = {
    "files": _SIZE,
    "bytes": _SIZE,
    "listed": _SIZE,
    "known": _SIZE,
    "read_again": _SIZE,
    "replaced_files": _SIZE,
    "replaced_rows": _SIZE_OR_NONE,
    "replaced_runs": _TEXT,
    "partly_read": (is_texts, "no list of texts"),
    "maybe_partly_read": _FLAG,
    "deleted_files": _SIZE,
    "quarantined": _SIZE,
    "watermark_column": _TEXT,
    "greatest": _TEXT_OR_NONE,
    "on_published": _TEXT,
    "is_read_whole": _FLAG,
    "rows": _SIZE_OR_NONE,
    "skipped": (is_map_of(is_size), "no map of counts"),
    "partitions": (is_map_of(is_size), "no map of counts"),
    "part": _TEXT,
    "planned_rows": _SIZE_OR_NONE,
    "partition_types": (is_map_of(is_text), "no map of texts"),
    "partition_by": (is_texts, "no list of texts"),
    "upsert_keys": (is_texts, "no list of texts"),
    "upsert_order_by": (is_texts, "no list of texts"),
    "upsert_deletes": _FLAG,
    "run_before": (is_texts, "no list of texts"),
    "copy_names": (is_texts, "no list of texts"),
    "copy_types": (is_texts, "no list of texts"),
    "copy_role": _TEXT,
    "copy_options": _TEXT,
    "run_after": (is_texts, "no list of texts"),
    "removed_keys": _SIZE,
    "is_path": _FLAG,
    "version_before": _SIZE,
    "version_after": _SIZE_OR_NONE,
    "snapshot_before": (_is_id, "no id of a snapshot"),
    "snapshot_staged": (_is_id, "no id of a snapshot"),
    "replaces_part": _FLAG,
    "table_folder": _TEXT,
    "has_landed": _FLAG,
    "settled_as": _TEXT,
    "catalog_table": _TEXT,
    "catalog_definition": _TEXT,
    "options": (_is_map, "no map"),
    "gaps": (_is_gaps, "no gaps"),
    "newest_partition": _TEXT,
    "waiting_from_ms": (_is_whole_number, "no whole number"),
    "waiting_bytes": _SIZE,
    "waiting_oldest_ms": (_is_whole_number, "no whole number"),
    "looked_at": (is_moment, "no time"),
    "mode": _TEXT,
    "format": _TEXT,
    "when_empty": _TEXT,
    "starts_from": _TEXT_OR_NONE,
    "starts_over": _FLAG,
    "watermark_before": _TEXT_OR_NONE,
}
_TEXTS = (is_texts, "no list of texts")
_OPTIONS: Mapping[str, tuple[Check, str]] = {
    "roots": _TEXTS,
    "globs": _TEXTS,
    "named": _TEXTS,
    "named_types": (is_map_of(is_text), "no map of texts"),
    "shard": (_is_whole_number, "no whole number"),
    "shard_by": _TEXT,
    "format": _TEXT,
    "sequence": _TEXT,
    "partition_filter": _TEXT,
    "partition_time": _TEXT,
}
