"""A staged sink of one's own that is no folder: rows in an SQLite table, which become visible by an update."""

from __future__ import annotations

import sqlite3
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_bookmarks.core.errors import CleanRefusedError, OutOfBoundsError
from airflow_bookmarks.core.rules.territory import Territory
from airflow_bookmarks.core.run import OutputEntry, RunKey
from airflow_bookmarks.sinks.clean import CleanedSink, CleanGround, CleanList, CleanPart
from airflow_bookmarks.sinks.sink import CollectedSink, StoredOutput
from airflow_bookmarks.sinks.staging import stats_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from airflow_bookmarks.sinks.sink import PublishSteps, SideOutput
    from airflow_bookmarks.sinks.staging import StagingRequest


@dataclass(frozen=True, slots=True)
class Delivery:
    """The publish of one output: the rows of its place become visible in one transaction."""

    sink: Parcels
    place: str
    former: tuple[str, ...] = ()

    def publish(self, check_held: Callable[[str], None], steps: PublishSteps) -> int:
        with self.sink.db as db:
            for place in self.former:
                db.execute("DELETE FROM parcels WHERE place = ?", [place])
            count = db.execute("UPDATE parcels SET is_visible = 1 WHERE place = ?", [self.place]).rowcount
        steps.done()
        return count


@dataclass(frozen=True, slots=True)
class Return:
    """What a clean removes of one output."""

    sink: Parcels
    places: frozenset[str]

    def remove_staged(self) -> None:
        for place in self.places:
            self.sink.remove_staged(place)

    def remove_visible(self) -> None:
        for place in self.places:
            self.sink.remove_visible(place)


class Parcels(CollectedSink, CleanedSink):
    """Rows in a database; a place is named `<namespace>/<job>/<run key>/<output>`, that of a side run by its id.

    `written` is the row as a run has written it: where it differs, somebody else has changed the row since.
    """

    kind = "parcels"

    def __init__(self, path: Path | str) -> None:
        self.db = sqlite3.connect(path, check_same_thread=False)
        # Dropped wherever a test ends: Python 3.13 warns of a connection that nobody closes.
        weakref.finalize(self, self.db.close)
        self.db.execute("CREATE TABLE IF NOT EXISTS parcels (place TEXT, row TEXT, written TEXT, is_visible INT)")

    # ---- what a script does

    def put(self, place: str, rows: list[str]) -> None:
        with self.db:
            self.db.executemany("INSERT INTO parcels VALUES (?, ?, ?, 0)", [(place, row, row) for row in rows])

    def visible(self) -> list[str]:
        return sorted(row for (row,) in self.db.execute("SELECT row FROM parcels WHERE is_visible = 1"))

    def staged(self) -> list[str]:
        return sorted(row for (row,) in self.db.execute("SELECT row FROM parcels WHERE is_visible = 0"))

    # ---- what the lifecycle asks

    def stage(
        self, territory: Territory, key: RunKey, output: str, request: StagingRequest
    ) -> tuple[OutputEntry, str | None]:
        root = f"{territory.namespace}/{territory.job}"
        return OutputEntry(self.kind, request.target, f"{root}/{key}/{output}", stats_of(request)), root

    def prepare(self, output: StoredOutput) -> Delivery | None:
        self._check(output.territory, output.entry.place, str(output))
        return Delivery(self, output.entry.place, tuple(self.places(output) - {output.entry.place}))

    def places(self, output: StoredOutput) -> set[str]:
        """Return where each revision of a run has staged."""
        run, root = output.run, f"{output.territory.namespace}/{output.territory.job}"
        return {f"{root}/{run.key.number}.{fence}/{output.name}" for fence in run.fences}

    def why_not_clean(self, entry: OutputEntry) -> str | None:
        return None

    def list_clean(self, output: StoredOutput, replaced: Collection[str]) -> CleanList:
        if self._count(output, "row IS NOT written"):
            what = f"rows of {output} have been changed by something else"
            raise CleanRefusedError(output.territory.job, what, "Put them back, or reset or rewind without clean.")
        return CleanList(parts=(CleanPart.of(output, {"places": sorted(self.places(output))}),))

    def left(self, output: StoredOutput) -> CleanList | None:
        return CleanList(parts=(CleanPart.of(output),)) if self._count(output, "row IS written") else CleanList()

    def prepare_clean(self, ground: CleanGround, listed: CleanList) -> Sequence[Return]:
        return [Return(self, frozenset(self.places(ground.output_of(part)))) for part in listed.parts]

    def why_not_replay(self, entry: OutputEntry) -> str | None:
        return None

    def stage_aside(self, territory: Territory, run: str, output: str, request: StagingRequest) -> OutputEntry:
        place = f"aside/{territory.namespace}/{territory.job}/{run}/{output}"
        return OutputEntry(self.kind, request.target, place, stats_of(request))

    def prepare_aside(self, output: SideOutput) -> Delivery:
        self._check(output.territory, output.entry.place.removeprefix("aside/"), output.item)
        return Delivery(self, output.entry.place)

    def sweep_aside(self, output: SideOutput) -> None:
        self.remove_staged(output.entry.place)

    def left_aside(self, territory: Territory, root: str) -> dict[str, str]:
        self.check_root(territory, root)
        places = self.db.execute("SELECT DISTINCT place FROM parcels WHERE is_visible = 0").fetchall()
        runs = {place.split("/")[3] for (place,) in places if place.startswith(f"aside/{root}/")}
        return {run: f"aside/{root}/{run}" for run in runs}

    def remove_aside(self, territory: Territory, root: str, run: str) -> None:
        self.check_root(territory, root)
        with self.db:
            query = "DELETE FROM parcels WHERE is_visible = 0 AND substr(place, 1, ?) = ?"
            self.db.execute(query, [len(f"aside/{root}/{run}/"), f"aside/{root}/{run}/"])

    def check_root(self, territory: Territory, root: str) -> None:
        if root != f"{territory.namespace}/{territory.job}":
            raise OutOfBoundsError(territory.job, "HEAD, staging", root, "it is that of another job")

    def sweep(self, territory: Territory, root: str, fence: int) -> None:
        self.check_root(territory, root)
        for (place,) in self.db.execute("SELECT DISTINCT place FROM parcels WHERE is_visible = 0").fetchall():
            if place.startswith(f"{root}/") and RunKey.parse(place.split("/")[2]).fence <= fence:
                self.remove_staged(place)

    def remove_staged(self, place: str) -> None:
        with self.db:
            self.db.execute("DELETE FROM parcels WHERE place = ? AND is_visible = 0", [place])

    def remove_visible(self, place: str) -> None:
        """Remove the rows that are still as a run has written them."""
        with self.db:
            self.db.execute("DELETE FROM parcels WHERE place = ? AND is_visible = 1 AND row IS written", [place])

    def _count(self, output: StoredOutput, which: str) -> int:
        query = f"SELECT count(*) FROM parcels WHERE place = ? AND is_visible = 1 AND {which}"
        return sum(self.db.execute(query, [place]).fetchone()[0] for place in self.places(output))

    def _check(self, territory: Territory, place: str, what: str) -> None:
        if not place.startswith(f"{territory.namespace}/{territory.job}/"):
            raise OutOfBoundsError(territory.job, what, place, "it is that of another job")
