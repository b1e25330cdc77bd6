"""A staged sink that is no folder keeps the promises of every sink, and the suite finds ones that break them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.errors import PublishError
from airflow_bookmarks.core.rules.territory import Territory
from airflow_bookmarks.core.run import OutputEntry, RunKey
from airflow_bookmarks.sinks.clean import CleanGround, CleanList
from airflow_bookmarks.sinks.sink import Publication, PublishSteps, SideOutput, StagedSink, StoredOutput
from airflow_bookmarks.sinks.staging import Staged, StagingRequest
from airflow_bookmarks.store.blobs import BlobStore
from airflow_bookmarks.testing.memory import memory_store
from airflow_bookmarks.testing.sink_conformance import StagedSinkConformance
from tests.lifecycle.parcels import Delivery, Parcels, Return

BESIDE = ["test/other/1.1/out", "test/job2/1.1/out", "aside/test/other/1/out"]


class ParcelsGround:
    """An empty table, but for what other jobs have staged."""

    def __init__(self, sink: Parcels, blobs: BlobStore) -> None:
        self.sink, self.blobs, self.request = sink, blobs, StagingRequest(Parcels.kind, "dw.clean")
        for place in BESIDE:
            sink.put(place, ["beside"])

    def stage(self, output: StoredOutput, rows: Sequence[str], *, overwrites: bool = False) -> OutputEntry:
        self.sink.put(output.entry.place, list(rows))
        return output.entry

    def stage_aside(self, output: SideOutput, rows: Sequence[str]) -> Staged:
        self.sink.put(output.entry.place, list(rows))
        return Staged((), rows=len(rows))

    def put(self, row: str) -> None:
        with self.sink.db as db:
            db.execute("INSERT INTO parcels VALUES ('by hand', ?, ?, 1)", [row, row])

    def touch(self, row: str) -> str:
        with self.sink.db as db:
            db.execute("UPDATE parcels SET row = ? WHERE row = ? AND is_visible = 1", [f"{row}, changed", row])
        return f"{row}, changed"

    def visible(self) -> list[str]:
        return self.sink.visible()

    def staged(self) -> set[RunKey]:
        return {RunKey.parse(place.split("/")[2]) for place in self._places() if place.startswith("test/job/")}

    def staged_aside(self) -> set[str]:
        return {place.split("/")[3] for place in self._places() if place.startswith("aside/test/job/")}

    def outside(self) -> object:
        return [self.sink.db.execute("SELECT * FROM parcels WHERE place = ?", [place]).fetchall() for place in BESIDE]

    def _places(self) -> list[str]:
        return [place for (place,) in self.sink.db.execute("SELECT place FROM parcels WHERE is_visible = 0")]


class TestParcels(StagedSinkConformance):
    @pytest.fixture
    def ground(self, blobs: BlobStore, tmp_path: Path) -> ParcelsGround:
        return ParcelsGround(Parcels(tmp_path / "parcels.db"), blobs)


@pytest.fixture
def blobs() -> Iterator[BlobStore]:
    """Open an empty store."""
    with memory_store() as store:
        yield store.blobs


# ---- sinks that clean wrongly


class RefusesCleans(Parcels):
    """It says that it can't be cleaned."""

    def why_not_clean(self, entry: OutputEntry) -> str | None:
        return "can't take rows back"


class LeavesWhatIsStaged(Parcels):
    """A clean removes what is visible, and a late publisher shows the rest."""

    class Half(Return):
        def remove_staged(self) -> None:
            """Leave it."""

    def prepare_clean(self, ground: CleanGround, listed: CleanList) -> Sequence[Return]:
        return [self.Half(self, each.places) for each in super().prepare_clean(ground, listed)]


class CleansOneFence(Parcels):
    """A clean removes what the last fence of a run has staged."""

    def places(self, output: StoredOutput) -> set[str]:
        return {output.entry.place}


class CleansTheJob(Parcels):
    """A clean removes what all runs of the job have made visible."""

    def remove_visible(self, place: str) -> None:
        with self.db:
            self.db.execute("DELETE FROM parcels WHERE place LIKE 'test/job/%' AND is_visible = 1 AND row IS written")


class CleansTheTable(Parcels):
    """A clean removes what anybody has made visible."""

    def remove_visible(self, place: str) -> None:
        with self.db:
            self.db.execute("DELETE FROM parcels WHERE is_visible = 1 AND row IS written")


class CleansOnce(Parcels):
    """A clean that finds nothing to remove fails."""

    def remove_visible(self, place: str) -> None:
        with self.db:
            query = "DELETE FROM parcels WHERE place = ? AND is_visible = 1 AND row IS written"
            if not self.db.execute(query, [place]).rowcount:
                raise PublishError("nothing is there")


class CleansAtOnce(Parcels):
    """A clean removes rows while it is prepared."""

    def prepare_clean(self, ground: CleanGround, listed: CleanList) -> Sequence[Return]:
        prepared = super().prepare_clean(ground, listed)
        for each in prepared:
            each.remove_visible()
        return prepared


class CleansLivingRuns(Parcels):
    """A clean removes what its list says, of whichever run."""

    def prepare_clean(self, ground: CleanGround, listed: CleanList) -> Sequence[Return]:
        return [Return(self, frozenset(part.listed.get("places", ()))) for part in listed.parts]


class CleansWhatWasTouched(Parcels):
    """A clean removes rows that somebody else has changed."""

    def list_clean(self, output: StoredOutput, replaced: Collection[str]) -> CleanList:
        with self.db:
            self.db.execute("UPDATE parcels SET written = row")
        return super().list_clean(output, replaced)

    def remove_visible(self, place: str) -> None:
        with self.db:
            self.db.execute("DELETE FROM parcels WHERE place = ? AND is_visible = 1", [place])


class FindsWhatWasTouched(Parcels):
    """What somebody else has changed is said to be left of a run."""

    def left(self, output: StoredOutput) -> CleanList | None:
        return self.list_clean(output, ())

    def list_clean(self, output: StoredOutput, replaced: Collection[str]) -> CleanList:
        with self.db:
            self.db.execute("UPDATE parcels SET written = row")
        return super().list_clean(output, replaced)


# ---- a sink that goes wrong in what it joins


class LeavesOneOut(Parcels):
    """What publishes several outputs publishes the first."""

    def joined(self, publications: Mapping[str, Publication]) -> Mapping[tuple[str, ...], Publication]:
        return {tuple(publications): next(iter(publications.values()))}


# ---- sinks that go wrong in pause and disable runs


class ShowsAtOnce(Parcels):
    """Rows of a side run are visible before the publish."""

    def prepare_aside(self, output: SideOutput) -> Delivery:
        prepared = super().prepare_aside(output)
        prepared.publish(lambda what: None, PublishSteps(lambda: None, lambda: 0.0))
        return prepared


@dataclass(frozen=True, slots=True)
class Copies(Delivery):
    """A publish that adds the rows once more, each time."""

    def publish(self, check_held: Callable[[str], None], steps: PublishSteps) -> int:
        with self.sink.db as db:
            query = "INSERT INTO parcels SELECT 'shown', row, written, 1 FROM parcels WHERE place = ?"
            return db.execute(query, [self.place]).rowcount


class ShowsTwice(Parcels):
    """A publish of a side run that is repeated shows its rows twice."""

    def prepare_aside(self, output: SideOutput) -> Delivery:
        return Copies(self, output.entry.place)


class StagesInOnePlace(Parcels):
    """Two side runs stage in one place."""

    def stage_aside(self, territory: Territory, run: str, output: str, request: StagingRequest) -> OutputEntry:
        return super().stage_aside(territory, "side", output, request)


class SweepsAside(Parcels):
    """The sweep of a run takes what side runs have staged."""

    def sweep(self, territory: Territory, root: str, fence: int) -> None:
        super().sweep(territory, root, fence)
        with self.db:
            self.db.execute("DELETE FROM parcels WHERE is_visible = 0 AND place LIKE ?", [f"aside/{root}/%"])


class SweepsAllAside(Parcels):
    """A side run sweeps what others of its job have staged."""

    def sweep_aside(self, output: SideOutput) -> None:
        with self.db:
            self.db.execute("DELETE FROM parcels WHERE is_visible = 0 AND place LIKE 'aside/test/job/%'")


class SweepsWhatIsShown(Parcels):
    """A side run sweeps what it has published."""

    def sweep_aside(self, output: SideOutput) -> None:
        with self.db:
            self.db.execute("DELETE FROM parcels WHERE place = ?", [output.entry.place])


class SweepsNothing(Parcels):
    """A side run leaves what it has staged."""

    def sweep_aside(self, output: SideOutput) -> None:
        """Leave it."""


class SweepsOutside(Parcels):
    """A side run sweeps what other jobs have staged."""

    def sweep_aside(self, output: SideOutput) -> None:
        with self.db:
            self.db.execute("DELETE FROM parcels WHERE is_visible = 0")


class ForgetsSideRuns(Parcels):
    """It finds none of the side runs that have staged."""

    def left_aside(self, territory: Territory, root: str) -> dict[str, str]:
        return {}


class FindsForeignSideRuns(Parcels):
    """It finds side runs of whichever job."""

    def left_aside(self, territory: Territory, root: str) -> dict[str, str]:
        places = self.db.execute("SELECT place FROM parcels WHERE is_visible = 0 AND place LIKE 'aside/%'").fetchall()
        return {place.split("/")[3]: place for (place,) in places}


class CollectsAllAside(Parcels):
    """With what one side run has left goes what the others have staged."""

    def remove_aside(self, territory: Territory, root: str, run: str) -> None:
        super().remove_aside(territory, root, run)
        with self.db:
            self.db.execute("DELETE FROM parcels WHERE is_visible = 0 AND place LIKE ?", [f"aside/{root}/%"])


class CollectsWhatIsShown(Parcels):
    """With what a side run has left goes what it has published."""

    def remove_aside(self, territory: Territory, root: str, run: str) -> None:
        super().remove_aside(territory, root, run)
        with self.db:
            self.db.execute("DELETE FROM parcels WHERE place LIKE ?", [f"aside/{root}/{run}/%"])


class ShowsWhatIsForeign(Parcels):
    """A side run publishes what lies under another job."""

    def prepare_aside(self, output: SideOutput) -> Delivery:
        return Delivery(self, output.entry.place)


@pytest.mark.parametrize(
    ("broken", "test"),
    [
        (RefusesCleans, TestParcels.test_output_that_a_clean_can_remove_is_not_refused),
        (LeavesWhatIsStaged, TestParcels.test_clean_removes_what_each_fence_of_an_undone_run_staged_and_no_more),
        (CleansOneFence, TestParcels.test_clean_removes_what_each_fence_of_an_undone_run_staged_and_no_more),
        (CleansTheJob, TestParcels.test_clean_removes_what_undone_runs_made_visible_and_no_more),
        (CleansTheJob, TestParcels.test_clean_can_be_repeated),
        (CleansTheTable, TestParcels.test_clean_leaves_rows_of_other_writers_and_what_lies_outside),
        (CleansOnce, TestParcels.test_clean_can_be_repeated),
        (CleansAtOnce, TestParcels.test_clean_removes_nothing_while_it_is_prepared_nor_of_living_runs),
        (CleansLivingRuns, TestParcels.test_clean_removes_nothing_while_it_is_prepared_nor_of_living_runs),
        (CleansWhatWasTouched, TestParcels.test_clean_leaves_what_somebody_else_touched_since_it_was_listed),
        (CleansWhatWasTouched, TestParcels.test_clean_leaves_what_somebody_else_touched_before_or_is_refused),
        (FindsWhatWasTouched, TestParcels.test_what_an_undone_run_has_left_is_what_a_later_clean_removes),
        (LeavesOneOut, TestParcels.test_outputs_of_a_run_are_visible_once_by_what_joins_them),
        (ShowsAtOnce, TestParcels.test_side_run_shows_nothing_before_its_publish),
        (ShowsTwice, TestParcels.test_side_publish_makes_each_row_visible_once_and_can_be_repeated),
        (StagesInOnePlace, TestParcels.test_side_runs_share_no_place_with_any_run),
        (SweepsAside, TestParcels.test_staging_of_a_side_run_is_swept_by_nobody_else),
        (SweepsAllAside, TestParcels.test_staging_of_a_side_run_is_swept_by_nobody_else),
        (SweepsWhatIsShown, TestParcels.test_side_run_sweeps_what_it_staged_and_no_more),
        (SweepsNothing, TestParcels.test_side_run_sweeps_what_it_staged_and_no_more),
        (SweepsOutside, TestParcels.test_side_run_touches_nothing_outside),
        (ForgetsSideRuns, TestParcels.test_staging_of_side_runs_is_found_by_their_ids_and_no_other_is),
        (
            FindsForeignSideRuns,
            TestParcels.test_staging_of_side_runs_is_found_by_their_ids_and_no_other_is,
        ),
        (FindsForeignSideRuns, TestParcels.test_leftovers_beside_the_staging_of_another_job_are_refused),
        (CollectsAllAside, TestParcels.test_leftovers_of_one_side_run_are_removed_and_no_more),
        (CollectsWhatIsShown, TestParcels.test_leftovers_of_one_side_run_are_removed_and_no_more),
        (ShowsWhatIsForeign, TestParcels.test_side_output_of_another_job_is_refused),
    ],
)
def test_suite_finds_it(
    broken: type[Parcels], test: Callable[[TestParcels, Any], None], blobs: BlobStore, tmp_path: Path
) -> None:
    with pytest.raises((AssertionError, PublishError)):
        test(TestParcels(), ParcelsGround(broken(tmp_path / "parcels.db"), blobs))


# ---- a sink that can do neither


class OnlyStages(StagedSink):
    """It has what every staged sink has, from the one that can do more."""

    kind = Parcels.kind
    stage, prepare, check_root, sweep = Parcels.stage, Parcels.prepare, Parcels.check_root, Parcels.sweep


@pytest.mark.parametrize(
    ("test", "why"),
    [
        (TestParcels.test_clean_can_be_repeated, "no CleanedSink: nothing shows that a clean removes"),
        (TestParcels.test_side_run_touches_nothing_outside, "no SidewaysSink: nothing shows that it takes"),
    ],
)
def test_what_the_sink_can_not_do_is_skipped_and_said(
    test: Callable[[TestParcels, Any], None], why: str, blobs: BlobStore, tmp_path: Path
) -> None:
    ground: Any = ParcelsGround(Parcels(tmp_path / "parcels.db"), blobs)
    ground.sink = OnlyStages()
    with pytest.raises(pytest.skip.Exception, match=why):
        test(TestParcels(), ground)
