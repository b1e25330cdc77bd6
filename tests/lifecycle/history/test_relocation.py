"""Promise of RUN-12: a folder that moved with its files is read on from where it was, by a verb and by a keyword."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airflow_bookmarks.core.errors import JobBusyError, OptionError, OverwrittenError, SourceSwitchedError
from airflow_bookmarks.core.ledger.file_ledger import Ledger
from airflow_bookmarks.core.ledger.quarantine import Quarantine, QuarantinedFile
from airflow_bookmarks.core.selection.listing import FileInfo, Listing
from airflow_bookmarks.lifecycle.changes.change import Change, relocate, rewind, set_position, undo
from airflow_bookmarks.lifecycle.changes.preview import preview
from airflow_bookmarks.lifecycle.inspect.pending import pending
from airflow_bookmarks.lifecycle.maintenance.doctor import examine
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.sources.relocation import held_after_move, match_moved
from tests.lifecycle.shop import FILES, Shop

REASON: dict[str, Any] = {"reason": "test", "who": "test"}


def three_files(shop: Shop) -> Path:
    """Read three files, and move their folder, with times of its own; return the new one."""
    for name in ("day=1/a.txt", "day=1/b.txt", "day=2/c.txt"):
        shop.put(name, name)
    shop.run()
    moved = shop.root / "moved"
    shutil.copytree(shop.raw, moved, copy_function=shutil.copyfile)
    shutil.rmtree(shop.raw)
    return moved


def read(shop: Shop, folder: Path, **kwargs: Any) -> list[str]:
    """Make a run that reads `folder`; return the names of what it read."""
    run = shop.begin()
    names = planned(run, folder, **kwargs)
    run.commit()
    return names


def planned(run: Any, folder: Path, **kwargs: Any) -> list[str]:
    plan = run.plan("raw", FileSource(FILES, [str(folder)]), **kwargs)
    return sorted(Path(path).name for path in plan.files.paths)


def put(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


# ---- by the verb


def test_moved_files_count_as_read_and_the_rest_is_new(shop: Shop) -> None:
    moved = three_files(shop)
    put(moved, "day=2/d.txt", "new")
    put(moved, "day=1/b.txt", "a text of another size")
    seen = preview(shop.store, "copy", Change("relocate", ctx="raw", from_root=str(shop.raw), to_root=str(moved)))
    assert seen.moved is not None
    counts = {name: seen.moved[name] for name in ("same", "changed", "new", "unverified")}
    assert counts == {"same": 2, "changed": 1, "new": 1, "unverified": 0}
    assert read_nothing_of(shop, moved)

    relocate(shop.store, "copy", "raw", str(shop.raw), str(moved), **REASON)
    assert not examine(shop.store)
    assert read(shop, moved) == ["b.txt", "d.txt"]
    assert read(shop, moved) == []
    assert not examine(shop.store)


def read_nothing_of(shop: Shop, folder: Path) -> bool:
    """Whether the source under the context is still refused: nothing was changed."""
    run = shop.begin()
    with pytest.raises(SourceSwitchedError):
        planned(run, folder)
    run.abort("a test")
    return True


def test_relocation_is_undone_and_stays_in_the_history(shop: Shop) -> None:
    moved = three_files(shop)
    relocate(shop.store, "copy", "raw", str(shop.raw), str(moved), **REASON)
    event: Any = shop.store.events("copy")[-1]
    assert (event["kind"], event["ctx"], event["moved"]["same"]) == ("relocate", "raw", 3)
    undo(shop.store, "copy", **REASON)
    assert read_nothing_of(shop, moved)
    shutil.copytree(moved, shop.raw, copy_function=shutil.copyfile)
    undo(shop.store, "copy", **REASON)
    assert read(shop, moved) == []


def test_rewind_after_a_relocation_goes_back_to_the_old_folder(shop: Shop) -> None:
    moved = three_files(shop)
    relocate(shop.store, "copy", "raw", str(shop.raw), str(moved), **REASON)
    rewind(shop.store, "copy", 1, **REASON)
    assert read_nothing_of(shop, moved)


def test_what_looks_at_the_source_without_the_script_looks_at_the_new_folder(shop: Shop) -> None:
    moved = three_files(shop)
    put(moved, "day=2/d.txt", "new")
    relocate(shop.store, "copy", "raw", str(shop.raw), str(moved), **REASON)
    (context,) = pending(shop.store, "copy").as_dict()["contexts"]
    assert (context["files"], context["unknown"], context["source"]) == (1, None, f"files:{moved}")
    set_position(shop.store, "copy", "raw", "now", **REASON)
    assert pending(shop.store, "copy").as_dict()["files"] == 0
    assert read(shop, moved) == []


def test_folder_can_move_twice_before_the_next_run(shop: Shop) -> None:
    moved, again = three_files(shop), shop.root / "again"
    relocate(shop.store, "copy", "raw", str(shop.raw), str(moved), **REASON)
    moved.rename(again)
    relocate(shop.store, "copy", "raw", str(moved), str(again), **REASON)
    assert read(shop, again) == []


def test_relocation_is_refused_where_it_does_not_fit(shop: Shop) -> None:
    moved = three_files(shop)
    with pytest.raises(OptionError, match="reads no folder"):
        relocate(shop.store, "copy", "raw", str(shop.root / "other"), str(moved), **REASON)
    with pytest.raises(OptionError, match="no context"):
        relocate(shop.store, "copy", "rwa", str(shop.raw), str(moved), **REASON)
    run = shop.begin()
    with pytest.raises(JobBusyError):
        relocate(shop.store, "copy", "raw", str(shop.raw), str(moved), **REASON)
    run.abort("a test")
    assert shop.store.head("copy").epoch == 1


@pytest.mark.parametrize("place", ["/x\0y", "/\ud800", "s3://lake/\ud800", "hdfs://node/\0", Path("/new"), 5])
def test_place_that_no_path_can_be_is_refused_in_words(shop: Shop, place: Any) -> None:
    three_files(shop)
    before = shop.store.head("copy")
    with pytest.raises(OptionError, match=r"(can't be a path|a path is text).*Nothing was read or changed\. \w+"):
        relocate(shop.store, "copy", "raw", str(shop.raw), place, **REASON)
    with pytest.raises(OptionError, match=r"(can't be a path|a path is text).*Nothing was read or changed\. \w+"):
        relocate(shop.store, "copy", "raw", place, str(shop.raw), **REASON)
    assert shop.store.head("copy") == before


# ---- by the keyword


def test_keyword_reads_on_from_the_old_folder_in_the_run_that_has_it(shop: Shop) -> None:
    moved = three_files(shop)
    put(moved, "day=2/d.txt", "new")
    assert read(shop, moved, moved_from=str(shop.raw)) == ["d.txt"]
    assert read(shop, moved, moved_from=str(shop.raw)) == []
    assert read(shop, moved) == []
    assert not examine(shop.store)


def test_keyword_moves_the_bookmark_though_nothing_is_new(shop: Shop) -> None:
    moved = three_files(shop)
    assert read(shop, moved, moved_from=str(shop.raw)) == []
    assert read(shop, moved) == []
    (state,) = shop.store.head("copy").contexts.values()
    assert state.fingerprint == f"files:{moved}"
    assert not examine(shop.store)


def test_run_with_the_keyword_says_what_it_took_for_read(shop: Shop) -> None:
    moved = three_files(shop)
    read(shop, moved, moved_from=str(shop.raw))
    run = shop.store.committed_run("copy", 2)
    assert run is not None
    assert run.plans["raw"].stats["moved_from"]["same"] == 3


def test_failed_and_paused_runs_with_the_keyword_move_nothing(shop: Shop) -> None:
    moved = three_files(shop)
    put(moved, "day=2/d.txt", "new")
    before = shop.store.head("copy").contexts
    side = shop.side()
    assert planned(side, moved, moved_from=str(shop.raw)) == ["d.txt"]
    side.commit()
    run = shop.begin()
    assert planned(run, moved, moved_from=str(shop.raw)) == ["d.txt"]
    run.abort("a test")
    assert shop.store.head("copy").contexts == before


def test_keyword_with_a_folder_that_the_context_never_read_is_an_error(shop: Shop) -> None:
    moved = three_files(shop)
    run: ActiveRun = shop.begin()
    with pytest.raises(OptionError, match="reads no folder"):
        planned(run, moved, moved_from=str(shop.root / "other"))
    run.abort("a test")


def test_error_of_a_switched_source_names_the_ways_that_work(shop: Shop) -> None:
    moved = three_files(shop)
    run = shop.begin()
    with pytest.raises(
        SourceSwitchedError, match=r"moved_from=.*'airflow-bookmarks relocate copy raw --from OLD --to NEW'"
    ):
        planned(run, moved)
    run.abort("a test")


# ---- quarantine


def with_quarantine(shop: Shop) -> Path:
    """Read one file and set three aside, one of them released since; move their folder, with times of its own."""
    for name in ("day=1/good.csv", "day=1/bad.csv", "day=2/worse.csv", "day=2/released.csv"):
        shop.put(name, name)
    run = shop.begin()
    plan = run.plan("raw", FileSource(FILES, [str(shop.raw)]))
    run.quarantine("raw", {path: "three columns" for path in plan.files.paths if "good" not in path})
    run.commit()
    set_position(shop.store, "copy", "raw", f"retry:{shop.raw}/day=2/released.csv", **REASON)
    moved = shop.root / "moved"
    shutil.copytree(shop.raw, moved, copy_function=shutil.copyfile)
    shutil.rmtree(shop.raw)
    return moved


@pytest.mark.parametrize("is_by_verb", [True, False])
def test_quarantined_file_that_moved_is_not_read(shop: Shop, is_by_verb: bool) -> None:
    moved = with_quarantine(shop)
    given: dict[str, Any] = {"moved_from": str(shop.raw)}
    if is_by_verb:
        relocate(shop.store, "copy", "raw", str(shop.raw), str(moved), **REASON)
        given = {}
    assert read(shop, moved, **given) == ["released.csv"]
    assert shop.store.head("copy").contexts["raw"].set_aside == 2


def test_quarantined_file_that_changed_on_its_way_is_read_and_its_record_goes(shop: Shop) -> None:
    moved = with_quarantine(shop)
    put(moved, "day=1/bad.csv", "what can be parsed now")
    (moved / "day=2/worse.csv").unlink()
    relocate(shop.store, "copy", "raw", str(shop.raw), str(moved), **REASON)
    assert read(shop, moved) == ["bad.csv", "released.csv"]
    assert shop.store.head("copy").contexts["raw"].set_aside == 0


# ---- what counts as the same


def listed(*files: FileInfo) -> Listing:
    return Listing.of(files)


def counts_of(ledger: Ledger, listing: Listing, *, old: str = "s3://old/raw") -> Any:
    found = match_moved(ledger, listing, old, "s3://new/raw", dict)
    return {name: int(np.count_nonzero(rows)) for name, rows in found.items()}


def test_etag_decides_where_both_have_one() -> None:
    old = [FileInfo("s3://old/raw/a", 5, 1_000, "x"), FileInfo("s3://old/raw/b", 5, 1_000, "y")]
    ledger = Ledger.empty().add(listed(*old))
    now = listed(FileInfo("s3a://new/raw/a", 5, 9_000, "x"), FileInfo("s3a://new/raw/b", 5, 9_000, "y-2"))
    assert counts_of(ledger, now) == {"same": 1, "changed": 1, "new": 0, "unverified": 0}


def test_size_decides_where_the_old_store_has_no_etags() -> None:
    ledger = Ledger.empty().add(listed(FileInfo("/old/raw/a", 5, 1_234), FileInfo("/old/raw/b", 5, 1_777)))
    now = listed(FileInfo("s3://new/raw/a", 5, 9_000, "x"), FileInfo("s3://new/raw/b", 6, 9_000, "y"))
    assert counts_of(ledger, now, old="/old/raw") == {"same": 1, "changed": 1, "new": 0, "unverified": 0}


def test_size_from_kept_plans_decides_where_the_new_store_has_no_etags() -> None:
    old = [FileInfo(f"s3://old/raw/{name}", 5, 1_000, name) for name in "abc"]
    now = Listing.of([FileInfo(f"/new/raw/{name}", 5, 9_000) for name in "abc"])
    ledger, sizes = Ledger.empty().add(listed(*old)), {"old/raw/a": 5, "old/raw/b": 6}
    found = match_moved(ledger, now, "s3://old/raw", "/new/raw", lambda: sizes)
    assert {name: np.flatnonzero(rows).tolist() for name, rows in found.items()} == {
        "same": [0], "changed": [1], "new": [], "unverified": [2],
    }  # fmt: skip


def test_quarantined_version_is_known_by_its_etag_where_both_have_one_and_else_by_its_size() -> None:
    old = [FileInfo("s3://old/raw/a", 5, 1_000, "x"), FileInfo("s3://old/raw/b", 5, 1_000, "y")]
    bad = Quarantine().add(QuarantinedFile.of(file, "three columns", 1) for file in old)
    ledger = replace(Ledger.empty(), quarantine=bad)

    in_s3 = [FileInfo("s3a://new/raw/a", 5, 9_000, "x"), FileInfo("s3a://new/raw/b", 5, 9_000, "y-2")]
    held = held_after_move(ledger, listed(*in_s3), "s3://old/raw", "s3://new/raw")
    assert {row: (file.path, file.version) for row, file in held.items()} == {0: ("s3a://new/raw/a", "x")}

    on_disk = [FileInfo("/new/raw/a", 5, 9_000), FileInfo("/new/raw/b", 6, 9_000)]
    held = held_after_move(ledger, listed(*on_disk), "s3://old/raw", "/new/raw")
    assert {row: (file.path, file.version) for row, file in held.items()} == {0: ("/new/raw/a", "5-9000")}


def test_file_without_an_entry_is_not_verifiable_where_the_ledger_forgets() -> None:
    ledger = Ledger.empty().add(listed(FileInfo("s3://old/raw/a", 5, 1_000, "x"))).forget(5_000)
    now = listed(FileInfo("s3://new/raw/a", 5, 9_000, "x"))
    assert counts_of(ledger, now)["unverified"] == 1


def test_files_that_can_not_be_verified_are_decided_on_by_name(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    moved = three_files(shop)
    monkeypatch.setattr("airflow_bookmarks.sources.relocation.match_moved", _nothing_verified)
    with pytest.raises(OptionError, match="3 file"):
        relocate(shop.store, "copy", "raw", str(shop.raw), str(moved), **REASON)
    relocate(shop.store, "copy", "raw", str(shop.raw), str(moved), unverified="read", **REASON)
    assert read(shop, moved) == []
    undo(shop.store, "copy", **REASON)
    relocate(shop.store, "copy", "raw", str(shop.raw), str(moved), unverified="new", **REASON)
    assert len(read(shop, moved)) == 3


def _nothing_verified(ledger: Ledger, listing: Listing, *_: Any) -> dict[str, Any]:
    none = np.zeros(len(listing), np.bool_)
    return {"same": none, "changed": none, "new": none, "unverified": ~none}


@pytest.mark.parametrize("is_by_verb", [True, False])
def test_overwritten_file_that_moved_is_still_an_overwrite(shop: Shop, is_by_verb: bool) -> None:
    moved = three_files(shop)
    put(moved, "day=1/b.txt", "a text of another size")
    given: dict[str, Any] = {"moved_from": str(shop.raw)}
    if is_by_verb:
        relocate(shop.store, "copy", "raw", str(shop.raw), str(moved), **REASON)
        given = {}

    run = shop.begin()
    with pytest.raises(OverwrittenError):
        run.plan("raw", FileSource(FILES, [str(moved)], FileOptions(on_overwrite="error")), **given)
    run.abort("a test")
    run = shop.begin()
    plan = run.plan("raw", FileSource(FILES, [str(moved)], FileOptions(on_overwrite="ignore")), **given)
    assert (len(plan), plan.skipped["overwritten"]) == (0, 1)
    run.abort("a test")
    run = shop.begin()
    plan = run.plan("raw", FileSource(FILES, [str(moved)]), **given)
    assert [Path(path).name for path in plan.again] == ["b.txt"]
    run.commit()
    assert not examine(shop.store)
    assert read(shop, moved) == []
