"""Tables keep the promises of every sink that stages, on PostgreSQL, MariaDB and SQLite (SINK-4, SINK-8)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.database.upsert import Upsert
from airflow_bookmarks.core.errors import DatabaseError
from airflow_bookmarks.core.rules.territory import Territory
from airflow_bookmarks.core.run import OutputEntry, RunKey
from airflow_bookmarks.databases.address import DatabaseAddress
from airflow_bookmarks.databases.database import open_database
from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.sinks.examined import DifferenceKind, SinkDifference
from airflow_bookmarks.sinks.jdbc.sink import JdbcSink
from airflow_bookmarks.sinks.sink import PublishSteps, StoredOutput
from airflow_bookmarks.store.blobs import BlobStore
from airflow_bookmarks.testing.sink_conformance import JOB, StagedSinkConformance
from tests.databases.servers import new_sqlite
from tests.sinks.jdbc.table_ground import OneLogin, TableGround


class TestAppend(StagedSinkConformance):
    @pytest.fixture
    def ground(self, database_login: DatabaseLogin, blobs: BlobStore) -> TableGround:
        return TableGround(database_login, blobs)


@pytest.mark.thorough  # the one with deletes does all of it, and more
class TestUpsert(StagedSinkConformance):
    @pytest.fixture
    def ground(self, database_login: DatabaseLogin, blobs: BlobStore) -> TableGround:
        columns = [("row", "varchar(100)"), ("seen", "varchar(100)")]
        return TableGround(database_login, blobs, columns=columns, key=["row"], upsert=Upsert(("row",), ("seen",)))


class TestUpsertWithDeletes(StagedSinkConformance):
    @pytest.fixture
    def ground(self, database_login: DatabaseLogin, blobs: BlobStore) -> TableGround:
        columns = [("row", "varchar(100)"), ("seen", "varchar(100)")]
        upsert = Upsert(("row",), ("seen",), has_deletes=True)
        return TableGround(database_login, blobs, columns=columns, key=["row"], upsert=upsert)


@pytest.mark.seldom  # the same suite, with other names
class TestNamesWithEveryCharacter(StagedSinkConformance):
    @pytest.fixture
    def ground(self, database_login: DatabaseLogin, blobs: BlobStore) -> TableGround:
        columns = [("Größe in \"cm\" `x` 'y' \\ %s %", "varchar(100)"), ("select", "varchar(100)")]
        name = "Dim \"2013\" `é` 'x' \\ %d; #1"
        keys = (columns[0][0],)
        return TableGround(
            database_login,
            blobs,
            name=name,
            columns=columns,
            key=keys,
            upsert=Upsert(keys, ("select",), has_deletes=True),
        )


# ---- sinks that tell wrongly what lies in them


class ForgetsWhatIsStaged(JdbcSink):
    """It finds nothing staged."""

    def staged_in(self, territory: Territory, root: str) -> Mapping[str, RunKey]:
        return {}


class TellsOfAnyJob(JdbcSink):
    """It tells of one job whatever is asked."""

    def staged_in(self, territory: Territory, root: str) -> Mapping[str, RunKey]:
        return super().staged_in(JOB, root)


class DropsForAnyJob(JdbcSink):
    """It drops a place whoever asks."""

    def drop_staged(self, territory: Territory, root: str, place: str) -> None:
        super().drop_staged(JOB, root, place)


class DropsAll(JdbcSink):
    """With one place go all others."""

    def drop_staged(self, territory: Territory, root: str, place: str) -> None:
        self.sweep(territory, root, 1_000)


class DropsOnce(JdbcSink):
    """To drop a place that is gone fails."""

    def drop_staged(self, territory: Territory, root: str, place: str) -> None:
        assert place in self.staged_in(territory, root)
        super().drop_staged(territory, root, place)


class DropsWhateverIsNamed(JdbcSink):
    """It drops any table."""

    def drop_staged(self, territory: Territory, root: str, place: str) -> None:
        table = place.rpartition("#")[2]
        address = DatabaseAddress.parse("conn:dw")
        with open_database(self._databases.login(address)) as database, suppress(DatabaseError):
            database.execute(f"DROP TABLE {table}")


class PublishesWhatWaits(JdbcSink):
    """An examination publishes what waits."""

    def examine(self, output: StoredOutput) -> Sequence[SinkDifference]:
        found = super().examine(output)
        publication = self.prepare(output)
        assert publication is not None
        publication.publish(lambda what: None, PublishSteps(lambda: None, lambda: 0.0))
        return found


class FindsNothing(JdbcSink):
    """All is as runs say."""

    def examine(self, output: StoredOutput) -> Sequence[SinkDifference]:
        return []


class ExaminesOnlyTheState(JdbcSink):
    """What is committed waits, and what is published is there."""

    def examine(self, output: StoredOutput) -> Sequence[SinkDifference]:
        waits = SinkDifference(DifferenceKind.WAITS, "it waits", "Wait.")
        return [] if output.run.state.name == "PUBLISHED" else [waits]


class FindsItWithoutARemedy(JdbcSink):
    """It names no remedy."""

    def examine(self, output: StoredOutput) -> Sequence[SinkDifference]:
        return [SinkDifference(each.kind, each.what, "") for each in super().examine(output)]


class SaysThatRowsAreThereOnce(JdbcSink):
    """It appends, and says that it replaces."""

    def holds_rows_once(self, entry: OutputEntry) -> bool:
        return True


class SaysThatNothingIsPublished(JdbcSink):
    """Nothing is ever visible."""

    def is_unpublished(self, output: StoredOutput) -> bool:
        return True


WAITS = TestAppend.test_output_that_waits_for_its_publish_is_told_and_not_changed


@pytest.mark.parametrize(
    ("broken", "test"),
    [
        (ForgetsWhatIsStaged, TestAppend.test_what_each_run_has_staged_is_told_with_its_run),
        (TellsOfAnyJob, TestAppend.test_staging_of_another_job_is_neither_told_nor_dropped),
        (DropsForAnyJob, TestAppend.test_staging_of_another_job_is_neither_told_nor_dropped),
        (DropsAll, TestAppend.test_one_place_is_dropped_and_no_more),
        (DropsWhateverIsNamed, TestAppend.test_place_that_is_none_of_its_staging_stays),
        (DropsOnce, TestAppend.test_one_place_is_dropped_and_no_more),
        (PublishesWhatWaits, WAITS),
        (FindsNothing, WAITS),
        (FindsNothing, TestAppend.test_output_that_a_run_says_was_published_and_the_sink_does_not_is_told),
        (FindsNothing, TestAppend.test_output_whose_staging_is_gone_before_its_publish_is_told),
        (FindsNothing, TestAppend.test_target_that_is_gone_is_told),
        (ExaminesOnlyTheState, TestAppend.test_output_whose_staging_is_gone_before_its_publish_is_told),
        (ExaminesOnlyTheState, TestAppend.test_output_of_another_job_is_not_examined),
        (FindsItWithoutARemedy, WAITS),
        (
            SaysThatRowsAreThereOnce,
            TestAppend.test_rows_that_another_run_writes_again_are_there_once_if_the_sink_says_so,
        ),
        (SaysThatNothingIsPublished, TestAppend.test_output_counts_as_unpublished_only_before_its_publish),
    ],
)
def test_suite_finds_it(
    broken: type[JdbcSink], test: Callable[[TestAppend, Any], None], blobs: BlobStore, tmp_path: Path
) -> None:
    ground = TableGround(new_sqlite(tmp_path / "dw.db"), blobs)
    ground.sink = broken(OneLogin(ground.login))
    with pytest.raises(AssertionError):
        test(TestAppend(), ground)
