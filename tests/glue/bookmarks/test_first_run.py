"""Promise GLUE-9: a bookmark of Glue is where a job here begins, so that nothing is read again on the first day."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import pytest

from airflow_bookmarks.core.errors import (
    BookmarkError,
    ChangeRefusedError,
    DocumentError,
    OptionError,
    SourceMissingError,
)
from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.files.opener import open_one_filesystem
from airflow_bookmarks.glue.bookmarks.entry import read_entry
from airflow_bookmarks.glue.bookmarks.first_run import ContextPlace, InBand, take_over
from airflow_bookmarks.glue.catalogs.table import Column, GlueTable, Partition
from airflow_bookmarks.lifecycle.changes.change import reset
from airflow_bookmarks.lifecycle.changes.naming import delete
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.store.bookmark_store import BookmarkStore, open_store

STARTED = datetime(2024, 10, 28, 1, 32, 45, tzinfo=UTC)
BAND = timedelta(minutes=15)


@pytest.fixture
def store() -> BookmarkStore:
    store = open_store("sqlite:///:memory:?create=true")
    store.init()
    return store


def put(folder: Path, **ages: timedelta) -> Path:
    """Write files that are so much older than the start of Glue's last run."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, age in ages.items():
        path = folder / f"{name}.csv"
        path.write_text("id\n1\n", encoding="utf-8")
        time = (STARTED - age).timestamp()
        os.utime(path, (time, time))
    return folder


def state(included: Sequence[str] = (), **other: Any) -> dict[str, Any]:
    timestamps = {
        "RUN": "2",
        "HIGH_BAND": str(int(BAND.total_seconds() * 1000)),
        "CURR_LATEST_PARTITION": "0",
        "CURR_LATEST_PARTITIONS": "",
        "CURR_RUN_START_TIME": "2024-10-28T01:32:45.000Z",
        "INCLUDE_LIST": ",".join(included),
        **other,
    }
    return {"jsonClass": "HadoopDataSourceJobBookmarkState", "timestamps": timestamps}


def document(**contexts: Any) -> dict[str, Any]:
    entry = {"JobName": "nightly", "Version": 4, "Run": 3, "Attempt": 0, "PreviousRunId": "jr_1", "RunId": "jr_2"}
    return {"JobBookmarkEntry": {**entry, "JobBookmark": json.dumps(contexts)}}


def taken(store: BookmarkStore, given: Any, paths: dict[str, list[str]], **how: Any) -> dict[str, tuple[int, int]]:
    places = {ctx: ContextPlace(each) for ctx, each in paths.items()}
    return {each.ctx: (each.read, each.new) for each in take_over(store, read_entry(given), places, **how)}


def next_run(store: BookmarkStore, folder: Path, ctx: str = "raw", job: str = "nightly") -> list[str]:
    """Return the files that the next run reads, and commit it."""
    files = open_one_filesystem([str(folder)])
    run = ActiveRun.begin(store, job, RunIdentity("jr_3"), RunEnvironment())
    source = FileSource(files, [files.canonical(str(folder))], FileOptions(recursive=True), format="csv")
    plan = run.plan(ctx, source)
    run.commit()
    return sorted(Path(path).stem for path in plan.files.paths)


def is_untouched(store: BookmarkStore) -> bool:
    return store.snapshot("nightly").head is None and list(store.jobs()) == []


# ---- what counts as read


def test_files_before_the_band_count_as_read_and_later_ones_are_new(store: BookmarkStore, tmp_path: Path) -> None:
    folder = put(tmp_path / "raw", old=timedelta(days=9), edge=BAND + timedelta(seconds=1), young=-timedelta(hours=1))
    assert taken(store, document(raw=state()), {"raw": [str(folder)]}) == {"raw": (2, 1)}
    put(folder, later=-timedelta(days=1))
    assert next_run(store, folder) == ["later", "young"]
    assert next_run(store, folder) == []


def spelled(path: str) -> str:
    """Return the hash of a path as Glue writes it: a number, so without leading zeros."""
    return f"{int(hashlib.md5(path.encode(), usedforsecurity=False).hexdigest(), 16):x}"


def test_hashes_tell_which_files_of_the_band_were_read(store: BookmarkStore, tmp_path: Path) -> None:
    folder = put(tmp_path / "raw", old=timedelta(days=9), seen=timedelta(minutes=5), unseen=timedelta(minutes=4))
    given = document(raw=state([spelled(str(folder / "seen.csv"))]))
    assert taken(store, given, {"raw": [str(folder)]}) == {"raw": (2, 1)}
    assert next_run(store, folder) == ["unseen"]


@pytest.mark.parametrize(("in_band", "left"), [("read", []), ("again", ["seen"])])
def test_word_decides_on_the_band_where_hashes_are_of_no_file(
    store: BookmarkStore, tmp_path: Path, in_band: InBand, left: list[str]
) -> None:
    folder = put(tmp_path / "raw", old=timedelta(days=9), seen=timedelta(minutes=5))
    given, paths = document(raw=state(["ab12"])), {"raw": [str(folder)]}
    with pytest.raises(OptionError, match="--in-band=read or --in-band=again"):
        taken(store, given, paths)
    assert is_untouched(store)
    taken(store, given, paths, in_band=in_band)
    assert next_run(store, folder) == left


def test_each_context_goes_by_its_own_time_and_all_are_taken_at_once(store: BookmarkStore, tmp_path: Path) -> None:
    raw, people = put(tmp_path / "raw", a=timedelta(days=9)), put(tmp_path / "people", b=timedelta(days=9))
    later = state(CURR_RUN_START_TIME="2024-10-01T00:00:00.000Z")
    given = document(raw=state(), **{"data source/1": later})
    paths = {"raw": [str(raw)], "data source/1": [str(people)]}
    assert taken(store, given, paths) == {"raw": (1, 0), "data source/1": (0, 1)}
    assert store.head("nightly").run_number == 1
    assert next_run(store, people, "data~20source~2F1") == ["b"]


def test_run_that_stands_for_glue_is_a_run_like_any(store: BookmarkStore, tmp_path: Path) -> None:
    folder = put(tmp_path / "raw", old=timedelta(days=9))
    taken(store, document(raw=state()), {"raw": [str(folder)]}, job="my nightly")
    run = store.committed_run("my~20nightly", 1)
    assert run is not None
    assert run.run_id == "glue/jr_2"
    reset(store, "my~20nightly", reason="all of it again", who="ann")
    assert next_run(store, folder, job="my~20nightly") == ["old"]


def test_context_that_is_left_out_begins_anew(store: BookmarkStore, tmp_path: Path) -> None:
    folder = put(tmp_path / "raw", old=timedelta(days=9))
    given = document(raw=state(), people={"jsonClass": "JDBCJobBookmarkState", "values": {}})
    with pytest.raises(DocumentError, match=r"'people' has the class 'JDBCJobBookmarkState'.*--without people"):
        taken(store, given, {"raw": [str(folder)]})
    assert is_untouched(store)
    assert taken(store, given, {"raw": [str(folder)]}, without=["people"]) == {"raw": (1, 0)}


def test_objects_are_told_by_their_hashes_however_the_script_spells_s3(
    store: BookmarkStore, moto_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {"AWS_ENDPOINT_URL": moto_url, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    for name, value in {**names, "AWS_DEFAULT_REGION": "eu-west-1"}.items():
        monkeypatch.setenv(name, value)
    bucket = f"glue-{uuid4().hex}"
    client = boto3.client("s3")
    client.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    for key in ("raw/day=1/a.csv", "raw/day=1/b.csv"):
        client.put_object(Bucket=bucket, Key=key, Body=b"1")
    started = (datetime.now(tz=UTC) + timedelta(minutes=1)).isoformat()  # both are within the band
    given = document(raw=state([spelled(f"s3://{bucket}/raw/day=1/a.csv")], CURR_RUN_START_TIME=started))

    assert taken(store, given, {"raw": [f"s3://{bucket}/raw/"]}) == {"raw": (1, 1)}
    assert store.head("nightly").contexts["raw"].fingerprint == f"files:s3a://{bucket}/raw"


class Catalog:
    """A catalog of one table, whose second partition lies elsewhere and was added after Glue's last run."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def table(self, database: str, name: str) -> GlueTable:
        return GlueTable(database, name, partition_columns=[Column("day", "date")], location=str(self._root / "t"))

    def partitions(self, table: GlueTable, expression: str | None = None) -> Iterator[Partition]:
        created_ms = int(STARTED.timestamp() * 1000)
        yield Partition(["2024-10-01"], str(self._root / "t" / "first"), created_ms - 1000)
        yield Partition(["2024-10-02"], str(self._root / "elsewhere"), created_ms + 1000)
        yield Partition(["2024-10-03"], None)


def test_partition_that_the_catalog_got_later_is_new_whatever_the_time_of_its_files(
    store: BookmarkStore, tmp_path: Path
) -> None:
    put(tmp_path / "t" / "first", a=timedelta(days=9))
    put(tmp_path / "t" / "in no partition", b=timedelta(days=9))
    put(tmp_path / "elsewhere", c=timedelta(days=9), d=timedelta(days=8))
    place = ContextPlace.of_table(Catalog(tmp_path), "shop.orders")
    (found,) = take_over(store, read_entry(document(raw=state())), {"raw": place})
    assert (found.read, found.new) == (1, 2)
    assert store.head("nightly").contexts["raw"].fingerprint == f"files:{tmp_path}/t"


def test_name_that_is_no_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"expected DATABASE\.TABLE"):
        ContextPlace.of_table(Catalog(tmp_path), "orders")


# ---- what is refused, with nothing written


def test_wrong_take_over_is_deleted_and_made_again(store: BookmarkStore, tmp_path: Path) -> None:
    right = put(tmp_path / "raw", old=timedelta(days=9), young=-timedelta(hours=1))
    wrong = put(tmp_path / "wrong", other=timedelta(days=9))
    taken(store, document(raw=state()), {"raw": [str(wrong)]})
    with pytest.raises(ChangeRefusedError, match=r"airflow-bookmarks show nightly.*delete nightly --name nightly"):
        taken(store, document(raw=state()), {"raw": [str(right)]})

    delete(store, "nightly", typed_name="nightly", reason="wrong path", who="me")

    assert taken(store, document(raw=state()), {"raw": [str(right)]}) == {"raw": (1, 1)}
    assert next_run(store, right) == ["young"]
    assert next_run(store, right) == []


def test_job_that_ran_after_its_deletion_is_refused(store: BookmarkStore, tmp_path: Path) -> None:
    folder = put(tmp_path / "raw", old=timedelta(days=9))
    taken(store, document(raw=state()), {"raw": [str(folder)]})
    delete(store, "nightly", typed_name="nightly", reason="wrong path", who="me")
    next_run(store, folder)
    with pytest.raises(ChangeRefusedError, match="has a bookmark here already"):
        taken(store, document(raw=state()), {"raw": [str(folder)]})


def test_job_that_has_runs_is_refused(store: BookmarkStore, tmp_path: Path) -> None:
    folder = put(tmp_path / "raw", old=timedelta(days=9))
    next_run(store, folder)
    before = store.head("nightly")
    with pytest.raises(ChangeRefusedError, match="has a bookmark here already"):
        taken(store, document(raw=state()), {"raw": [str(folder)]})
    assert store.head("nightly") == before


@pytest.mark.parametrize(
    ("paths", "without", "why"),
    [
        ({}, [], "does not say what context 'raw' reads"),
        ({"raw": ["/x"], "rwa": ["/y"]}, [], "no context 'rwa'"),
        ({}, ["rwa"], "no context 'rwa'"),
        ({}, ["raw"], "all contexts are left out"),
    ],
    ids=["no path", "a path of no context", "left out and unknown", "all left out"],
)
def test_paths_have_to_fit_the_contexts(
    store: BookmarkStore, paths: dict[str, list[str]], without: list[str], why: str
) -> None:
    with pytest.raises(OptionError, match=why):
        taken(store, document(raw=state()), paths, without=without)
    assert is_untouched(store)


def test_path_where_nothing_is_writes_nothing(store: BookmarkStore, tmp_path: Path) -> None:
    with pytest.raises(SourceMissingError):
        taken(store, document(raw=state()), {"raw": [str(tmp_path / "missing")]})
    assert is_untouched(store)


MALFORMED: dict[str, tuple[Any, str]] = {
    "no object": ([], "has no JobBookmark"),
    "no bookmark": ({"JobBookmarkEntry": {"JobName": "a"}}, "has no JobBookmark"),
    "a bookmark that is no text": ({"JobName": "a", "RunId": "b", "JobBookmark": {}}, "has no JobBookmark"),
    "no run": ({"JobName": "a", "JobBookmark": "{}"}, "its RunId is None"),
    "no JSON": ({"JobName": "a", "RunId": "b", "JobBookmark": "{"}, "no JSON"),
    "no context": ({"JobName": "a", "RunId": "b", "JobBookmark": "{}"}, "has no context"),
    "a context that is no object": (document(raw="x"), "class 'str'.* begins with all there is"),
    "no timestamps": (document(raw={"jsonClass": "HadoopDataSourceJobBookmarkState"}), "no timestamps"),
    "numbers": (document(raw=state(HIGH_BAND=900000)), "no timestamps, as texts"),
    "a band that is none": (document(raw=state(HIGH_BAND="-1")), "expected milliseconds"),
    "a band of years": (document(raw=state(HIGH_BAND="9" * 30)), "expected milliseconds"),
    "no time": (document(raw=state(CURR_RUN_START_TIME="")), "expected a time with a zone"),
    "a time without a zone": (document(raw=state(CURR_RUN_START_TIME="2024-10-28T01:32:45")), "with a zone"),
    "a time that is none in UTC": (document(raw=state(CURR_RUN_START_TIME="0001-01-01T00:00:00+14:00")), "with a zone"),
    "a hash that is none": (document(raw=state(["xyz"])), "'xyz' in its INCLUDE_LIST"),
    "one of ours": (document(raw=state(WATERMARK="")), "of this package and not of Glue"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_entry_writes_nothing(store: BookmarkStore, tmp_path: Path, name: str) -> None:
    folder = put(tmp_path / "raw", old=timedelta(days=9))
    given, why = MALFORMED[name]
    with pytest.raises(BookmarkError, match=why) as refused:
        taken(store, given, {"raw": [str(folder)]})
    assert "Nothing was written" in str(refused.value)
    assert is_untouched(store)
