"""Which files a job may move, delete or sweep, decided by their paths alone: no file system is asked."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_bookmarks.core.errors import OutOfBoundsError
from airflow_bookmarks.core.rules.territory import (
    OutputBounds,
    SourceBounds,
    StagingBounds,
    Territory,
    is_root,
    staging_root,
)

JOB = Territory("test", "copy")
TARGET = "s3a://lake/copy"
OUTPUT = OutputBounds(
    JOB, "RUN 1.1, output 'out'", TARGET, f"{TARGET}/_bookmarks/test/copy/1.1/out", frozenset(["run-1.1"])
)


@pytest.mark.parametrize("base", ["/lake/copy/_bookmarks", "s3a://lake/staging", "hdfs://nn:8020/x", "s3a://lake"])
def test_staging_of_the_job_may_be_swept_wherever_it_lies(base: str) -> None:
    root = staging_root("/unused", base, "test", "copy")
    assert JOB.check_staging_root("HEAD, staging", root) == base
    for folder in (f"{root}/12.15", f"{root}.side/{'0' * 26}"):
        assert StagingBounds(JOB, "HEAD, staging").check_folder(folder) == base


@pytest.mark.parametrize(
    "root",
    [
        "",
        "/",
        "/etc",
        "s3a://lake",
        "s3a://lake/",
        "hdfs://nn:8020/",
        "test/copy",
        "/test/copy",
        "file:///lake/test/copy",
        "/lake/../test/copy",
        "/lake/test/copy/..",
        "/lake/test/copy/",
        "/lake/prod/copy",
        "/lake/test/hardcopy",
        "/lake/mytest/copy",
        "/lake\0/test/copy",
    ],
)
def test_what_is_no_staging_root_of_the_job_is_refused(root: str) -> None:
    with pytest.raises(OutOfBoundsError) as refused:
        JOB.check_staging_root("HEAD, staging", root)
    assert (refused.value.item, refused.value.path) == ("HEAD, staging", root)
    with pytest.raises(OutOfBoundsError):
        StagingBounds(JOB, "HEAD, staging").check_folder(root)


@pytest.mark.parametrize("name", ["", ".", "..", "1", "1.x", "1.1/out", "../1.1", "\u0661.\u0661", "archive.side"])
def test_only_folders_named_by_runs_are_swept(name: str) -> None:
    with pytest.raises(OutOfBoundsError):
        StagingBounds(JOB, "HEAD, staging").check_folder(f"/lake/test/copy/{name}")


@pytest.mark.parametrize(
    "path",
    [
        "s3a://lake",
        TARGET,
        f"{TARGET}/",
        f"{TARGET}er/x",
        f"{TARGET}/../other/x",
        f"{TARGET}/a/../../x",
        f"{TARGET}/.",
        f"{TARGET}/_bookmarks/test/other/1.1/out/x",
        "s3://lake/copy/x",
        "s3a://lake2/copy/x",
        "/lake/copy/x",
        "copy/x",
        "",
    ],
)
def test_overwrite_deletes_only_what_lies_below_its_target(path: str) -> None:
    assert OUTPUT.check_delete(f"{TARGET}/x=1/theirs.csv") == TARGET
    with pytest.raises(OutOfBoundsError):
        OUTPUT.check_delete(path)


@pytest.mark.parametrize("root", ["/", "s3a://lake", "hdfs://nn:8020"])
def test_nothing_of_a_whole_file_system_or_bucket_is_deleted_but_what_is_the_runs_own(root: str) -> None:
    bounds = OutputBounds(JOB, "RUN 1.1, output 'out'", root, OUTPUT.place, OUTPUT.tokens)
    assert is_root(root)
    with pytest.raises(OutOfBoundsError, match="whole file system or bucket"):
        bounds.check_delete(f"{root.rstrip('/')}/x/y.csv")
    assert bounds.check_own(f"{root.rstrip('/')}/x/run-1.1-y.csv") == root


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (f"{TARGET}/_bookmarks/test/copy/1.1/out/../../x", f"{TARGET}/run-1.1-x"),
        (f"{TARGET}/_bookmarks/test/copy/7.7/out/x", f"{TARGET}/run-1.1-x"),
        (f"{TARGET}/theirs", f"{TARGET}/run-1.1-x"),
        (f"{OUTPUT.place}/x", f"{TARGET}/x"),
        (f"{OUTPUT.place}/x", f"{TARGET}/run-1.11-x"),
        (f"{OUTPUT.place}/x", "s3a://other/copy/run-1.1-x"),
    ],
)
def test_publish_moves_only_what_the_run_staged_and_to_its_own_names(source: str, target: str) -> None:
    assert OUTPUT.check_move(f"{OUTPUT.place}/x=1/y", f"{TARGET}/x=1/run-1.1-y") == (f"{TARGET}/_bookmarks", TARGET)
    with pytest.raises(OutOfBoundsError):
        OUTPUT.check_move(source, target)


@pytest.mark.parametrize("place", ["", "/", "/lake/test/copy", "/lake/test/copy/1.2/out", "/lake/prod/copy/1.1/out"])
def test_place_of_another_run_or_namespace_is_none_of_the_runs(place: str) -> None:
    with pytest.raises(OutOfBoundsError):
        OutputBounds(JOB, "RUN 1.1, output 'out'", TARGET, place, OUTPUT.tokens).check_place()


def test_read_files_go_only_from_the_roots_of_their_context_and_into_the_archive() -> None:
    bounds = SourceBounds(JOB, "RUN 1.1, context 'raw'", frozenset(["/lake/raw", "/lake/one.csv"]), "/lake/done")
    for path in ("/lake/raw/x=1/a.csv", "/lake/one.csv"):
        bounds.check_move(path, "/lake/done/a.csv")
    refused: list[tuple[Any, Any]] = [("/lake/rawer/a.csv", "/lake/done/a.csv"), ("/lake/raw/../x", "/lake/done/x")]
    refused += [("/lake/raw/a.csv", "/lake/done"), ("/lake/raw/a.csv", "/lake/done/../x"), ("a.csv", "/lake/done/a")]
    for source, target in refused:
        with pytest.raises(OutOfBoundsError):
            bounds.check_move(source, target)
