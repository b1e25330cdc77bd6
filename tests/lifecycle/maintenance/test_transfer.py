"""Transfer: bookmarks out of one table and into another, and as Glue shows them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.errors import (
    ChangeRefusedError,
    DocumentError,
    FencedError,
    JobBusyError,
    JobUnknownError,
    OptionError,
    ProtectedError,
    RunUnknownError,
    StateCorruptError,
)
from airflow_bookmarks.core.run import RunKey
from airflow_bookmarks.core.text.identity import Identity
from airflow_bookmarks.lifecycle.changes.approval import protect
from airflow_bookmarks.lifecycle.changes.change import reset, rewind, undo, unlock
from airflow_bookmarks.lifecycle.changes.naming import adopt, delete, names_of, rename
from airflow_bookmarks.lifecycle.inspect.runs import history
from airflow_bookmarks.lifecycle.maintenance import transfer
from airflow_bookmarks.lifecycle.maintenance.doctor import examine
from airflow_bookmarks.lifecycle.maintenance.transfer import as_glue_entry, export, import_
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.replay import ReplayRun
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.store.table import Attributes, Delete, Key, Put
from airflow_bookmarks.store.transitions import importing as transition
from tests.lifecycle.shop import Shop, unsound

WHY: dict[str, Any] = {"who": "ann", "reason": "a new table"}


@pytest.fixture
def other(shop: Shop, tmp_path: Path) -> Shop:
    """Return a shop over the same files whose store is another, empty one."""
    store = BookmarkStore(SqliteTable(tmp_path / "other.db"), "test")
    store.init()
    return replace(shop, store=store)


@pytest.fixture
def busy(shop: Shop) -> Shop:
    """Return a shop with history: runs, a rewind, a consumer, two names."""
    for second, name in enumerate("abc", 1):
        shop.put(f"{name}.txt", name, seconds=1_700_000_000 + second)
        shop.run()
    shop.run("report", upstream="copy")
    rewind(shop.store, "copy", 2, reason="wrong rows", who="ann")
    shop.run()
    shop.run("report", upstream="copy", on_rewind="ignore")
    rename(shop.store, "copy", "lake.copy", reason="new DAG", who="ann")
    return shop


def through_json(document: Any) -> Any:
    return json.loads(json.dumps(document))


def items(store: BookmarkStore, job: str) -> dict[str, Attributes]:
    return {key.sk: item for key, item in store.table.query(store.keys(job).partition)}


# ---- out and in


def test_imported_jobs_go_on_where_the_exported_ones_stood(busy: Shop, other: Shop) -> None:
    done = import_(other.store, through_json(export(busy.store)), **WHY)

    assert done.jobs == {"copy": 4, "report": 2}
    assert history(other.store, "copy") == history(busy.store, "copy")
    other.put("d.txt", "d")
    other.runs_made = 100
    assert other.run()[0] == ["d"]
    assert other.run("report", upstream="copy")[0] == ["d"]
    undo_target = other.store.head("copy").epoch
    undo(other.store, "copy", reason="as there", who="ann")
    assert other.store.head("copy").epoch == undo_target + 1


def test_doctor_finds_nothing_in_what_was_imported(busy: Shop, other: Shop) -> None:
    import_(other.store, export(busy.store), **WHY)
    # What undone runs left in a target is the first job's to clean: a copy removes nothing that it did not publish.
    assert [(f.code, f.what) for f in examine(other.store)] == [(f.code, f.what) for f in unsound(busy.store)]


def test_every_item_comes_through_unchanged(busy: Shop, other: Shop) -> None:
    import_(other.store, through_json(export(busy.store)), move=True, **WHY)

    before, after = items(busy.store, "copy"), items(other.store, "copy")
    assert after["HEAD"].pop("fence") == int(str(before["HEAD"].pop("fence"))) + 1
    (event,) = [sk for sk in after if sk not in before]
    assert after.pop(event)["kind"] == "import"
    assert {sk: attributes.pop("imported_from") for sk, attributes in after.items() if sk.startswith("EVENT#")} != {}
    assert after == before
    assert names_of(other.store, "lake.copy") == ["copy", "lake.copy"]


def test_blobs_come_along(shop: Shop, other: Shop) -> None:
    for number in range(900):
        shop.put(f"p={number}/f.txt", str(number))
    shop.run()
    document = through_json(export(shop.store))
    assert document["blobs"]

    import_(other.store, document, **WHY)

    assert not examine(other.store, with_files=False)
    other.runs_made = 100
    assert other.run()[0] == []


def test_large_history_is_written_in_parts(shop: Shop, other: Shop) -> None:
    shop.run()
    keys = shop.store.keys("copy")
    for number in range(250):
        attributes: Attributes = {"attempt": 1, "filler": "x" * 20_000, "dag_run_id": "$odd"}
        shop.store.table.transact([Put(keys.execution(f"old/{number}"), attributes)])

    import_(other.store, through_json(export(shop.store)), **WHY)

    assert len(items(other.store, "copy")) == len(items(shop.store, "copy")) + 1
    assert other.store.head("copy").lease is None


def test_only_the_named_jobs_are_exported(busy: Shop) -> None:
    document = export(busy.store, ["lake.copy"])
    assert list(document["jobs"]) == ["copy"]
    with pytest.raises(JobUnknownError):
        export(busy.store, ["no.such"])


def test_lease_of_the_exported_job_is_not_imported(busy: Shop, other: Shop) -> None:
    run = busy.begin()
    import_(other.store, export(busy.store), **WHY)
    assert other.store.head("copy").lease is None
    assert run.commit().run_number == 5  # the exported job is as it was


def test_staging_of_another_namespace_is_left_alone(busy: Shop, tmp_path: Path) -> None:
    store = BookmarkStore(SqliteTable(tmp_path / "prod.db"), "prod")
    store.init()
    import_(store, export(busy.store), **WHY)
    assert (busy.store.head("copy").staging != (), store.head("copy").staging) == (True, ())


def test_map_whose_names_begin_with_a_dollar_comes_through(shop: Shop, other: Shop) -> None:
    shop.run()
    odd: Attributes = {"a": {"$base64": "no bytes"}, "b": b"bytes", "c": {"$map": {"$x": [b"y", None, True, 3]}}}
    shop.store.table.transact([Put(shop.store.keys("copy").execution("odd"), odd)])
    import_(other.store, through_json(export(shop.store)), **WHY)
    assert items(other.store, "copy")["EXEC#odd"] == odd


# ---- over what is there


def test_job_that_is_there_is_replaced_only_if_so_wanted(busy: Shop, other: Shop) -> None:
    document = export(busy.store, ["copy"])
    other.run("copy")
    other.run("copy")
    with pytest.raises(ChangeRefusedError, match="there is a job"):
        import_(other.store, document, **WHY)
    reset(other.store, "copy", reason="kept as an event", who="bob")
    before = other.store.head("copy")

    done = import_(other.store, document, overwrite=True, **WHY)

    after = other.store.head("copy")
    assert done.replaced == ("copy",)
    assert after.fence > max(before.fence, busy.store.head("copy").fence)
    assert after.version > before.version
    assert {"reset", "import", "rewind"} <= {str(event["kind"]) for event in other.store.events("copy")}
    codes = [finding.code for finding in examine(other.store, with_files=False)]
    assert codes == ["edge-without-consumer"]  # of "report", which was not asked for


def test_holder_of_a_replaced_job_is_fenced(busy: Shop, other: Shop) -> None:
    other.machine = replace(other.machine, lease_time=timedelta(0))
    other.put("d.txt", "d")
    other.begin().abort("the first attempt")
    run = other.begin()
    other.copy(run)
    import_(other.store, export(busy.store, ["copy"]), overwrite=True, **WHY)
    with pytest.raises(FencedError):
        run.commit()


def test_run_of_another_history_is_not_taken_for_the_own_commit(busy: Shop, other: Shop) -> None:
    busy.run("single", "there/1")
    other.machine = replace(other.machine, lease_time=timedelta(0))
    other.put("d.txt", "d")
    run = other.begin("single", "here/1")
    other.copy(run)
    import_(other.store, export(busy.store, ["single"]), overwrite=True, **WHY)
    (imported,) = other.store.runs("single")
    assert (imported.key, imported.fences) == (RunKey(1, 1), (1,))  # those of the stale driver
    with pytest.raises(FencedError):
        run.commit()


# ---- a copy leaves the job alone that it was taken from


def test_copy_sweeps_nothing_of_the_job_that_it_was_taken_from(shop: Shop, other: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    shop.put("b.txt", "b")
    live = shop.begin()
    shop.copy(live)
    import_(other.store, export(shop.store), **WHY)

    other.begin(run_id="copy/1").commit()  # an empty run sweeps

    assert list(other.store.open_runs("copy", other.store.head("copy"))) == []
    live.commit()
    assert shop.target_lines() == {"a": 1, "b": 1}


def test_copy_refuses_to_clean_or_replay_what_it_was_given(shop: Shop, other: Shop) -> None:
    for name in "ab":
        shop.put(f"{name}.txt", name)
        shop.run(run_id=f"prod/{name}")
    import_(other.store, export(shop.store), **WHY)

    with pytest.raises(ChangeRefusedError, match="belongs to the job that was exported"):
        reset(other.store, "copy", clean=True, **WHY)
    with pytest.raises(ChangeRefusedError, match="belongs to the job that was exported"):
        ReplayRun.begin_replay(other.store, "copy", other.caller("prod/b", 2), other.machine, 2)
    other.put("c.txt", "c")
    other.run(run_id="copy/1")
    rewind(other.store, "copy", 2, clean=True, **WHY)  # what it made itself
    assert other.run(run_id="copy/2")[0] == ["c"]
    assert shop.target_lines() == {"a": 1, "b": 1, "c": 1}


def dies_at(shop: Shop, point: Failpoint) -> None:
    """Let a run of "copy" die at a point of the protocol."""

    def at(reached: Failpoint) -> None:
        if reached is point:
            raise InterruptedError

    run = replace(shop, machine=RunEnvironment(at=at, lease_time=timedelta(0))).begin()
    shop.copy(run)
    with pytest.raises(InterruptedError):
        run.commit()


def test_job_whose_publish_is_due_is_moved_and_not_copied(shop: Shop, other: Shop) -> None:
    shop.put("a.txt", "a")
    dies_at(shop, Failpoint.COMMITTED)
    document = export(shop.store)

    with pytest.raises(ChangeRefusedError, match="the publish of run 1 was due"):
        import_(other.store, document, **WHY)
    assert other.store.jobs() == []

    import_(other.store, document, move=True, **WHY)
    assert other.run()[0] == []
    assert shop.target_lines() == {"a": 1}
    assert other.staged_files() == []


def test_job_whose_clean_is_due_is_not_copied(busy: Shop, other: Shop) -> None:
    reset(busy.store, "copy", clean=True, **WHY)
    with pytest.raises(ChangeRefusedError, match="a clean was due"):
        import_(other.store, export(busy.store, ["copy"]), **WHY)


def test_state_that_comes_home_is_no_copy(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    document = export(shop.store)
    shop.put("b.txt", "b")
    shop.run()
    import_(shop.store, document, overwrite=True, **WHY)
    assert reset(shop.store, "copy", clean=True, **WHY).undone == (1,)


def test_import_that_died_between_jobs_is_finished_and_leaves_alone_what_is_whole(busy: Shop, other: Shop) -> None:
    document = export(busy.store)
    write: Any = transition.write_job
    written = 0

    def dies(*given: Any) -> bool:
        nonlocal written
        written += 1
        if written == 2:
            raise InterruptedError
        return bool(write(*given))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transition, "write_job", dies)
        with pytest.raises(InterruptedError):
            import_(other.store, document, **WHY)
    other.put("later.txt", "later")
    other.run("copy", "later/1")

    import_(other.store, document, **WHY)
    assert [name for name, _ in other.store.jobs()] == ["copy", "lake.copy", "report"]
    assert other.store.head("copy").run_number == busy.store.head("copy").run_number + 1


def test_import_that_died_half_way_is_no_lease_to_be_taken_away(busy: Shop, other: Shop) -> None:
    def dies(*_: Any, **__: Any) -> None:
        raise InterruptedError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("airflow_bookmarks.store.transitions.importing._parts", dies)
        with pytest.raises(InterruptedError):
            import_(other.store, export(busy.store), **WHY)
    for act in (
        lambda: unlock(other.store, "copy", **WHY),
        lambda: reset(other.store, "copy", force=True, **WHY),
        lambda: other.begin(),
    ):
        with pytest.raises(ChangeRefusedError, match="Import the same document again"):
            act()


def test_name_that_had_begun_before_its_adoption_is_exported_as_a_name(busy: Shop, other: Shop) -> None:
    busy.begin("begun").abort("nothing was read")
    adopt(busy.store, "begun", "copy", **WHY)

    document = export(busy.store)

    assert list(document["jobs"]) == ["copy", "report"]
    import_(other.store, document, **WHY)
    assert names_of(other.store, "copy") == ["copy", "begun", "lake.copy"]


@pytest.mark.parametrize("document", [[], "x", 5, None, {}, {"format": True, "jobs": {}, "blobs": {}}])
def test_what_is_no_export_is_refused(other: Shop, document: Any) -> None:
    with pytest.raises(DocumentError, match="Nothing was imported"):
        import_(other.store, document, **WHY)


@pytest.mark.parametrize(
    "value", [1.5, {"": 1}, {"$base64": "!"}, {"$map": 5}, 10**40, "\udcff", [[]] * 40, {"sha256": "x"}]
)
def test_value_that_no_table_holds_is_found_before_anything_is_written(busy: Shop, other: Shop, value: Any) -> None:
    document = export(busy.store, ["copy"])
    part = document["jobs"]["copy"]
    run = next(sk for sk in part["items"] if sk.startswith("RUN#"))
    part["items"][run]["odd"] = value if value != [[]] * 40 else _nested(40)
    part["sha256"] = transfer._checksum({name: part[name] for name in ("index", "aliases", "items")})
    with pytest.raises(DocumentError, match="Nothing was imported"):
        import_(other.store, document, **WHY)
    assert other.store.jobs() == []


def _nested(depth: int) -> list[Any]:
    inner: list[Any] = []
    for _ in range(depth):
        inner = [inner]
    return inner


def test_import_over_a_run_a_protected_job_or_a_reader_is_refused(busy: Shop, other: Shop) -> None:
    document = export(busy.store, ["copy"])
    other.run("copy")
    run = other.begin("copy")
    with pytest.raises(JobBusyError):
        import_(other.store, document, overwrite=True, **WHY)
    run.abort("stopped")
    other.run("counts", upstream="copy")
    with pytest.raises(ChangeRefusedError, match="consumer 'counts'"):
        import_(other.store, document, overwrite=True, **WHY)
    protect(other.store, "copy", reason="money", who=Identity("ann", True, "os"))
    with pytest.raises(ProtectedError):
        import_(other.store, document, overwrite=True, **WHY)


def test_name_that_is_another_job_is_refused(busy: Shop, other: Shop) -> None:
    other.run("lake.copy")
    with pytest.raises(ChangeRefusedError, match="is another job here"):
        import_(other.store, export(busy.store), **WHY)
    assert [name for name, _ in other.store.jobs()] == ["lake.copy"]


def test_import_that_died_half_way_holds_the_job_and_is_finished_by_another(busy: Shop, other: Shop) -> None:
    document = export(busy.store)
    table = other.store.table
    real, written = table.transact, 0

    def dies(operations: Any, *, token: str | None = None) -> None:
        nonlocal written
        written += any(operation.key.sk.startswith("RUN#") for operation in operations)
        if written:
            raise InterruptedError
        real(operations, token=token)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "transact", dies)
        with pytest.raises(InterruptedError):
            import_(other.store, document, **WHY)
    with pytest.raises(ChangeRefusedError, match="import"):
        other.begin("copy", "a/run")

    import_(other.store, document, **WHY)

    assert history(other.store, "copy") == history(busy.store, "copy")
    with pytest.raises(ChangeRefusedError, match="nobody holds"):
        unlock(other.store, "copy", reason="free already", who="ann")


# ---- documents that are damaged


def test_document_that_was_changed_is_refused(busy: Shop, other: Shop) -> None:
    document = through_json(export(busy.store))
    document["jobs"]["copy"]["items"]["HEAD"]["run_number"] = 3
    with pytest.raises(DocumentError, match="job 'copy' does not match"):
        import_(other.store, document, **WHY)
    assert other.store.jobs() == []


def test_blob_that_is_damaged_or_missing_is_refused(shop: Shop, other: Shop) -> None:
    for number in range(900):
        shop.put(f"p={number}/f.txt", str(number))
    shop.run()
    document = through_json(export(shop.store))
    for sha256 in list(document["blobs"]):
        less = {**document, "blobs": {name: body for name, body in document["blobs"].items() if name != sha256}}
        with pytest.raises(DocumentError, match="lacks it"):
            import_(other.store, less, **WHY)
        damaged = {**document, "blobs": {**document["blobs"], sha256: "AAAA"}}
        with pytest.raises(DocumentError, match="checksum"):
            import_(other.store, damaged, **WHY)
    assert other.store.jobs() == []


@pytest.mark.parametrize("document", [{}, {"format": 2}, {"format": 1}, {"format": 1, "jobs": {"a": {}}, "blobs": {}}])
def test_what_is_no_document_is_refused(other: Shop, document: dict[str, Any]) -> None:
    with pytest.raises(DocumentError, match="Nothing was imported"):
        import_(other.store, document, **WHY)


def test_import_takes_a_reason(busy: Shop, other: Shop) -> None:
    with pytest.raises(OptionError, match="reason"):
        import_(other.store, export(busy.store), who="ann", reason=" ")


def test_state_with_a_blob_gone_is_not_exported(shop: Shop) -> None:
    for number in range(900):
        shop.put(f"p={number}/f.txt", str(number))
    shop.run()
    sha256 = next(iter(export(shop.store)["blobs"]))
    shop.store.table.transact([Delete(Key(f"test#BLOB#{sha256}", f"{0:010d}"))])
    with pytest.raises(StateCorruptError):
        export(shop.store)


# ---- as Glue shows it


def test_entry_has_the_shape_of_glue(busy: Shop) -> None:
    entry = as_glue_entry(busy.store, "copy")

    bookmark = json.loads(entry.pop("JobBookmark"))
    last, before = busy.store.committed_run("copy", 4), busy.store.committed_run("copy", 2)
    assert last is not None
    assert before is not None
    assert entry == {
        "JobName": "copy",
        "Version": busy.store.head("copy").version,
        "Run": 5,
        "Attempt": 0,
        "PreviousRunId": before.run_id,
        "RunId": last.run_id,
    }
    state = bookmark["raw"]
    assert state["jsonClass"] == "HadoopDataSourceJobBookmarkState"
    assert {type(value) for value in state["timestamps"].values()} == {str}
    assert state["timestamps"]["RUN"] == "4"


def test_entry_of_a_run_is_that_of_then(busy: Shop) -> None:
    first = busy.store.committed_run("copy", 1)
    assert first is not None
    entry = as_glue_entry(busy.store, "copy", first.run_id)
    assert (entry["Run"], entry["RunId"], "PreviousRunId" in entry) == (2, first.run_id, False)
    with pytest.raises(RunUnknownError):
        as_glue_entry(busy.store, "copy", "9")
    with pytest.raises(JobUnknownError):
        as_glue_entry(busy.store, "no.such")


def test_entry_after_a_deletion_has_no_run(busy: Shop) -> None:
    delete(busy.store, "lake.copy", typed_name="lake.copy", reason="gone", who="ann")
    entry = as_glue_entry(busy.store, "copy")
    assert (entry["Run"], entry["JobBookmark"], "RunId" in entry) == (1, "{}", False)


def test_entry_of_a_consumer_names_the_run_of_its_upstream(busy: Shop) -> None:
    (state,) = json.loads(as_glue_entry(busy.store, "report")["JobBookmark"]).values()
    assert (state["jsonClass"], state["values"]["WATERMARK"]) == ("UpstreamJobBookmarkState", "4")
