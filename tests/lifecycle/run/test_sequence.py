"""Promises of sequences in names (`sequence`, `on_unmatched`), of the gaps in them, and of files that were touched."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from airflow_bookmarks.core.errors import OptionError, UnmatchedError
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.ledger.gap import gaps_in_words
from airflow_bookmarks.core.position import Greatest
from airflow_bookmarks.core.rules.shard import VirtualShard
from airflow_bookmarks.core.rules.start import Start
from airflow_bookmarks.lifecycle.changes.change import rewind, set_position
from airflow_bookmarks.lifecycle.inspect.pending import pending
from airflow_bookmarks.lifecycle.inspect.runs import history
from airflow_bookmarks.lifecycle.inspect.status import bookmark
from airflow_bookmarks.lifecycle.maintenance.doctor import Finding, examine
from airflow_bookmarks.lifecycle.state.summary import Summary
from airflow_bookmarks.sinks.registry import SINKS
from airflow_bookmarks.sinks.staging import StagingRequest
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.sources.files.scan import SharedScans
from airflow_bookmarks.store.table import Update, Value
from tests.aborting import aborted_on_error
from tests.lifecycle.rows import Rows
from tests.lifecycle.shop import FILES, Shop

PARTS = r"part-(?P<seq>\d+)"


def run(shop: Shop, **kwargs: Any) -> tuple[list[str], Summary]:
    """Make one run by the sequence of parts; return the names of the files read, in order, and the summary."""
    begun = shop.begin()
    options = FileOptions(**{"sequence": PARTS, **kwargs})
    with aborted_on_error(begun):
        plan = begun.plan("raw", FileSource(FILES, [str(shop.raw)], options))
    return [path.removeprefix(f"{shop.raw}/") for path in plan.files.paths], begun.commit()


def put(shop: Shop, *names: str) -> None:
    """Write files, each a second older than the one before."""
    for age, name in enumerate(names):
        shop.put(name, name, seconds=1_700_000_000 - age)


def watermark(shop: Shop) -> str | None:
    return shop.store.head("copy").contexts["raw"].watermark


# ---- order and watermark


def test_files_are_read_in_the_order_of_their_numbers_and_not_of_their_times(shop: Shop) -> None:
    put(shop, "part-9.csv", "part-10.csv", "part-0008.csv")
    names, _ = run(shop)
    assert names == ["part-0008.csv", "part-9.csv", "part-10.csv"]


def test_files_of_one_number_are_read_in_the_order_of_their_paths(shop: Shop) -> None:
    put(shop, "b-part-1.csv", "a-part-01.csv", "part-0.csv")
    names, _ = run(shop)
    assert names == ["part-0.csv", "a-part-01.csv", "b-part-1.csv"]


def test_watermark_is_the_highest_number_of_what_was_read(shop: Shop) -> None:
    put(shop, "part-0009.csv", "part-0010.csv")
    _, summary = run(shop)
    assert (watermark(shop), summary.contexts["raw"]["watermark_to"]) == ("10", "10")


def test_file_with_a_lower_number_that_comes_later_is_read_and_the_watermark_stays(shop: Shop) -> None:
    put(shop, "part-10.csv")
    run(shop)
    put(shop, "part-3.csv")
    names, _ = run(shop)
    assert (names, watermark(shop)) == (["part-3.csv"], "10")
    assert run(shop)[0] == []


def test_watermark_stays_when_the_highest_file_is_removed(shop: Shop) -> None:
    put(shop, "part-10.csv")
    run(shop)
    (shop.raw / "part-10.csv").unlink()
    put(shop, "part-3.csv")
    run(shop)
    assert watermark(shop) == "10"


def test_path_itself_can_be_the_order_and_the_watermark(shop: Shop) -> None:
    put(shop, "day=2/a.csv", "day=1/b.csv", "day=10/a.csv")
    names, _ = run(shop, sequence="path")
    assert names == ["day=1/b.csv", "day=10/a.csv", "day=2/a.csv"]
    assert watermark(shop) == "day=2/a.csv"


def test_sequence_that_is_given_later_begins_at_the_highest_of_what_was_read_before(shop: Shop) -> None:
    put(shop, "part-7.csv", "notes.csv")
    run(shop, sequence=None)
    put(shop, "part-3.csv")
    names, _ = run(shop)
    assert (names, watermark(shop)) == (["part-3.csv"], "7")


def test_another_rule_goes_by_its_own_values_from_then_on(shop: Shop) -> None:
    put(shop, "part-7-2013.csv")
    run(shop)
    put(shop, "part-8-2012.csv")
    run(shop, sequence=r"-(?P<year>\d{4})\.")
    assert watermark(shop) == "2013"
    put(shop, "part-9-2014.csv")
    run(shop, sequence=None)
    assert watermark(shop) == "2023-11-14T22:13:20.000000Z"


def test_sequence_beside_a_column_tells_the_watermark_once_the_column_does_not(shop: Shop) -> None:
    put(shop, "part-12.csv")
    begun = shop.begin()
    begun.plan("raw", FileSource(FILES, [str(shop.raw)], FileOptions(sequence=PARTS)))
    begun.set_greatest("raw", Greatest("at", "2013-01-31"))
    begun.commit()
    assert watermark(shop) == "2013-01-31"
    put(shop, "part-9.csv")
    run(shop)
    assert watermark(shop) == "12"


def test_run_that_a_successor_takes_over_leaves_the_watermark_and_the_gaps_of_its_sequence(shop: Shop) -> None:
    rows = Rows(shop.root / "rows.db")
    put(shop, "part-12.csv", "part-7.csv")
    dead = shop.begin(run_id="task", sinks=SINKS.extended(rows))
    plan = dead.plan("raw", FileSource(FILES, [str(shop.raw)], FileOptions(sequence=PARTS)))
    dead.place("out", StagingRequest(Rows.kind, str(shop.root / "rows")))
    rows.write(int(dead.token.rsplit("/", 1)[1]), list(plan.files.paths))
    heir = shop.begin(run_id="task", attempt=2, sinks=SINKS.extended(rows))
    assert watermark(shop) == "12"
    heir.abort("the rest another time")
    put(shop, "part-9.csv")
    names, summary = run(shop)
    assert (names, watermark(shop), missing(summary)) == (["part-9.csv"], "12", ["8", "10..11"])


def test_job_that_starts_now_has_the_watermark_of_what_counts_as_read_whatever_else_is_there(shop: Shop) -> None:
    put(shop, "part-12.csv", "notes.csv", "part-7.csv")
    begun = shop.begin(start=Start.of("now"))
    plan = begun.plan("raw", FileSource(FILES, [str(shop.raw)], FileOptions(sequence=PARTS)))
    assert (plan.is_empty, dict(plan.skipped)) == (True, {"before_start": 3})
    begun.commit()
    assert watermark(shop) == "12"
    put(shop, "part-9.csv")
    assert (run(shop)[0], watermark(shop)) == (["part-9.csv"], "12")
    assert [finding.code for finding in found(shop)] == ["gap"]


def test_file_that_changes_under_the_run_and_is_left_to_the_next_moves_no_watermark(shop: Shop) -> None:
    put(shop, "part-1.csv", "part-2.csv")
    begun = shop.begin()
    begun.plan("raw", FileSource(FILES, [str(shop.raw)], FileOptions(sequence=PARTS)), on_missing="skip")
    shop.put("part-2.csv", "another version")
    begun.commit()
    assert watermark(shop) == "1"
    assert found(shop) == []
    assert (run(shop)[0], watermark(shop)) == (["part-2.csv"], "2")


# ---- names that don't match


def test_name_that_does_not_match_stops_the_run_and_nothing_moves(shop: Shop) -> None:
    put(shop, "part-1.csv", "x.csv", "y.csv", "z.csv", "zz.csv")
    with pytest.raises(UnmatchedError, match=r"4 file\(s\) .*x\.csv.*y\.csv.*z\.csv', \.\.\.\. Nothing was read"):
        run(shop)
    assert shop.store.head("copy").run_number == 0


def test_file_that_was_read_before_need_not_match(shop: Shop) -> None:
    put(shop, "notes.csv")
    run(shop, sequence=None)
    put(shop, "part-1.csv")
    assert run(shop)[0] == ["part-1.csv"]


def test_name_that_does_not_match_is_counted_until_the_expression_fits_it(shop: Shop) -> None:
    put(shop, "part-1.csv", "late-part.csv")
    names, summary = run(shop, on_unmatched="skip")
    assert (names, summary.contexts["raw"]["skipped"]) == (["part-1.csv"], {"unmatched": 1})
    names, summary = run(shop, on_unmatched="skip")
    assert (names, summary.contexts["raw"]["skipped"]) == ([], {"unmatched": 1})
    names, summary = run(shop, sequence="(?P<name>part)")
    assert (names, summary.contexts["raw"]["skipped"]) == (["late-part.csv"], {})


def test_pending_goes_by_the_sequence_and_lists_what_does_not_match(shop: Shop) -> None:
    put(shop, "part-1.csv", "other.csv")
    run(shop, on_unmatched="skip")
    put(shop, "part-3.csv", "part-2.csv")
    (seen,) = pending(shop.store, "copy").contexts
    assert isinstance(seen.plan, FilePlan)
    assert [path.rpartition("/")[2] for path in seen.plan.files.paths] == ["part-2.csv", "part-3.csv"]
    skipped = [(row["reason"], row["path"]) for row in seen.skipped_files()]
    assert skipped == [("unmatched", str(shop.raw / "other.csv"))]


@pytest.mark.parametrize(
    "text", ["part-(", "(?P<n>a{99999999999})", r"part-(\d+)", r"(?P<a>\d+)-(?P<b>\d+)", 7, b"(?P<a>.)"]
)
def test_what_is_no_expression_with_one_named_group_is_refused(text: Any) -> None:
    with pytest.raises(OptionError, match="one named group"):
        FileOptions(sequence=text)


def test_on_unmatched_without_a_sequence_is_refused() -> None:
    with pytest.raises(OptionError, match="without a sequence"):
        FileOptions(on_unmatched="skip")


# ---- set by hand


def test_context_that_is_set_to_a_time_has_the_highest_number_of_what_counts_as_read(shop: Shop) -> None:
    put(shop, "part-12.csv", "part-11.csv", "part-9.csv")
    run(shop)
    set_position(shop.store, "copy", "raw", "2023-11-14T22:13:19.001Z", reason="again", who="ada")
    assert watermark(shop) == "11"
    assert (run(shop)[0], watermark(shop)) == (["part-12.csv"], "12")


def test_context_that_is_set_to_now_keeps_a_watermark_above_all_that_is_there(shop: Shop) -> None:
    put(shop, "part-12.csv")
    run(shop)
    (shop.raw / "part-12.csv").unlink()
    put(shop, "part-4.csv")
    set_position(shop.store, "copy", "raw", "now", reason="over", who="ada")
    assert (run(shop)[0], watermark(shop)) == ([], "12")


# ---- gaps


def gaps(summary: Summary) -> str:
    return gaps_in_words(summary.contexts["raw"]["gaps"])


def missing(summary: Summary) -> list[str]:
    return list(summary.contexts["raw"]["gaps"]["ranges"])


def test_numbers_missing_between_the_first_and_the_last_are_reported(shop: Shop) -> None:
    put(shop, "part-3.csv", "part-0005.csv", "part-9.csv")
    _, summary = run(shop)
    assert gaps(summary) == "4 of 3 to 9 are missing: 4, 6 to 8"


def test_gap_that_is_filled_later_disappears(shop: Shop) -> None:
    put(shop, "part-1.csv", "part-4.csv")
    assert missing(run(shop)[1]) == ["2..3"]
    put(shop, "part-3.csv")
    assert missing(run(shop)[1]) == ["2"]
    put(shop, "part-2.csv")
    _, summary = run(shop)
    assert (missing(summary), summary.contexts["raw"]["gaps"]["missing"]) == ([], 0)


def test_file_that_was_read_and_removed_leaves_no_gap(shop: Shop) -> None:
    put(shop, "part-1.csv", "part-2.csv", "part-3.csv")
    run(shop)
    (shop.raw / "part-2.csv").unlink()
    put(shop, "part-4.csv")
    _, summary = run(shop)
    assert summary.contexts["raw"]["gaps"]["missing"] == 0


@pytest.mark.parametrize("value", ["now", "2030-01-01T00:00:00Z"])
def test_what_a_set_counts_as_read_leaves_no_gap(shop: Shop, value: str) -> None:
    put(shop, "part-1.csv", "part-2.csv")
    run(shop)
    put(shop, "part-3.csv", "part-4.csv", "part-6.csv")
    set_position(shop.store, "copy", "raw", value, reason="over", who="ada")
    shop.put("part-7.csv", "7", seconds=1_900_000_000)

    names, summary = run(shop)

    assert (names, missing(summary)) == (["part-7.csv"], ["5"])
    (shop.raw / "part-4.csv").unlink()
    assert missing(run(shop)[1]) == ["5"]


def test_gap_is_still_told_by_a_run_with_nothing_new(shop: Shop) -> None:
    put(shop, "part-1.csv", "part-3.csv")
    run(shop)
    _, summary = run(shop)
    assert (summary.is_empty, missing(summary)) == (True, ["2"])


def test_gaps_need_not_be_looked_for(shop: Shop) -> None:
    put(shop, "part-1.csv", "part-3.csv")
    _, summary = run(shop, gaps=False)
    assert "gaps" not in summary.contexts["raw"]


def test_gaps_that_are_looked_for_again_go_by_all_that_is_there(shop: Shop) -> None:
    put(shop, "part-1.csv", "part-3.csv")
    run(shop, gaps=False)
    put(shop, "part-5.csv")
    assert missing(run(shop)[1]) == ["2", "4"]


def test_days_missing_in_the_one_partition_column_of_dates_are_reported_where_asked(shop: Shop) -> None:
    put(shop, "day=2013-01-30/country=ie/a.csv", "day=2013-02-02/country=ie/a.csv")
    assert "gaps" not in run(shop, sequence=None)[1].contexts["raw"]
    _, summary = run(shop, sequence=None, gaps=True)
    assert gaps(summary) == "2 days of 2013-01-30 to 2013-02-02 are missing: 2013-01-31 to 2013-02-01"
    put(shop, "day=2013-01-31/country=ie/a.csv", "day=__HIVE_DEFAULT_PARTITION__/country=ie/a.csv")
    assert missing(run(shop, sequence=None, gaps=True)[1]) == ["2013-02-01"]


def test_gaps_of_days_without_such_a_column_are_refused(shop: Shop) -> None:
    assert run(shop, sequence=None, gaps=True)[0] == []
    put(shop, "month=1/a.csv")
    with pytest.raises(OptionError, match=r"gaps=True, and of the partition columns \['month'\] 0 are dates"):
        run(shop, sequence=None, gaps=True)


def test_log_warns_once_of_what_is_missing(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    put(shop, "part-1.csv", "part-5.csv")
    with caplog.at_level(logging.WARNING):
        run(shop)
    assert [record.getMessage() for record in caplog.records] == [
        "bookmark copy, context raw: 3 of 1 to 5 are missing: 2 to 4"
    ]


# ---- where gaps are shown


def found(shop: Shop) -> list[Finding]:
    return examine(shop.store, jobs=["copy"])


def test_doctor_notes_a_gap_until_it_is_filled(shop: Shop) -> None:
    put(shop, "part-1.csv", "part-4.csv")
    run(shop)
    (finding,) = found(shop)
    assert (finding.code, finding.severity.value, finding.where) == ("gap", "notice", "context 'raw'")
    assert finding.what == "in 'raw' 2 of 1 to 4 are missing: 2 to 3: no file of theirs was ever listed"
    put(shop, "part-2.csv", "part-3.csv")
    run(shop)
    assert found(shop) == []


def test_doctor_finds_the_watermark_of_a_sequence_as_it_should_be(shop: Shop) -> None:
    put(shop, "part-2.csv", "part-3.csv")
    run(shop)
    put(shop, "part-1.csv")
    run(shop)
    run(shop)
    assert found(shop) == []
    set_position(shop.store, "copy", "raw", "2023-11-14T22:13:18.001Z", reason="again", who="ada")
    assert [finding.code for finding in found(shop)] == []
    run(shop)
    assert found(shop) == []


def test_doctor_finds_a_watermark_that_is_not_that_of_the_sequence(shop: Shop) -> None:
    put(shop, "part-2.csv")
    run(shop)
    key = shop.store.keys("copy").head
    contexts: Any = shop.store.table.get([key])[key]["contexts"]
    moved: Value = {"raw": {**contexts["raw"], "watermark": "7"}}
    shop.store.table.transact([Update(key, set={"contexts": moved})])
    assert "watermark-differs" in {finding.code for finding in found(shop)}


def test_show_and_history_say_what_is_missing(shop: Shop) -> None:
    put(shop, "part-1.csv", "part-3.csv")
    run(shop)
    put(shop, "part-6.csv")
    run(shop)
    run(shop)
    assert bookmark(shop.store, "copy")["contexts"]["raw"]["gaps"]["ranges"] == ["2", "4..5"]
    assert [row["contexts"]["raw"]["gaps"]["missing"] for row in history(shop.store, "copy")] == [1, 3, 3]


def test_show_says_after_a_rewind_what_was_missing_then(shop: Shop) -> None:
    put(shop, "part-1.csv", "part-3.csv")
    run(shop)
    put(shop, "part-2.csv", "part-6.csv")
    run(shop)
    rewind(shop.store, "copy", "1", reason="again", who="ada")
    assert bookmark(shop.store, "copy")["contexts"]["raw"]["gaps"]["ranges"] == ["2"]
    assert run(shop)[0] == ["part-2.csv", "part-6.csv"]


def test_log_tells_the_four_steps_of_a_context(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    put(shop, *(f"day={day}/part-{number}.csv" for day in (1, 2) for number in range(16)))
    run(shop)
    put(shop, *(f"day=3/part-{number}.csv" for number in range(16, 31)))
    caplog.clear()
    with caplog.at_level(logging.INFO, "airflow_bookmarks"):
        run(shop)
    assert [line.removeprefix("bookmark copy, context raw") for line in caplog.messages] == [
        " (files): found position of run 1 in epoch 1, watermark 15",
        f": partition {shop.raw}/day=1 has nothing new",
        f": partition {shop.raw}/day=2 has nothing new",
        f": processing 15 of 47 files (31.91%), {15 * len('day=3/part-16.csv') + 15} bytes; 32 known",
        ": run 2 committed, position moved to run 2, watermark 30",
    ]


# ---- shards and batches


def test_virtual_shard_tells_the_gaps_of_the_whole_and_the_watermark_of_its_own(shop: Shop) -> None:
    put(shop, *(f"part-{number}.csv" for number in (*range(1, 9), *range(10, 13))))
    scans, read = SharedScans(), dict[int, list[str]]()
    for number in range(64):
        begun = shop.begin(f"copy~{number:02}")
        source = FileSource(
            FILES, [str(shop.raw)], FileOptions(sequence=PARTS), shard=VirtualShard(number, "path"), scans=scans
        )
        read[number] = [path.rpartition("-")[2] for path in begun.plan("raw", source).files.paths]
        summary = begun.commit()
        assert missing(summary) == ["9"]
        assert summary.contexts["raw"]["watermark_to"] == (read[number][-1][:-4] if read[number] else None)
    assert sum(map(len, read.values())) == 11
