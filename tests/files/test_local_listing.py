"""A listing of local folders: the same whatever lies beside each other in a folder, and whatever goes meanwhile."""

from __future__ import annotations

import os
import shutil
import socket
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_bookmarks.core.errors import FolderVanishedError, SourceError, SourceMissingError
from airflow_bookmarks.files import local_listing
from airflow_bookmarks.files.filesystem import Listed
from airflow_bookmarks.files.input import is_hidden
from airflow_bookmarks.files.local import LocalFileSystem

FILES = LocalFileSystem()


def put(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)


def names(root: Path, listed: Listed) -> list[str]:
    return [path.removeprefix(f"{root}/") for path in listed.files.paths]


# ---- the order, and the columns


def test_files_of_a_folder_come_by_name_and_then_those_of_its_folders(tmp_path: Path) -> None:
    put(tmp_path, "x=2/a", "x=1/b", "x=1/a", "x=1/y=1/a", "z", "a", "x=1.5/a")

    assert names(tmp_path, FILES.list(str(tmp_path))) == ["a", "z", "x=1/a", "x=1/b", "x=1/y=1/a", "x=1.5/a", "x=2/a"]


@pytest.mark.parametrize(("together", "at_once"), [(4096, 3), (6, 3), (5, 3), (1, 1)])
def test_folder_of_several_lots_is_listed_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, together: int, at_once: int
) -> None:
    monkeypatch.setattr(local_listing, "_SORTED", together)
    monkeypatch.setattr(local_listing, "_AT_ONCE", at_once)
    files = [f"{number * 7 % 20:02d}{'.' * number}" for number in range(20)]
    put(tmp_path, *files, "x=1/a", "x=0/b", "_hidden")

    listed = FILES.list(str(tmp_path))

    assert sorted(names(tmp_path, listed)[:20]) == sorted(files)
    assert names(tmp_path, listed)[20:] == ["x=0/b", "x=1/a"]
    assert list(listed.files) == FILES.stat(listed.files.paths)  # each size and time beside its own path
    assert listed.skipped == {"hidden": 1}


def test_folder_of_thousands_is_listed_by_name(tmp_path: Path) -> None:
    put(tmp_path, *(f"{number * 7 % 1000:04d}" for number in range(1000)))

    assert names(tmp_path, FILES.list(str(tmp_path))) == [f"{number:04d}" for number in range(1000)]


def test_times_that_no_clock_shows_yet_are_listed_as_they_are(tmp_path: Path) -> None:
    put(tmp_path, "a", "b")
    os.utime(tmp_path / "a", (0, 15_000_000_000))  # in 2445: more nanoseconds than 64 bits hold
    os.utime(tmp_path / "b", (0, -1_000_000.0005))

    listed = FILES.list(str(tmp_path)).files

    assert list(listed) == FILES.stat(listed.paths)


def test_listing_knows_the_folder_of_each_file(tmp_path: Path) -> None:
    put(tmp_path, "a", "x=1/a", "x=1/b", "x=2/_hidden", "x=3/y=1/a", "other/a")

    listing = FILES.list(str(tmp_path)).files

    assert listing.folders is not None
    told = [listing.folders.names[number] for number in listing.folders.numbers]
    assert told == [path.rpartition("/")[0] for path in listing.paths]


# ---- what is input


@st.composite
def trees(draw: st.DrawFn) -> list[str]:
    """Names of files below a root, none of which is a folder as well."""
    part = st.sampled_from(
        ["a", "b.csv", "x=1", "_x=1", "_SUCCESS", ".a", "a_", "_", "b._COPYING_", "x=1._COPYING_", "z"]
    )
    paths = draw(st.lists(st.lists(part, min_size=1, max_size=4).map("/".join), max_size=12, unique=True))
    folders = {"/".join(path.split("/")[:depth]) for path in paths for depth in range(1, path.count("/") + 1)}
    return [path for path in paths if path not in folders]


def expected(paths: Sequence[str], recursive: bool) -> tuple[list[str], dict[str, int]]:
    """Say name by name what Spark would read of these, and what it would leave out."""
    kept, hidden, skipped = [], set(), Counter[str]()
    for path in paths:
        parts = path.split("/")
        at = next((depth for depth, part in enumerate(parts, 1) if is_hidden(part)), None)
        if at is not None:
            hidden.add("/".join(parts[:at]))
        elif recursive or all("=" in part for part in parts[:-1]):
            kept.append(path)
        else:
            skipped["nested"] += 1
    if hidden:
        skipped["hidden"] = len(hidden)
    return sorted(kept), dict(skipped)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(trees(), st.booleans(), st.sampled_from([1, 2, 128]))
def test_listing_is_what_the_rules_for_names_say(
    tmp_path_factory: pytest.TempPathFactory, paths: list[str], recursive: bool, lot: int
) -> None:
    root = tmp_path_factory.mktemp("tree")
    put(root, *paths)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(local_listing, "_AT_ONCE", lot)
        listed = FILES.list(str(root), recursive=recursive)

    assert (sorted(names(root, listed)), listed.skipped) == expected(paths, recursive)
    assert list(listed.files) == FILES.stat(listed.files.paths)


def test_what_is_neither_file_nor_folder_is_counted(tmp_path: Path) -> None:
    put(tmp_path, "a")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))

        listed = FILES.list(str(tmp_path))

    assert (names(tmp_path, listed), listed.skipped) == (["a"], {"special": 3})


def test_links_are_followed(tmp_path: Path) -> None:
    put(tmp_path, "away/five", "away/x/b", "in/a")
    (tmp_path / "in/linked").symlink_to(tmp_path / "away/five")
    (tmp_path / "in/x=1").symlink_to(tmp_path / "away/x")

    listed = FILES.list(str(tmp_path / "in"))

    assert names(tmp_path / "in", listed) == ["a", "linked", "x=1/b"]
    assert list(listed.files) == FILES.stat(listed.files.paths)


def test_link_that_leads_to_itself_is_an_error_that_names_it(tmp_path: Path) -> None:
    put(tmp_path, "x=1/a")
    (tmp_path / "x=1/loop").symlink_to("loop")

    with pytest.raises(SourceError, match=rf"'{tmp_path}/x=1/loop' can't be listed: .*Nothing was read or changed"):
        FILES.list(str(tmp_path))


# ---- names that are no text


def test_name_that_is_not_utf8_is_an_error_that_names_it(tmp_path: Path) -> None:
    put(tmp_path, "x=1/a", "x=1/z")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/x=1/b\xff")).write_text("")

    with pytest.raises(SourceError, match=r"x=1/b\\xff' is not UTF-8. Nothing was read"):
        FILES.list(str(tmp_path))


def test_folder_whose_name_is_not_utf8_is_an_error_only_where_it_holds_input(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/x=\xff"))
    folder.mkdir()
    (folder / "_hidden").write_text("")
    assert len(FILES.list(str(tmp_path)).files) == 0

    (folder / "a").write_text("")

    with pytest.raises(SourceError, match=r"x=\\xff/a' is not UTF-8"):
        FILES.list(str(tmp_path))


def test_names_that_are_not_utf8_do_not_matter_where_nobody_reads(tmp_path: Path) -> None:
    put(tmp_path, "a", "other/b")
    for name in (b"/_\xff", b"/other/\xff"):
        Path(os.fsdecode(os.fsencode(tmp_path) + name)).write_text("")

    listed = FILES.list(str(tmp_path))

    assert (names(tmp_path, listed), listed.skipped) == (["a"], {"hidden": 1, "nested": 2})


# ---- while others are at work


def test_file_that_goes_while_it_is_listed_was_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "a", "b", "c")
    check = local_listing._check_utf8

    def check_late(inside: str, files: list[os.DirEntry[str]]) -> None:
        (tmp_path / "b").unlink()  # known by name, and not looked at yet
        check(inside, files)

    monkeypatch.setattr(local_listing, "_check_utf8", check_late)

    listed = FILES.list(str(tmp_path))

    assert names(tmp_path, listed) == ["a", "c"]
    assert list(listed.files) == FILES.stat(listed.files.paths)


def test_folder_that_goes_while_it_is_listed_is_an_error_and_not_empty(tmp_path: Path) -> None:
    put(tmp_path, "a", "x=1/b")

    def enters(folder: str) -> bool:
        (tmp_path / folder / "b").unlink()
        (tmp_path / folder).rmdir()
        return True

    with pytest.raises(FolderVanishedError, match=r"went while it was listed \(.*x=1.*Run again"):
        FILES.list(str(tmp_path), enters=enters)


def test_root_that_goes_while_it_is_listed_is_missing(tmp_path: Path) -> None:
    put(tmp_path, "root/x=1/b")

    def enters(folder: str) -> bool:
        shutil.rmtree(tmp_path / "root")
        return True

    with pytest.raises(SourceMissingError, match="went while it was listed"):
        FILES.list(f"{tmp_path}/root", enters=enters)


# ---- pruned folders, and how far it is


def test_folder_that_is_not_entered_is_counted_and_not_looked_into(tmp_path: Path) -> None:
    put(tmp_path, "a", "year=2012/month=12/a", "year=2013/month=08/a", "year=2013/month=09/a", "_tmp/a", "other/a")
    asked: list[str] = []

    def enters(folder: str) -> bool:
        asked.append(folder)
        return folder not in ("year=2012", "year=2013/month=08")

    listed = FILES.list(str(tmp_path), enters=enters)

    assert names(tmp_path, listed) == ["a", "year=2013/month=09/a"]
    assert (listed.pruned, listed.skipped) == (2, {"hidden": 1, "nested": 1})
    assert sorted(asked) == ["other", "year=2012", "year=2013", "year=2013/month=08", "year=2013/month=09"]


def test_root_of_all_folders_names_those_below_it_without_a_slash() -> None:
    asked: list[str] = []

    def enters(folder: str) -> bool:
        asked.append(folder)
        return False

    FILES.list("/", enters=enters)

    assert asked
    assert not any(folder.startswith("/") for folder in asked)


def test_listing_tells_how_many_entries_it_has_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_listing, "_AT_ONCE", 4)
    put(tmp_path, *(f"x=1/{number}" for number in range(10)), "_hidden")
    seen: list[int] = []

    FILES.list(str(tmp_path), saw=seen.append)

    assert seen == [2, 4, 4, 2]
