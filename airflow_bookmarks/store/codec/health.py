"""The items that hold records of the health of jobs: 64 for each namespace, so that one request reads them all.

    <ns>#HEALTH  00 .. 63       by the hash of the job's name (`core.health.record.health_shard`)
        revision                grows with each write, which compares it: of two writers one succeeds
        written_at              when
        columns                 the names of the values below
        jobs                    JSON: {"flights.clean": [values of the columns, without those missing at the end], ...}

One text is decoded many times faster than ten thousand maps of typed attributes. No run reads or writes these items.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast, get_args

from airflow_bookmarks.core.errors import StateCorruptError
from airflow_bookmarks.core.health.record import HealthRecord, IndexFacts, Standing
from airflow_bookmarks.core.health.verdict import HealthState
from airflow_bookmarks.core.job import check_name
from airflow_bookmarks.core.text.instant import from_text, to_text
from airflow_bookmarks.store.codec.attribute import Fields
from airflow_bookmarks.store.table import Attributes, Key

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

_COLUMNS = ("judged_at", "standing", "health", "version", "epoch", "last_commit_at", "run_number", "dag_id", "task_id",
            "deleted_version", "former_owners", "waiting_since")  # fmt: skip
_STANDINGS = frozenset(get_args(Standing))
_ADVICE = "The bookmarks page writes it anew, and needs nothing of it."


def health_key(namespace: str, shard: int) -> Key:
    """Return the key of one of the items."""
    return Key(f"{namespace}#HEALTH", f"{shard:02d}")


def health_attributes(records: Mapping[str, HealthRecord], revision: int, written_at: datetime) -> Attributes:
    """Return the item that holds some records."""
    rows = {job: _row(record) for job, record in sorted(records.items())}
    jobs = json.dumps(rows, separators=(",", ":"), ensure_ascii=False)
    return {"revision": revision, "written_at": to_text(written_at), "columns": list(_COLUMNS), "jobs": jobs}


def health_records_of(attributes: Mapping[str, Any]) -> tuple[int, dict[str, HealthRecord]]:
    """Return the revision of an item and its records.

    Raises:
        StateCorruptError: it is not what this version writes. Nothing is lost: the records are made anew.
    """
    fields = Fields.of("HEALTH", _ADVICE, attributes)
    revision = fields.number("revision")
    if fields.texts("columns") != _COLUMNS:
        fields.refuse("columns", f"is not {', '.join(_COLUMNS)}")
    try:
        rows = json.loads(fields.text("jobs"))
        times: dict[str, datetime] = {}
        return revision, {check_name("job", job): _record(row, times) for job, row in rows.items()}
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise StateCorruptError(f"the records in the item HEALTH can't be read: {error}. {_ADVICE}") from error


def _row(record: HealthRecord) -> list[Any]:
    index = record.index
    row: list[Any] = [to_text(record.judged_at), record.standing, record.health and record.health.value]
    row += [record.version, record.epoch, index.last_commit_at, index.run_number, index.dag_id, index.task_id]
    row += [index.deleted_version, list(index.former_owners) or None]
    row += [record.waiting_since and to_text(record.waiting_since)]
    while row[-1] is None:
        row.pop()
    return row


def _record(row: list[Any], times: dict[str, datetime]) -> HealthRecord:
    values: dict[str, Any] = dict(zip(_COLUMNS, row, strict=False))
    at, standing, health = (values.get(name) for name in ("judged_at", "standing", "health"))
    if not isinstance(at, str):
        raise ValueError(f"{at!r} is no time")
    if standing not in _STANDINGS:
        raise ValueError(f"{standing!r} is no standing")
    if at not in times:  # thousands were judged at the same time
        times[at] = from_text(at)
    known = {name: values.get(name) for name in ("version", "epoch")}
    if any(value is not None and type(value) is not int for value in known.values()):
        raise ValueError(f"{known} are no numbers")
    return HealthRecord(
        judged_at=times[at],
        standing=cast("Standing", standing),
        health=None if health is None else HealthState(health),
        index=IndexFacts.of(values),
        waiting_since=None if values.get("waiting_since") is None else from_text(values["waiting_since"]),
        **known,
    )
