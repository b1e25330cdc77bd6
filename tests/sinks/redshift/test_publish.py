"""A load is one transaction under a token: once, by whoever comes, or not at all (GLUE-11, SINK-4)."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.database.copy.load import CopyLoad
from airflow_bookmarks.core.database.copy.token import CopyToken
from airflow_bookmarks.core.database.script import PublishScript
from airflow_bookmarks.core.errors import (
    DatabaseError,
    FencedError,
    OptionError,
    OutOfBoundsError,
    PublishError,
    SourceError,
)
from airflow_bookmarks.core.run import RunKey
from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.sinks.redshift.place import StagedCopy, manifest_path, rows_folder
from airflow_bookmarks.sinks.redshift.sink import RedshiftSink
from airflow_bookmarks.sinks.redshift.staging import CopyStaging
from airflow_bookmarks.sinks.sink import PublishSteps, StoredOutput
from airflow_bookmarks.store.blobs import BlobStore
from airflow_bookmarks.testing.sink_ground import JOB, NAME, Publisher, stored_output
from tests.sinks.jdbc.losing_proxy import losing_the_reply_of
from tests.sinks.jdbc.table_ground import OneLogin
from tests.sinks.redshift.copy_ground import FILES, CopyGround, PostgresCopies

STEPS = PublishSteps(lambda: None, lambda: 0.0)
FIRST, SECOND = RunKey(1, 1), RunKey(2, 2)


@pytest.fixture
def ground(login: DatabaseLogin, blobs: BlobStore, tmp_path: Path) -> CopyGround:
    return CopyGround(login, blobs, tmp_path)


def publish(ground: CopyGround, output: StoredOutput) -> int:
    publication = ground.sink.prepare(output)
    assert publication is not None
    return publication.publish(lambda what: None, STEPS)


def tokens(ground: CopyGround) -> list[tuple[Any, ...]]:
    return ground.query("SELECT fence, published_rows, staged_fence FROM _bookmarks_copies")


def with_stats(output: StoredOutput, **stats: object) -> StoredOutput:
    entry = replace(output.entry, stats={**output.entry.stats, **stats})
    return stored_output(entry, output.run.key, output.blobs)


def test_publish_reports_the_rows_also_when_it_is_repeated(ground: CopyGround) -> None:
    output = ground.staged_output(FIRST, ["a", "b"])

    assert [publish(ground, output), publish(ground, output)] == [2, 2]
    assert (ground.visible(), tokens(ground)) == (["a", "b"], [(1, 2, 1)])


def test_first_publish_makes_the_target(login: DatabaseLogin, blobs: BlobStore, tmp_path: Path) -> None:
    ground = CopyGround(login, blobs, tmp_path, is_there=False)

    publish(ground, ground.staged_output(FIRST, ["a"]))

    assert ground.visible() == ["a"]


def test_run_without_rows_loads_nothing_and_takes_its_token(ground: CopyGround) -> None:
    output = ground.staged_output(FIRST, [])

    assert publish(ground, output) == 0
    assert (ground.visible(), tokens(ground)) == ([], [(1, 0, 1)])


def test_many_publishers_load_each_row_once(ground: CopyGround) -> None:
    output = ground.staged_output(FIRST, ["a", "b"])
    together = threading.Barrier(4)

    def one(_: int) -> int:
        together.wait()
        return publish(ground, output)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(one, range(4))) == [2, 2, 2, 2]
    assert ground.visible() == ["a", "b"]


def test_publisher_that_comes_after_a_later_run_changes_nothing(ground: CopyGround) -> None:
    late = ground.staged_output(FIRST, ["a"])
    publish(ground, ground.staged_output(SECOND, ["b"]))

    assert publish(ground, late) == 0
    assert ground.visible() == ["b"]


def test_driver_of_an_earlier_fence_stages_nothing_any_more(ground: CopyGround) -> None:
    ground.staged_output(SECOND, ["b"])

    with pytest.raises(PublishError, match="fence 2 has been at"):
        ground.staged_output(FIRST, ["a"])


def test_driver_that_was_overtaken_while_it_wrote_seals_nothing(ground: CopyGround) -> None:
    output = ground.placed(FIRST)
    staging, token = CopyStaging("job", ground.target), CopyToken("public", StagedCopy.of(output).name)
    with ground.opened() as database:
        staging.create(database, token, "job")
        publish(ground, ground.staged_output(SECOND, ["b"]))

        with pytest.raises(PublishError, match="fence 2 has been at"):
            staging.seal(database, FILES, token, output.entry.place, [], 0)


def test_refused_row_leaves_target_and_token_and_can_be_published_later(ground: CopyGround) -> None:
    output = ground.staged_output(FIRST, ["a", "b" * 101])

    with pytest.raises(SourceError, match=r"too long.*Nothing of it was published to conn:dw#public.dim"):
        publish(ground, output)
    assert (ground.visible(), tokens(ground)) == ([], [(0, 0, 1)])

    ground.execute('ALTER TABLE dim ALTER COLUMN "row" TYPE varchar(200)')
    assert publish(ground, output) == 2


def test_file_that_is_gone_or_changed_rolls_all_back(ground: CopyGround) -> None:
    output = ground.staged_output(FIRST, ["a", "b"])
    file = next(Path(rows_folder(output.entry.place)).glob("*.parquet"))
    kept = file.read_bytes()
    file.write_bytes(kept + b"x")
    with pytest.raises(SourceError, match="another size"):
        publish(ground, output)
    file.unlink()
    with pytest.raises(SourceError, match="Nothing of it was published"):
        publish(ground, output)
    assert ground.visible() == []

    file.write_bytes(kept)
    assert publish(ground, output) == 2


def test_file_that_no_manifest_names_is_not_loaded(ground: CopyGround) -> None:
    output = ground.staged_output(FIRST, ["a"])
    folder = Path(rows_folder(output.entry.place))
    (folder / "part-9.parquet").write_bytes((folder / "part-0.parquet").read_bytes())

    assert publish(ground, output) == 1
    assert ground.visible() == ["a"]


class LosesARow(PostgresCopies):
    """It loads all rows but the last."""

    def loading(self, load: CopyLoad, name: str) -> Sequence[str]:
        return super().loading(load, name)[:-1]


def test_load_of_other_rows_than_were_staged_is_rolled_back(
    login: DatabaseLogin, blobs: BlobStore, tmp_path: Path
) -> None:
    ground = CopyGround(login, blobs, tmp_path, client=LosesARow())
    output = ground.staged_output(FIRST, ["a", "b"])

    with pytest.raises(SourceError, match="COPY has loaded 1 row, and the run has staged 2"):
        publish(ground, output)
    assert (ground.visible(), tokens(ground)) == ([], [(0, 0, 1)])


class GivesWayOnce(PostgresCopies):
    """The first of its loads is rolled back in favour of another transaction."""

    def __init__(self) -> None:
        self.tries = 0

    def loading(self, load: CopyLoad, name: str) -> Sequence[str]:
        self.tries += 1
        if self.tries == 1:
            return ["DO $$ BEGIN RAISE EXCEPTION 'gave way' USING ERRCODE = '40001'; END $$"]
        return super().loading(load, name)


def test_transaction_that_gave_way_is_tried_again(login: DatabaseLogin, blobs: BlobStore, tmp_path: Path) -> None:
    client = GivesWayOnce()
    ground = CopyGround(login, blobs, tmp_path, client=client)

    assert publish(ground, ground.staged_output(FIRST, ["a"])) == 1
    assert (ground.visible(), client.tries) == (["a"], 2)


def test_publish_whose_reply_is_lost_is_asked_for(login: DatabaseLogin, blobs: BlobStore, tmp_path: Path) -> None:
    ground = CopyGround(login, blobs, tmp_path)
    output = ground.staged_output(FIRST, ["a", "b"])
    with losing_the_reply_of(b"COMMIT", b'INSERT INTO "public"."dim"', login) as through:
        ground.sink = RedshiftSink(OneLogin(through), ground.client)

        assert publish(ground, output) == 2
    assert ground.visible() == ["a", "b"]


def test_statements_of_the_script_run_around_the_rows_in_the_transaction(
    login: DatabaseLogin, blobs: BlobStore, tmp_path: Path
) -> None:
    script = PublishScript(("DELETE FROM dim",), ("UPDATE dim SET \"row\" = 'z' WHERE \"row\" = 'b'",))
    ground = CopyGround(login, blobs, tmp_path, script=script)
    ground.put("old")

    publish(ground, ground.staged_output(FIRST, ["a", "b"]))

    assert ground.visible() == ["a", "z"]


def test_statement_that_fails_after_the_rows_rolls_them_back(
    login: DatabaseLogin, blobs: BlobStore, tmp_path: Path
) -> None:
    ground = CopyGround(login, blobs, tmp_path, script=PublishScript(("DELETE FROM dim",), ("DELETE FROM nowhere",)))
    ground.put("old")

    with pytest.raises(SourceError, match="nowhere"):
        publish(ground, ground.staged_output(FIRST, ["a"]))
    assert ground.visible() == ["old"]


def test_statements_run_only_while_the_job_is_the_publishers(
    login: DatabaseLogin, blobs: BlobStore, tmp_path: Path
) -> None:
    ground = CopyGround(login, blobs, tmp_path, script=PublishScript(("DELETE FROM dim",)))
    ground.put("old")

    with pytest.raises(FencedError):
        Publisher(is_fenced=True).publish(ground, ground.staged_output(FIRST, ["a"]))
    assert ground.visible() == ["old"]


@pytest.mark.parametrize(
    "changed",
    [
        {"run_before": ["DELETE FROM dim"]},
        {"copy_role": "arn:aws:iam::999999999999:role/theirs"},
        {"copy_types": ["int"]},
        {"rows": 0},
    ],
)
def test_what_no_driver_has_staged_is_not_run(ground: CopyGround, changed: dict[str, Any]) -> None:
    ground.put("old")
    output = with_stats(ground.staged_output(FIRST, ["a"]), **changed)

    with pytest.raises(SourceError, match="is not what was staged"):
        publish(ground, output)
    assert ground.visible() == ["old"]


@pytest.mark.parametrize(
    "changed", [{"copy_role": "x' ENCRYPTED"}, {"copy_types": ["int); DROP TABLE dim"]}, {"copy_names": []}]
)
def test_what_can_be_no_load_is_refused_before_anything_is_asked(ground: CopyGround, changed: dict[str, Any]) -> None:
    output = with_stats(ground.staged_output(FIRST, ["a"]), **changed)

    with pytest.raises(OutOfBoundsError):
        ground.sink.prepare(output)


def test_token_row_that_is_gone_is_told(ground: CopyGround) -> None:
    output = ground.staged_output(FIRST, ["a"])
    ground.execute("DELETE FROM _bookmarks_copies")

    with pytest.raises(SourceError, match="is gone, which tells whether"):
        publish(ground, output)


def test_publish_after_the_sweep_finds_its_token_burned(ground: CopyGround) -> None:
    output = ground.staged_output(FIRST, ["a"])
    _, root = ground.sink.stage(JOB, FIRST, NAME, ground.request)
    assert root is not None
    ground.sink.sweep(JOB, root, 1)

    assert publish(ground, output) == 0
    assert (ground.visible(), Path(manifest_path(output.entry.place)).exists()) == ([], False)


def test_column_that_the_target_lacks_is_refused_before_anything_is_staged(ground: CopyGround) -> None:
    ground.execute('ALTER TABLE dim RENAME COLUMN "row" TO other')

    with pytest.raises(OptionError, match="has no column 'row'; it has 'other'"):
        ground.staged_output(FIRST, ["a"])


def test_type_that_the_target_does_not_take_is_refused_before_anything_is_staged(ground: CopyGround) -> None:
    ground.execute('ALTER TABLE dim ALTER COLUMN "row" TYPE date USING NULL')

    with pytest.raises(DatabaseError, match="type date"):
        ground.staged_output(FIRST, ["a"])


def test_state_of_an_output_holds_no_login(ground: CopyGround) -> None:
    told = repr(ground.staged_output(FIRST, ["a"]).entry)

    assert ground.login.password
    assert ground.login.password not in told
