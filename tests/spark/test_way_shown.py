"""How a plan is read is chosen from its counts and stands in the log; the settings of the session stay as they were."""

from __future__ import annotations

import logging

import pytest

from airflow_bookmarks.core.errors import SchemaUnknownError
from airflow_bookmarks.spark.readers import files as readers_files
from tests.spark.lake import LISTING_KEY, Lake

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.mark.needs("listing once")
def test_way_is_chosen_from_the_counts_and_stands_in_the_log(
    lake: Lake, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers_files, "_FEW_FILES", 2)
    said = []
    for names in ("abcd", "e", "fghijkl"):
        for name in names:
            lake.put(f"{name}.txt", name)
        with caplog.at_level(logging.INFO, "airflow_bookmarks"):
            assert lake.run() == list(names)
        said += [
            record.getMessage().partition(": ")[2] for record in caplog.records if "reading by" in record.getMessage()
        ]
        caplog.clear()
    assert said == [
        "reading by directory, 4 files of 4 listed",
        "reading by paths, 1 files of 5 listed",
        "reading by directory, 7 files of 12 listed",
    ]


@pytest.mark.parametrize("before", ["3", None])
def test_settings_of_the_read_are_put_back_also_where_it_fails(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, before: str | None
) -> None:
    if before is not None:
        lake.spark.conf.set(LISTING_KEY, before)
    found = lake.spark.conf.get(LISTING_KEY, None)
    seen = []
    read = readers_files._read

    def noted(*args: object, **kwargs: object) -> object:
        seen.append(lake.spark.conf.get(LISTING_KEY))
        return read(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(readers_files, "_read", noted)
    lake.put("a.json")
    with pytest.raises(SchemaUnknownError), lake.job() as job:
        job.read("raw").json(lake.path("raw"))
    assert lake.spark.conf.get(LISTING_KEY, None) == found
    assert lake.run() == []
    assert lake.spark.conf.get(LISTING_KEY, None) == found
    assert "8" in seen
