"""Kinds of a user's own that are faulty: refused by name before anything is stored, or warned of, and never silent."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.core.errors import MisuseError, OptionError, SourceError, SourceSwitchedError
from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.core.order import NUMBER
from airflow_bookmarks.core.position import Position
from airflow_bookmarks.lifecycle.changes.change import Change, set_position
from airflow_bookmarks.lifecycle.changes.preview import preview
from airflow_bookmarks.lifecycle.maintenance.doctor import examine
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.sources.kind import SourceKind
from airflow_bookmarks.sources.registry import kind_of, registered, upstream_in
from airflow_bookmarks.sources.source import PlanInput
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from airflow_bookmarks.testing.memory import memory_store
from tests.lifecycle.sqlite_keys import KeyKind, KeyPlan, KeySource, make_table, put

JOB, CTX = "copy", "people"
SECRET = "https://ada:hunter2@crm.example/"


@pytest.fixture
def database(tmp_path: Path) -> str:
    """Make a table with three keys."""
    database = str(tmp_path / "crm.db")
    make_table(database)
    put(database, 1, 2, 3)
    return database


@pytest.fixture
def store() -> Iterator[BookmarkStore]:
    """Open an empty store in a process that knows the kind."""
    with memory_store() as store, registered(KeyKind()):
        yield store


def begin(store: BookmarkStore) -> ActiveRun:
    return ActiveRun.begin(store, JOB, RunIdentity(store.new_id(), 1), RunEnvironment())


def make(store: BookmarkStore, source: Any, **how: Any) -> KeyPlan:
    """Make one run, which commits or gives the job back."""
    run = begin(store)
    try:
        plan: KeyPlan = run.plan(CTX, source, **how)
        run.commit()
    except (MisuseError, SourceError) as error:
        run.abort(str(error))
        raise
    return plan


def test_position_of_one_source_is_not_kept_for_another(store: BookmarkStore, database: str, tmp_path: Path) -> None:
    make(store, KeySource(database))
    other = str(tmp_path / "other.db")
    make_table(other)
    put(other, 1, 2, 3, 4)

    with pytest.raises(SourceSwitchedError, match="'keep' is refused here") as caught:
        make(store, KeySource(other), on_source_change="keep")
    assert "moved_from" not in str(caught.value)
    assert make(store, KeySource(other), on_source_change="reset").count == 4


class GarbagePlan(KeyPlan):
    def encode(self) -> bytes:
        return b"\x00garbage"


class TextPlan(KeyPlan):
    def encode(self) -> Any:
        return super().encode().decode()


class SmallerPlan(KeyPlan):
    def encode(self) -> bytes:
        return json.dumps([self.database, self.after, self.until, 1, {}]).encode()


class FloatPlan(KeyPlan):
    def stats(self) -> dict[str, Any]:
        return {**super().stats(), "share": 0.5}


class HugePlan(KeyPlan):
    def stats(self) -> dict[str, Any]:
        return {**super().stats(), "checksum": [10**40]}


class TuplePlan(KeyPlan):
    def stats(self) -> Any:
        return [("a", 1)]


@dataclass
class FaultySource(KeySource):
    """Keys whose plans are of another class; without one, its plan is None."""

    database: str
    made: type[KeyPlan] | None

    def plan(self, found: PlanInput) -> Any:
        return None if self.made is None else self.made(**vars(super().plan(found)))


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (GarbagePlan, "its kind can't read what encode\\(\\) returned"),
        (TextPlan, "encode\\(\\) returned '"),
        (SmallerPlan, "its kind reads .*count=1.* from what encode\\(\\) returned"),
        (FloatPlan, "the stat 'share' \\(0.5\\) is of a type that can't be stored"),
        (HugePlan, "the stat 'checksum' .* is of a type that can't be stored"),
        (TuplePlan, "its stats are \\[\\('a', 1\\)\\]"),
        (None, "None is not a plan: it has no is_empty"),
    ],
)
def test_plan_that_could_not_be_read_again_is_refused(
    store: BookmarkStore, database: str, made: type[KeyPlan] | None, why: str
) -> None:
    with pytest.raises(MisuseError, match=f"{why}.*Nothing was read or changed"):
        make(store, FaultySource(database, made))
    assert CTX not in store.head(JOB).contexts


@pytest.mark.parametrize("recheck", [None, (), "gone"])
def test_recheck_that_returns_something_else_is_refused(store: BookmarkStore, database: str, recheck: Any) -> None:
    source = KeySource(database)
    source.recheck = lambda plan: recheck  # type: ignore[method-assign]
    with pytest.raises(MisuseError, match=r"not a Recheck.*Nothing was committed"):
        make(store, source)
    assert make(store, KeySource(database)).count == 3


@pytest.mark.parametrize(
    ("position", "why"),
    [
        (None, "its position does not move"),
        (Position(b"3", "3", order=NUMBER), "its position does not move"),
        (Position(b"1", "1", order=NUMBER), "its position goes back from 3 to 1"),
    ],
)
def test_position_that_does_not_lead_on_is_warned_of(
    store: BookmarkStore, database: str, caplog: pytest.LogCaptureFixture, position: Position | None, why: str
) -> None:
    make(store, KeySource(database))
    put(database, 4)
    source = KeySource(database)
    source.advance = lambda plan: position  # type: ignore[method-assign]
    with caplog.at_level(logging.WARNING):
        make(store, source)
    assert f"read 1 keys, and {why}" in caplog.text

    caplog.clear()
    make(store, KeySource(database))
    assert ", and its position" not in caplog.text


@pytest.mark.parametrize(
    ("value", "is_skipping", "is_again"), [("1", False, True), ("3", False, True), ("5", True, False)]
)
def test_preview_of_a_set_says_what_its_order_tells(
    store: BookmarkStore, database: str, value: str, is_skipping: bool, is_again: bool
) -> None:
    make(store, KeySource(database))
    put(database, 4, 5, 6)
    asked = preview(store, JOB, Change("set", ctx=CTX, value=value))

    never = asked.never_read
    assert never is not None
    assert (never.files is None) == is_skipping
    assert (asked.files is None) == is_again
    assert asked.twice == ()


class PartialKind(KeyKind):
    """A kind whose watermark is a sum: a lower one may be further ahead in a part."""

    is_totally_ordered = False


@pytest.mark.parametrize("value", ["1", "5"])
def test_preview_of_a_set_warns_of_both_where_the_order_does_not_tell(database: str, value: str) -> None:
    with memory_store() as store, registered(PartialKind()):
        make(store, KeySource(database))
        asked = preview(store, JOB, Change("set", ctx=CTX, value=value))
    assert asked.never_read is not None
    assert (asked.never_read.files, asked.files) == (None, None)


def test_window_over_a_set_is_refused_where_one_plan_can_not_say_it(store: BookmarkStore, database: str) -> None:
    first = make(store, KeySource(database))
    put(database, 4, 5)
    set_position(store, JOB, CTX, "4", reason="a test", who="ada")
    second = make(store, KeySource(database))
    with pytest.raises(OptionError, match="between these runs the position was set"):
        KeyKind().union([first, second])


class BrokenKind(KeyKind):
    """A kind whose methods fail, and say a password."""

    def decode(self, body: bytes) -> KeyPlan:
        raise RuntimeError(f"no answer from {SECRET}")

    def upstream_of(self, source: object) -> str | None:
        raise RuntimeError(f"no answer from {SECRET}")


def test_error_of_a_kind_is_one_of_its_kind_and_tells_no_password() -> None:
    with registered(BrokenKind()):
        for asked in (lambda: kind_of(KeyKind.name).decode(b""), lambda: upstream_in("sqlite_keys:crm.db")):
            with pytest.raises(SourceError, match="the kind 'sqlite_keys' failed: RuntimeError: no answer") as caught:
                asked()
            assert "hunter2" not in str(caught.value)


def test_known_kind_keeps_what_it_is() -> None:
    with registered(KeyKind()):
        kind: SourceKind[Any] = kind_of(KeyKind.name)
        assert (kind.name, kind.order, kind.has_files) == ("sqlite_keys", NUMBER, False)
        assert kind.decode(KeyPlan("crm.db", 0, 2, 2).encode()) == KeyPlan("crm.db", 0, 2, 2)


class ForgetfulKind(KeyKind):
    """A later version of a kind, which reads other amounts from the plans of the version before."""

    def decode(self, body: bytes) -> KeyPlan:
        return replace(super().decode(body), count=7)


class LostKind(KeyKind):
    """A later version of a kind, which can't read the plans of the version before."""

    def decode(self, body: bytes) -> KeyPlan:
        raise ValueError(f"plans of version 1 are at {SECRET}")


@pytest.mark.parametrize(
    ("later", "what"),
    [(ForgetfulKind(), "lists 7 keys, and its facts say 3 keys"), (LostKind(), "the kind 'sqlite_keys' failed")],
)
def test_doctor_finds_a_plan_that_its_kind_does_not_read_as_it_was(
    database: str, later: SourceKind[Any], what: str
) -> None:
    with memory_store() as store:
        with registered(KeyKind()):
            make(store, KeySource(database))
            assert examine(store) == []
        with registered(later):
            (finding,) = [each for each in examine(store) if each.code == "plan-differs"]
    assert what in finding.what
    assert "hunter2" not in finding.what
