"""What every file system promises: one passes when a subclass of `FileSystemConformance` does, on fixture `ground`."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from airflow_bookmarks.core.errors import OptionError, SourceMissingError
from airflow_bookmarks.files.filesystem import ChangeableFileSystem

ODD_NAMES = [
    "a b.csv",
    " leading and trailing .csv",
    "a+b.csv",
    "a%20b.csv",
    "100%.csv",
    "day=1=2.csv",
    "a,b;c.csv",
    "a&b<c>d'e\"f.csv",
    "a:b@c#d!e$f.csv",
    "über-größe.csv",
    "日本語.csv",
    "🛫.csv",
    "cafe\u0301.csv",
    "a[1]{2}*?.csv",
    "back\\slash.csv",
    "tilde~(1)^`|.csv",
    f"{'long' * 60}.csv",
]


@dataclass(frozen=True)
class Ground:
    """A file system, and the canonical path of a folder on it that is the test's own, and empty."""

    files: ChangeableFileSystem
    root: str

    def path(self, name: str) -> str:
        return f"{self.root}/{name}"

    def put(self, name: str, content: bytes = b"a row\n") -> str:
        """Write a file; return its path."""
        raise NotImplementedError

    def put_all(self, *names: str) -> None:
        for name in names:
            self.put(name)

    def names(self, *, recursive: bool = False) -> list[str]:
        """Return what is listed, by names below the root."""
        paths = self.files.list(self.root, recursive=recursive).files.paths
        return sorted(path.removeprefix(f"{self.root}/") for path in paths)

    def content(self, name: str) -> bytes:
        with self.files.open(self.path(name)) as file:
            return file.read()


class FileSystemConformance:
    """The promises; `odd_names` are those that the store can keep."""

    odd_names = ODD_NAMES

    # ---- list

    def test_listing_tells_path_size_time_and_version_as_a_look_at_the_file_does(self, ground: Ground) -> None:
        path = ground.put("a.csv", b"12345")

        (listed,) = ground.files.list(ground.root).files
        (seen,) = ground.files.stat([path])

        assert seen is not None
        assert (listed.path, listed.size_bytes, listed.version) == (path, 5, seen.version)
        assert abs(listed.modified_ms - seen.modified_ms) < 1000  # a look may tell whole seconds only

    def test_file_overwritten_has_another_version(self, ground: Ground) -> None:
        path = ground.put("a.csv", b"12345")
        (before,) = ground.files.stat([path])

        ground.put("a.csv", b"123456")

        (listed,) = ground.files.list(ground.root).files
        assert before is not None
        assert listed.version != before.version

    def test_names_of_spark_and_of_writers_are_left_out_and_counted(self, ground: Ground) -> None:
        ground.put_all("a.csv", "_SUCCESS", ".a.csv.crc", "b.csv._COPYING_", "_x=1/b.csv")
        ground.put_all("_temporary/0/part-0.csv", "_temporary/0/part-1.csv", "x=1/.tmp/c.csv")

        listed = ground.files.list(ground.root)

        assert ground.names() == ["_x=1/b.csv", "a.csv"]
        assert listed.skipped == {"hidden": 5}  # a hidden folder is one entry, whatever lies in it

    def test_only_partitions_are_descended_into(self, ground: Ground) -> None:
        ground.put_all("year=2013/month=01/a.csv", "year=2013/old/b.csv", "other/c.csv", "other/x=1/d.csv", "e.csv")

        listed = ground.files.list(ground.root)

        assert ground.names() == ["e.csv", "year=2013/month=01/a.csv"]
        assert listed.skipped == {"nested": 3}

    def test_recursive_listing_descends_into_all_but_hidden_folders(self, ground: Ground) -> None:
        ground.put_all("year=2013/a.csv", "other/deep/b.csv", "_bookmarks/c.csv", "other/.tmp/d.csv")

        assert ground.names(recursive=True) == ["other/deep/b.csv", "year=2013/a.csv"]
        assert ground.files.list(ground.root, recursive=True).skipped == {"hidden": 2}

    def test_file_is_a_root_of_its_own(self, ground: Ground) -> None:
        path = ground.put("a.csv")
        ground.put_all("a.csv2", "a")

        assert list(ground.files.list(path).files.paths) == [path]

    def test_hidden_file_that_is_named_is_no_input(self, ground: Ground) -> None:
        listed = ground.files.list(ground.put("_a.csv"))

        assert (len(listed.files), listed.skipped) == (0, {"hidden": 1})

    def test_nothing_at_the_root_is_missing_and_not_empty(self, ground: Ground) -> None:
        ground.put("rawest/a.csv")

        with pytest.raises(SourceMissingError, match="Nothing was read or changed"):
            ground.files.list(ground.path("raw"))

    def test_empty_file_is_input(self, ground: Ground) -> None:
        ground.put("a.csv", b"")

        assert ground.names() == ["a.csv"]

    def test_folder_whose_name_another_begins_with_is_not_mixed_up_with_it(self, ground: Ground) -> None:
        ground.put_all("raw/a.csv", "raw-old/b.csv", "raw.bak/c.csv", "raw0/d.csv")

        assert list(ground.files.list(ground.path("raw")).files.paths) == [ground.path("raw/a.csv")]

    def test_folder_that_is_not_entered_is_counted_and_not_listed(self, ground: Ground) -> None:
        ground.put_all("a.csv", "k=1/a.csv", "k=2/j=1/a.csv", "k=2/j=2/a.csv", "_tmp/a.csv", "old/k=1/a.csv")
        asked: list[str] = []

        def enters(folder: str) -> bool:
            asked.append(folder)
            return folder not in ("k=1", "k=2/j=1")

        listed = ground.files.list(ground.root, enters=enters)

        paths = sorted(path.removeprefix(f"{ground.root}/") for path in listed.files.paths)
        assert paths == ["a.csv", "k=2/j=2/a.csv"]
        assert (listed.pruned, listed.skipped) == (2, {"hidden": 1, "nested": 1})
        assert sorted(asked) == ["k=1", "k=2", "k=2/j=1", "k=2/j=2", "old", "old/k=1"]

    # ---- odd names

    def test_odd_names_are_listed_looked_at_and_read(self, ground: Ground) -> None:
        for name in self.odd_names:
            ground.put(f"in/{name}", name.encode())

        listed = ground.files.list(ground.path("in")).files

        assert sorted(listed.paths) == sorted(ground.path(f"in/{name}") for name in self.odd_names)
        assert [seen and seen.version for seen in ground.files.stat(listed.paths)] == [file.version for file in listed]
        assert [ground.content(f"in/{name}").decode() for name in self.odd_names] == self.odd_names

    def test_odd_names_are_moved_and_removed(self, ground: Ground) -> None:
        for name in self.odd_names:
            ground.put(f"in/{name}", name.encode())

        moved = [ground.files.move(ground.path(f"in/{n}"), ground.path(f"out/x=1/{n}")) for n in self.odd_names]

        assert all(moved)
        assert [ground.content(f"out/x=1/{name}").decode() for name in self.odd_names] == self.odd_names
        ground.files.remove(ground.path("out"))
        with pytest.raises(SourceMissingError):
            ground.files.list(ground.path("out"), recursive=True)

    def test_odd_folders_are_named(self, ground: Ground) -> None:
        names = [name for name in self.odd_names if name != "back\\slash.csv"]
        for name in names:
            ground.put(f"in/{name}/a.csv")

        assert sorted(ground.files.folders(ground.path("in"))) == sorted(names)

    # ---- stat, open

    def test_look_at_many_files_tells_which_are_gone_in_their_order(self, ground: Ground) -> None:
        ground.put_all("a", "c")
        paths = [ground.path(name) for name in ("a", "b", "c", "x/y/z")]

        found = ground.files.stat(paths)

        assert [info and info.path for info in found] == [paths[0], None, paths[2], None]
        assert list(ground.files.stat([])) == []

    def test_file_is_read_in_pieces(self, ground: Ground) -> None:
        content = bytes(range(256)) * 1000
        path = ground.put("a.bin", content)

        with ground.files.open(path) as file:
            pieces = [file.read(7), file.read(100_000), file.read()]

        assert b"".join(pieces) == content

    def test_file_that_is_gone_cannot_be_opened(self, ground: Ground) -> None:
        with pytest.raises(FileNotFoundError):
            ground.files.open(ground.path("a.csv"))

    # ---- move, delete

    def test_moved_file_keeps_content_and_version_and_leaves_its_place(self, ground: Ground) -> None:
        path = ground.put("_bookmarks/1.1/a.csv", b"12345")
        (before,) = ground.files.stat([path])

        assert ground.files.move(path, ground.path("clean/x=1/1.1-a.csv"))

        assert ground.content("clean/x=1/1.1-a.csv") == b"12345"
        source, target = ground.files.stat([path, ground.path("clean/x=1/1.1-a.csv")])
        assert source is None
        assert before is not None
        assert target is not None
        assert target.version == before.version

    def test_move_can_be_repeated(self, ground: Ground) -> None:
        path = ground.put("a.csv", b"12345")
        assert ground.files.move(path, ground.path("b.csv"))

        assert not ground.files.move(path, ground.path("b.csv"))

        assert ground.content("b.csv") == b"12345"

    def test_move_finishes_one_that_ended_between_copy_and_removal(self, ground: Ground) -> None:
        path = ground.put("a.csv", b"12345")
        ground.put("b.csv", b"12345")

        assert ground.files.move(path, ground.path("b.csv"))

        assert ground.names() == ["b.csv"]

    def test_publishers_that_move_the_same_files_leave_each_of_them_whole(self, ground: Ground) -> None:
        names = [f"{number}.csv" for number in range(5)]
        for name in names:
            ground.put(f"_bookmarks/{name}", name.encode())

        def publish(_: int) -> list[bool]:
            return [ground.files.move(ground.path(f"_bookmarks/{name}"), ground.path(name)) for name in names]

        with ThreadPoolExecutor(4) as pool:
            moved = list(pool.map(publish, range(4)))

        assert all(any(of_file) for of_file in zip(*moved, strict=True))
        assert [ground.content(name).decode() for name in names] == names
        assert ground.files.stat([ground.path(f"_bookmarks/{name}") for name in names]) == [None] * 5

    def test_deleted_file_is_gone_and_deleting_it_again_is_no_error(self, ground: Ground) -> None:
        path = ground.put("a.csv")
        ground.put("a.csv2")

        assert ground.files.delete(path)
        ground.files.delete(path)

        assert ground.names() == ["a.csv2"]

    # ---- write

    def test_file_that_is_written_is_read_with_its_content_and_listed(self, ground: Ground) -> None:
        content = bytes(range(256)) * 1000

        ground.files.write(ground.path("a/b.bin"), io.BytesIO(content))

        assert ground.content("a/b.bin") == content
        assert list(ground.files.list(ground.path("a")).files.paths) == [ground.path("a/b.bin")]

    def test_file_that_is_written_again_has_the_new_content_alone(self, ground: Ground) -> None:
        ground.files.write(ground.path("a.bin"), io.BytesIO(b"longer than the other"))

        ground.files.write(ground.path("a.bin"), io.BytesIO(b"new"))
        ground.files.write(ground.path("empty.bin"), io.BytesIO(b""))

        assert (ground.content("a.bin"), ground.content("empty.bin")) == (b"new", b"")

    def test_odd_names_are_written(self, ground: Ground) -> None:
        for name in self.odd_names:
            ground.files.write(ground.path(f"in/{name}"), io.BytesIO(name.encode()))

        assert [ground.content(f"in/{name}").decode() for name in self.odd_names] == self.odd_names

    # ---- folders, remove

    def test_folders_are_named_hidden_ones_too_and_files_not(self, ground: Ground) -> None:
        ground.put_all("a.csv", "1.2/out/a", "1.2/out/b", "_x/a", ".y/z/a", "ä b/c")

        assert list(ground.files.folders(ground.root)) == sorted(["1.2", "_x", ".y", "ä b"])

    def test_folder_that_is_gone_has_none(self, ground: Ground) -> None:
        assert list(ground.files.folders(ground.path("nothing/here"))) == []

    def test_removed_folder_is_gone_with_all_in_it_and_with_nothing_else(self, ground: Ground) -> None:
        ground.put_all("in/a", "in/x/y/b", "in/_c", "in2/d", "in.csv")

        ground.files.remove(ground.path("in"))
        ground.files.remove(ground.path("in"))

        assert ground.names(recursive=True) == ["in.csv", "in2/d"]
        assert "in" not in ground.files.folders(ground.root)

    # ---- paths

    def test_path_has_one_spelling(self, ground: Ground) -> None:
        spellings = [ground.root, f"{ground.root}/", f"{ground.root}//", f"{ground.root}/x/..", f"{ground.root}/./"]

        assert {ground.files.canonical(path) for path in spellings} == {ground.root}
        assert ground.files.canonical(ground.files.uri(ground.root)) == ground.root

    @pytest.mark.parametrize("path", ["", "raw/flights", "../raw"])
    def test_relative_path_is_refused(self, ground: Ground, path: str) -> None:
        with pytest.raises(OptionError, match="Nothing was read or changed"):
            ground.files.canonical(path)

    @pytest.mark.parametrize("name", ["*.csv", "a?.csv", "year=[12]", "{a,b}/c"])
    def test_pattern_is_refused(self, ground: Ground, name: str) -> None:
        with pytest.raises(OptionError, match="pattern"):
            ground.files.canonical(ground.path(name))

    def test_name_that_looks_like_a_pattern_and_is_there_is_a_name(self, ground: Ground) -> None:
        ground.put("year=[12]/a.csv")

        assert ground.files.canonical(ground.path("year=[12]")) == ground.path("year=[12]")
        assert ground.files.canonical(ground.path("year=[12]/a.csv")) == ground.path("year=[12]/a.csv")

    def test_pattern_for_spark_escapes_what_it_would_take_for_one(self, ground: Ground) -> None:
        path = ground.path("a[1]{2}*?\\ %20.csv")

        pattern = ground.files.pattern(path)

        assert pattern == ground.files.uri(ground.root) + "/a\\[1\\]\\{2\\}\\*\\?\\\\ %20.csv"
