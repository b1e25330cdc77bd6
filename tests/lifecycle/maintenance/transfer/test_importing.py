"""Import: bookmarks out of one table and into another."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.errors import (
    ChangedMeanwhileError,
    ChangeRefusedError,
    FencedError,
    JobBusyError,
    OptionError,
    ProtectedError,
    SourceChangedError,
    UpstreamRewoundError,
)
from airflow_bookmarks.core.run import RunKey
from airflow_bookmarks.core.text.identity import Identity
from airflow_bookmarks.lifecycle.changes.approval import protect
from airflow_bookmarks.lifecycle.changes.change import reset, rewind, undo, unlock
from airflow_bookmarks.lifecycle.changes.naming import names_of
from airflow_bookmarks.lifecycle.inspect.runs import history
from airflow_bookmarks.lifecycle.maintenance.doctor import examine
from airflow_bookmarks.lifecycle.maintenance.transfer.exporting import export
from airflow_bookmarks.lifecycle.maintenance.transfer.importing import import_
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.replay import ReplayRun
from airflow_bookmarks.sinks.registry import SINKS
from airflow_bookmarks.sinks.staging import StagingRequest
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.store.backends.sqlite import SqliteTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.store.table import Attributes, Put
from airflow_bookmarks.store.transitions import importing as transition
from tests.lifecycle.maintenance.transfer.documents import WHY, items, through_json
from tests.lifecycle.rows import Rows
from tests.lifecycle.shop import FILES, Shop, unsound

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


def exported_before_a_run(shop: Shop) -> dict[str, Any]:
    """Return `copy` as it stood at run 1, which `report` has read; it has made run 2 since."""
    shop.put("a.txt", "a")
    shop.run()
    shop.run("report", upstream="copy")
    document = export(shop.store, ["copy"])
    shop.put("b.txt", "b")
    shop.run()
    return document


@pytest.mark.parametrize("is_upstream_there", [True, False])
def test_consumer_that_has_read_more_than_its_upstream_has_made_is_not_imported(
    shop: Shop, other: Shop, *, is_upstream_there: bool
) -> None:
    old = exported_before_a_run(shop)
    shop.run("report", upstream="copy")
    document = export(shop.store, ["report"])
    if is_upstream_there:
        import_(other.store, old, **WHY)
    else:
        document = {**document, "jobs": document["jobs"] | old["jobs"], "blobs": document["blobs"] | old["blobs"]}

    with pytest.raises(ChangeRefusedError, match=r"'report' has read its upstream 'copy' up to run 2, and .* at run 1"):
        import_(other.store, document, **WHY)

    assert other.store.snapshot("report").head is None


@pytest.mark.parametrize("on_rewind", ["fail", "rewind", "rewind_keep", "ignore"])
def test_consumer_above_its_upstream_reads_nothing_as_if_all_were_read(shop: Shop, other: Shop, on_rewind: str) -> None:
    old = exported_before_a_run(shop)
    shop.run("report", upstream="copy")
    import_(other.store, export(shop.store, ["report"]), move=True, **WHY)
    import_(other.store, old, move=True, **WHY)
    other.runs_made = 100

    if on_rewind in ("fail", "ignore"):
        with pytest.raises(UpstreamRewoundError, match="up to run 2"):
            other.run("report", upstream="copy", on_rewind=on_rewind)
    else:
        other.run("report", upstream="copy", on_rewind=on_rewind)
        assert other.run()[0] == ["b"]
        assert other.run("report", upstream="copy", on_rewind=on_rewind)[0] == ["b"]


def test_run_that_planned_what_an_import_has_taken_back_does_not_commit(shop: Shop) -> None:
    old = exported_before_a_run(shop)
    report = shop.begin("report")
    assert shop.copy(report, upstream="copy") == ["b"]
    import_(shop.store, old, overwrite=True, **WHY)

    with pytest.raises(SourceChangedError, match="an older state of upstream 'copy', at run 1, was brought back"):
        report.commit()

    report.abort("it was refused")
    shop.put("d.txt", "d")
    shop.run()
    assert sorted(shop.run("report", upstream="copy")[0]) == ["b", "d"]


def test_job_whose_open_run_may_have_landed_is_not_replaced(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    document = export(shop.store)
    rows, sinks = Rows(shop.root / "rows.db"), SINKS.extended(Rows(shop.root / "rows.db"))
    shop.put("b.txt", "b")
    run = shop.begin(sinks=sinks)
    run.plan("raw", FileSource(FILES, [str(shop.raw)]))
    run.place("out", StagingRequest(Rows.kind, "rows://out"))
    assert rows.write(int(run.token.rsplit("/", 1)[1]), ["b"])
    run.abort("stopped before its commit")

    with pytest.raises(ChangeRefusedError, match="its rows may be in rows://out already"):
        import_(shop.store, document, overwrite=True, **WHY)

    shop.begin(sinks=sinks).abort("only to settle it")
    assert shop.store.head("copy").run_number == 2
    assert import_(shop.store, document, overwrite=True, **WHY).replaced == ("copy",)


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
    other.environment = replace(other.environment, lease_time=timedelta(0))
    other.put("d.txt", "d")
    other.begin().abort("the first attempt")
    run = other.begin()
    other.copy(run)
    import_(other.store, export(busy.store, ["copy"]), overwrite=True, **WHY)
    with pytest.raises(FencedError):
        run.commit()


def test_run_of_another_history_is_not_taken_for_the_own_commit(busy: Shop, other: Shop) -> None:
    busy.run("single", "there/1")
    other.environment = replace(other.environment, lease_time=timedelta(0))
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
        ReplayRun.begin_replay(other.store, "copy", other.identity("prod/b", 2), other.environment, 2)
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

    run = replace(shop, environment=RunEnvironment(at=at, lease_time=timedelta(0))).begin()
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


def test_import_that_died_before_the_names_of_a_job_is_finished_by_another(busy: Shop, other: Shop) -> None:
    document = export(busy.store)

    def dies(*_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transition, "write_alias", dies)
        with pytest.raises(KeyboardInterrupt):
            import_(other.store, document, **WHY)

    assert import_(other.store, document, **WHY).kept == ("copy", "report")

    assert names_of(other.store, "copy") == ["copy", "lake.copy"]


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


def test_job_that_is_protected_while_its_blobs_are_put_is_not_replaced(
    busy: Shop, other: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = export(busy.store, ["copy"])
    other.run("copy")
    real = transition.write_job

    def late(*given: Any) -> bool:
        protect(other.store, "copy", reason="money", who=Identity("ann", True, "os"))
        return real(*given)

    monkeypatch.setattr(transition, "write_job", late)
    with pytest.raises(ChangedMeanwhileError, match="moved while it was imported"):
        import_(other.store, document, overwrite=True, **WHY)
    head = other.store.head("copy")
    assert (head.protected, head.lease) == (True, None)
    monkeypatch.undo()
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


def test_import_takes_a_reason(busy: Shop, other: Shop) -> None:
    with pytest.raises(OptionError, match="reason"):
        import_(other.store, export(busy.store), who="ann", reason=" ")
