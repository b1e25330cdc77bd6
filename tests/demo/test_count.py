"""The counting of the demo, without Spark: it finds what is missing, and what is there twice."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as arrow
import pyarrow.parquet as parquet
import pytest

from demo.check import check_journal, check_target, clean_stage, delays_stage
from demo.count import Difference, count_flights, count_sources
from demo.folders import Folders
from demo.landing import Flights, Landing

HEADER = "year,month,day,carrier,flight,origin,dest,sched_dep_time,arr_delay\n"
DAY = date(2013, 1, 31)
LINES = ("2013,1,31,UA,1545,EWR,IAH,515,11\n", "2013,1,31,UA,1546,EWR,IAH,600,NA\n", "2013,1,31,AA,7,JFK,MIA,540,-3\n")
ROWS = [("UA", 1545, "EWR", "IAH", 515, 11), ("UA", 1546, "EWR", "IAH", 600, None), ("AA", 7, "JFK", "MIA", 540, -3)]


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    """One day with three flights has landed."""
    folders = Folders.make(tmp_path / "demo")
    landing = Landing(folders.raw, Flights(HEADER, {DAY: LINES}))
    landing.land(1)
    return folders


def write(folder: Path, rows: Sequence[tuple[object, ...]], name: str = "part.parquet") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    columns = ("carrier", "flight", "origin", "dest", "sched_dep_time", "arr_delay")
    table = arrow.table({column: [row[i] for row in rows] for i, column in enumerate(columns)})
    parquet.write_table(table, folder / name)


def write_journal(folders: Folders, rows: Sequence[tuple[int, int]], name: str = "part.parquet") -> None:
    folders.journal.mkdir(parents=True, exist_ok=True)
    days, flights = zip(*rows, strict=True)
    table = arrow.table({"month": [1] * len(rows), "day": days, "flights": flights})
    parquet.write_table(table, folders.journal / name)


def test_target_that_holds_each_row_of_its_source_once_passes(folders: Folders) -> None:
    write(folders.clean / "month=1" / "day=31", ROWS)

    assert check_target(clean_stage(folders), count_sources(folders.raw)) == 3


def test_row_that_is_there_twice_is_found_though_another_is_missing(folders: Folders) -> None:
    write(folders.clean / "month=1" / "day=31", [ROWS[0], ROWS[1], ROWS[1]])

    with pytest.raises(Difference, match=r"2013-01-31 in the target \(1 missing, 1 too many\)"):
        check_target(clean_stage(folders), count_sources(folders.raw))


def test_value_that_was_not_corrected_is_found(folders: Folders) -> None:
    write(folders.clean / "month=1" / "day=31", [*ROWS[:2], ("AA", 7, "JFK", "MIA", 540, -4)])

    with pytest.raises(Difference, match="1 missing, 1 too many"):
        check_target(clean_stage(folders), count_sources(folders.raw))


def test_day_that_is_missing_is_named(folders: Folders) -> None:
    with pytest.raises(Difference, match="days in the target: expected '2013-01-31', found 'none'"):
        check_target(clean_stage(folders), count_sources(folders.raw))


def test_staged_file_is_no_part_of_the_target_and_must_not_be_left(folders: Folders) -> None:
    write(folders.clean / "month=1" / "day=31", ROWS)
    write(folders.clean / "_bookmarks" / "demo" / "job" / "1.1" / "clean" / "month=1" / "day=31", ROWS)

    assert count_flights(folders.clean)[DAY].total() == 3
    with pytest.raises(Difference, match="files left staged"):
        check_target(clean_stage(folders), count_sources(folders.raw))


def test_journal_that_has_each_day_once_as_often_as_it_was_delivered_passes(folders: Folders) -> None:
    write_journal(folders, [(31, 3)])
    write_journal(folders, [(31, 2)], "corrected.parquet")

    assert check_journal(delays_stage(folders), [(DAY, 3), (DAY, 2), (DAY, 2)]) == 2


def test_row_that_was_appended_twice_is_found_though_another_is_missing(folders: Folders) -> None:
    write_journal(folders, [(31, 3)])
    write_journal(folders, [(31, 3)], "again.parquet")

    with pytest.raises(Difference, match=r"rows in the journal \(1 missing, 1 too many, of 2013-01-30 to 2013-01-31\)"):
        check_journal(delays_stage(folders), [(DAY, 3), (DAY - timedelta(days=1), 5)])


def test_job_that_appends_to_nothing_has_no_journal(folders: Folders) -> None:
    assert check_journal(clean_stage(folders), [(DAY, 3)]) is None


def test_source_file_knows_its_delays_and_its_time(folders: Folders) -> None:
    source = count_sources(folders.raw)[DAY]

    assert source.modified_at == datetime(2013, 2, 1, 4, tzinfo=UTC)
    assert dict(source.delays()) == {("UA", 2, 1, 11): 1, ("AA", 1, 1, -3): 1}
