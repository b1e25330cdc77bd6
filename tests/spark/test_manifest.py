"""Manifests and `state_uri` as a script sees them: by argument, by conf, with each option, before anything is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.cli import main
from airflow_bookmarks.core.errors import ManifestError, OptionError
from airflow_bookmarks.core.selection.glob import Glob
from airflow_bookmarks.lifecycle.state.manifest import Manifests
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.scan_filter import ScanRoot
from airflow_bookmarks.spark import BookmarkedJob
from airflow_bookmarks.spark.inputs import Inputs
from airflow_bookmarks.store import blobs as blob
from airflow_bookmarks.store import bookmark_store
from tests.spark.lake import Lake, lines_of

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "temp")


def manifests(uri: str) -> dict[str, list[str]]:
    """Return the names of the files in each manifest, by run id and name of the manifest."""
    found: dict[str, list[str]] = {}
    for path in sorted(Path(uri).rglob("*.input-files.json")):
        files = [file for entry in json.loads(path.read_text()) for file in entry["files"]]
        found["/".join(path.parts[-2:])] = [file.rpartition("/")[2] for file in files]
    return found


def fail(lake: Lake) -> None:
    """Make a run that fails when it has read."""
    with lake.job(run_id="failed") as job:
        lake.read(job)
        raise RuntimeError("on purpose")


def by_conf(lake: Lake, **settings: str) -> BookmarkedJob:
    session = lake.another_session()
    session.conf.set("spark.bookmarks.job", "copy")
    session.conf.set("spark.bookmarks.store", f"sqlite:///{lake.root.parent}/bookmarks.db?namespace=test")
    for name, value in settings.items():
        session.conf.set(f"spark.bookmarks.{name}", value)
    return BookmarkedJob(session)


@pytest.mark.parametrize("how", ["argument", "conf"])
def test_each_option_writes_down_what_it_reads(lake: Lake, uri: str, how: str) -> None:
    def run(run_id: str, option: str) -> list[str]:
        given = {"run_id": run_id, "option": option, "manifest_uri": uri}
        with lake.job(**given) if how == "argument" else by_conf(lake, **given) as job:
            return lines_of(lake.read(job))

    lake.put("a.txt", "a")
    assert run("dag/1/clean", "enable") == ["a"]
    lake.put("b.txt", "b")
    assert run("2", "pause") == ["b"]
    assert run("3", "disable") == ["a", "b"]
    assert run("4", "enable") == ["b"]

    assert manifests(uri) == {
        "dag%2F1%2Fclean/raw.input-files.json": ["a.txt"],
        "2/raw.input-files.json": ["b.txt"],
        "3/raw.input-files.json": ["a.txt", "b.txt"],
        "4/raw.input-files.json": ["b.txt"],
    }


def test_manifest_is_there_before_the_frame_is(lake: Lake, uri: str) -> None:
    lake.put("a.txt", "a")
    with lake.job(run_id="1", manifest_uri=uri) as job:
        frame = lake.read(job)
        assert manifests(uri) == {"1/raw.input-files.json": ["a.txt"]}
        assert lines_of(frame) == ["a"]


def test_manifest_that_cannot_be_written_fails_the_run_and_moves_nothing(lake: Lake, tmp_path: Path) -> None:
    lake.put("a.txt", "a")
    (tmp_path / "temp").write_text("a file where a folder has to be")

    with pytest.raises(ManifestError, match="Nothing was read"):
        lake.copy(manifest_uri=str(tmp_path / "temp"))

    assert lake.head().version == 0
    assert lake.run() == ["a"]


@pytest.mark.parametrize("option", ["enable", "pause"])
def test_each_batch_has_a_manifest_of_its_own(lake: Lake, uri: str, option: str) -> None:
    for name in "abc":
        lake.put(f"{name}.txt", name)
    for batch in lake.job(run_id="1", option=option, manifest_uri=uri).batches(max_files=1):
        with batch:
            lake.read(batch).count()

    part = "run" if option == "enable" else "batch"
    assert manifests(uri) == {
        "1/raw.input-files.json": ["a.txt"],
        f"1/raw@{part}-2.input-files.json": ["b.txt"],
        f"1/raw@{part}-3.input-files.json": ["c.txt"],
    }


@pytest.mark.seldom
def test_shards_write_each_under_its_own_name(lake: Lake, uri: str) -> None:
    lake.put("a.txt", "a")
    for job in lake.job(run_id="1", manifest_uri=uri, shard=range(64)).shards():
        with job:
            job.read("raw").schema("value string").text(lake.path("raw"))

    folders = sorted(path.name for path in Path(uri, "partitionlisting").iterdir())
    assert folders == [f"copy~{number:02d}" for number in range(64)]


def test_relative_manifest_uri_is_refused_before_the_job_is_taken(lake: Lake) -> None:
    with pytest.raises(OptionError, match="Nothing was read or changed"):
        lake.job(manifest_uri="temp")


def test_manifests_in_the_source_are_refused_before_anything_is_planned_or_written(lake: Lake) -> None:
    lake.put("a.json", '{"x": 1}')

    with (
        pytest.raises(OptionError, match="Nothing was read or changed"),
        lake.job(manifest_uri=lake.path("raw")) as job,
    ):
        job.read("raw").schema("x INT").option("recursiveFileLookup", True).json(lake.path("raw"))

    assert [path.name for path in Path(lake.path("raw")).iterdir()] == ["a.json"]
    assert lake.head().version == 0


FOLDER = "/lake/m/partitionlisting/copy"


@pytest.mark.parametrize(
    ("root", "options", "is_refused"),
    [
        ("/lake", FileOptions(recursive=True), True),
        ("/lake/m", FileOptions(), False),  # a folder in it is no partition
        ("/lake/n", FileOptions(recursive=True), False),
        (FOLDER, FileOptions(), True),  # the next run id may look like a partition
        (f"{FOLDER}/r1", FileOptions(), True),
        (f"{FOLDER}/r0", FileOptions(), True),
        ("/lake/m/partitionlisting/other", FileOptions(recursive=True), False),
        ("/lake/*", FileOptions(), False),
        ("/lake/*", FileOptions(recursive=True), True),
        ("/lake/2013-*", FileOptions(recursive=True), False),
        ("/lake/m/*/copy/*/*.json", FileOptions(), True),
        ("/lake/m/*/copy/*/*.csv", FileOptions(), False),
        ("/lake", FileOptions(recursive=True, name_pattern="*.csv"), False),
        ("/lake", FileOptions(recursive=True, exclusions=["m/**"]), False),
    ],
)
def test_manifests_are_refused_where_they_would_be_listed(root: str, options: FileOptions, is_refused: bool) -> None:
    places = [ScanRoot(glob.root, glob if glob.depth else None) for glob in Glob.expand(root)]

    def check(uri: str) -> None:
        Inputs("copy", (), {}).check_manifests(Manifests.of(uri, "copy", "r1"), "raw", places, options)

    if is_refused:
        with pytest.raises(OptionError, match="manifest_uri"):
            check("/lake/m")
    else:
        check("/lake/m")
    if not root.startswith("/lake/m"):
        check("/lake/x/_m")


def test_files_of_any_run_are_listed_as_text_and_as_json(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    lake.put("a.txt", "a")
    lake.run(run_id="committed")
    lake.put("b.txt", "b")
    with pytest.raises(RuntimeError, match="on purpose"):
        fail(lake)
    lake.run(run_id="paused", option="pause")
    lake.run(run_id="disabled", option="disable")
    store = f"sqlite:///{lake.root.parent}/bookmarks.db?namespace=test"

    def listed(run: str, output: str) -> str:
        assert main(["files", "copy", "--run", run, "--store", store, "--output", output]) == 0
        return capsys.readouterr().out

    expected = {"committed": (["a.txt"], "PUBLISHED"), "1": (["a.txt"], "PUBLISHED"), "failed": (["b.txt"], "FAILED")}
    expected |= {"paused": (["b.txt"], "pause"), "disabled": (["a.txt", "b.txt"], "disable")}
    for run, (names, state) in expected.items():
        rows: list[dict[str, Any]] = json.loads(listed(run, "json"))
        assert [(Path(row["path"]).name, row["state"]) for row in rows] == [(name, state) for name in names]
        text = listed(run, "table")
        assert all(name in text for name in names)
        assert ("STATE" in text) == (state != "PUBLISHED")


@pytest.mark.parametrize("how", ["setting", "store"])
def test_large_state_lies_under_state_uri(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(blob, "OBJECT_BYTES", 0)
    monkeypatch.setattr(bookmark_store, "INLINE_BYTES", 0)
    state = tmp_path / "state"
    store = f"sqlite:///{lake.root.parent}/bookmarks.db?namespace=test"
    settings = {"state_uri": str(state)} if how == "setting" else {"store": f"{store}&state_uri={state}"}
    read: list[list[str]] = []
    for name in "ab":
        lake.put(f"{name}.txt", name)
        with by_conf(lake, **settings) as job:
            read.append(lines_of(lake.read(job)))

    assert read == [["a"], ["b"]]
    assert len([path for path in state.rglob("*") if path.is_file()]) >= 4
