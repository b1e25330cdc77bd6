"""Promise JDBC-14: rows that stand for a deletion are taken out of an increment, of files as of tables."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame

from airflow_bookmarks.core.errors import OptionError
from tests.spark.lake import Lake, rows_of

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

SCHEMA = "id INT, is_deleted BOOLEAN"


@pytest.fixture
def delivered(lake: Lake) -> Lake:
    """Deliver rows that are there, gone, and not known."""
    lake.put("a.csv", "1,false", "2,true", "3,")
    return lake


def deletes_of(frame: DataFrame) -> DataFrame:
    deletes: Any = frame.deletes  # to Spark's types it is a column
    assert isinstance(deletes, type(frame))
    return deletes


def test_each_row_is_in_the_frame_or_among_its_deletes(delivered: Lake) -> None:
    with delivered.job() as job:
        frame = job.read("raw", deleted_when="is_deleted").schema(SCHEMA).csv(delivered.path("raw"))
        assert rows_of(frame) == [(1, False), (3, None)]
        assert rows_of(deletes_of(frame)) == [(2, True)]


def test_empty_increment_has_no_deletes(delivered: Lake) -> None:
    for _ in range(2):
        with delivered.job() as job:
            frame = job.read("raw", deleted_when="is_deleted").schema(SCHEMA).csv(delivered.path("raw"))
            found = rows_of(frame), rows_of(deletes_of(frame))
    assert found == ([], [])


@pytest.mark.needs("observations")
def test_both_parts_count_as_what_the_context_is_used_for(delivered: Lake) -> None:
    with delivered.job(on_unused="error") as job:
        frame = job.read("raw", deleted_when="is_deleted").schema(SCHEMA).csv(delivered.path("raw"))
        job.write(frame, "live").csv(delivered.path("live"))
        job.write(deletes_of(frame), "gone").csv(delivered.path("gone"))
    assert rows_of(delivered.spark.read.csv(delivered.path("gone"))) == [("2", "true")]


@pytest.mark.parametrize("condition", ["no_such_column", "is_deleted =", "id + 1"])
def test_what_is_no_condition_is_refused_and_commits_nothing(delivered: Lake, condition: str) -> None:
    with pytest.raises(OptionError, match="is no condition on the columns id, is_deleted"), delivered.job() as job:
        job.read("raw", deleted_when=condition).schema(SCHEMA).csv(delivered.path("raw"))
    assert delivered.state()[1] == 0


def lost(lake: Lake, name: str) -> AttributeError:
    """Ask for an attribute of a frame that has lost it, or never had it, and return the error that ends the run."""
    with pytest.raises(AttributeError) as raised, lake.job() as job:
        getattr(job.read("raw", deleted_when="is_deleted").schema(SCHEMA).csv(lake.path("raw")).where("id > 0"), name)
    assert lake.state()[1] == 0
    return raised.value


@pytest.mark.needs("attribute errors")
def test_frame_without_deletes_tells_which_frames_have_them(delivered: Lake) -> None:
    (note,) = lost(delivered, "deletes").__notes__
    assert note.startswith("A frame has .deletes as job.read(ctx, deleted_when=...)")


@pytest.mark.needs("attribute errors")
def test_other_attribute_that_a_frame_has_not_gets_no_note(delivered: Lake) -> None:
    assert not hasattr(lost(delivered, "deleted"), "__notes__")
