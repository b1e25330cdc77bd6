"""Repair the few things that need no human judgement. No position is ever touched.

Each repair checks again, and acts only if the finding still stands and the job is as it was then.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.rules.audit import check_who
from airflow_bookmarks.core.rules.owner import FORMER_NAMES, FORMER_OWNERS
from airflow_bookmarks.core.rules.territory import StagingBounds, Territory
from airflow_bookmarks.core.run import RunKey
from airflow_bookmarks.core.text.identity import signed
from airflow_bookmarks.core.text.instant import to_text, utc_now
from airflow_bookmarks.lifecycle.maintenance.doctor.examination import examine_job
from airflow_bookmarks.lifecycle.maintenance.doctor.head import collected_before
from airflow_bookmarks.lifecycle.maintenance.doctor.sink import orphaned_in
from airflow_bookmarks.lifecycle.maintenance.doctor.survey import Survey
from airflow_bookmarks.lifecycle.maintenance.doctor.target import foreign_staging, orphaned_staging
from airflow_bookmarks.sinks.files.changes import HEAD_STAGING, FileChanges
from airflow_bookmarks.sinks.registry import SINKS
from airflow_bookmarks.store.transitions import repair as transition

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.rules.audit import AuditEvent
    from airflow_bookmarks.lifecycle.maintenance.doctor.finding import Finding
    from airflow_bookmarks.store.bookmark_store import BookmarkStore


@dataclass(frozen=True, slots=True)
class Repaired:
    """The outcome of one finding: whether it was repaired, and what was done, or why nothing was."""

    finding: Finding
    is_done: bool
    what: str

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {**asdict(self), "finding": self.finding.as_dict()}


def repair(
    store: BookmarkStore, findings: Sequence[Finding], *, who: str, clock: Callable[[], datetime] = utc_now
) -> list[Repaired]:
    """Repair the findings that are repairable; return the outcome of each.

    Args:
        findings: as `examine` returned them; each is looked for again first.
        who: who asks for it, for the audit event.
        clock: returns the present time, aware.
    """
    check_who(who)
    return [_repair(store, finding, who, clock()) for finding in findings if finding.is_repairable]


def _repair(store: BookmarkStore, finding: Finding, who: str, now: datetime) -> Repaired:
    survey = Survey.of(store, finding.job, now)
    found = examine_job(store, finding.job, now, with_files=finding.code in _OF_FILES)
    still = {(f.code, f.where) for f in found if f.is_repairable}
    if (finding.code, finding.where) not in still or survey.head is None:
        return Repaired(finding, False, "It is not so any more; nothing was changed.")
    what = _REPAIRS[finding.code](survey, survey.head, finding, who)
    if what is None:
        return Repaired(finding, False, "The job moved meanwhile; nothing was changed. Look again.")
    return Repaired(finding, True, what)


# ---- each of them returns what was done; None if the job moved meanwhile


def _free(survey: Survey, head: Head, finding: Finding, who: str) -> str | None:
    if head.lease is None:
        return "Nobody holds the lease."
    if not transition.free(survey.store, survey.job, head, head.lease, _event(survey, finding, who)):
        return None
    return f"The lease of {head.lease.run_id!r} was taken away; the fence is {head.fence + 1} now."


def _publish_later(survey: Survey, head: Head, finding: Finding, who: str) -> str | None:
    """Mark a committed run as due again. The next run publishes it, as after a crash."""
    key = RunKey.parse(finding.where.removeprefix("RUN "))
    if not transition.publish_later(survey.store, survey.job, head, key, _event(survey, finding, who)):
        return None
    return f"Run {key} is due again; the next run of the job publishes it."


def _enter(survey: Survey, head: Head, finding: Finding, who: str) -> str | None:
    until, event = collected_before(survey, head) or 0, _event(survey, finding, who)
    if not transition.enter(survey.store, survey.job, head, survey.now, until, _former(survey), event):
        return None
    return "The index has an entry of the job again; the next run adds its task, and its DAG where none is known."


def _former(survey: Survey) -> dict[str, list[str]]:
    """Return who owned the job before, and the names that its owners had, according to the hand-overs."""
    former: dict[str, list[str]] = {FORMER_OWNERS: [], FORMER_NAMES: []}
    for event in survey.events:
        before = event.get("owner_before")
        if event.get("kind") == "hand-over" and isinstance(before, str):
            former[FORMER_NAMES if event.get("renamed") else FORMER_OWNERS].append(before)
    return {name: list(dict.fromkeys(listed)) for name, listed in former.items() if listed}


def _sweep(survey: Survey, head: Head, finding: Finding, who: str) -> str:
    """Remove one folder that was staged under a fence that has passed and can't be committed any more."""
    if finding.where not in orphaned_staging(survey):
        return "It is gone."
    bounds = StagingBounds(Territory(survey.store.namespace, survey.job), HEAD_STAGING)
    FileChanges.of_staging(bounds, [finding.where]).remove()
    return f"{finding.where!r} was removed."


def _drop(survey: Survey, head: Head, finding: Finding, who: str) -> str:
    """Drop what one run that is over has staged in a sink."""
    stored, _, place = finding.where.rpartition(": ")
    sinks = SINKS.reaching(survey.store.databases)
    found = sinks.staging_to_examine(stored)
    if found is None or place not in orphaned_in(survey, sinks, stored):
        return "It is gone."
    sink, root = found
    sink.drop_staged(Territory(survey.store.namespace, survey.job), root, place)
    return f"{place} was dropped."


def _forget_staging(survey: Survey, head: Head, finding: Finding, who: str) -> str | None:
    """Take foreign folders off a job's list of staging folders, so that it can run again. None is touched."""
    foreign = foreign_staging(survey)
    own = [root for root in head.staging if root not in foreign]
    if not transition.forget_staging(survey.store, survey.job, head, own, _event(survey, finding, who)):
        return None
    return f"{foreign} came off the list of staging folders; nothing in them was touched."


def _event(survey: Survey, finding: Finding, who: str) -> AuditEvent:
    told: AuditEvent = {"kind": "repair", **signed(who), "at": to_text(survey.now), "why": finding.what}
    return {**told, "code": finding.code}


_OF_FILES = frozenset(["staging-orphaned", "staged-orphaned"])
_REPAIRS: Mapping[str, Callable[[Survey, Head, Finding, str], str | None]] = {
    "lease-dangling": _free,
    "publish-lost": _publish_later,
    "index-missing": _enter,
    "staging-orphaned": _sweep,
    "staged-orphaned": _drop,
    "path-foreign": _forget_staging,
}
