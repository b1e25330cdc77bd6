"""Promises FILE-9, FILE-10, FILE-22, RUN-17: what of the folders is listed, from the plan to the doctor."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.errors import OptionError, SourceMissingError
from airflow_bookmarks.core.files.file_plan import FilePlan
from airflow_bookmarks.core.rules.shard import VirtualShard
from airflow_bookmarks.lifecycle.changes.change import set_position
from airflow_bookmarks.lifecycle.inspect.pending import pending
from airflow_bookmarks.lifecycle.inspect.status import bookmark
from airflow_bookmarks.lifecycle.maintenance.doctor import Finding, examine
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.sources.files.scan import SharedScans
from airflow_bookmarks.sources.source import PlanInput
from tests.lifecycle.shop import FILES, Shop

NOON = datetime(2013, 1, 31, 12, tzinfo=UTC)
DAYS: dict[str, Any] = {"partition_time": "dt", "late_after": timedelta(days=3)}


def put(shop: Shop, *names: str, modified: datetime = NOON) -> None:
    for name in names:
        path = shop.raw / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name}\n")
        os.utime(path, (modified.timestamp(), modified.timestamp()))


def source(shop: Shop, globs: Sequence[str] = (), **options: Any) -> FileSource:
    roots = [] if globs else [str(shop.raw)]
    return FileSource(
        FILES,
        roots,
        FileOptions(**options),
        globs=[f"{shop.raw}/{glob}" for glob in globs],
        clock=shop.environment.clock,
    )


def at(shop: Shop, now: datetime) -> Shop:
    return replace(shop, environment=RunEnvironment(clock=lambda: now))


def run(shop: Shop, source: FileSource) -> list[str]:
    """Make one whole run; return what it read, by names below the raw folder."""
    made = shop.begin("copy")
    plan = made.plan("raw", source)
    made.commit()
    return below(shop, plan.files.paths)


def below(shop: Shop, paths: Sequence[str]) -> list[str]:
    return sorted(path.removeprefix(f"{shop.raw}/") for path in paths)


def plan_now(shop: Shop, source: FileSource) -> list[str]:
    return below(shop, source.plan(PlanInput()).files.paths)


def overlooked(shop: Shop) -> list[Finding]:
    return [finding for finding in examine(shop.store) if finding.code == "file-in-old-partition"]


# ---- without the script


@pytest.mark.parametrize(
    "options",
    [
        {"exclusions": ["k=2/**"]},
        {"partition_filter": "k <> 2"},
        {"name_pattern": "[!2]*"},
        {"globs": ["k=[13]"]},
    ],
    ids=lambda options: next(iter(options)),
)
def test_pending_knows_what_the_script_selects(shop: Shop, options: dict[str, Any]) -> None:
    put(shop, "k=1/1.txt", "k=2/2.txt")
    assert run(shop, source(shop, **options)) == ["k=1/1.txt"]

    assert pending(shop.store, "copy").is_empty
    put(shop, "k=3/3.txt", "k=2/22.txt")

    (context,) = pending(shop.store, "copy").contexts
    assert isinstance(context.plan, FilePlan)
    assert below(shop, context.plan.files.paths) == ["k=3/3.txt"]


def test_predicate_compares_by_the_users_types_without_the_script_too(shop: Shop) -> None:
    put(shop, "month=09/a.txt", "month=10/a.txt")
    by_text = FileSource(
        FILES,
        [str(shop.raw)],
        FileOptions(partition_filter="month = '09'"),
        named={"month": "string", "value": "string"},
    )
    assert run(shop, by_text) == ["month=09/a.txt"]
    put(shop, "month=9/a.txt", "month=09/b.txt")

    (context,) = pending(shop.store, "copy").contexts

    assert isinstance(context.plan, FilePlan)
    assert below(shop, context.plan.files.paths) == ["month=09/b.txt"]


def test_run_tells_partitions_listed_pruned_and_skipped(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    put(shop, *(f"year={year}/month={month}/a.txt" for year in (2011, 2012, 2013) for month in (1, 2)))
    run(shop, source(shop, partition_filter="year = 2013"))
    put(shop, "year=2012/month=1/b.txt", "year=2013/month=1/b.txt")

    caplog.set_level(logging.INFO)
    made = shop.begin("copy")
    made.plan("raw", source(shop, partition_filter="year >= 2012"))
    summary = made.commit().as_dict()

    counts = {"listed": 4, "pruned": 1, "skipped": 1}
    assert summary["contexts"]["raw"]["partitions"] == counts
    *_, newest = shop.store.runs("copy")
    assert newest.plans["raw"].stats["partitions"] == counts
    assert "bookmark copy, context raw: 4 partitions listed, 1 pruned before they were listed" in caplog.text


# ---- what can't be selected


@pytest.mark.parametrize(
    ("names", "there"),
    [
        (["year=2013/month=1/a.txt"], r"\['year', 'month'\]"),
        (["a.txt"], "have no partition columns"),
    ],
)
def test_column_that_is_no_partition_is_an_error_that_lists_those_that_are(
    shop: Shop, names: list[str], there: str
) -> None:
    put(shop, *names)

    with pytest.raises(OptionError, match=rf"is no partition column.*{there}"):
        plan_now(shop, source(shop, partition_filter="year = 2013 and mnth = 1 or mnth is null"))


def test_column_is_missed_once_it_is_known_even_where_everything_is_pruned(shop: Shop) -> None:
    put(shop, "year=2013/a.txt")
    pruned = source(shop, partition_filter="year = 1900 and mnth = 1")

    assert plan_now(shop, pruned) == []
    with pytest.raises(OptionError, match="'mnth' is no partition column"):
        pruned.plan(PlanInput(partition_types={"year": "int"}))


def test_time_of_partitions_that_have_no_such_column_is_an_error(shop: Shop) -> None:
    put(shop, "year=2013/a.txt")

    with pytest.raises(OptionError, match=r"'dt' is no partition column.*\['year'\]"):
        plan_now(shop, source(shop, **DAYS))


def test_file_that_is_loaded_by_its_name_has_no_partition_with_a_time(shop: Shop) -> None:
    put(shop, "a.txt")

    with pytest.raises(OptionError, match="these folders have no partition columns"):
        FileSource(FILES, [f"{shop.raw}/a.txt"], FileOptions(**DAYS)).plan(PlanInput())


def test_folder_that_is_no_number_stops_a_comparison_with_one(shop: Shop) -> None:
    put(shop, "year=2013/a.txt", "year=latest/a.txt")

    with pytest.raises(OptionError, match=r"'year > 2000' can't be evaluated.*'latest'"):
        plan_now(shop, source(shop, partition_filter="year > 2000"))


def test_types_are_settled_over_pruned_partitions_too(shop: Shop) -> None:
    put(shop, "k=1/a.txt", "k=x/a.txt")

    plan = source(shop, partition_filter="k = '1'").plan(PlanInput())

    assert (below(shop, plan.files.paths), plan.partition_types) == (["k=1/a.txt"], {"k": "string"})


def test_pattern_that_matches_nothing_is_an_error_at_first(shop: Shop) -> None:
    put(shop, "2013-01/a.txt")

    with pytest.raises(SourceMissingError, match=r"matches '.*/2014-\*'.*Nothing was read or changed"):
        plan_now(shop, source(shop, ["2014-*"]))


# ---- patterns


def test_alternatives_of_a_pattern_are_one_union_of_what_is_there(shop: Shop) -> None:
    put(shop, "new/a.txt", "empty/b.csv")

    assert plan_now(shop, source(shop, ["{new,old/new}/*.txt"])) == ["new/a.txt"]
    assert plan_now(shop, source(shop, ["{old/new,empty/none,new}/*.txt"])) == ["new/a.txt"]
    assert plan_now(shop, source(shop, ["{old/new,new}"])) == ["new/a.txt"]
    with pytest.raises(SourceMissingError, match=r"nothing matches '.*/\{old/empty,empty\}/\*.txt'\. Nothing was read"):
        plan_now(shop, source(shop, ["new/*.txt", "{old/empty,empty}/*.txt"]))


def test_alternatives_of_which_none_is_there_are_an_error_in_every_run(shop: Shop) -> None:
    put(shop, "new/a.txt")
    either = source(shop, ["{new,old/new}/*.txt"])
    assert run(shop, either) == ["new/a.txt"]
    (shop.raw / "new").rename(shop.raw / "gone")

    with pytest.raises(SourceMissingError, match=r"nothing matches .*all missing: .*/new' does not exist"):
        run(shop, either)


def test_root_that_is_loaded_by_its_name_as_well_has_to_be_there(shop: Shop) -> None:
    put(shop, "new/a.txt")
    both = FileSource(FILES, [f"{shop.raw}/old"], globs=[f"{shop.root}/{{raw/new,raw/old}}"])

    with pytest.raises(SourceMissingError, match="/old' does not exist"):
        both.plan(PlanInput())


def test_context_is_set_to_now_where_an_alternative_is_missing(shop: Shop) -> None:
    put(shop, "new/a.txt")
    either = ["{new,old/new}/*.txt"]
    run(shop, source(shop, either))
    put(shop, "new/b.txt")

    set_position(shop.store, "copy", "raw", "now", reason="over", who="ada")

    assert run(shop, source(shop, either)) == []
    (shop.raw / "new").rename(shop.raw / "gone")
    with pytest.raises(SourceMissingError, match="does not exist"):
        set_position(shop.store, "copy", "raw", "now", reason="over", who="ada")


def test_file_below_several_patterns_is_planned_once(shop: Shop) -> None:
    put(shop, "2013-01/a.txt", "2013-01/b.csv", "2012-01/a.txt")

    assert plan_now(shop, source(shop, ["2013-*", "*/a.txt"])) == ["2012-01/a.txt", "2013-01/a.txt", "2013-01/b.csv"]


def test_pattern_and_folder_are_read_together_each_with_its_partitions(shop: Shop) -> None:
    put(shop, "whole/k=1/a.txt", "2013-01/k=2/a.txt", "2012-01/k=3/a.txt")
    both = FileSource(FILES, [f"{shop.raw}/whole"], globs=[f"{shop.raw}/2013-*"])

    plan = both.plan(PlanInput())

    assert below(shop, plan.files.paths) == ["2013-01/k=2/a.txt", "whole/k=1/a.txt"]
    assert (plan.partition_types, sorted(plan.bases)) == ({"k": "int"}, [f"{shop.raw}/2013-01", f"{shop.raw}/whole"])
    assert FilePlan.decode(plan.encode()).bases == plan.bases


def test_predicate_goes_below_what_a_pattern_matches(shop: Shop) -> None:
    put(shop, *(f"{region}/k={k}/a.txt" for region in ("eu", "us", "asia") for k in (1, 2)))

    plan = source(shop, ["[eu]*"], partition_filter="k = 2").plan(PlanInput())

    assert below(shop, plan.files.paths) == ["eu/k=2/a.txt", "us/k=2/a.txt"]
    assert plan.partitions is not None
    assert plan.partitions.pruned == 2


def test_hidden_folders_are_matched_by_no_pattern(shop: Shop) -> None:
    put(shop, "ok/a.txt", "_bookmarks/a.txt", ".hid/a.txt", "_temporary/0/a.txt")

    plan = source(shop, ["*/*"]).plan(PlanInput())

    assert below(shop, plan.files.paths) == ["ok/a.txt"]
    assert plan.skipped == {"hidden": 3}


def test_files_below_a_match_in_folders_that_are_no_partition_are_counted_as_nested(shop: Shop) -> None:
    put(shop, "2013-01/a.txt", "2013-01/old/b.txt")

    plan = source(shop, ["2013-*"]).plan(PlanInput())

    assert (below(shop, plan.files.paths), plan.skipped) == (["2013-01/a.txt"], {"nested": 1})
    assert plan_now(shop, source(shop, ["2013-*"], recursive=True)) == ["2013-01/a.txt", "2013-01/old/b.txt"]


def test_second_look_finds_what_changed_below_a_pattern(shop: Shop) -> None:
    put(shop, "2013-01/a.txt", "2013-02/b.txt", "2012-01/c.txt")
    by_pattern = source(shop, ["2013-*"])
    plan = by_pattern.plan(PlanInput())
    (shop.raw / "2013-02/b.txt").write_text("other and longer\n")

    assert below(shop, by_pattern.recheck(plan).missing) == ["2013-02/b.txt"]


def test_shards_share_a_look_only_where_they_select_the_same(shop: Shop) -> None:
    put(shop, *(f"k={k}/{i}.txt" for k in (1, 2) for i in range(20)))
    scans = SharedScans()

    def planned(text: str) -> set[str]:
        paths: set[str] = set()
        for number in range(64):
            shard = VirtualShard(number, "path")
            options = FileOptions(partition_filter=text)
            plan = FileSource(FILES, [str(shop.raw)], options, shard=shard, scans=scans).plan(PlanInput())
            paths |= {Path(path).parent.name for path in plan.files.paths}
        return paths

    assert planned("k = 1") == {"k=1"}
    assert planned("k = 2") == {"k=2"}


def test_files_that_wait_in_one_shard_are_not_pruned_by_the_look_of_another(shop: Shop) -> None:
    put(shop, "dt=2013-01-01/a.txt", "dt=2013-01-31/a.txt")
    options, scans, before = FileOptions(**DAYS), SharedScans(), {"newest_partition": "2013-01-01T00:00:00"}
    first, second = (FileSource(FILES, [str(shop.raw)], options, clock=lambda: NOON, scans=scans) for _ in range(2))

    drained = first.plan(PlanInput(stats={"newest_partition": "2013-01-31T00:00:00"}))
    waiting = second.plan(PlanInput(stats=before))

    assert below(shop, drained.files.paths) == ["dt=2013-01-31/a.txt"]
    assert below(shop, waiting.files.paths) == ["dt=2013-01-01/a.txt", "dt=2013-01-31/a.txt"]


# ---- the time of partitions


def test_old_partitions_are_not_listed_and_the_newest_is_kept(shop: Shop) -> None:
    shop = at(shop, NOON)
    put(shop, *(f"dt=2013-01-{day:02d}/a.txt" for day in range(20, 32)))

    assert len(run(shop, source(shop, **DAYS))) == 12
    put(shop, *(f"dt=2013-01-{day:02d}/b.txt" for day in range(20, 32)))

    made = shop.begin("copy")
    plan = made.plan("raw", source(shop, **DAYS))
    summary = made.commit().as_dict()

    assert below(shop, plan.files.paths) == [f"dt=2013-01-{day}/b.txt" for day in (28, 29, 30, 31)]
    assert summary["contexts"]["raw"]["newest_partition"] == "2013-01-31T00:00:00"
    assert bookmark(shop.store, "copy")["contexts"]["raw"]["newest_partition"] == "2013-01-31T00:00:00"
    for day in (29, 30, 31):
        (shop.raw / f"dt=2013-01-{day}/a.txt").unlink()
        (shop.raw / f"dt=2013-01-{day}/b.txt").unlink()
        (shop.raw / f"dt=2013-01-{day}").rmdir()
    put(shop, "dt=2013-01-27/late.txt", "dt=2013-01-28/c.txt")
    assert run(shop, source(shop, **DAYS)) == ["dt=2013-01-28/c.txt"]


def test_partitions_that_a_set_leads_back_to_are_listed(shop: Shop) -> None:
    shop = at(shop, NOON)
    for day in (1, 15, 31):
        put(shop, f"dt=2013-01-{day:02d}/a.txt", modified=datetime(2013, 1, day, 6, tzinfo=UTC))
        run(shop, source(shop, **DAYS))

    set_position(shop.store, "copy", "raw", "2013-01-10T00:00:00Z", reason="a test", who="me")

    assert run(shop, source(shop, **DAYS)) == ["dt=2013-01-15/a.txt", "dt=2013-01-31/a.txt"]


def test_doctor_names_files_that_landed_where_nothing_is_listed_any_more(shop: Shop) -> None:
    shop = at(shop, NOON)
    put(shop, "dt=2013-01-31/a.txt")
    run(shop, source(shop, **DAYS))
    put(shop, "dt=2013-01-01/history.txt", modified=datetime(2013, 1, 1, 23, tzinfo=UTC))
    put(shop, "dt=2013-01-31/b.txt")
    run(shop, source(shop, **DAYS))
    assert overlooked(shop) == []

    put(shop, "dt=2013-01-02/too late.txt")
    run(shop, source(shop, **DAYS))

    (finding,) = overlooked(shop)
    assert finding.where == f"{shop.raw}/dt=2013-01-02/too late.txt"
    assert "1 file(s) of 'raw' landed in partitions that are too old to be listed" in finding.what

    # By its own time the history is not late under such a bound either.
    unread = ["dt=2013-01-01/history.txt", "dt=2013-01-02/too late.txt"]
    assert run(shop, source(shop, late_after=timedelta(days=90))) == unread
    assert overlooked(shop) == []


def test_file_that_a_run_left_to_the_next_one_is_not_late_there(shop: Shop) -> None:
    old, aside = shop.raw / "old.txt", shop.root / "old.txt"
    put(shop, "old.txt", modified=NOON - timedelta(days=20))
    put(shop, "new.txt", modified=NOON - timedelta(hours=1))
    options = FileOptions(late_after=timedelta(days=2))
    first = at(shop, NOON)
    _, summary = first.run(options=options, on_missing="skip", between=lambda: old.rename(aside))
    assert summary.contexts["raw"]["skipped"] == {"missing": 1}
    aside.rename(old)
    assert first.run(options=options)[0] == ["old.txt"]
    put(shop, "late.txt", modified=NOON - timedelta(days=20))
    assert first.run(options=options)[1].contexts["raw"]["skipped"] == {"late": 1}


def test_partition_of_a_file_that_a_run_left_to_the_next_one_is_listed_there(shop: Shop) -> None:
    old = shop.raw / "dt=2013-01-01/old.txt"
    put(shop, "dt=2013-01-01/old.txt", "dt=2013-01-30/new.txt")
    first = at(shop, NOON)
    first.run(options=FileOptions(**DAYS), on_missing="skip", between=old.unlink)
    put(shop, "dt=2013-01-01/old.txt", modified=NOON + timedelta(minutes=1))
    assert first.run(options=FileOptions(**DAYS))[0] == ["dt=2013-01-01/old.txt"]
