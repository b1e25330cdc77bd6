"""Findings: one thing that is wrong with the state of a job, in words."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from airflow_bookmarks.core.text.redaction import redacted


class Severity(StrEnum):
    """Severity of a finding."""

    ERROR = "error"  # rows may be lost or come twice, or the job can't go on
    WARNING = "warning"  # something is not as it should be, but no row is at stake yet
    NOTICE = "notice"  # the state is sound: a leftover that costs room or time, or a fact about the input


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong.

    `code` is stable, for alarms; `what` describes it; `where` names the item, blob or file. `repair` says what `repair`
    would do, or, if `is_repairable` is false, what a person can do.
    """

    code: str
    job: str
    severity: Severity
    what: str
    where: str
    repair: str
    is_repairable: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {**asdict(self), "severity": self.severity.value, "what": redacted(self.what)}


RESTORE_ALONE = "Restore the table from a backup."
RESTORE_HEAD = "Restore the table from a backup, or import an export of the job."
RESTORE_LINE = "Restore the table from a backup: which runs are history follows from this, so a reset needs it as well."
RESTORE = "Restore the table from a backup, or reset the job: its next run then reads everything again."
