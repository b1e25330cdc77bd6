"""What a kind of source of a user's own may give to be stored: anything else is refused before it damages its job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from airflow_bookmarks.core.amount import Amount
from airflow_bookmarks.core.errors import BookmarkError, MisuseError, OptionError, SourceError
from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.core.order import NUMBER, PATH, TEXT, Order
from airflow_bookmarks.core.position import Position
from airflow_bookmarks.core.run import PlanEntry, SourceRef
from airflow_bookmarks.lifecycle.changes.change import set_position
from airflow_bookmarks.lifecycle.inspect.pending import pending
from airflow_bookmarks.lifecycle.maintenance.doctor import examine
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.sources.contract import check_source, stats_of
from airflow_bookmarks.sources.registry import find_kind, register, registered
from airflow_bookmarks.sources.source import PlanInput
from airflow_bookmarks.spark import BookmarkedJob
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.testing.driver import DriverStore
from airflow_bookmarks.testing.memory import memory_store
from tests.lifecycle.sqlite_keys import KeyKind, KeyPlan, KeySource, keys_of, make_table, put


@dataclass(frozen=True)
class FactPlan(KeyPlan):
    """Keys with more stats."""

    more: dict[str, Any] = field(default_factory=dict)

    def stats(self) -> dict[str, Any]:
        return {**super().stats(), **self.more}


@dataclass
class OddSource(KeySource):
    """Keys whose plans have more stats, and whose positions are changed."""

    database: str
    more: dict[str, Any] = field(default_factory=dict)
    change: Callable[[Position], Any] = lambda position: position

    def plan(self, found: PlanInput) -> KeyPlan:
        return FactPlan(**vars(super().plan(found)), more=self.more)

    def advance(self, plan: KeyPlan) -> Position | None:
        position = super().advance(plan)
        return None if position is None else cast(Position, self.change(position))


def run(store: BookmarkStore, source: KeySource) -> None:
    driver = DriverStore(store, None, lambda entry: None)
    run = ActiveRun.begin(driver, "copy", RunIdentity(store.new_id(), 1), driver.environment)
    try:
        run.plan("people", source)
        run.commit()
    except BookmarkError as error:
        run.abort(str(error))
        raise


@pytest.fixture
def database(tmp_path: Path) -> str:
    """Make a table with one key."""
    database = str(tmp_path / "crm.db")
    make_table(database)
    put(database, 1)
    return database


def check_refused_and_whole(source: KeySource, match: str) -> None:
    """Make sure that a run is refused, that nothing moved, and that the next one of a mended source reads all."""
    with memory_store() as store, registered(KeyKind()):
        with pytest.raises(MisuseError, match=match):
            run(store, source)
        assert store.head("copy").contexts == {}
        run(store, KeySource(source.database))
        assert store.head("copy").contexts["people"].watermark == "1"
        assert examine(store) == []


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda position: replace(position, watermark=5), "its watermark is 5, and text is needed"),
        (lambda position: replace(position, watermark="NaN"), "'NaN' is not of its order 'number'"),
        (lambda position: replace(position, watermark=""), "'' is not of its order 'number'"),
        (lambda position: replace(position, watermark="2013-01-31"), "'2013-01-31' is not of its order 'number'"),
        (lambda position: replace(position, order=TEXT), "'1' is not of its order 'text'"),
        (lambda position: replace(position, order="number"), "its order 'number' is none of"),
        (lambda position: replace(position, order=Order("number", "mine", str)), "its order .* is none of"),
        (lambda position: replace(position, body="1"), "its body is of type str"),
        (lambda position: replace(position, body=bytearray(b"1")), "its body is of type bytearray"),
        (lambda position: replace(position, body=None), "its body is of type NoneType"),
        (lambda position: replace(position, blobs={"a": "b"}), "one of its blobs is not bytes"),
        (lambda position: replace(position, set_aside=-1), "its set_aside is -1, and a count is needed"),
        (lambda position: replace(position, set_aside="2"), "its set_aside is '2', and a count is needed"),
        (lambda position: replace(position, set_aside=10**38), "its set_aside is 1000*, and a count is needed"),
        (lambda position: position.body, "it is b'1', not a Position"),
    ],
)
def test_position_that_no_reader_could_read_is_not_committed(
    database: str, change: Callable[[Position], Any], why: str
) -> None:
    check_refused_and_whole(OddSource(database, change=change), f"a position of kind 'sqlite_keys' .*{why}")


def test_position_may_have_an_order_of_its_own_and_any_size(database: str) -> None:
    def change(position: Position) -> Position:
        return replace(position, body=b"1" * 410_000, watermark="2013-01-31/7", order=PATH)

    with memory_store() as store, registered(KeyKind()):
        run(store, OddSource(database, change=change))
        assert store.head("copy").contexts["people"].order == "path"


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"upstream": "crm"}, "its stats name 'upstream'"),
        ({"options": {"partition_time": "day"}}, "its stats name 'options'"),
        ({"starts_over": True}, "its stats name 'starts_over'"),
        ({"files": "many"}, "the stat 'files' is no count \\('many'\\)"),
        ({"bytes": -5}, "the stat 'bytes' is no count"),
        ({"skipped": None}, "the stat 'skipped' is no map of counts"),
        ({"skipped": {"late": -1}}, "the stat 'skipped' is no map of counts"),
        ({"looked_at": "now"}, "the stat 'looked_at' is no time"),
    ],
)
def test_fact_that_would_make_the_run_unreadable_is_not_stored(database: str, more: dict[str, Any], why: str) -> None:
    check_refused_and_whole(OddSource(database, more), why)


def test_other_facts_are_stored_as_they_are_with_the_amount_of_the_plan(database: str) -> None:
    with memory_store() as store, registered(KeyKind()):
        run(store, OddSource(database, {"region": "eu", "format": "rows", "unit": 5, "count": "3"}))
        stored = store.committed_run("copy", 1)
    assert stored is not None
    figures = stored.plans["people"].stats
    assert (figures["region"], figures["format"], figures["unit"], figures["count"]) == ("eu", "rows", "keys", 1)


@pytest.mark.parametrize(
    "amount",
    [
        Amount("keys", -1),
        Amount("keys", cast(int, "3")),
        Amount("", 3),
        Amount(cast(str, None), 3),
        Amount("k\ny", 3),
        5,
    ],
)
def test_amount_that_is_no_count_of_a_unit_is_refused(amount: Any) -> None:
    class Counted(KeyPlan):
        @property
        def amount(self) -> Amount:
            return cast(Amount, amount)

    with pytest.raises(MisuseError, match=r"its amount is .*Nothing was read or changed"):
        stats_of(Counted("crm.db", 0, 1, 1))


@pytest.mark.parametrize("name", ["", "state", "\ud800", None, 5])
def test_kind_whose_name_can_not_be_stored_is_not_registered(name: Any) -> None:
    class Odd(KeyKind):
        pass

    Odd.name = name
    with pytest.raises(OptionError, match=r"can't be the name of the kind .*Nothing was registered"):
        register(Odd())
    assert not isinstance(name, str) or find_kind(name) is None


@pytest.mark.parametrize("name", ["crm/api", "crm:api", "crm api", "\u00e4", "x" * 101])
def test_kind_of_any_name_that_can_be_stored_reads_its_contexts(database: str, name: str) -> None:
    class NamedSource(KeySource):
        kind = name

    class Named(KeyKind):
        def source_of(self, store: BookmarkStore, job: str, entry: PlanEntry) -> KeySource:
            return NamedSource(self.decode(store.blobs.get(entry.body)).database)

    Named.name = name
    with memory_store() as store:
        with registered(Named()):
            run(store, NamedSource(database))
        put(database, 2)
        with registered(Named()):
            assert [context.amount_in_words for context in pending(store, "copy").contexts] == ["1 keys"]
            run(store, NamedSource(database))
            assert store.head("copy").contexts["people"].watermark == "2"
            assert examine(store) == []


@pytest.mark.parametrize("given", [KeyKind, KeySource("crm.db"), None])
def test_what_is_no_object_of_a_kind_is_not_registered(given: Any) -> None:
    with pytest.raises(OptionError, match=r"is no kind of source\. Nothing was registered"):
        register(given)
    assert find_kind("sqlite_keys") is None


def test_kind_with_an_order_that_no_other_process_knows_is_not_registered() -> None:
    class Ordered(KeyKind):
        order = Order("mine", "of mine", str)

    with pytest.raises(OptionError, match=r"the order .* is none of"):
        register(Ordered())
    assert KeyKind.order is NUMBER


@pytest.mark.parametrize(
    "ref", [None, "sqlite_keys:crm.db", SourceRef("other", "crm.db"), SourceRef("sqlite_keys", "")]
)
def test_source_that_names_itself_as_no_source_of_its_kind_is_refused(ref: Any) -> None:
    class Nameless(KeySource):
        def ref(self) -> SourceRef:
            return cast(SourceRef, ref)

    with pytest.raises(OptionError, match=r"names itself .*Nothing was read or changed"):
        check_source(Nameless("crm.db"))


@pytest.mark.parametrize("name", ["https://ada:hunter2@crm.example/", "crm.db?password=hunter2"])
def test_source_with_a_secret_in_its_name_is_refused(name: str) -> None:
    with pytest.raises(OptionError, match="has a secret in its name") as caught:
        check_source(KeySource(name))
    assert "hunter2" not in str(caught.value)


# ---- kinds that raise


class FailingKind(KeyKind):
    """Keys of a kind that can't read its own positions."""

    def watermark(self, position: bytes, load: object) -> str:
        raise UnicodeDecodeError("utf-8", position, 0, 1, "invalid start byte")

    def seek(self, store: object, found: PlanInput, plan: KeyPlan, value: str) -> Position:
        return [][int(value)]


def test_kind_that_raises_ends_no_look_of_the_doctor_at_other_jobs(database: str) -> None:
    with memory_store() as store, registered(FailingKind()):
        run(store, KeySource(database))
        found = examine(store)
        with pytest.raises(SourceError, match="the kind 'sqlite_keys' failed: IndexError"):
            set_position(store, "copy", "people", "1", reason="a test", who="me")
    assert [each.code for each in found] == ["not-examined"]
    assert "the kind 'sqlite_keys' failed: UnicodeDecodeError" in found[0].what


# ---- loops of batches


class StuckSource(KeySource):
    """Keys of which more is always left, and whose position never moves."""

    def plan(self, found: PlanInput) -> KeyPlan:
        return replace(super().plan(found), has_more=True)

    def advance(self, plan: KeyPlan) -> Position | None:
        return None


class OneByOne(KeySource):
    """Keys, one in a plan."""

    def plan(self, found: PlanInput) -> KeyPlan:
        plan = super().plan(found)
        return plan if plan.count < 2 else replace(plan, until=plan.after + 1, count=1, has_more=True)


def drained(store: BookmarkStore, source: KeySource, option: str) -> list[list[int]]:
    read: list[list[int]] = []
    for batch in BookmarkedJob(name="copy", store=store, option=option).batches():
        assert len(read) < 5
        with batch:
            read.append(keys_of(batch.active_run.plan("people", source)))
    return read


@pytest.mark.parametrize("option", ["enable", "pause", "disable"])
def test_batches_of_a_source_that_does_not_move_end_with_an_error(database: str, option: str) -> None:
    put(database, 2, 3)
    with memory_store() as store, registered(KeyKind()):
        with pytest.raises(MisuseError, match="each batch would read the same again"):
            drained(store, StuckSource(database), option)
        assert store.snapshot("copy").head is None or store.head("copy").run_number == 0
        assert drained(store, OneByOne(database), option) == [[1], [2], [3]]
