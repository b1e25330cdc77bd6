"""Promises of sequences in names and of gaps in them, as rules: an order that never turns, exact ranges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from airflow_bookmarks.core.errors import OptionError, StateCorruptError
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.ledger.gap import gaps_in_words, shown_gaps
from airflow_bookmarks.core.ledger.seen import MAX_RANGES, SHOWN_RANGES, SeenRanges, days
from airflow_bookmarks.core.rules.condition import is_reached
from airflow_bookmarks.core.selection.listing import FileInfo, Listing
from airflow_bookmarks.core.selection.sequence import SequenceRule, SequenceStart, dense_ranks, highest, rank_of
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.store.codec.attribute import Fields
from airflow_bookmarks.store.codec.stats import stats_of

PARTS = r"part-(?P<seq>\w+)"


# ---- the value of a path


@pytest.mark.parametrize(
    ("rule", "path", "roots", "value"),
    [
        (PARTS, "/raw/part-0042.csv", ["/raw"], "0042"),
        (PARTS, "/part-7/raw/a.csv", ["/part-7/raw"], None),  # above the root nothing counts
        (PARTS, "/raw2/part-1.csv", ["/raw", "/raw2/part-1.csv"], "1"),  # a root that is the file itself
        (r"(?P<day>\d{4}-\d\d-\d\d)/", "s3a://b/raw/2013-01-31/x", ["s3a://b/raw"], "2013-01-31"),
        (r"part-(?P<seq>\d*)", "/raw/part-.csv", ["/raw"], None),  # nothing is no value
        (r"x|part-(?P<seq>\d+)", "/raw/x.csv", ["/raw"], None),  # the group took no part in the match
        (r"(a|b)-(?P<seq>\d+)(\.gz)?", "/raw/b-3.gz", ["/raw"], "3"),  # groups without a name don't count
        ("path", "/raw/day=1/a.csv", ["/raw"], "day=1/a.csv"),
        ("path", "/raw/a.csv", ["/raw/a.csv"], "a.csv"),
        ("path", "/a", ["/"], "a"),
        ("path", "/raw/day=1/a", ["/raw/day=1/a", "/raw", "/"], "day=1/a"),  # the first that it lies below
        ("path", "/raw/day=1/a", ["/", "/raw"], "raw/day=1/a"),
    ],
)
def test_value_is_told_from_the_path_below_the_root(rule: str, path: str, roots: list[str], value: str | None) -> None:
    assert SequenceRule.of(rule).value_of(path, roots) == value


# ---- order


def test_digits_come_in_the_order_of_numbers_and_before_any_text() -> None:
    values = ["10a", "0011", "10", "9a", "2", "-3", "9", "٣", "1" * 19]
    assert sorted(values, key=rank_of) == ["2", "9", "10", "0011", "-3", "10a", "1" * 19, "9a", "٣"]


def test_dash_before_a_number_is_no_sign_of_it() -> None:
    rule = SequenceRule.of(r"part(?P<seq>.*)\.csv")
    values = rule.values_of([f"/raw/part-{number}.csv" for number in ("0001", "0002")], ["/raw"])

    assert (dense_ranks(values).tolist(), highest(values)) == ([0, 1], "-0002")


def test_paths_of_digits_alone_are_text() -> None:
    files = Listing.of([FileInfo(f"/raw/{name}", 1, 1) for name in ("9", "0042", "10")])

    assert dense_ranks(["9", "0042", "10"], is_text=True).tolist() == [2, 0, 1]
    assert SequenceStart("path").after(["/raw"], files) == "9"
    assert SequenceStart("path").after(["/raw"], files.take(np.array([1]))) == "0042"
    assert SequenceStart("path", "9").after(["/raw"], files.take(np.array([1]))) == "9"


class Counted(list[str]):
    """A list of roots that counts how often it is gone through."""

    passes = 0

    def __iter__(self) -> Iterator[str]:
        self.passes += 1
        return super().__iter__()


def test_many_roots_are_gone_through_once_for_all_files() -> None:
    paths = [f"/raw/part-{number}.csv" for number in range(100)]
    roots = Counted(paths)

    assert SequenceRule.of(PARTS).values_of(paths, roots) == [str(number) for number in range(100)]
    assert roots.passes == 1


def test_leading_zeros_make_no_other_number() -> None:
    assert dense_ranks(["007", "7", None, "6", "a"]).tolist() == [1, 1, 3, 0, 2]


@pytest.mark.parametrize(
    ("values", "mark"),
    [
        ([], None),
        ([None, None], None),
        (["0009", "0010"], "10"),
        (["9", "10", "x"], "x"),
        (["-0"], "-0"),
        (["-7", "9"], "-7"),
        (["z" * 300], "z" * 256),
        (["00000000000000000042"], "42"),
        (["20130131060000123456"], "20130131060000123456"),
    ],
)
def test_watermark_is_the_highest_value(values: list[str | None], mark: str | None) -> None:
    assert highest(values) == mark


@settings(deadline=None)
@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=300), min_size=1), st.data())
def test_watermark_never_goes_down_and_is_the_same_however_the_files_come(values: list[str], data: Any) -> None:
    whole = highest(values)
    marks: list[str | None] = [None]
    for value in data.draw(st.permutations(values)):
        marks.append(highest([marks[-1], value]))
    known = [rank_of(mark) for mark in marks if mark is not None]
    assert known == sorted(known)
    assert marks[-1] == whole


def test_numeric_watermark_compares_as_a_number_for_who_waits() -> None:
    mark = highest(["part-9", "0009", "0010"][1:])
    assert mark is not None
    assert is_reached("clean", "raw", mark, None, "9")
    assert is_reached("clean", "raw", mark, None, "0010")
    assert not is_reached("clean", "raw", mark, None, "11")


def test_text_watermark_is_no_number_for_who_waits() -> None:
    with pytest.raises(OptionError, match=r"is like '10a', and '9' can't be compared"):
        is_reached("clean", "raw", highest(["9", "10a"]) or "", None, "9")


# ---- the plan


def test_plan_keeps_by_which_sequence_it_goes_when_it_is_stored() -> None:
    files = Listing.of([FileInfo("/raw/part-8", 1, 1), FileInfo("/raw/part-7", 1, 1)])
    for start, mark in ((SequenceStart(PARTS), "8"), (SequenceStart(PARTS, "12"), "12")):
        plan = FilePlan.decode(FilePlan(files, ("/raw",), 2, 0, sequence=start).encode())
        assert (plan.sequence, plan.sequence_watermark) == (start, mark)
    plain = FilePlan.decode(FilePlan(files, ("/raw",), 2, 0).encode())
    assert (plain.sequence, plain.sequence_watermark) == (None, None)


def test_options_come_back_from_the_facts_of_a_plan() -> None:
    given_options = FileOptions(sequence=PARTS, on_unmatched="skip", gaps=False, on_touch="reprocess")
    assert FileOptions.of_stats(given_options.stats()) == given_options
    assert FileOptions.of_stats(FileOptions().stats()) == FileOptions()


# ---- gaps


def seen(*numbers: int, of: str = "n") -> SeenRanges:
    return SeenRanges("number", of).add(np.array(numbers, np.int64))


NUMBERS = st.lists(st.integers(-30, 60), max_size=20)


@settings(deadline=None)
@given(st.lists(NUMBERS, max_size=6))
def test_what_is_missing_is_exactly_what_no_run_has_seen(runs: list[list[int]]) -> None:
    known = seen()
    for numbers in runs:
        known = known.add(np.array(numbers, np.int64))
        if known.ranges:
            known = SeenRanges.of_stats(known.stats())
    ever = {number for numbers in runs for number in numbers}
    missing = set(range(min(ever), max(ever) + 1)) - ever if ever else set()
    told = {n for first, last in map(known._range_of, known.gaps) for n in range(first, last + 1)}
    assert (told, known.missing, known.lost) == (missing, len(missing), 0)
    assert len(known.ranges) == len(set(known.gaps)) + bool(ever)


@settings(deadline=None)
@example([[0, 53, 55], [-2, 54]], 2)  # a number below those that are told apart no more
@given(st.lists(NUMBERS, min_size=1, max_size=6), st.integers(1, 3))
def test_beyond_the_most_ranges_the_lowest_gaps_are_still_counted(runs: list[list[int]], most: int) -> None:
    known, whole = seen(), seen()
    for numbers in runs:
        known, whole = known.add(np.array(numbers, np.int64), most=most), whole.add(np.array(numbers, np.int64))
    assert len(known.ranges) <= most
    assert known.missing >= whole.missing  # one of those that came after all may still count
    assert set(known.ranges[1:]) <= set(whole.ranges)


def test_gap_below_those_that_are_told_apart_no_more_is_counted_among_these() -> None:
    known = seen().add(np.array([0, 53, 55, 60]), most=3).add(np.array([-2, 54]), most=3)
    assert (known.gaps, known.lost, known.missing) == (["56..59"], 53, 57)
    assert known.in_words() == "57 of -2 to 60 are missing: 56 to 59, and 53 lower ones, no longer known one by one"


def test_gaps_of_which_none_is_told_apart_are_said_as_that() -> None:
    known = seen().add(np.array([0, 2, 4]), most=1)
    assert known.in_words() == "2 of 0 to 4 are missing; which ones is no longer known"


def test_a_million_numbers_without_a_gap_are_one_range() -> None:
    assert SeenRanges("number", "n").add(np.arange(1_000_000)).stats()["seen"] == "0..999999"


def test_record_of_many_gaps_stays_small_and_says_how_many_are_not_shown() -> None:
    figures = seen(*range(0, 2000, 2)).stats()
    assert figures["missing"] == 999
    assert figures["ranges"][-1] == "1997"
    assert len(figures["ranges"]) == SHOWN_RANGES
    assert figures["more_ranges"] == MAX_RANGES - 1 - SHOWN_RANGES
    assert figures["lost"] == 999 - (MAX_RANGES - 1)
    assert len(str(figures)) < 2500
    assert gaps_in_words(figures).endswith("1997, and 107 ranges below, and 872 lower ones, no longer known one by one")


def test_days_are_missing_as_days() -> None:
    known = SeenRanges("day", "day").add(days(["2013-02-28", "2013-03-02", "2012-12-31"])).add(days(["2013-01-01"]))
    assert known.gaps == ["2013-01-02..2013-02-27", "2013-03-01"]
    assert known.missing == 58
    assert SeenRanges.of_stats(known.stats()) == known


def test_people_are_shown_what_is_missing_and_not_all_that_was_seen() -> None:
    assert shown_gaps({"files": 1}) is None
    shown = shown_gaps({"gaps": seen(1, 3).stats()})
    assert shown is not None
    assert "seen" not in shown
    assert (shown["missing"], shown["ranges"]) == (1, ["2"])


@pytest.mark.parametrize("damage", [{"missing": -1}, {"ranges": "2"}, {"seen": None}, {"unit": 7}, {"lost": "0"}])
def test_damaged_record_of_gaps_is_damage_and_not_guessed_at(damage: dict[str, Any]) -> None:
    whole = seen(1, 3).stats()
    assert stats_of(Fields("RUN 1.1", "", {"gaps": whole}))["gaps"] == whole
    with pytest.raises(StateCorruptError, match="gaps"):
        stats_of(Fields("RUN 1.1", "", {"gaps": whole | damage}))


@pytest.mark.parametrize("text", ["1..x", "", "2013-01-31", "1,,3"])
def test_ranges_that_mean_nothing_are_damage(text: str) -> None:
    with pytest.raises(StateCorruptError, match="Nothing was read or changed"):
        SeenRanges.of_stats(seen(1, 3).stats() | {"seen": text})
