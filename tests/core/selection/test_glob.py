"""Promise FILE-9: patterns mean what Hadoop and Glue mean by them. (Against Spark itself: tests/spark.)"""

from __future__ import annotations

import pytest

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.selection.glob import Exclusions, Glob, NamePattern
from airflow_bookmarks.sources.files.scan_filter import ScanRoot


@pytest.mark.parametrize(
    ("pattern", "roots"),
    [
        ("/lake/raw/2013-*/*.csv", ["/lake/raw"]),
        ("/lake/*", ["/lake"]),
        ("/*", ["/"]),
        ("s3a://lake/*/a.csv", ["s3a://lake"]),
        ("s3a://lake/raw/2013-*", ["s3a://lake/raw"]),
        ("/lake/{raw,old/raw}/*.csv", ["/lake/raw", "/lake/old/raw"]),
        ("/lake/{a,b{c,d/e}}/*", ["/lake/a", "/lake/bc", "/lake/bd/e"]),
        ("/lake/{a,a}/x{1,2}", ["/lake"]),
        ("/lake/\\{a,b\\}/*", ["/lake/{a,b}"]),
        ("/lake/day\\[1\\]", ["/lake/day[1]"]),
    ],
)
def test_only_what_has_no_pattern_in_it_is_the_root(pattern: str, roots: list[str]) -> None:
    assert [glob.root for glob in Glob.expand(pattern)] == roots


@pytest.mark.parametrize("pattern", ["/lake/[ab", "/lake/[]", "/lake/{a,b", "/lake/x*\\", "/lake/[z-a]", "/lake/{a{b}"])
def test_pattern_that_is_not_closed_is_an_error_that_names_it(pattern: str) -> None:
    with pytest.raises(OptionError, match=r"can't be read.*Nothing was read or changed"):
        Glob.expand(pattern)


@pytest.mark.parametrize(
    ("part", "matching", "others"),
    [
        ("*.csv", ["a.csv", ".csv", "a\n.csv"], ["a.csv2", "acsv"]),
        ("a?c", ["abc", "a.c"], ["ac", "abbc"]),
        ("[a-c]x", ["ax", "cx"], ["dx", "x"]),
        ("[^a-c]x", ["dx", "^x"], ["ax"]),
        ("[!a]x", ["bx"], ["ax"]),
        ("[a-]x", ["ax", "-x"], ["bx"]),
        ("[a\\-c]x", ["ax", "-x", "cx"], ["bx"]),
        ("[.+&]x", [".x", "+x", "&x"], ["ax"]),
        ("{a,b,c{d,e}}", ["a", "b", "cd", "ce"], ["c", "a,b"]),
        ("a,b}", ["a,b}"], ["a"]),
        ("\\*x", ["*x"], ["ax"]),
        ("x{,y}", ["x", "xy"], ["y"]),
        ("**", ["a", "a.b"], []),
        ("a.b$(c)|^", ["a.b$(c)|^"], ["aXb$(c)|^"]),
    ],
)
def test_signs_match_as_in_hadoop(part: str, matching: list[str], others: list[str]) -> None:
    (glob,) = Glob.expand(f"/lake/*/{part}")

    assert [name for name in (*matching, *others) if glob.matched(f"any/{name}") is not None] == matching


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("*.bak", ["a.bak"], ["x/a.bak", "a.bak2"]),
        ("**.bak", ["a.bak", "x/y/a.bak"], ["a.csv"]),
        ("**/*.bak", ["a.bak", "x/y/a.bak"], ["a.csv"]),
        ("**/tmp/**", ["tmp/a", "x/tmp/y/a"], ["tmp", "xtmp/a", "x/tmpx/a"]),
        ("tmp/", ["tmp/a", "tmp/x/a"], ["tmp", "x/tmp/a"]),
        ("tmp/*", ["tmp/a"], ["tmp/x/a"]),
        ("year=*/month=1/**", ["year=2013/month=1/a"], ["year=2013/month=10/a", "year=2013/x/month=1/a"]),
        ("x/**/a", ["x/a", "x/y/a", "x/y/z/a"], ["x/ba"]),
        ("{a,b}/?.csv", ["a/x.csv", "b/y.csv"], ["a//.csv", "c/x.csv"]),
        ("[^a]/x", ["b/x"], ["a/x", "//x"]),
    ],
)
def test_exclusions_match_paths_below_the_root(pattern: str, matching: list[str], others: list[str]) -> None:
    exclusions = Exclusions.of(["nothing at all", pattern])

    assert [path for path in (*matching, *others) if exclusions.matches(path)] == matching


@pytest.mark.parametrize("pattern", ["", "/lake/*.bak", "s3://lake/*.bak", "[a", "{a", "[z-a].csv", 7])
def test_exclusion_that_could_match_nothing_is_an_error(pattern: object) -> None:
    with pytest.raises(OptionError, match="Nothing was read or changed"):
        Exclusions.of([pattern])  # type: ignore[list-item]


@pytest.mark.parametrize("pattern", ["", "x/*.csv", "{a"])
def test_name_pattern_is_of_names(pattern: str) -> None:
    with pytest.raises(OptionError, match="Nothing was read or changed"):
        NamePattern.of(pattern)


# ---- where an output may lie


@pytest.mark.parametrize(
    ("pattern", "recursive", "reading", "others"),
    [
        ("/lake/raw-*", False, ["/lake", "/lake/raw-2"], ["/lake/clean", "/lake/raw-2/x/y", "/other", "/lakes"]),
        ("/lake/raw-*", True, ["/lake/raw-2/x/y"], ["/lake/clean/x"]),
        ("/lake/*/*.csv", False, ["/lake/clean"], ["/lake", "/other/raw"]),
    ],
)
def test_folder_that_a_pattern_would_read_is_known(
    pattern: str, recursive: bool, reading: list[str], others: list[str]
) -> None:
    (glob,) = Glob.expand(pattern)
    place = ScanRoot(glob.root, glob)

    assert [folder for folder in (*reading, *others) if place.reads(folder, recursive=recursive)] == reading


def test_folder_that_holds_what_a_pattern_reads_is_known() -> None:
    (glob,) = Glob.expand("/lake/raw/2013-*/*.csv")
    place = ScanRoot(glob.root, glob)

    assert [f for f in ("/lake", "/lake/raw", "/lake/raw/2013-01", "/lake/raw/2012") if place.lies_in(f)] == [
        "/lake",
        "/lake/raw",
        "/lake/raw/2013-01",
    ]
