"""Promise FILE-22: the time that partitions tell."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.selection.partition_time import PartitionTime
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.partition_rule import PartitionCutoff


@pytest.mark.parametrize(
    ("columns", "values", "start", "end"),
    [
        ("year", ["2013"], "2013-01-01", "2014-01-01"),
        ("year,month", ["2013", "09"], "2013-09-01", "2013-10-01"),
        ("year,month", ["2013", "12"], "2013-12-01", "2014-01-01"),
        ("year,month,day", ["2012", "2", "29"], "2012-02-29", "2012-03-01"),
        ("year,month,day,hour", ["2013", "12", "31", "23"], "2013-12-31T23:00", "2014-01-01"),
        ("year,month,day,hour,minute", ["2013", "1", "1", "0", "59"], "2013-01-01T00:59", "2013-01-01T01:00"),
        ("year,month", ["2013"], "2013-01-01", "2014-01-01"),  # the month is not known yet
        ("dt", ["2013-01-31"], "2013-01-31", "2013-02-01"),
        ("dt", ["20130131"], "2013-01-31", "2013-02-01"),
        ("dt", ["2013-01"], "2013-01-01", "2013-02-01"),
        ("dt", ["2013-01-31-05"], "2013-01-31T05:00", "2013-01-31T06:00"),
        ("dt,hour", ["2013-01-31", "5"], "2013-01-31T05:00", "2013-01-31T06:00"),
    ],
)
def test_folder_covers_the_unit_that_it_names(columns: str, values: list[str], start: str, end: str) -> None:
    span = PartitionTime.parse(columns).span(dict(zip(columns.split(","), values, strict=False)))

    assert span is not None
    assert (span.start, span.end) == (datetime.fromisoformat(start), datetime.fromisoformat(end))


@pytest.mark.parametrize("values", [{}, {"year": "x"}, {"year": "2013", "month": "13"}, {"year": "9999"}, {"day": "1"}])
def test_folder_without_a_time_tells_none(values: dict[str, str]) -> None:
    assert PartitionTime.parse("year,month").span(values) is None


@pytest.mark.parametrize("text", ["", "year,", "year,year", "year,Year", "a,b,c,d,e,f", 7])
def test_columns_that_tell_no_time_are_refused(text: str) -> None:
    with pytest.raises(OptionError, match="partition_time"):
        PartitionTime.parse(text)


def test_partition_time_needs_a_line_and_folders_that_are_partitions() -> None:
    with pytest.raises(OptionError, match="without late_after"):
        FileOptions(partition_time="year")
    with pytest.raises(OptionError, match="recursiveFileLookup"):
        FileOptions(partition_time="year", late_after=timedelta(1), recursive=True)
    with pytest.raises(OptionError, match="recursiveFileLookup"):
        FileOptions(partition_filter="year = 2013", recursive=True)
    for exclusions in ("*.bak", None, 7):
        with pytest.raises(OptionError, match="expected a list"):
            FileOptions(exclusions=exclusions)  # type: ignore[arg-type]


def test_line_before_the_beginning_of_time_leaves_nothing_out() -> None:
    line = PartitionCutoff(PartitionTime.parse("year"), datetime(2013, 1, 1), late_after=timedelta(days=10**6))  # noqa: DTZ001

    assert not line.is_before({"year": "0001"})
    assert not line.is_passed("/lake/year=0001/a", "/lake", datetime.now(UTC))


def test_options_of_selection_are_told_and_read_back() -> None:
    options = FileOptions(
        exclusions=["*.bak"],
        name_pattern="*.csv",
        partition_filter="year = 2013",
        partition_time="year",
        late_after=timedelta(days=1),
    )

    assert FileOptions.of_stats(options.stats()) == options
