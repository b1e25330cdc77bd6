"""What a run reads and what it writes keep apart, by whatever name: links, spellings, archives, staging, state."""

# ruff: noqa: PT012 - which of two statements raises depends on which comes first

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.selection.glob import Glob
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.scan_filter import ScanRoot
from airflow_bookmarks.spark.inputs import Inputs, state_folders
from airflow_bookmarks.store.bookmark_store import open_store
from tests.spark.lake import Lake, lines_of

FLAT, DEEP = FileOptions(), FileOptions(recursive=True)


@pytest.fixture
def inputs() -> Inputs:
    return Inputs("copy", (), {})


def folder(path: Path) -> str:
    path.mkdir(parents=True, exist_ok=True)
    return str(path)


def link(at: Path, to: Path | str) -> str:
    at.parent.mkdir(parents=True, exist_ok=True)
    at.symlink_to(to)
    return str(at)


def places(*roots: str) -> list[ScanRoot]:
    return [ScanRoot(glob.root, glob if glob.depth else None) for root in roots for glob in Glob.expand(root)]


# ---- a target that is the source by another name


def linked_folder(root: Path) -> tuple[str, str]:
    return folder(root / "raw"), link(root / "out", root / "raw")


def linked_source(root: Path) -> tuple[str, str]:
    folder(root / "out")
    return link(root / "raw", root / "out"), str(root / "out")


def link_in_the_middle(root: Path) -> tuple[str, str]:
    folder(root / "disk/lake/raw")
    link(root / "mnt", root / "disk")
    return str(root / "disk/lake/raw"), str(root / "mnt/lake/raw")


def relative_link(root: Path) -> tuple[str, str]:
    folder(root / "lake/raw")
    link(root / "lake/x/out", "../raw")
    return str(root / "lake/raw"), str(root / "lake/x/out")


def both_by_links(root: Path) -> tuple[str, str]:
    folder(root / "disk/raw")
    return link(root / "one", root / "disk/raw"), link(root / "two", root / "disk/raw")


def partition_of_a_linked_folder(root: Path) -> tuple[str, str]:
    source, target = linked_folder(root)
    return source, f"{target}/day=1"  # which is not there yet


@pytest.mark.parametrize(
    "made",
    [
        linked_folder,
        linked_source,
        link_in_the_middle,
        relative_link,
        both_by_links,
        partition_of_a_linked_folder,
    ],
)
@pytest.mark.parametrize("overwrites", [False, True])
@pytest.mark.parametrize("is_read_first", [False, True])
def test_target_that_is_the_source_through_a_link_is_refused(
    tmp_path: Path, inputs: Inputs, made: Callable[[Path], tuple[str, str]], overwrites: bool, is_read_first: bool
) -> None:
    source, target = made(tmp_path)
    with pytest.raises(OptionError, match=r"lie within each other \(by a link or mount: .*Nothing was published"):
        if is_read_first:
            inputs.note_source(places(source), FLAT)
        inputs.check_target(target, overwrites=overwrites)
        inputs.note_source(places(source), FLAT)


def test_pattern_sees_a_target_behind_a_link(tmp_path: Path, inputs: Inputs) -> None:
    folder(tmp_path / "lake/2013-1")
    link(tmp_path / "out", tmp_path / "lake/2013-1")
    inputs.note_source(places(f"{tmp_path}/lake/2013-*/*.csv"), FLAT)
    inputs.check_target(folder(tmp_path / "elsewhere"), overwrites=True)
    with pytest.raises(OptionError, match="lie within each other"):
        inputs.check_target(str(tmp_path / "out"), overwrites=False)


@pytest.mark.parametrize("overwrites", [False, True])
def test_overwrite_of_the_folder_that_a_linked_file_lies_in_is_refused(
    tmp_path: Path, inputs: Inputs, overwrites: bool
) -> None:
    target = folder(tmp_path / "out/m=1")
    (tmp_path / "out/m=1/a.csv").touch()
    inputs.note_source(places(link(tmp_path / "in.csv", tmp_path / "out/m=1/a.csv")), FLAT)
    for each in (target, str(tmp_path / "out")):
        if overwrites:
            with pytest.raises(OptionError, match="lie within each other"):
                inputs.check_target(each, overwrites=True)
        else:
            inputs.check_target(each, overwrites=False)  # one file is read, and another one comes beside it


def test_overwrite_above_the_source_is_refused_through_a_link(tmp_path: Path, inputs: Inputs) -> None:
    inputs.note_source(places(folder(tmp_path / "disk/lake/raw")), FLAT)
    with pytest.raises(OptionError, match="lie within each other"):
        inputs.check_target(link(tmp_path / "out", tmp_path / "disk"), overwrites=True)
    inputs.check_target(str(tmp_path / "out"), overwrites=False)


def test_same_numbers_of_the_file_system_are_one_folder(
    tmp_path: Path, inputs: Inputs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a bind mount has them, or `Raw` and `raw` where names fold: there no link tells."""
    source, target = folder(tmp_path / "raw"), folder(tmp_path / "Raw")
    number = os.stat(source).st_ino
    stat = os.stat

    def folding(path: Any, *args: Any, **kwargs: Any) -> os.stat_result:
        status = stat(path, *args, **kwargs)
        if path != target:
            return status
        return os.stat_result((status.st_mode, number, *status[2:]))

    monkeypatch.setattr("airflow_bookmarks.files.real_path.os.stat", folding)
    inputs.note_source(places(source), FLAT)
    with pytest.raises(OptionError, match="lie within each other"):
        inputs.check_target(f"{target}/day=1", overwrites=False)


def test_links_that_lead_elsewhere_are_no_reason_to_refuse(tmp_path: Path, inputs: Inputs) -> None:
    inputs.note_source(places(link(tmp_path / "raw", folder(tmp_path / "disk/raw"))), DEEP)
    inputs.check_target(link(tmp_path / "out", folder(tmp_path / "disk/out")), overwrites=True)
    inputs.check_target(str(tmp_path / "gone/out"), overwrites=True)
    link(tmp_path / "loop", "loop")
    inputs.check_target(str(tmp_path / "loop/out"), overwrites=True)
    inputs.check_target("s3a://lake/raw", overwrites=True)


def test_upstream_that_publishes_behind_a_link_is_not_overwritten(tmp_path: Path, inputs: Inputs) -> None:
    published = folder(tmp_path / "clean")
    inputs.note_upstream([published])
    inputs.check_target(link(tmp_path / "out", published), overwrites=False)
    with pytest.raises(OptionError, match="would delete the output of another job"):
        inputs.check_target(str(tmp_path / "out"), overwrites=True)


# ---- two outputs


@pytest.mark.parametrize("modes", [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize("second", ["out", "out/m=1", ".", "alias", "alias/x"])
def test_two_outputs_in_one_place_are_refused_where_one_overwrites(
    tmp_path: Path, inputs: Inputs, modes: tuple[bool, bool], second: str
) -> None:
    folder(tmp_path / "lake/out")
    link(tmp_path / "lake/alias", "out")
    inputs.check_target(str(tmp_path / "lake/out"), overwrites=modes[0])
    with pytest.raises(OptionError, match=r"two outputs of one run .*one of them overwrites.*Nothing was published"):
        inputs.check_target(os.path.normpath(tmp_path / "lake" / second), overwrites=modes[1])
    inputs.check_target(str(tmp_path / "lake/out2"), overwrites=True)


def test_two_outputs_in_one_place_may_append(inputs: Inputs) -> None:
    for target in ("/lake/out", "/lake/out", "/lake/out/m=1", "/lake"):
        inputs.check_target(target, overwrites=False)


# ---- staging, archive, state


@pytest.mark.parametrize(
    ("root", "options", "staging", "is_refused"),
    [
        ("/lake/raw", DEEP, "/lake/raw/staging", True),
        ("/lake/raw", DEEP, "/lake/raw", True),
        ("/lake/raw", DEEP, "/lake/raw/_staging", False),
        ("/lake/raw", FLAT, "/lake/raw/staging", False),  # a run folder is no partition
        ("/lake/raw/*/*", FLAT, "/lake/raw/x", True),
        ("/lake/raw-*", FLAT, "/lake/staging", False),
        ("/lake/raw", DEEP, "/lake/staging", False),
    ],
)
@pytest.mark.parametrize("is_read_first", [False, True])
def test_staging_where_a_source_reads_is_refused(
    inputs: Inputs, root: str, options: FileOptions, staging: str, is_refused: bool, is_read_first: bool
) -> None:
    def both() -> None:
        if is_read_first:
            inputs.note_source(places(root), options)
        inputs.check_staging(staging)
        inputs.note_source(places(root), options)

    if is_refused:
        with pytest.raises(OptionError, match=r"the staging folder .* lies in the source"):
            both()
    else:
        both()


@pytest.mark.parametrize("is_written_first", [False, True])
@pytest.mark.parametrize("note", ["check_staging", "note_archive"])
def test_staging_and_archive_where_readers_of_a_target_see_them_are_refused(
    tmp_path: Path, inputs: Inputs, is_written_first: bool, note: str
) -> None:
    target = folder(tmp_path / "out")
    getattr(inputs, note)(str(tmp_path / "out/_hidden"))
    link(tmp_path / "alias", target)
    with pytest.raises(OptionError, match=r"lies in the target .*where readers see it"):
        if is_written_first:
            inputs.check_target(target, overwrites=False)
        getattr(inputs, note)(str(tmp_path / "alias/done"))
        inputs.check_target(target, overwrites=False)


@pytest.mark.parametrize("target", ["lake", "lake/state", "alias"])
def test_target_that_holds_the_state_of_jobs_is_refused(tmp_path: Path, target: str) -> None:
    folder(tmp_path / "lake/state")
    link(tmp_path / "alias", "lake")
    with_objects = state_folders(open_store(f"sqlite:///:memory:?create=true&state_uri={tmp_path}/lake/state"))
    with_file = state_folders(open_store(f"sqlite:///{tmp_path}/lake/state/bookmarks.db?create=true"))
    assert (list(with_objects.values()), list(with_file.values())) == (["state_uri"], ["the store"])
    for state in (with_objects, with_file):
        inputs = Inputs("copy", (), {}, state)
        with pytest.raises(OptionError, match=r"(state_uri|the store) .* lies in the target"):
            inputs.check_target(str(tmp_path / target), overwrites=True)
        inputs.check_target(str(tmp_path / "lake/out"), overwrites=True)


# ---- with Spark


def refused(lake: Lake, made: Callable[[], object]) -> None:
    before = sorted(path for path in lake.root.rglob("*") if path.is_file())
    with pytest.raises(OptionError, match="lie within each other"):
        made()
    assert sorted(path for path in lake.root.rglob("*") if path.is_file() and "_bookmarks" not in str(path)) == before
    assert lake.head().run_number == 0


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize(
    "spelling", ["{0}/alias", "{0}/alias/", "file://{0}/alias", "file:{0}/x/../alias", "{0}//alias"]
)
@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_job_neither_reads_its_own_output_nor_deletes_its_source_through_a_link(
    lake: Lake, spelling: str, mode: str
) -> None:
    lake.put("a.txt", "a")
    link(lake.root / "alias", "raw")

    def copy() -> None:
        with lake.job() as job:
            job.write(lake.read(job), "out").mode(mode).text(spelling.format(lake.root))

    refused(lake, copy)


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("linked", ["day=1", "a.txt"])
def test_overwrite_of_what_the_source_reads_by_a_link_inside_it_is_refused(lake: Lake, linked: str) -> None:
    lake.put("a.txt", "a", folder="out/day=1")
    folder(lake.root / "raw")
    link(lake.root / "raw" / linked, lake.root / "out/day=1" / ("a.txt" if linked == "a.txt" else ""))

    def copy() -> None:
        with lake.job() as job:
            job.write(lake.read(job), "out").mode("overwrite").text(lake.path("out"))

    refused(lake, copy)


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_link_in_the_target_leads_no_output_into_the_source(lake: Lake, mode: str) -> None:
    lake.put("a.txt", "1")
    folder(lake.root / "out")
    link(lake.root / "out/p=1", lake.root / "raw")

    def copy() -> None:
        with lake.job() as job:
            frame = lake.read(job).selectExpr("value", "value AS p")
            job.write(frame, "out").mode(mode).partitionBy("p").text(lake.path("out"))

    refused(lake, copy)


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_links_in_a_source_to_folders_that_nobody_writes_are_read(lake: Lake) -> None:
    lake.put("a.txt", "a", folder="disk/day=1")
    lake.put("b.txt", "b", folder="disk/other")
    link(lake.root / "raw/day=1", lake.root / "disk/day=1")
    link(lake.root / "raw/day=2/b.txt", lake.root / "disk/other/b.txt")
    with lake.job() as job:
        job.write(lake.read(job).select("value"), "out").text(lake.path("copy"))
    assert lines_of(lake.spark.read.text(lake.path("copy"))) == ["a", "b"]


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_refused_second_output_leaves_both_as_they_were(lake: Lake) -> None:
    lake.put("a.txt", "a")
    with suppress(OptionError), lake.job() as job:
        frame = lake.read(job)
        job.write(frame, "one").text(lake.path("copy"))
        job.write(frame, "two").mode("overwrite").text(lake.path("copy"))
    assert (lake.visible(), lake.head().run_number) == ([], 0)
