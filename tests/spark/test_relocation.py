"""Promise of RUN-12 in a script: `moved_from` reads on from a folder that moved with its files."""

from __future__ import annotations

import pytest

from airflow_bookmarks.core.errors import OptionError
from tests.spark.lake import Lake, lines_of


def test_moved_from_reads_what_is_new_in_the_folder_as_it_is_named_now(lake: Lake) -> None:
    lake.put("a.txt", "a")
    lake.put("b.txt", "b")
    assert lake.run() == ["a", "b"]
    (lake.root / "raw").rename(lake.root / "moved")
    lake.put("c.txt", "c", folder="moved")
    for expected in (["c"], []):
        with lake.job() as job:
            assert lines_of(lake.read(job, "moved", moved_from=lake.path("raw"))) == expected
    with lake.job() as job:
        assert lines_of(lake.read(job, "moved")) == []


def test_moved_from_and_another_word_on_a_source_that_changed_are_refused(lake: Lake) -> None:
    lake.put("a.txt", "a")
    with pytest.raises(OptionError, match="both say"), lake.job() as job:
        lake.read(job, moved_from="/old", on_source_change="keep")
