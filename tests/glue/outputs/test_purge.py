"""Promise GLUE-3, purges: with enable files go with the publish, in any other run at once."""

from __future__ import annotations

import os
import time
import uuid
from pathlib import Path
from typing import Any

import boto3.session
import pytest

from airflow_bookmarks.core.errors import OptionError, OutOfBoundsError
from airflow_bookmarks.glue.outputs.purge import purge_s3_path, purge_table
from airflow_bookmarks.glue.outputs.write import write_options
from airflow_bookmarks.glue.run import forget_runs
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.store.outputs import paths_replaced_by_sides
from tests.conftest import REGION
from tests.glue.outputs.conftest import Script

NOW = {"retentionPeriod": 0}


def old(path: Path, hours: int = 200) -> Path:
    """Write a file that is so old."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("old\n")
    then = time.time() - hours * 3600
    os.utime(path, (then, then))
    return path


@pytest.fixture
def out(script: Script) -> Path:
    return script.root / "out"


@pytest.fixture
def s3_folder(
    moto_url: str, aws_session: boto3.session.Session, monkeypatch: pytest.MonkeyPatch
) -> tuple[Any, str, str]:
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"):
        monkeypatch.setenv(name, moto_url)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    client: Any = aws_session.client("s3", region_name=REGION, endpoint_url=moto_url)
    bucket = f"purge-{uuid.uuid4().hex}"
    client.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
    return client, bucket, "out"


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.rglob("*") if p.is_file() and "_bookmarks" not in p.parts)


def test_purge_goes_with_the_commit(script: Script, out: Path) -> None:
    old(out / "a.txt")
    script.begin()
    purge_s3_path(script.run, str(out))
    assert names(out) == ["a.txt"]

    script.commit()

    assert names(out) == []


@pytest.mark.parametrize("option", ["job-bookmark-pause", "job-bookmark-disable", None])
def test_purge_of_other_runs_is_made_at_once(script: Script, out: Path, option: str | None) -> None:
    old(out / "a.txt")
    if option is not None:
        script.begin(option)

    purge_s3_path(script.run, str(out))

    assert names(out) == []


def test_young_files_stay(script: Script, out: Path) -> None:
    old(out / "young.txt", hours=100)
    old(out / "old.txt", hours=169)

    purge_s3_path(script.run, f"{out}/")
    assert names(out) == ["young.txt"]

    purge_s3_path(script.run, str(out), {"retentionPeriod": "99"})
    assert names(out) == []


@pytest.mark.seldom
def test_purge_and_rewrite_of_todays_partition_in_one_run(script: Script, out: Path) -> None:
    day = out / "day=1"
    for rows in ([(1,)], [(2,), (3,)]):
        script.begin()
        purge_s3_path(script.run, str(day), NOW)
        write_options(
            script.run,
            script.frame([(*row, "1") for row in rows], "id int, day string"),
            connection_type="s3",
            connection_options={"path": str(out), "partitionKeys": ["day"]},
            format="parquet",
        )
        script.commit()

    assert [row[0] for row in script.seen(out)] == [2, 3]


@pytest.mark.seldom
def test_purge_and_rewrite_of_one_folder_in_one_run(script: Script, out: Path) -> None:
    for rows in ([(1,)], [(2,)]):
        script.begin()
        write_options(
            script.run,
            script.frame(rows, "id int"),
            connection_type="s3",
            connection_options={"path": str(out)},
            format="parquet",
            transformation_ctx="sink",
        )
        purge_s3_path(script.run, str(out), NOW, transformation_ctx="purge")
        script.commit()

    assert script.seen(out) == [(2,)]


def test_folder_that_is_read_whole_is_rewritten_in_place(script: Script, out: Path) -> None:
    old(out / "a.csv")
    (out / "a.csv").write_text("1\n2\n")
    script.begin()
    frame = script.context.create_dynamic_frame.from_options("s3", {"paths": [str(out)]}, "csv")
    purge_s3_path(script.run, str(out), NOW)
    write_options(script.run, frame, connection_type="s3", connection_options={"path": str(out)}, format="csv")
    assert names(out) == ["a.csv"]
    script.commit()

    rows = script.spark.read.csv(str(out), header=True).collect()
    assert ([row[0] for row in rows], "a.csv" in names(out)) == (["1", "2"], False)


@pytest.mark.seldom
def test_replay_of_a_run_with_a_purge_makes_its_output_again(script: Script, out: Path) -> None:
    def body() -> None:
        purge_s3_path(script.run, str(out), NOW)
        write_options(
            script.run,
            script.frame([(1,)], "id int"),
            connection_type="s3",
            connection_options={"path": str(out)},
            format="parquet",
            transformation_ctx="sink",
        )
        script.commit()

    old(out / "a.parquet")
    script.begin()
    body()
    script.spark.conf.set("spark.bookmarks.replay", "1")
    script.begin()
    body()

    assert script.seen(out) == [(1,)]
    assert {name.split("-")[1] for name in names(out)} == {"1.2"}


def test_run_that_does_not_commit_purges_nothing(script: Script, out: Path) -> None:
    old(out / "a.txt")
    run = script.begin()
    purge_s3_path(run, str(out))

    assert run.job is not None
    run.job.abort("the script failed")

    assert names(out) == ["a.txt"]


@pytest.mark.seldom
def test_purge_aside_is_known_to_consumers(script: Script, out: Path, store: BookmarkStore) -> None:
    script.begin()
    options = {"path": str(out)}
    frame = script.frame([(1,)], "id int")
    write_options(script.run, frame, connection_type="s3", connection_options=options, format="parquet")
    script.commit()
    script.begin("job-bookmark-pause")

    purge_s3_path(script.run, str(out), NOW)

    replaced = paths_replaced_by_sides(store, "orders")
    assert [Path(path).name[:8] for path in replaced] == ["run-1.1-"] * len(replaced) != []
    assert names(out) == []


def test_file_that_is_delivered_anew_before_the_commit_stays_and_is_named_as_failed(script: Script, out: Path) -> None:
    files, manifest = [old(out / "a.txt"), old(out / "day.txt")], script.root / "manifest"
    script.begin()
    purge_s3_path(script.run, str(out), {"manifestFilePath": str(manifest)})
    (out / "day.txt").write_text("new rows")

    script.commit()

    assert names(out) == ["day.txt"]
    assert [(manifest / f"{name}.csv").read_text() for name in ("Success", "Failed")] == [f"{f}\n" for f in files]


def test_manifest_names_what_is_gone_once_it_is(script: Script, out: Path) -> None:
    file, manifest = old(out / "a.txt"), script.root / "manifest"
    script.begin()
    purge_s3_path(script.run, str(out), {"manifestFilePath": str(manifest)})
    assert not manifest.exists()

    script.commit()

    assert (manifest / "Success.csv").read_text() == f"{file}\n"
    assert (manifest / "Failed.csv").read_text() == ""


@pytest.mark.seldom
@pytest.mark.parametrize("option", ["job-bookmark-enable", None])
def test_manifest_of_a_table_names_the_files_of_all_its_partitions(
    script: Script, out: Path, option: str | None
) -> None:
    files = [old(out / f"day={day}" / "a.parquet") for day in (1, 2)]
    table, manifest = "purged_days", script.root / "manifest"
    script.spark.conf.set("spark.bookmarks.glue.catalog", "hive")
    forget_runs()  # a run takes its settings when it is made
    script.spark.sql(
        f"CREATE TABLE {table} (id INT, day INT) USING parquet PARTITIONED BY (day) LOCATION '{out.as_uri()}'"
    )
    try:
        script.spark.sql(f"ALTER TABLE {table} RECOVER PARTITIONS")
        if option is not None:
            script.begin(option)
        purge_table(script.run, None, "default", table, {**NOW, "manifestFilePath": str(manifest)})
        if option is not None:
            script.commit()
    finally:
        script.spark.sql(f"DROP TABLE {table}")

    assert names(out) == []
    assert sorted((manifest / "Success.csv").read_text().split()) == [str(file) for file in files]


def test_manifest_that_can_not_be_written_leaves_the_run_committed(
    script: Script, out: Path, caplog: pytest.LogCaptureFixture
) -> None:
    old(out / "a.txt")
    (script.root / "taken").write_text("a file")
    script.begin()
    purge_s3_path(script.run, str(out), {"manifestFilePath": str(script.root / "taken" / "manifest")})

    script.commit()

    assert names(out) == []
    assert "the manifest in" in caplog.text


def test_nothing_to_purge_is_no_error(script: Script, out: Path) -> None:
    purge_s3_path(script.run, str(out))


def test_whole_bucket_is_refused(script: Script) -> None:
    with pytest.raises(OutOfBoundsError, match="whole file system or bucket"):
        purge_s3_path(script.run, "/", {"retentionPeriod": 10_000_000})


@pytest.mark.parametrize("hours", [-1, "soon", True])
def test_retention_that_is_no_number_of_hours_is_an_error(script: Script, out: Path, hours: object) -> None:
    with pytest.raises(OptionError, match="retentionPeriod"):
        purge_s3_path(script.run, str(out), {"retentionPeriod": hours})


def test_failed_init_keeps_a_purge_from_deleting(script: Script, out: Path) -> None:
    old(out / "a.txt")
    with pytest.raises(OptionError):
        script.begin("job-bookmark-sometimes")

    with pytest.raises(OptionError):
        purge_s3_path(script.run, str(out))

    assert names(out) == ["a.txt"]


@pytest.mark.parametrize(("options", "left"), [({}, ["a"]), ({"excludeStorageClasses": ["glacier"]}, ["a", "ice"])])
def test_objects_of_excluded_storage_classes_stay(
    script: Script, s3_folder: tuple[Any, str, str], options: dict[str, Any], left: list[str]
) -> None:
    client, bucket, prefix = s3_folder
    client.put_object(Bucket=bucket, Key=f"{prefix}/ice", Body=b"1", StorageClass="GLACIER")
    client.put_object(Bucket=bucket, Key=f"{prefix}/warm", Body=b"1")
    client.put_object(Bucket=bucket, Key=f"{prefix}-beside/a", Body=b"1")
    script.begin()
    purge_s3_path(script.run, f"s3://{bucket}/{prefix}/", {**NOW, **options})
    script.commit()

    found = client.list_objects_v2(Bucket=bucket, Prefix=prefix)["Contents"]
    assert [each["Key"].rpartition("/")[2] for each in found] == left
