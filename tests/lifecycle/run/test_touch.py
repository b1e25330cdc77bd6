"""Promises of files that were touched: the etag that was read, with another time (copied onto itself, restored)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.files.s3.filesystem import S3FileSystem
from airflow_bookmarks.lifecycle.inspect.pending import pending
from airflow_bookmarks.lifecycle.state.summary import Summary
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from tests.aborting import aborted_on_error
from tests.files.s3.s3_ground import settings_for
from tests.files.s3.s3_stand_in import StandIn, stand_in
from tests.lifecycle.shop import FILES, Shop

ROOT = "s3a://lake/raw"
NEW_YEAR, LATER, EARLIER = "2013-01-01T00:00:00.000Z", "2013-02-01T00:00:00.000Z", "2012-12-01T00:00:00.000Z"


@pytest.fixture
def s3() -> Iterator[StandIn]:
    """Serve a bucket whose etags stay when its keys are stamped anew."""
    with stand_in() as served:
        yield served


def run(shop: Shop, s3: StandIn, **kwargs: Any) -> tuple[list[str], Summary]:
    """Make one run; return the names of the files read, and the summary."""
    begun = shop.begin()
    source = FileSource(S3FileSystem(settings_for(s3.url)), [ROOT], FileOptions(**kwargs))
    with aborted_on_error(begun):
        plan = begun.plan("raw", source)
    return [path.rpartition("/")[2] for path in plan.files.paths], begun.commit()


def counts(summary: Summary) -> tuple[int, int, dict[str, int]]:
    figures = summary.contexts["raw"]
    return figures["listed"], figures["known"], dict(figures["skipped"])


@pytest.mark.parametrize("options", [{}, {"on_touch": "ignore"}, {"on_overwrite": "error"}])
@pytest.mark.parametrize("time", [LATER, EARLIER])
def test_file_whose_time_alone_is_another_is_not_read_again_but_counted(
    shop: Shop, s3: StandIn, options: dict[str, Any], time: str
) -> None:
    s3.hold(["raw/a.csv", "raw/b.csv"], NEW_YEAR)
    run(shop, s3, **options)
    s3.hold(["raw/a.csv"], time)
    names, summary = run(shop, s3, **options)
    assert (names, counts(summary)) == ([], (2, 1, {"touched": 1}))


def test_touched_file_is_counted_by_each_run_as_long_as_it_has_that_time(shop: Shop, s3: StandIn) -> None:
    s3.hold(["raw/a.csv"], NEW_YEAR)
    run(shop, s3)
    s3.hold(["raw/a.csv"], LATER)
    s3.hold(["raw/new.csv"], LATER)
    assert counts(run(shop, s3)[1]) == (2, 0, {"touched": 1})
    assert counts(run(shop, s3)[1]) == (2, 1, {"touched": 1})
    s3.hold(["raw/a.csv"], NEW_YEAR)
    assert counts(run(shop, s3)[1]) == (2, 2, {})


def test_touched_file_is_read_again_once_where_asked(shop: Shop, s3: StandIn) -> None:
    s3.hold(["raw/a.csv", "raw/b.csv"], NEW_YEAR)
    run(shop, s3, on_touch="reprocess")
    s3.hold(["raw/a.csv"], LATER)
    names, summary = run(shop, s3, on_touch="reprocess")
    assert (names, counts(summary)) == (["a.csv"], (2, 1, {}))
    assert run(shop, s3, on_touch="reprocess")[0] == []
    assert counts(run(shop, s3)[1]) == (2, 2, {})


def test_touched_file_is_read_again_though_overwrites_are_refused(shop: Shop, s3: StandIn) -> None:
    s3.hold(["raw/a.csv"], NEW_YEAR)
    run(shop, s3)
    s3.hold(["raw/a.csv"], LATER)
    assert run(shop, s3, on_touch="reprocess", on_overwrite="error")[0] == ["a.csv"]


def test_file_that_comes_again_where_read_files_are_put_away_is_read(shop: Shop, s3: StandIn) -> None:
    s3.hold(["raw/a.csv", "raw/left.csv"], NEW_YEAR)
    run(shop, s3, empties=True)
    s3.hold(["raw/a.csv"], LATER)
    names, summary = run(shop, s3, empties=True)
    assert (names, counts(summary)) == (["a.csv"], (2, 1, {}))
    assert run(shop, s3, empties=True)[0] == []


@pytest.mark.parametrize("given", [{"on_touch": "ignore"}, {"on_overwrite": "ignore"}])
def test_file_that_comes_again_is_left_where_the_options_leave_known_names_alone(
    shop: Shop, s3: StandIn, given: dict[str, Any]
) -> None:
    s3.hold(["raw/a.csv"], NEW_YEAR)
    run(shop, s3, empties=True, **given)
    s3.hold(["raw/a.csv"], LATER)
    names, summary = run(shop, s3, empties=True, **given)
    assert (names, counts(summary)) == ([], (1, 0, {"touched": 1}))


def test_touched_file_goes_by_its_sequence_when_it_is_read_again(shop: Shop, s3: StandIn) -> None:
    options = {"on_touch": "reprocess", "sequence": r"(?P<seq>\d+)"}
    s3.hold(["raw/1.csv", "raw/2.csv", "raw/10.csv"], NEW_YEAR)
    run(shop, s3, **options)
    s3.hold(["raw/10.csv", "raw/2.csv"], LATER)
    names, summary = run(shop, s3, **options)
    assert (names, summary.contexts["raw"]["watermark_to"]) == (["2.csv", "10.csv"], "10")


def test_local_file_whose_time_is_another_follows_on_overwrite(shop: Shop) -> None:
    shop.put("a.csv", "a")
    shop.run()
    shop.put("a.csv", "a", seconds=1_700_000_099)
    (seen,) = pending(shop.store, "copy").contexts
    assert seen.files == 1


@pytest.mark.parametrize("has_files", [True, False])
def test_ignoring_touched_files_is_refused_where_nobody_can_tell_them(shop: Shop, has_files: bool) -> None:
    if has_files:
        shop.put("a.csv", "a")
    begun = shop.begin()
    source = FileSource(FILES, [str(shop.raw)], FileOptions(on_touch="ignore"))
    if not has_files:  # nothing is listed, and so nothing left out
        assert begun.plan("raw", source).is_empty
        return
    with pytest.raises(OptionError, match=r"no etags.*Nothing was read or changed\. Leave on_touch out"):
        begun.plan("raw", source)


def test_unknown_choice_is_refused() -> None:
    with pytest.raises(OptionError, match=r"on_touch='skip': expected one of 'ignore', 'reprocess'"):
        FileOptions(on_touch="skip")  # type: ignore[arg-type]


def test_pending_and_the_run_agree_on_what_was_touched(
    shop: Shop, s3: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"):
        monkeypatch.setenv(f"AWS_{name}", "testing")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", s3.url)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    s3.hold(["raw/a.csv"], NEW_YEAR)
    run(shop, s3, on_touch="reprocess")
    s3.hold(["raw/a.csv"], LATER)
    (seen,) = pending(shop.store, "copy").contexts
    assert (seen.unknown, seen.files) == (None, 1)
    assert run(shop, s3)[0] == []
    s3.hold(["raw/b.csv"], LATER)
    assert run(shop, s3)[0] == ["b.csv"]
    (seen,) = pending(shop.store, "copy").contexts
    assert [(row["reason"], row["path"]) for row in seen.skipped_files()] == [("touched", f"{ROOT}/a.csv")]
