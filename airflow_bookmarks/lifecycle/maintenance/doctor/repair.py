"""Repair the few things that need no human judgement. No position is ever touched.

Each repair checks again, and acts only if the finding still stands and the job is as it was then.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import ConditionFailedError
from airflow_bookmarks.core.rules.audit import check_who
from airflow_bookmarks.core.rules.owner import DAG_ID, FORMER_NAMES, FORMER_OWNERS
from airflow_bookmarks.core.rules.territory import StagingBounds, Territory
from airflow_bookmarks.core.run import RunKey, RunState
from airflow_bookmarks.core.text.identity import signed
from airflow_bookmarks.core.text.instant import to_text, utc_now
from airflow_bookmarks.lifecycle.maintenance.doctor.examination import examine_job
from airflow_bookmarks.lifecycle.maintenance.doctor.head import collected_before
from airflow_bookmarks.lifecycle.maintenance.doctor.survey import Survey
from airflow_bookmarks.lifecycle.maintenance.doctor.target import orphaned_staging, own_staging
from airflow_bookmarks.sinks.files.changes import HEAD_STAGING, FileChanges
from airflow_bookmarks.store.codec import item
from airflow_bookmarks.store.table import Check, Condition, Equals, Lacks, Missing, Operation, Put, Update
from airflow_bookmarks.store.transitions.collection import COLLECTED_UNTIL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.lifecycle.maintenance.doctor.finding import Finding
    from airflow_bookmarks.store.bookmark_store import BookmarkStore
    from airflow_bookmarks.store.table import Attributes


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
    try:
        what = _REPAIRS[finding.code](survey, survey.head, finding, who)
    except ConditionFailedError:
        return Repaired(finding, False, "The job moved meanwhile; nothing was changed. Look again.")
    return Repaired(finding, True, what)


def _free(survey: Survey, head: Head, finding: Finding, who: str) -> str:
    """Remove a dangling lease, as an unlock does: under the next fence, its driver can't write any more."""
    if head.lease is None:
        return "Nobody holds the lease."
    keys = survey.store.keys(survey.job)
    conditions: list[Condition] = [Equals("fence", head.fence), Equals("lease_nonce", head.lease.nonce)]
    conditions.append(Equals("lease_until", to_text(head.lease.expires_at)))
    freed = Update(keys.head, set={"fence": head.fence + 1}, remove=item.LEASE_ATTRIBUTES, conditions=conditions)
    _write(survey, head, finding, who, [freed])
    return f"The lease of {head.lease.run_id!r} was taken away; the fence is {head.fence + 1} now."


def _publish_later(survey: Survey, head: Head, finding: Finding, who: str) -> str:
    """Mark a committed run as due again. The next run publishes it, as after a crash."""
    key = RunKey.parse(finding.where.removeprefix("RUN "))
    keys = survey.store.keys(survey.job)
    conditions: list[Condition] = [Equals("fence", head.fence), Equals("epoch", head.epoch)]
    conditions += [Lacks("publishing"), Lacks("lease_nonce"), Lacks("cleaning")]
    operations: list[Operation] = [
        Update(keys.head, set={"publishing": str(key)}, conditions=conditions),
        Check(keys.run(key), [Equals("state", RunState.COMMITTED.value)]),
    ]
    _write(survey, head, finding, who, operations)
    return f"Run {key} is due again; the next run of the job publishes it."


def _enter(survey: Survey, head: Head, finding: Finding, who: str) -> str:
    entry: Attributes = {"first_seen_at": to_text(survey.now), "run_number": head.run_number}
    until = collected_before(survey, head)
    if until:  # without it, a consumer that is behind would silently read what is left
        entry[COLLECTED_UNTIL] = until
    entry |= _owned(survey, head)
    _write(survey, head, finding, who, [Put(survey.store.keys(survey.job).index, entry, [Missing()])])
    return "The index has an entry of the job again; the next run adds its task, and its DAG where none is known."


def _owned(survey: Survey, head: Head) -> Attributes:
    """Return who owns and owned the job, according to its head and the hand-overs."""
    owned: dict[str, list[str]] = {FORMER_OWNERS: [], FORMER_NAMES: []}
    for event in survey.events:
        before = event.get("owner_before")
        if event.get("kind") == "hand-over" and isinstance(before, str):
            owned[FORMER_NAMES if event.get("renamed") else FORMER_OWNERS].append(before)
    entry: Attributes = {name: list(dict.fromkeys(listed)) for name, listed in owned.items() if listed}
    return entry if head.owner is None else {**entry, DAG_ID: head.owner}


def _sweep(survey: Survey, head: Head, finding: Finding, who: str) -> str:
    """Remove one folder that was staged under a fence that has passed and can't be committed any more."""
    if finding.where not in orphaned_staging(survey):
        return "It is gone."
    bounds = StagingBounds(Territory(survey.store.namespace, survey.job), HEAD_STAGING)
    FileChanges.of_staging(bounds, [finding.where]).remove()
    return f"{finding.where!r} was removed."


def _forget_staging(survey: Survey, head: Head, finding: Finding, who: str) -> str:
    """Take foreign folders off a job's list of staging folders, so that it can run again. None is touched."""
    own = own_staging(survey)
    foreign = [root for root in head.staging if root not in own]
    conditions: list[Condition] = [Equals("fence", head.fence), Equals("staging", list(head.staging))]
    _write(
        survey,
        head,
        finding,
        who,
        [Update(survey.store.keys(survey.job).head, set={"staging": [*own]}, conditions=conditions)],
    )
    return f"{foreign} came off the list of staging folders; nothing in them was touched."


def _write(survey: Survey, head: Head, finding: Finding, who: str, operations: Sequence[Operation]) -> None:
    store = survey.store
    event: Attributes = {"kind": "repair", **signed(who), "at": to_text(survey.now), "why": finding.what}
    event |= {"code": finding.code, "version_before": head.version}
    event |= {"epoch_before": head.epoch, "epoch_after": head.epoch}
    store.repair(survey.job, operations, event)


_OF_FILES = frozenset(["staging-orphaned"])
_REPAIRS: Mapping[str, Callable[[Survey, Head, Finding, str], str]] = {
    "lease-dangling": _free,
    "publish-lost": _publish_later,
    "index-missing": _enter,
    "staging-orphaned": _sweep,
    "path-foreign": _forget_staging,
}
