"""Read files that are deleted or archived once their run is published: only those, and only as they were read."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.errors import OptionError, SourceChangedError
from airflow_bookmarks.core.rules.territory import SourceBounds, Territory
from airflow_bookmarks.core.selection.listing import FileInfo
from airflow_bookmarks.files.local import LocalFileSystem
from airflow_bookmarks.lifecycle.changes.change import reset, rewind
from airflow_bookmarks.lifecycle.protocol import source_cleanup as archive
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.protocol.source_cleanup import Disposal
from airflow_bookmarks.lifecycle.run.replay import ReplayRun
from airflow_bookmarks.sinks.files import changes as file_changes
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from tests.lifecycle.shop import FILES, Shop

DELETE = Disposal("delete")


class KilledError(BaseException):
    """Stands for the end of a driver process at a named point."""


def killed_at(point: Failpoint) -> RunEnvironment:
    def at(reached: Failpoint) -> None:
        if reached is point:
            raise KilledError

    return replace(RunEnvironment(), at=at)


def run(shop: Shop, disposal: Disposal | None = DELETE, **kwargs: Any) -> list[str]:
    """Make one whole run that puts away what it has read; return the lines read."""
    driver = shop.begin()
    if disposal is not None:
        driver.dispose("raw", disposal)
    lines = shop.copy(driver, **kwargs)
    driver.commit()
    return lines


def die(shop: Shop, point: Failpoint, disposal: Disposal = DELETE) -> None:
    """Make a run whose driver ends at a point of its commit."""
    driver = replace(shop, environment=killed_at(point)).begin()
    driver.dispose("raw", disposal)
    shop.copy(driver)
    with pytest.raises(KilledError):
        driver.commit()
    driver._leased.renewer.stop()


def there(shop: Shop, folder: str = "raw") -> dict[str, str]:
    """Return the content of each file below a folder by its path in it."""
    root = shop.root / folder
    return {str(path.relative_to(root)): path.read_text() for path in sorted(root.rglob("*")) if path.is_file()}


def test_read_files_are_deleted_and_no_others(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.put("_hidden.txt", "h")

    assert run(shop, between=lambda: shop.put("later.txt", "l")) == ["a"]

    assert list(there(shop)) == ["_hidden.txt", "later.txt"]
    assert shop.target_lines() == {"a": 1}
    assert run(shop) == ["l"]


def test_read_files_are_archived_under_the_path_that_they_had_below_their_root(shop: Shop) -> None:
    shop.put("day=1/a.txt", "a")
    shop.put("day=2/b.txt", "b")

    run(shop, Disposal("archive", str(shop.root / "done")))

    assert there(shop) == {}
    assert there(shop, "done") == {"day=1/a.txt": "a\n", "day=2/b.txt": "b\n"}


def test_archived_file_is_not_replaced_by_a_later_one_of_its_name(shop: Shop) -> None:
    to_archive = Disposal("archive", str(shop.root / "done"))
    shop.put("export.txt", "monday")
    run(shop, to_archive)
    shop.put("export.txt", "tuesday", seconds=1_700_000_500)
    run(shop, to_archive)

    assert there(shop, "done") == {"export.txt": "monday\n", "run-2.2.copy.export.txt": "tuesday\n"}


def test_file_that_is_overwritten_after_the_commit_stays_and_is_read_again(shop: Shop) -> None:
    def overwrite(reached: Failpoint) -> None:
        if reached is Failpoint.MARKED:
            shop.put("a.txt", "other", seconds=1_700_000_500)

    shop.put("a.txt", "a")
    shop.environment = replace(shop.environment, at=overwrite)
    run(shop)
    shop.environment = RunEnvironment()

    assert there(shop) == {"a.txt": "other\n"}
    assert run(shop) == ["other"]


def test_file_that_was_missing_at_the_commit_is_none_that_was_read(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.put("b.txt", "b")

    run(shop, on_missing="skip", between=lambda: shop.put("b.txt", "new", seconds=1_700_000_500))

    assert there(shop) == {"b.txt": "new\n"}


def test_file_that_was_gone_at_the_commit_and_came_back_is_none_that_was_read(shop: Shop) -> None:
    path, away = shop.put("b.txt", "b"), shop.root / "away"

    def bring_back(reached: Failpoint) -> None:
        if reached is Failpoint.COMMITTED:
            away.rename(path)

    shop.put("a.txt", "a")
    shop.environment = replace(shop.environment, at=bring_back)
    run(shop, on_missing="skip", between=lambda: path.rename(away))
    shop.environment = RunEnvironment()

    assert there(shop) == {"b.txt": "b\n"}
    assert run(shop) == ["b"]


@pytest.mark.parametrize("point", [Failpoint.MARKED, Failpoint.SWEPT])
def test_what_a_driver_leaves_that_dies_after_its_mark_the_next_run_finishes(shop: Shop, point: Failpoint) -> None:
    shop.put("a.txt", "a")
    die(shop, point)
    assert list(there(shop)) == ["a.txt"]
    shop.put("b.txt", "b")

    assert run(shop) == ["b"]

    assert there(shop) == {}
    assert shop.target_lines() == {"a": 1, "b": 1}


def test_what_another_driver_had_to_publish_the_next_run_finishes(shop: Shop) -> None:
    shop.put("a.txt", "a")
    die(shop, Failpoint.COMMITTED)
    driver = shop.begin(run_id="manual/1", attempt=2)
    driver.dispose("raw", DELETE)

    assert shop.copy(driver) == []
    driver.commit()

    assert there(shop) == {}
    assert shop.target_lines() == {"a": 1}


def test_leftovers_are_found_behind_several_runs(shop: Shop) -> None:
    shop.put("a.txt", "a")
    die(shop, Failpoint.MARKED)
    shop.put("b.txt", "b")
    die(shop, Failpoint.MARKED)
    run(shop, None)  # which keeps what it reads, and so what others left

    assert list(there(shop)) == ["a.txt", "b.txt"]
    run(shop)
    assert there(shop) == {}


def test_files_read_before_the_option_was_given_stay(shop: Shop) -> None:
    shop.put("old.txt", "o")
    run(shop, None)
    shop.put("new.txt", "n")

    run(shop)
    run(shop)

    assert list(there(shop)) == ["old.txt"]


def test_plans_are_asked_only_if_known_files_are_listed(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.put("a.txt", "a")
    run(shop)

    def fail(*_: object) -> Iterator[object]:
        raise AssertionError("no plan is to be asked")

    monkeypatch.setattr(archive, "_last_runs", fail)
    shop.put("b.txt", "b")
    run(shop)
    assert there(shop) == {}


def test_so_many_runs_are_asked_and_no_more(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "LOOKED_BACK", 2)
    shop.put("a.txt", "a")
    die(shop, Failpoint.MARKED)
    for _ in range(2):
        run(shop, None)

    run(shop)

    assert list(there(shop)) == ["a.txt"]


def test_reset_that_comes_before_the_end_leaves_the_files_which_are_input_again(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    def take_back(reached: Failpoint) -> None:
        if reached is Failpoint.MARKED:
            reset(shop.store, "copy", reason="r", who="ada")

    shop.put("a.txt", "a")
    shop.environment = replace(shop.environment, at=take_back)
    with caplog.at_level(logging.INFO):
        run(shop)
    shop.environment = RunEnvironment()

    assert list(there(shop)) == ["a.txt"]
    assert "1 left, because the job was taken back" in caplog.text


def test_leftovers_of_an_undone_run_are_input_again(shop: Shop) -> None:
    shop.put("a.txt", "a")
    run(shop, None)
    shop.put("b.txt", "b")
    die(shop, Failpoint.MARKED)
    rewind(shop.store, "copy", 1, reason="r", who="ada")

    assert run(shop) == ["b"]


def test_file_that_can_not_be_deleted_is_no_failure_of_the_run_and_the_next_tries_again(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    shop.put("a.txt", "a")
    shop.put("b.txt", "b")
    delete = LocalFileSystem.delete

    def refuse(files: LocalFileSystem, path: str) -> bool:
        if path.endswith("a.txt"):
            raise PermissionError(13, "not yours", path)
        return delete(files, path)

    with monkeypatch.context() as patch, caplog.at_level(logging.INFO):
        patch.setattr(LocalFileSystem, "delete", refuse)
        run(shop)

    assert list(there(shop)) == ["a.txt"]
    assert "1 deleted, 1 failed and left" in caplog.text
    assert "not yours" in caplog.text
    assert shop.store.head("copy").published == 1
    run(shop)
    assert there(shop) == {}


def test_replay_of_a_run_whose_input_is_gone_says_so_and_changes_nothing(shop: Shop) -> None:
    shop.put("a.txt", "a")
    run(shop)

    replay = ReplayRun.begin_replay(shop.store, "copy", shop.identity(), shop.environment, 1)
    with pytest.raises(SourceChangedError, match="changed or are gone"):
        shop.copy(replay)
    replay.abort("gone")

    assert shop.target_lines() == {"a": 1}


@pytest.mark.parametrize("option", ["pause", "disable"])
def test_run_that_changes_nothing_leaves_the_files_and_says_so(
    shop: Shop, option: str, caplog: pytest.LogCaptureFixture
) -> None:
    shop.put("a.txt", "a")
    side = shop.side(option=option)

    with caplog.at_level(logging.INFO):
        side.dispose("raw", DELETE)
    shop.copy(side)
    side.commit()

    assert list(there(shop)) == ["a.txt"]
    assert "read files stay where they are" in caplog.text


def test_more_files_than_are_looked_at_at_a_time_all_go(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "_AT_A_TIME", 3)
    for number in range(10):
        shop.put(f"{number}.txt", str(number))

    run(shop)

    assert there(shop) == {}


def test_single_file_as_root_is_archived_by_its_name() -> None:
    assert Disposal("archive", "/done/").target("/raw/a.csv", ["/raw/a.csv"]) == "/done/a.csv"


def ground_of(files: Any, roots: list[str], disposal: Disposal, mark: str, tally: archive._Tally) -> archive._Ground:
    bounds = SourceBounds(Territory("test", "copy"), "RUN 1.1, context 'raw'", frozenset(roots), disposal.archive_to)
    return archive._Ground(files, bounds, roots, disposal, mark, tally)


def test_file_that_was_archived_and_left_by_a_copying_store_is_not_archived_twice() -> None:
    class Store(LocalFileSystem):
        def stat(self, paths: Any) -> list[FileInfo | None]:
            return [None if "run-7.9.copy.b" in path else FileInfo(path, 1, 1, "etag") for path in paths]

    ground = ground_of(Store(), ["/raw"], Disposal("archive", "/done"), "run-7.9.copy", archive._Tally())

    same, other = FileInfo("/raw/a", 1, 1, "etag"), FileInfo("/raw/b", 1, 1, "another")
    assert ground.targets([same, other]) == {"/raw/a": None, "/raw/b": "/done/run-7.9.copy.b"}


def archive_all(shop: Shop, folders: str, *, job: str = "copy", to: str = "done", recursive: bool = False) -> None:
    """Make one run that reads some folders of raw, each under a context of its own where a bar is between them."""
    run = shop.begin(job)
    for number, names in enumerate(folders.split("|")):
        run.dispose(f"c{number}", Disposal("archive", str(shop.root / to)))
        roots = [str(shop.raw / name) for name in names.split()]
        run.plan(f"c{number}", FileSource(FILES, roots, FileOptions(recursive=recursive)))
    run.commit()


def contents(shop: Shop) -> list[str]:
    return sorted(text.strip() for text in there(shop, "done").values())


@pytest.mark.parametrize("folders", ["a b c d", "a b|c d", "a|b|c|d"])
def test_files_of_one_name_are_all_kept_in_the_archive(shop: Shop, folders: str) -> None:
    for day in (1, 2):
        for name in "abcd":
            shop.put(f"{name}/export.csv", f"{day}{name}", seconds=1_700_000_000 + day)
        archive_all(shop, folders)

    assert contents(shop) == sorted(f"{day}{name}" for day in (1, 2) for name in "abcd")
    assert there(shop) == {}


def test_jobs_that_share_an_archive_keep_all_files(shop: Shop) -> None:
    for name in "xyz":
        shop.put(f"{name}/export.csv", name)
        archive_all(shop, name, job=name)

    assert sorted(there(shop, "done")) == ["export.csv", "run-1.1.y.export.csv", "run-1.1.z.export.csv"]


@pytest.mark.parametrize("name", ["run-1.1.copy.export.csv", "x" * 255])
def test_name_that_is_chosen_is_free_and_fits_a_file_system(shop: Shop, name: str) -> None:
    for folder in "abc":
        shop.put(f"{folder}/export.csv", folder)
        shop.put(f"{folder}/{name}", f"{folder}2")

    archive_all(shop, "a b c")

    assert contents(shop) == ["a", "a2", "b", "b2", "c", "c2"]


class Remote(LocalFileSystem):
    """Stands for a store that is no disk."""


@pytest.mark.parametrize("is_disk", [True, False])
def test_name_that_another_job_takes_meanwhile_is_not_taken_from_it(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, is_disk: bool
) -> None:
    targets = archive._Ground.targets

    def race(ground: archive._Ground, part: Any) -> dict[str, str | None]:
        found = targets(ground, part)
        (shop.root / "done").mkdir()
        (shop.root / "done" / "a.txt").write_text("theirs\n")
        return found

    shop.put("a.txt", "ours")
    with monkeypatch.context() as patch:
        patch.setattr(archive._Ground, "targets", race)
        if not is_disk:
            patch.setattr(file_changes, "LocalFileSystem", Remote)  # and what is opened is none
        run(shop, Disposal("archive", str(shop.root / "done")))
    assert there(shop, "done") == {"a.txt": "theirs\n"}
    assert "could not be put away" in caplog.text

    run(shop, Disposal("archive", str(shop.root / "done")))
    assert contents(shop) == ["ours", "theirs"]


@pytest.mark.parametrize("is_disk", [True, False])
def test_file_that_went_is_not_counted_as_archived(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, is_disk: bool
) -> None:
    shop.put("a.txt", "a")
    monkeypatch.setattr(LocalFileSystem, "move", lambda *_: False)
    if not is_disk:
        monkeypatch.setattr(file_changes, "LocalFileSystem", Remote)  # and what is opened is none
    with caplog.at_level(logging.INFO, "airflow_bookmarks"):
        archive_all(shop, ".")

    assert "files read: 1 gone already" in caplog.text


def test_move_that_fails_tells_why_also_where_the_name_it_held_is_gone(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_files: LocalFileSystem, source: str, target: str) -> bool:
        Path(target).unlink()
        raise PermissionError(13, "not yours", source)

    shop.put("a.txt", "a")
    monkeypatch.setattr(LocalFileSystem, "move", fail)
    archive_all(shop, ".")

    assert "not yours" in caplog.text


@pytest.mark.parametrize("is_gone", [True, False])
def test_name_that_is_held_for_a_move_that_fails_is_given_back(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, is_gone: bool
) -> None:
    def fail(_files: LocalFileSystem, source: str, _target: str) -> bool:
        if is_gone:
            return False
        raise PermissionError(13, "not yours", source)

    shop.put("a.txt", "a")
    monkeypatch.setattr(LocalFileSystem, "move", fail)
    archive_all(shop, ".")

    assert there(shop, "done") == {}


def test_file_that_would_be_new_again_in_the_archive_is_left(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    shop.put("raw/a.txt", "a")
    shop.put("raw/_x/raw/b.txt", "never read")
    shop.put("c.txt", "c")

    with caplog.at_level(logging.INFO):
        archive_all(shop, ".", to="", recursive=True)

    assert sorted(there(shop)) == ["raw/_x/raw/b.txt", "raw/a.txt"]
    assert (shop.root / "c.txt").exists()
    assert "1 left, because they would be new again" in caplog.text


@pytest.mark.parametrize(
    ("folder", "root", "danger"),
    [
        ("/lake", "/lake/raw", "lies above"),
        ("/", "/lake/raw", "lies above"),
        ("/lake/raw", "/lake/raw/a.csv", "lies above"),
        ("s3a://lake", "s3a://lake/raw", "lies above"),
        ("/lake/raw/_done", "/lake/raw/_done/again", "lies above"),
        ("/lake/raw", "/lake/raw", "lies in"),
        ("/lake/raw/done", "/lake/raw", "lies in"),
        ("/lake/raw/day=1/_x=1", "/", "lies in"),
        ("/lake/raw/_done/x", "/lake/raw", None),
        ("/lake/ra", "/lake/raw", None),
        ("/lake/raw2", "/lake/raw", None),
    ],
)
def test_archive_is_neither_in_what_is_read_nor_above(folder: str, root: str, danger: str | None) -> None:
    found = archive.danger_of(folder, root)

    assert (found or "").startswith(danger or "")
    assert (found is None) == (danger is None)


def test_single_file_is_not_archived_onto_itself(shop: Shop) -> None:
    """Where etags tell that the file is there already, its source would go: and that is the file."""
    ground = ground_of(LocalFileSystem(), ["/raw/a.csv"], Disposal("archive", "/raw"), "run-1.1.copy", archive._Tally())

    assert ground.targets([FileInfo("/raw/a.csv", 1, 1, "etag")]) == {}


@pytest.mark.parametrize(
    ("verb", "folder"), [("archive", None), ("delete", "/done"), ("keep", "/done"), ("burn", None)]
)
def test_half_an_archive_is_refused(verb: Any, folder: str | None) -> None:
    with pytest.raises(OptionError, match="Nothing was read or changed"):
        Disposal(verb, folder)


class Roots(list[str]):
    """Roots that count how often one of them is looked at."""

    seen = 0

    def __iter__(self) -> Iterator[str]:
        for root in super().__iter__():
            self.seen += 1
            yield root


@pytest.mark.parametrize("layout", ["{0}.txt", "{0}/same.txt"])
def test_archiving_files_that_are_named_one_by_one_takes_a_few_looks_for_each(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, layout: str
) -> None:
    files = [str(shop.put(layout.format(number), "x")) for number in range(300)]
    found = [file for file in FILES.stat(files) if file is not None]
    roots, looks = Roots(files), Counter[str]()
    real, stat = os.path.realpath, LocalFileSystem.stat
    monkeypatch.setattr(os.path, "realpath", lambda path: looks.update(["realpath"]) or real(path))
    monkeypatch.setattr(
        LocalFileSystem, "stat", lambda self, paths: looks.update({"stat": len(paths)}) or stat(self, paths)
    )
    tally = archive._Tally()

    archive._dispose_all(
        ground_of(FILES, roots, Disposal("archive", str(shop.root / "done")), "run-1.1.copy", tally),
        found,
        lambda: True,
    )

    assert tally.counts == {"archived": 300}
    assert roots.seen <= 5 * 300
    assert looks["stat"] <= 5 * 300
    assert looks["realpath"] <= 2 * 300
