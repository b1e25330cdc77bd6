"""Promises of one look at some folders: a file belongs to the first root that names it, a folder counts once a root."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from airflow_bookmarks.core.errors import FolderVanishedError, OptionError, SourceError
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.files.listed_partitions import ListedPartitions
from airflow_bookmarks.core.selection.partition import settle_types
from airflow_bookmarks.files.filesystem import Listed
from airflow_bookmarks.files.local import LocalFileSystem
from airflow_bookmarks.sources.files import commit
from airflow_bookmarks.sources.files.commit import recheck_by_listing, recheck_files
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.sources.files.scan import FolderScan, scan_folders
from airflow_bookmarks.sources.files.scan_filter import ScanFilter, ScanRoot
from airflow_bookmarks.sources.source import PlanInput

FILES = LocalFileSystem()


def put(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("a row\n")


def scan(*roots: Path, recursive: bool = False) -> FolderScan:
    return scan_folders(
        FILES, [ScanRoot(str(root)) for root in roots], ScanFilter(recursive), listed_at=datetime.now(UTC)
    )


def test_file_below_several_roots_belongs_to_the_first(tmp_path: Path) -> None:
    put(tmp_path, "a", "x=1/b", "x=2/c")

    seen = scan(tmp_path / "x=1", tmp_path)

    found = dict(zip(seen.listing.paths, seen.root_of, strict=True))
    assert found == {
        f"{tmp_path}/x=1/b": f"{tmp_path}/x=1",
        f"{tmp_path}/a": str(tmp_path),
        f"{tmp_path}/x=2/c": str(tmp_path),
    }


@pytest.mark.parametrize("recursive", [False, True])
def test_one_file_of_each_folder_stands_for_its_partition(tmp_path: Path, recursive: bool) -> None:
    put(tmp_path, "x=1/a", "x=1/b", "x=2/a", "x=2/b", "x=3/_hidden")

    samples = scan(tmp_path, recursive=recursive).one_of_each_folder()

    assert samples == [(f"{tmp_path}/x=1/a", str(tmp_path)), (f"{tmp_path}/x=2/a", str(tmp_path))]


def test_folder_whose_files_lie_under_two_roots_is_looked_at_under_both(tmp_path: Path) -> None:
    put(tmp_path, "x=1/a", "x=1/b")
    root, file = str(tmp_path), f"{tmp_path}/x=1/a"

    samples = scan(Path(file), tmp_path).one_of_each_folder()

    assert samples == [(file, file), (f"{tmp_path}/x=1/b", root)]
    with pytest.raises(SourceError, match="different partition columns"):  # the one has none, the other has x
        settle_types(samples, {})


def test_folders_with_nothing_to_read_are_told(tmp_path: Path) -> None:
    put(tmp_path, "x=1/a", "x=2/a", "x=3/a")
    source = FileSource(FILES, [str(tmp_path)])
    position = source.advance(source.plan(PlanInput()))
    assert position is not None
    put(tmp_path, "x=2/b")

    plan = FileSource(FILES, [str(tmp_path)]).plan(PlanInput(position.body, lambda names: dict(position.blobs)))

    assert plan.partitions is not None
    assert plan.partitions.listed == 3
    assert plan.partitions.skipped == (f"{tmp_path}/x=1", f"{tmp_path}/x=3")


def test_second_look_tells_what_changed_or_went(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit, "_LOOKED_AT_ONCE", 2)  # so that it goes in several parts
    put(tmp_path, *"abcdefg")
    plan = FileSource(FILES, [str(tmp_path)]).plan(PlanInput())
    (tmp_path / "b").unlink()
    (tmp_path / "e").write_text("two\nrows\n")

    assert set(recheck_files(FILES, plan).missing) == {f"{tmp_path}/b", f"{tmp_path}/e"}
    less = FilePlan(plan.files.take(np.arange(1)), plan.roots, plan.listed, plan.known)
    assert recheck_files(FILES, less).missing == ()


class Retention(LocalFileSystem):
    """A file system in which a folder is removed after the folder above it was listed, and before it is itself."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def list(
        self,
        root: str,
        *,
        recursive: bool = False,
        enters: Callable[[str], bool] | None = None,
        saw: Callable[[int], None] | None = None,
    ) -> Listed:
        def removes(folder: str) -> bool:
            if f"{root}/{folder}" == str(self.folder):
                shutil.rmtree(self.folder)
            return enters is None or enters(folder)

        return super().list(root, recursive=recursive, enters=removes, saw=saw)


def test_old_folder_that_goes_during_the_second_look_changes_none_of_the_planned_files(tmp_path: Path) -> None:
    put(tmp_path, "day=1/old", "day=2/a", "day=2/b")
    whole = FileSource(FILES, [str(tmp_path)]).plan(PlanInput())
    read_before = [row for row, path in enumerate(whole.files.paths) if "day=1" in path]
    plan = replace(whole, files=whole.files.take(np.delete(np.arange(len(whole)), read_before)))
    (tmp_path / "day=2/b").write_text("two\nrows\n")

    seen = recheck_by_listing(Retention(tmp_path / "day=1"), plan, None)

    assert seen.missing == (f"{tmp_path}/day=2/b",)


def test_partition_that_goes_while_it_is_listed_leaves_no_other_for_empty(tmp_path: Path) -> None:
    put(tmp_path, "1/a", "2/b")
    listed = ListedPartitions({"day": "int"}, {f"{tmp_path}/1": ("1",), f"{tmp_path}/2": ("2",)})

    with pytest.raises(FolderVanishedError, match="Run again"):
        FileSource(Retention(tmp_path / "1"), [str(tmp_path)], listed=listed).plan(PlanInput())

    plan = FileSource(FILES, [str(tmp_path)], listed=listed).plan(PlanInput())
    assert (plan.files.paths, plan.skipped) == ([f"{tmp_path}/2/b"], {"empty_partitions": 1})


@pytest.mark.parametrize("sequence", [None, "path"])
def test_missing_days_are_not_looked_for_in_partitions_that_a_catalog_lists(
    tmp_path: Path, sequence: str | None
) -> None:
    put(tmp_path, "a/1.csv", "a/3.csv")
    listed = ListedPartitions({"day": "date"}, {f"{tmp_path}/a": ("2013-01-31",)})

    with pytest.raises(OptionError, match=r"gaps=True.* Nothing was read or changed\. Leave it out"):
        FileSource(FILES, [str(tmp_path)], FileOptions(gaps=True, sequence=sequence), listed=listed)

    numbered = FileOptions(gaps=True, sequence=r"(?P<number>\d+)\.csv")
    plan = FileSource(FILES, [str(tmp_path)], numbered, listed=listed).plan(PlanInput())
    assert plan.seen is not None
    assert plan.seen.missing == 1
