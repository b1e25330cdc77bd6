"""What a run knows of its outputs: kept and checked without a store, a sink or a file system."""

from __future__ import annotations

import pytest

from airflow_bookmarks.core.errors import MisuseError, PublishError
from airflow_bookmarks.core.run import OutputEntry
from airflow_bookmarks.lifecycle.run.use.outputs import RunOutputs
from airflow_bookmarks.sinks.staging import Staged

ENTRY = OutputEntry("files", "/clean", "/clean/_staging/out")
STAGED = Staged([("/clean/_staging/out/a", "/clean/a")], rows=1)


def test_output_is_written_once() -> None:
    outputs = RunOutputs("clean")
    outputs.check_new("out")
    outputs.place("out", ENTRY)

    with pytest.raises(MisuseError, match=r"'clean': output 'out' is written twice.*a name of its own"):
        outputs.check_new("out")


def test_placed_output_has_to_be_staged() -> None:
    outputs = RunOutputs("clean")
    outputs.place("out", ENTRY)
    outputs.place("more", ENTRY)
    outputs.stage("out", STAGED)

    with pytest.raises(MisuseError, match=r"\['more'\] were placed and not written\. Nothing was published"):
        outputs.check_staged("published")

    more = Staged([("/clean/_staging/more/a", "/clean/b")], rows=1)
    outputs.stage("more", more)
    outputs.check_staged("published")
    assert outputs.staged == {"out": STAGED, "more": more}


def test_two_outputs_that_publish_to_one_path_are_refused() -> None:
    outputs = RunOutputs("clean")
    for name in ("out", "more"):
        outputs.place(name, ENTRY)
    outputs.stage("out", STAGED)

    both = r"'clean': outputs 'out' and 'more' both publish a file to '/clean/a'.*Nothing was committed"
    with pytest.raises(PublishError, match=both):
        outputs.stage("more", Staged([("/clean/_staging/more/a", "/clean/a")], rows=1))

    outputs.stage("out", STAGED)
    assert outputs.staged == {"out": STAGED}


def test_begun_write_has_to_be_finished() -> None:
    outputs = RunOutputs("clean")
    outputs.begin_write("out")

    with pytest.raises(MisuseError, match=r"output 'out' was not written: neither \.save.*Nothing was committed"):
        outputs.check_written("committed")

    outputs.stage("out", STAGED)
    outputs.check_written("committed")


def test_refused_write_is_named_with_its_cause_until_it_is_written_after_all() -> None:
    outputs = RunOutputs("clean")
    outputs.begin_write("out")
    outputs.refuse_write("out", PermissionError("no right."))

    with pytest.raises(MisuseError, match=r"output 'out' was not written: PermissionError: no right\. Nothing was"):
        outputs.check_written("committed")

    outputs.stage("out", STAGED)
    outputs.check_written("committed")
