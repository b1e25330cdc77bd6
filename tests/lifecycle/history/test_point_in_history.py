"""Points in history: the run that a number, a run id, a time or a watermark means."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from airflow_bookmarks.core.errors import OptionError, RunUnknownError
from airflow_bookmarks.core.order import NUMBER
from airflow_bookmarks.core.position import Greatest
from airflow_bookmarks.lifecycle.changes.change import rewind
from airflow_bookmarks.lifecycle.history.point import resolve_point
from airflow_bookmarks.lifecycle.inspect.difference import diff
from airflow_bookmarks.lifecycle.inspect.runs import files_of
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from tests.lifecycle.shop import FILES, Shop

DAY = timedelta(days=1)


class Calendar:
    """A clock that says what it is set to."""

    now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def dated(shop: Shop) -> Shop:
    """Return a shop with runs 1 to 3, committed on the first days of 2026, of files of the first days of 2013."""
    calendar = Calendar()
    shop.store = BookmarkStore(shop.store.table, "test", clock=calendar)
    for day, name in enumerate("abc"):
        calendar.now = datetime(2026, 1, 1, tzinfo=UTC) + day * DAY
        shop.put(f"{name}.txt", name, seconds=int((datetime(2013, 1, 1, tzinfo=UTC) + day * DAY).timestamp()))
        shop.run(run_id=f"run/{day + 1}")
    return shop


def number(shop: Shop, text: str, job: str = "copy") -> int:
    return resolve_point(shop.store, job, shop.store.head(job), text).key.number


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2", 2),
        ("run/2", 2),
        ("2026-01-02T00:00:00Z", 2),
        ("2026-01-02T23:59:59+00:00", 2),
        ("2026-01-02T23:30:00-02:00", 3),
        ("2030-01-01T00:00:00Z", 3),
        ("watermark:2013-01-02T00:00:00Z", 2),
        ("watermark:2013-01-02T12:00:00Z", 2),
        ("watermark:raw=2013-01-01T00:00:00Z", 1),
        ("watermark:2013-01-03T00:00:00.000000Z", 3),
    ],
)
def test_run_is_meant_by(dated: Shop, text: str, expected: int) -> None:
    assert number(dated, text) == expected


def test_undone_run_is_not_meant_by_its_time(dated: Shop) -> None:
    rewind(dated.store, "copy", 1, reason="test", who="test")
    assert number(dated, "2030-01-01T00:00:00Z") == 1


def test_run_id_that_looks_like_a_time_is_a_run_id(dated: Shop) -> None:
    dated.run(run_id="2026-01-01T00:00:00Z")
    assert number(dated, "2026-01-01T00:00:00Z") == 4


def test_upstream_watermarks_compare_as_numbers(dated: Shop) -> None:
    dated.run("report", upstream="copy")
    for name in "defghijk":
        dated.put(f"{name}.txt", name)
        dated.run()
    dated.run("report", upstream="copy")
    assert number(dated, "watermark:11", "report") == 2
    assert number(dated, "watermark:9", "report") == 1


def test_watermarks_of_a_column_compare_as_its_values_do(dated: Shop) -> None:
    for name, value in (("p", "9.5"), ("q", "10.25")):
        dated.put(f"{name}.txt", name)
        run = dated.begin("decimals")
        dated.copy(run)
        run.set_greatest("raw", Greatest("price", value, NUMBER))
        run.commit()
    assert number(dated, "watermark:10", "decimals") == 1
    assert number(dated, "watermark:10.25", "decimals") == 2


def test_several_contexts_have_to_be_told_apart(dated: Shop) -> None:
    run = dated.begin()
    run.plan("raw", FileSource(FILES, [str(dated.raw)]))
    run.plan("again", FileSource(FILES, [str(dated.raw)]))
    run.commit()
    with pytest.raises(OptionError, match="2 contexts with a watermark"):
        number(dated, "watermark:2013-01-02T00:00:00Z")
    assert number(dated, "watermark:again=2013-01-02T00:00:00Z") == 3
    assert number(dated, "watermark:again=2013-01-03T00:00:00Z") == 4


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("2026-01-02", OptionError, "without a zone"),
        ("2026-01-02T00:00:00", OptionError, "without a zone"),
        ("2025-12-31T00:00:00Z", RunUnknownError, "no living run at or before"),
        ("watermark:2012-01-01T00:00:00Z", RunUnknownError, "no living run at or before"),
        ("watermark:7", OptionError, "can't be compared"),
        ("yesterday", RunUnknownError, "no committed run 'yesterday'"),
        ("0", RunUnknownError, "reset"),
        ("9", RunUnknownError, "no committed run '9'"),
        pytest.param("ü" * 1000, RunUnknownError, "no committed run 'üü", id="too-long-for-a-key"),
        pytest.param("\ud800", RunUnknownError, "no committed run", id="no-utf8"),
    ],
)
def test_what_means_no_run_is_told(dated: Shop, text: str, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        number(dated, text)


def test_text_with_no_room_in_a_key_names_no_run_to_compare_or_show(dated: Shop) -> None:
    with pytest.raises(RunUnknownError, match="no committed run"):
        diff(dated.store, "copy", "ü" * 1000, "1")
    with pytest.raises(RunUnknownError, match="no committed run"):
        files_of(dated.store, "copy", "ü" * 1000)
