"""The lines that people search logs of Glue for are there, word by word."""

from __future__ import annotations

import logging

import pytest

from airflow_bookmarks.glue.listing_log import LoggedPartition

_PARTITION = LoggedPartition("s3://lake/y=2019/m=01/", {"y": "2019", "m": "01"}, 1559235148000)
_NAMED = r"DynamicFramePartition(com.amazonaws.services.glue.DynamicRecord@"


def test_the_four_lines_have_their_loggers_levels_and_text(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        _PARTITION.log_skipped()
        _PARTITION.log_new(47)
        _PARTITION.log_initial(15, 47)
        _PARTITION.log_final(15, 15)
        _PARTITION.log_final(0, 0)

    skipped, new, initial, final, none = [(r.name, r.levelname, r.getMessage()) for r in caplog.records]
    lister = ("PartitionFilesListerUsingBookmark", "INFO")
    text = 'Skipping Partition {"y": "2019", "m": "01"} has no new files detected @ s3://lake/y=2019/m=01/'
    assert skipped == ("HadoopDataSource", "WARNING", f"{text} or path does not exist")
    assert new[:2] == lister
    assert new[2].startswith(f"Found new partition {_NAMED}")
    assert new[2].endswith(",s3://lake/y=2019/m=01/,1559235148000) with 47 files")
    assert initial[:2] == lister
    assert initial[2].startswith(
        f"After initial job bookmarks filter, processing 31.91% of 47 files in partition {_NAMED}"
    )
    assert final[2].startswith(
        f"After final job bookmarks filter, processing 100.00% of 15 files in partition {_NAMED}"
    )
    assert none[2].startswith("After final job bookmarks filter, processing 0.00% of 0 files in partition")
