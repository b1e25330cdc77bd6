"""Manifests: what each run is about to read, in Glue's shape, before the first byte is read."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import boto3.session
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_bookmarks.core.errors import ManifestError, OptionError
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.selection.listing import Listing
from airflow_bookmarks.files import opener
from airflow_bookmarks.files.access import FileAccess, reached_by
from airflow_bookmarks.files.hadoop.abfs import AbfsFileSystem
from airflow_bookmarks.lifecycle.changes.change import reset
from airflow_bookmarks.lifecycle.inspect.runs import files_of
from airflow_bookmarks.lifecycle.run.empty import commit_empty
from airflow_bookmarks.lifecycle.run.replay import ReplayRun
from airflow_bookmarks.lifecycle.run.session import RunSession
from airflow_bookmarks.lifecycle.state.manifest import Manifests, check_manifest_uri, path_part
from airflow_bookmarks.sources.files.planner import FileSource
from tests.files.s3.s3_ground import client_for, settings_for
from tests.lifecycle.shop import FILES, Shop

AIRFLOW_RUN = "flights/scheduled__2013-09-01T06:00:00+00:00/clean"


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "temp")


def written(uri: str) -> dict[str, Any]:
    """Return the manifests below a folder, by their paths."""
    root = Path(uri)
    return {str(path.relative_to(root)): json.loads(path.read_text()) for path in sorted(root.rglob("*.json"))}


def plan(run: RunSession, shop: Shop, uri: str) -> FilePlan:
    run.write_manifests(Manifests.of(uri, run.job, run.execution_id))
    return run.plan("raw", FileSource(FILES, [str(shop.raw)]))


def plan_of(*paths: str) -> FilePlan:
    zeros = np.zeros(len(paths), np.int64)
    return FilePlan(Listing(list(paths), zeros, zeros, None), (), len(paths), 0)


# ---- shape


def test_manifest_lists_the_files_of_each_folder_under_job_and_run_id(shop: Shop, uri: str) -> None:
    for name in ("month=01/b.txt", "month=02/a.txt", "month=01/a.txt"):
        shop.put(name, "line")

    plan(shop.begin(run_id="manual/1"), shop, uri)

    raw = f"file://{shop.raw}"
    assert written(uri) == {
        "partitionlisting/copy/manual%2F1/raw.input-files.json": [
            {"path": f"{raw}/month=01", "files": [f"{raw}/month=01/a.txt", f"{raw}/month=01/b.txt"]},
            {"path": f"{raw}/month=02", "files": [f"{raw}/month=02/a.txt"]},
        ]
    }


def test_objects_are_named_as_glue_and_athena_name_them(uri: str) -> None:
    path = Manifests.of(uri, "job", "run").write("raw", plan_of("s3a://lake/raw/ä b.csv"))

    assert json.loads(Path(path).read_text()) == [{"path": "s3://lake/raw", "files": ["s3://lake/raw/ä b.csv"]}]


def test_manifest_of_nothing_new_is_an_empty_array(shop: Shop, uri: str) -> None:
    plan(shop.begin(run_id="1"), shop, uri)

    assert written(uri) == {"partitionlisting/copy/1/raw.input-files.json": []}


def test_manifest_of_many_files_is_written_whole(uri: str) -> None:
    paths = [f"/lake/raw/month={n % 7}/{n:06d}-{'x' * 60}.csv" for n in range(100_000)]

    path = Manifests.of(uri, "job", "run").write("raw", plan_of(*paths))

    found = json.loads(Path(path).read_text())
    assert len(found) == 7
    assert sorted(file for entry in found for file in entry["files"]) == sorted(f"file://{path}" for path in paths)


# ---- when


@pytest.mark.parametrize("option", ["pause", "disable"])
def test_manifest_is_written_with_pause_and_disable_alike(shop: Shop, uri: str, option: str) -> None:
    shop.put("a.txt", "line")

    plan(shop.side(option=option), shop, uri)

    (entry,) = written(uri)["partitionlisting/copy/manual%2F1/raw.input-files.json"]
    assert entry["files"] == [f"file://{shop.raw}/a.txt"]


def test_manifest_of_a_paused_run_that_starts_over_lists_what_it_reads(shop: Shop, uri: str) -> None:
    shop.put("a.txt", "line")
    shop.run()
    shop.put("b.txt", "line")
    run = shop.side(option="pause")
    plan(run, shop, uri)

    run.start_over("raw")

    (entry,) = next(found for name, found in written(uri).items() if "raw" in name)
    assert entry["files"] == [f"file://{shop.raw}/a.txt", f"file://{shop.raw}/b.txt"]


def test_manifest_is_there_before_anything_is_read_and_after_the_plan_is_stored(shop: Shop, uri: str) -> None:
    shop.put("a.txt", "line")
    run = shop.begin(run_id="1")

    plan(run, shop, uri)

    (stored,) = shop.store.open_runs("copy", shop.store.head("copy"))
    assert (list(stored.plans), len(written(uri))) == (["raw"], 1)


@pytest.mark.parametrize("option", ["enable", "pause", "disable"])
def test_manifest_that_cannot_be_written_ends_the_run_before_anything_is_read(
    shop: Shop, tmp_path: Path, option: str
) -> None:
    shop.put("a.txt", "line")
    (tmp_path / "temp").write_text("a file where a folder has to be")
    run = shop.begin() if option == "enable" else shop.side(option=option)

    with pytest.raises(ManifestError, match="Nothing was read, and the bookmark has not moved") as raised:
        plan(run, shop, str(tmp_path / "temp"))

    assert isinstance(raised.value.__cause__, OSError)
    run.abort(str(raised.value))
    head = shop.store.snapshot("copy").head
    assert head is None or (head.version, head.run_number) == (0, 0)
    assert shop.run()[0] == ["line"]


def test_worker_that_commits_an_empty_run_writes_its_manifest(shop: Shop, uri: str) -> None:
    shop.run()

    summary = commit_empty(shop.store, "copy", shop.identity("2"), shop.environment, uri)

    assert summary is not None
    assert written(uri) == {"partitionlisting/copy/2/raw.input-files.json": []}


# ---- several runs of one execution


def test_retry_of_a_run_that_failed_takes_the_place_of_its_manifest(shop: Shop, uri: str) -> None:
    shop.put("a.txt", "line")
    run = shop.begin(run_id="1")
    plan(run, shop, uri)
    run.abort("it failed")
    shop.put("b.txt", "line")

    plan(shop.begin(run_id="1", attempt=2), shop, uri)

    (entry,) = written(uri)["partitionlisting/copy/1/raw.input-files.json"]
    assert [path.rpartition("/")[2] for path in entry["files"]] == ["a.txt", "b.txt"]


def test_further_runs_of_an_execution_have_their_number_in_the_name(shop: Shop, uri: str) -> None:
    for attempt in (1, 2):
        shop.put(f"{attempt}.txt", "line")
        run = shop.begin(run_id="1", attempt=attempt)
        plan(run, shop, uri)
        run.commit()

    assert {name: len(files[0]["files"]) for name, files in written(uri).items()} == {
        "partitionlisting/copy/1/raw.input-files.json": 1,
        "partitionlisting/copy/1/raw@run-2.input-files.json": 1,
    }


def test_context_that_is_named_like_a_further_run_has_manifests_of_its_own(uri: str) -> None:
    manifests = Manifests.of(uri, "copy", "1")

    paths = [manifests.write(ctx, plan_of(), part) for ctx in ("raw", "raw.run-2") for part in (None, "run-2")]

    assert len(written(uri)) == len(set(paths)) == 4
    assert [path.rpartition("/")[2] for path in paths[::2]] == ["raw.input-files.json", "raw.run-2.input-files.json"]


def test_replay_writes_down_the_stored_plan(shop: Shop, uri: str) -> None:
    shop.put("a.txt", "line")
    shop.run()
    shop.put("b.txt", "line")
    replay = ReplayRun.begin_replay(shop.store, "copy", shop.identity("again"), shop.environment, 1)

    plan(replay, shop, uri)

    (entry,) = written(uri)["partitionlisting/copy/again/raw.input-files.json"]
    assert entry["files"] == [f"file://{shop.raw}/a.txt"]


# ---- paths


def test_run_id_of_airflow_is_one_readable_folder(uri: str) -> None:
    path = Manifests.of(uri, "flights.clean", AIRFLOW_RUN).write("raw", plan_of())

    assert path == (
        f"{uri}/partitionlisting/flights.clean/flights%2Fscheduled__2013-09-01T06%3A00%3A00+00%3A00%2Fclean/"
        "raw.input-files.json"
    )


@pytest.mark.parametrize("run_id", ["..", "../../etc", "/", ".", "a/../../../b", "\\..\\", "..%2F..", "é" * 500])
def test_no_run_id_leads_out_of_the_folder(uri: str, run_id: str) -> None:
    path = Manifests.of(uri, "job", run_id).write("raw", plan_of())

    (found,) = Path(uri).rglob("*.json")
    assert (str(found), found.parent.parent) == (path, Path(uri) / "partitionlisting" / "job")


@given(st.text(min_size=1), st.text(min_size=1))
def test_texts_that_differ_have_parts_that_differ_and_fit_a_file_name(one: str, other: str) -> None:
    parts = [path_part(one), path_part(other)]

    assert (parts[0] == parts[1]) == (one == other)
    for part in parts:
        assert part.isascii()
        assert not {"/", "\\", ":", "\0"} & set(part)
        assert not part.startswith(".")
        assert 0 < len(part) <= 200


@pytest.mark.parametrize(
    "uri",
    ["", " ", "temp", "s3://key:secret@bucket/temp", "abfss://key:secret@account/temp", "gopher://x/y", "/temp/*"],
)
def test_what_is_no_folder_is_refused(uri: str) -> None:
    with pytest.raises(OptionError, match="Nothing was read or changed") as raised:
        check_manifest_uri(uri)

    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("scheme", ["abfs", "abfss"])
def test_container_of_azure_is_no_user(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Azure(AbfsFileSystem):
        def __init__(self) -> None:  # without adlfs
            self._scheme = scheme

    monkeypatch.setitem(opener._OPENERS, scheme, lambda _: Azure())
    uri = f"{scheme}://lake@store.dfs.core.windows.net/glue"

    assert check_manifest_uri(uri) == uri


@pytest.mark.seldom
def test_manifest_lies_in_s3(moto_url: str, aws_session: boto3.session.Session) -> None:
    settings = settings_for(moto_url)
    client, bucket = client_for(aws_session, settings), f"temp-{uuid.uuid4().hex}"
    client.create_bucket(Bucket=bucket)
    with reached_by(FileAccess(settings)):
        Manifests.of(f"s3://{bucket}/glue/", "job", AIRFLOW_RUN).write("raw", plan_of("s3a://lake/a.csv"))
        with pytest.raises(ManifestError, match="no such bucket"):
            Manifests.of("s3://no-such-bucket/glue", "job", "run").write("raw", plan_of())

    (key,) = [found["Key"] for found in client.list_objects_v2(Bucket=bucket)["Contents"]]
    assert key.startswith("glue/partitionlisting/job/flights%2Fscheduled__2013-09-01T06%3A00%3A00+00%3A00%2Fclean/")
    content = client.get_object(Bucket=bucket, Key=key)["Body"].read()
    assert json.loads(content) == [{"path": "s3://lake", "files": ["s3://lake/a.csv"]}]


# ---- what the state itself tells of a run


def names(shop: Shop, reference: str) -> list[tuple[str, str]]:
    return [(row["path"].rpartition("/")[2], row["state"]) for row in files_of(shop.store, "copy", reference)]


def test_files_of_runs_that_committed_failed_or_read_beside_the_bookmark_are_told(shop: Shop) -> None:
    shop.put("a.txt", "line")
    shop.run(run_id="first")
    shop.put("b.txt", "line")
    failed = shop.begin(run_id="failed")
    shop.copy(failed)
    failed.abort("it failed")
    shop.side_lines("pause")
    shop.side_lines("disable")
    paused, disabled = [str(side["run_id"]) for side in shop.store.sides("copy")]

    assert names(shop, "1") == names(shop, "first") == [("a.txt", "PUBLISHED")]
    assert names(shop, "failed") == names(shop, "2") == [("b.txt", "FAILED")]
    assert names(shop, paused) == [("b.txt", "pause")]
    assert names(shop, disabled) == [("a.txt", "disable"), ("b.txt", "disable")]


def test_files_of_a_side_run_are_told_where_the_job_has_no_bookmark(shop: Shop) -> None:
    shop.put("a.txt", "line")
    shop.side_lines("pause")

    assert names(shop, "manual/1") == [("a.txt", "pause")]


def test_plan_of_a_side_run_that_is_too_large_for_its_record_is_told(shop: Shop) -> None:
    for number in range(3000):
        shop.put(f"{uuid.uuid5(uuid.NAMESPACE_URL, str(number))}.txt")
    side = shop.side(option="disable")
    side.plan("raw", FileSource(FILES, [str(shop.raw)]))
    side.commit()

    (record,) = shop.store.sides("copy")
    body = record["plan:raw"]
    assert isinstance(body, dict)
    assert "chunks" in body
    assert len(names(shop, "manual/1")) == 3000


def test_run_that_a_rewind_left_out_says_so(shop: Shop) -> None:
    shop.put("a.txt", "line")
    shop.run()
    reset(shop.store, "copy", reason="a test", who="me")

    assert names(shop, "1") == [("a.txt", "UNDONE")]
