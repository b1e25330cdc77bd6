"""Land imported jobs: decide what an import keeps of the items of a document, and what it leaves out.

A document is a file of unknown origin. So only a move, which a person requests explicitly, brings what makes the next
run move, delete or sweep files; no import brings a change that is already approved; and events of others are marked as
imported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import ChangeRefusedError
from airflow_bookmarks.core.rules.territory import Territory
from airflow_bookmarks.core.text.redaction import redacted
from airflow_bookmarks.lifecycle.maintenance.artifacts import artifact_uris
from airflow_bookmarks.sinks.registry import SINKS
from airflow_bookmarks.store.codec import item
from airflow_bookmarks.store.reader import IMPORTED_FROM
from airflow_bookmarks.store.transitions.collection import COPIED_UNTIL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.rules.audit import AuditEvent
    from airflow_bookmarks.store.stored_item import IndexEntry, StoredItem


@dataclass(frozen=True, slots=True)
class Landing:
    """The items and the index entry of a job as an import writes them; `dropped` says what it leaves out."""

    items: Mapping[str, StoredItem]
    index: IndexEntry
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a document comes from, and how it is to land.

    `namespace` is the one that it was exported from, `home` the one that it is imported into. `is_copy`: the job may be
    alive elsewhere. `is_move`: it is nowhere else any more.
    """

    namespace: str
    home: str
    is_copy: bool
    is_move: bool

    def check_due(self, job: str, head: Head) -> None:
        """Make sure that the due work of a job can be finished here.

        Raises:
            ChangeRefusedError: a copy must not finish it; or its files lie in the staging of another namespace.
        """
        if head.cleaning is None and head.publishing is None:
            return
        due = "a clean" if head.cleaning is not None else f"the publish of run {head.run_number}"
        if self.is_copy:
            raise ChangeRefusedError(
                f"job {job!r} was exported while {due} was due, and a copy must not finish it: its files are those of "
                "the job that was exported. Nothing was imported. Let that job run once, and export it again; or, if "
                "this store takes its place for good, import with move (--move)."
            )
        if self.is_move and self.namespace != self.home:
            raise ChangeRefusedError(
                f"job {job!r} was exported while {due} was due, with files in the staging of namespace "
                f"{self.namespace!r}, which namespace {self.home!r} may not touch. Nothing was imported. Let that job "
                f"run once, and export it again; or import it into a namespace {self.namespace!r}."
            )

    def check_artifacts(self, job: str, items: Mapping[str, StoredItem]) -> None:
        """Make sure that a copy has no position with artifacts: they go when the job that was exported leaves them.

        Raises:
            ChangeRefusedError: it has one.
        """
        uris = sorted({uri for each in items.values() for uri in artifact_uris(each)}) if self.is_copy else []
        if uris:
            raise ChangeRefusedError(
                f"job {job!r}: {len(uris)} folder(s) belong to its positions, the first: {redacted(uris[0])!r}, and a "
                "copy would lose them when the job that was exported needs them no longer. Nothing was imported. If "
                "this store takes its place for good, import with move (--move), and keep those folders; else begin "
                "anew here."
            )

    def landing(self, job: str, items: Mapping[str, StoredItem], head: Head, index: IndexEntry) -> Landing:
        """Return a job as it is to stand here: without a lease, and without what is not imported."""
        kept, dropped = self._without_changes(job, items, head)
        landed = {sk: self._event(each) if sk.startswith(item.EVENT_PREFIX) else each for sk, each in kept.items()}
        voided = [sk for sk, each in landed.items() if each.get("void") and not items[sk].get("void")]
        if voided:
            dropped.append(f"{len(voided)} request(s) for a change, which are void")
        if self.is_copy:
            index = {**index, COPIED_UNTIL: head.run_number}
        return Landing(landed, index, tuple(dropped))

    def _without_changes(
        self, job: str, items: Mapping[str, StoredItem], head: Head
    ) -> tuple[dict[str, StoredItem], list[str]]:
        """Return the items without what would let the next run change files, and what was removed.

        To sweep the staging of a job that may be alive by a fence that means nothing there, or to settle its open run,
        would cost it rows.
        """
        now = {name: value for name, value in items["HEAD"].items() if name not in item.LEASE_ATTRIBUTES}
        staging = [root for root in head.staging if self.is_move and self._is_own(job, root)]
        dropped = [f"the staging folder {root!r}" for root in head.staging if root not in staging]
        now["staging"] = [*staging]
        if not self.is_move and now.pop("cleaning", None) is not None:
            dropped.append("a clean that was due")
        if not self.is_move and (due := now.pop("publishing", None)) is not None:
            dropped.append(f"the publish of run {due!s}, which was due ('airflow-bookmarks doctor' finds it)")
        kept = {**items, "HEAD": now}
        if self.is_copy:
            opened = [sk for sk in kept if sk.startswith(item.RUN_PREFIX) and item.run_key(sk).number > head.run_number]
            dropped += [f"run {item.run_key(sk)}, which was open" for sk in opened]
            kept = {sk: each for sk, each in kept.items() if sk not in opened}
        return kept, dropped

    def _is_own(self, job: str, root: str) -> bool:
        territory = Territory(self.home, job)
        if self.namespace != self.home:  # a root of a kind that is not known here lies where the job was, so it goes
            return SINKS.is_own(territory, root)
        # Else it stays: no run sweeps it before that kind has found it to be the job's.
        return not SINKS.is_foreign(territory, root)

    def _event(self, event: AuditEvent) -> AuditEvent:
        """Mark an event as imported; a request that is not carried out, decided or not, becomes void."""
        marked: AuditEvent = {**event, IMPORTED_FROM: event.get(IMPORTED_FROM, self.namespace)}
        return {**marked, "void": True} if event.get("kind") == "request" and not event.get("done") else marked
