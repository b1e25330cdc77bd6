"""Promises of the seam for kinds: one that reads the keys of an SQLite table needs a planner and one registration.

Nothing of the package knows of it. What it can't say is shown as not known, and never as nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.cli import main
from airflow_bookmarks.core.amount import Amount
from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.option import Choice
from airflow_bookmarks.core.rules.condition import WatermarkReached
from airflow_bookmarks.core.run import PlanEntry
from airflow_bookmarks.lifecycle.changes.change import Change, rewind, set_position, undo
from airflow_bookmarks.lifecycle.changes.preview import preview
from airflow_bookmarks.lifecycle.inspect.difference import diff
from airflow_bookmarks.lifecycle.inspect.lag import lag
from airflow_bookmarks.lifecycle.inspect.lineage import lineage
from airflow_bookmarks.lifecycle.inspect.never_read import NeverReadInput
from airflow_bookmarks.lifecycle.inspect.pending import pending
from airflow_bookmarks.lifecycle.inspect.runs import files_of, history
from airflow_bookmarks.lifecycle.inspect.wait import Wait
from airflow_bookmarks.lifecycle.inspect.waiting import evaluate
from airflow_bookmarks.lifecycle.maintenance.doctor import examine
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.protocol.source_cleanup import Disposal
from airflow_bookmarks.lifecycle.run.detached import DetachedRun
from airflow_bookmarks.lifecycle.run.empty import commit_empty
from airflow_bookmarks.lifecycle.run.session import RunSession
from airflow_bookmarks.lifecycle.state.positions import shown
from airflow_bookmarks.lifecycle.state.summary import Summary
from airflow_bookmarks.sources.passed_over import PassedOver
from airflow_bookmarks.sources.registry import registered
from airflow_bookmarks.sources.source import PlanInput
from airflow_bookmarks.store.bookmark_store import open_store
from tests.lifecycle.shop import Shop
from tests.lifecycle.sqlite_keys import KeyKind, KeyPlan, KeySource, connected, make_table, put

JOB, CTX = "people", "rows"


@pytest.fixture(autouse=True)
def known() -> Iterator[None]:
    with registered(KeyKind()):
        yield


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Return a table with the keys 1 to 3."""
    database = str(tmp_path / "crm.db")
    make_table(database)
    put(database, 1, 2, 3)
    return database


def read(run: RunSession, database: str) -> KeyPlan:
    return run.plan(CTX, KeySource(database))


def enabled(shop: Shop, database: str) -> tuple[KeyPlan, Summary]:
    run = shop.begin(JOB)
    return read(run, database), run.commit()


def window(shop: Shop, database: str, option: str, *ends: str | None) -> KeyPlan:
    run = DetachedRun.begin(shop.store, JOB, shop.identity(), Choice.of(option, *ends), RunEnvironment())
    plan = read(run, database)
    run.commit()
    return plan


def ends(plan: KeyPlan) -> tuple[int, int]:
    return plan.after, plan.until


def test_each_key_is_read_once_and_the_summary_counts_keys(shop: Shop, table: str) -> None:
    first, summary = enabled(shop, table)
    put(table, 4)
    second, _ = enabled(shop, table)
    third, last = enabled(shop, table)

    assert [ends(plan) for plan in (first, second, third)] == [(0, 3), (3, 4), (4, 4)]
    assert summary.in_words() == "run 1, rows: 3 keys"
    assert (summary.contexts[CTX]["unit"], summary.contexts[CTX]["count"]) == ("keys", 3)
    assert summary.contexts[CTX]["files"] is None
    assert last.is_empty
    state = shop.store.head(JOB).contexts[CTX]
    assert (state.kind, state.watermark) == ("sqlite_keys", "4")


class NotedPlan(KeyPlan):
    """A plan that keeps metadata of its own: `cursor`, and what plans of files mean something else by."""

    def stats(self) -> dict[str, Any]:
        return {
            **super().stats(),
            "cursor": [self.until],
            "options": {"roots": 3, "sequence": None, "partition_time": 1},
        }


class NotingSource(KeySource):
    def __init__(self, database: str) -> None:
        super().__init__(database)
        self.found: list[Any] = []

    def plan(self, found: PlanInput) -> KeyPlan:
        self.found.append(found.stats.get("cursor"))
        plan = super().plan(found)
        return NotedPlan(plan.database, plan.after, plan.until, plan.count, plan.skipped)


def test_metadata_of_a_kind_of_its_own_is_read_back_by_that_kind_alone(
    shop: Shop, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = NotingSource(table)
    with monkeypatch.context() as earlier:  # versions that let a plan say what means something else of files
        earlier.setattr("airflow_bookmarks.sources.contract._TAKEN", frozenset())
        for key in (4, 5):
            run = shop.begin(JOB)
            run.plan(CTX, source)
            run.commit()
            put(table, key)
    last = shop.store.committed_run(JOB, 2)

    assert last is not None
    entry = last.plans[CTX]
    assert source.found == [None, [3]]
    assert entry.stats["cursor"] == [4]
    assert entry.metadata.amount.count == 1
    assert pending(shop.store, JOB).contexts[0].plan is not None
    assert examine(shop.store) == []


def test_fact_of_a_kind_of_its_own_that_is_no_list_of_moves_is_left_alone(
    shop: Shop, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class MovingPlan(KeyPlan):
        def stats(self) -> dict[str, Any]:
            return {**super().stats(), "moves": 17}

    class MovingSource(KeySource):
        def plan(self, found: PlanInput) -> KeyPlan:
            plan = super().plan(found)
            return MovingPlan(plan.database, plan.after, plan.until, plan.count, plan.skipped)

    with monkeypatch.context() as earlier:  # versions that let it be stored
        earlier.setattr("airflow_bookmarks.sources.contract._TAKEN", frozenset())
        run = shop.begin(JOB)
        run.plan(CTX, MovingSource(table))
        run.commit()
    put(table, 4)

    (entry,) = (run.plans[CTX] for run in shop.store.runs(JOB))
    assert entry.stats["moves"] == 17
    assert shown(entry) == {}
    assert examine(shop.store) == []
    assert enabled(shop, table)[0].count == 1
    set_position(shop.store, JOB, CTX, "1", reason="a test", who="ada")
    assert shop.store.head(JOB).contexts[CTX].watermark == "1"


def test_pause_and_disable_leave_the_position_where_it_is(shop: Shop, table: str) -> None:
    enabled(shop, table)
    put(table, 4)

    assert ends(window(shop, table, "pause")) == (3, 4)
    assert ends(window(shop, table, "disable")) == (0, 4)
    assert shop.store.head(JOB).contexts[CTX].watermark == "3"


def test_pause_over_runs_reads_what_they_have_read(shop: Shop, table: str) -> None:
    for key in (4, 5):
        enabled(shop, table)
        put(table, key)
    enabled(shop, table)

    assert ends(window(shop, table, "pause", "1", "3")) == (3, 5)


def test_run_that_died_after_its_plan_is_made_again(shop: Shop, table: str) -> None:
    dead = shop.begin(JOB)
    read(dead, table)
    dead.abort("the driver died")
    put(table, 4)

    assert ends(enabled(shop, table)[0]) == (0, 4)


def test_rewind_and_undo_go_by_its_positions(shop: Shop, table: str) -> None:
    enabled(shop, table)
    put(table, 4)
    enabled(shop, table)

    seen = preview(shop.store, JOB, Change("rewind", "1"))
    rewind(shop.store, JOB, 1, reason="a test", who="ada")
    assert shop.store.head(JOB).contexts[CTX].watermark == "3"
    undo(shop.store, JOB, reason="a test", who="ada")

    assert shop.store.head(JOB).contexts[CTX].watermark == "4"
    assert (seen.undone, seen.files, seen.bytes, seen.amounts) == ((2,), None, None, {"keys": 1})


def test_set_takes_a_key_and_says_what_it_does_not_know(shop: Shop, table: str) -> None:
    enabled(shop, table)

    back, ahead = (preview(shop.store, JOB, Change("set", ctx=CTX, value=value)) for value in ("1", "9"))
    set_position(shop.store, JOB, CTX, "1", reason="a test", who="ada")

    assert ends(enabled(shop, table)[0]) == (1, 3)
    assert back.never_read is not None
    assert ahead.never_read is not None
    assert (back.never_read.files, back.never_read.unknown) == (0, None)  # by the order of the kind
    assert (ahead.never_read.files, ahead.never_read.unknown) == (None, "not counted: this kind of source can't tell")
    with pytest.raises(OptionError, match="'now' is no key"):
        set_position(shop.store, JOB, CTX, "now", reason="a test", who="ada")


def test_what_its_planner_raises_is_said_of_its_context_alone(shop: Shop, table: str, tmp_path: Path) -> None:
    other = str(tmp_path / "other.db")
    make_table(other)
    put(other, 1)
    run = shop.begin(JOB)
    read(run, table)
    run.plan("another", KeySource(other))
    run.commit()
    put(other, 2)
    with connected(table) as connection:
        connection.execute("DROP TABLE people")

    found = pending(shop.store, JOB)

    assert {context.ctx: (context.unknown, context.has_input) for context in found.contexts} == {
        "another": (None, True),
        CTX: ("the kind 'sqlite_keys' failed: OperationalError: no such table: people", False),
    }
    assert not found.is_known


def test_what_its_planner_raises_is_said_without_passwords(
    shop: Shop, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> KeySource:
        raise ConnectionError("postgresql://ann:hunter2@db/crm refused the connection")

    enabled(shop, table)
    monkeypatch.setattr(KeyKind, "source_of", refused)

    (context,) = pending(shop.store, JOB).contexts

    assert "ConnectionError" in str(context.unknown)
    assert "hunter2" not in str(context.unknown)


def test_preview_of_a_set_goes_on_where_its_planner_fails(
    shop: Shop, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    enabled(shop, table)
    monkeypatch.setattr(KeyKind, "source_of", lambda *_: 1 / 0)

    ahead, back = (preview(shop.store, JOB, Change("set", ctx=CTX, value=value)).never_read for value in ("9", "2"))

    assert ahead is not None
    assert ahead.unknown == "can't be counted: the kind 'sqlite_keys' failed: ZeroDivisionError: division by zero"
    assert back == NeverReadInput()  # by the order of the kind


def counted(kind: KeyKind, store: Any, job: str, entry: PlanEntry, before: PlanInput, after: PlanInput) -> PassedOver:
    """Count what a set passes over, as a kind of one's own may."""
    low, high = int(before.position or 0), int(after.position or 0)
    with connected(kind.decode(store.blobs.get(entry.body)).database) as connection:
        query = "SELECT count(*) FROM people WHERE id > ? AND id <= ?"
        ((count,),) = connection.execute(query, [low, high]).fetchall()
    return PassedOver(Amount("keys", count))


def test_kind_that_counts_what_a_set_passes_over_is_asked(
    shop: Shop, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KeyKind, "passed_over", counted)
    enabled(shop, table)
    put(table, 4, 5, 6)

    told = [preview(shop.store, JOB, Change("set", ctx=CTX, value=each)).never_read for each in "351"]

    assert told == [NeverReadInput(), NeverReadInput(None, None, amounts={"keys": 2}), NeverReadInput()]


def test_kind_that_answers_something_else_is_said_to_be_at_fault(
    shop: Shop, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    enabled(shop, table)
    monkeypatch.setattr(KeyKind, "passed_over", lambda *_: Amount("keys", 2))
    told = preview(shop.store, JOB, Change("set", ctx=CTX, value="9")).never_read
    assert told is not None
    assert str(told.unknown).startswith("can't be counted: passed_over() of the kind 'sqlite_keys' returned Amount(")


@pytest.mark.parametrize(
    "look",
    [
        lambda shop: pending(shop.store, JOB),
        lambda shop: preview(shop.store, JOB, Change("set", ctx=CTX, value="2")),
        lambda shop: commit_empty(shop.store, JOB, shop.identity(), shop.environment),
    ],
    ids=["pending", "preview", "empty run"],
)
def test_fault_of_the_package_is_not_said_of_its_kind(
    shop: Shop, table: str, monkeypatch: pytest.MonkeyPatch, look: Callable[[Shop], object]
) -> None:
    enabled(shop, table)
    monkeypatch.setattr("airflow_bookmarks.lifecycle.state.positions.ContextReader.found_for", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        look(shop)


def test_worker_leaves_a_run_to_spark_where_its_planner_fails(shop: Shop, table: str) -> None:
    enabled(shop, table)
    with connected(table) as connection:
        connection.execute("DROP TABLE people")
    assert commit_empty(shop.store, JOB, shop.identity(), shop.environment) is None


def test_pending_and_lag_count_in_its_unit(shop: Shop, table: str) -> None:
    enabled(shop, table)
    assert pending(shop.store, JOB).is_empty
    put(table, 4, 5)

    found = pending(shop.store, JOB)
    (context,) = found.as_dict()["contexts"]
    (behind,) = lag(shop.store, JOB)

    assert not found.is_empty
    assert (context["unit"], context["count"], context["files"]) == ("keys", 2, None)
    assert (found.as_dict()["files"], found.as_dict()["bytes"]) == (None, None)
    assert (behind.kind, behind.files, behind.seconds) == ("sqlite_keys", None, None)
    assert (behind.unit, behind.count) == ("keys", 2)


def test_worker_commits_an_empty_run_of_it(shop: Shop, table: str) -> None:
    enabled(shop, table)
    summary = commit_empty(shop.store, JOB, shop.identity(), shop.environment)
    assert summary is not None
    assert summary.is_empty
    put(table, 4)
    assert commit_empty(shop.store, JOB, shop.identity(), shop.environment) is None


def test_history_difference_and_lineage_say_what_is_not_known(shop: Shop, table: str) -> None:
    enabled(shop, table)
    put(table, 4)
    enabled(shop, table)

    rows = history(shop.store, JOB)
    found = lineage(shop.store, JOB, 1)

    assert [(row["number"], row["files"], row["amounts"], row["watermark"]) for row in rows] == [
        (1, None, {"keys": 3}, {CTX: "3"}),
        (2, None, {"keys": 1}, {CTX: "4"}),
    ]
    assert diff(shop.store, JOB, "1", "2")["contexts"][CTX]["watermark"] == {"a": "3", "b": "4"}
    assert found is not None
    assert (found.reads[0].locations, found.reads[0].files) == ((table,), None)
    with pytest.raises(OptionError, match=r"kind 'sqlite_keys', of which no files can be listed"):
        files_of(shop.store, JOB, "1")


def test_sensor_waits_for_its_watermark(shop: Shop, table: str) -> None:
    enabled(shop, table)
    waits = [Wait((JOB,), WatermarkReached.of(key, CTX)) for key in ("3", "10")]

    low, high = evaluate(shop.store, waits)

    assert (low.is_met, high.is_met, high.error) == (True, False, None)
    assert shop.store.head(JOB).contexts[CTX].order == "number"


@pytest.mark.parametrize("wanted", ["2013-01-31T00:00:00Z", "part-9"])
def test_sensor_refuses_what_is_no_key_before_it_waits(shop: Shop, table: str, wanted: str) -> None:
    enabled(shop, table)

    (answer,) = evaluate(shop.store, [Wait((JOB,), WatermarkReached.of(wanted, CTX))])

    assert isinstance(answer.error, OptionError)
    assert "Wait for a number, such as 42" in str(answer.error)


def test_order_of_its_watermark_is_kept_by_a_set(shop: Shop, table: str) -> None:
    enabled(shop, table)
    set_position(shop.store, JOB, CTX, "1", reason="a test", who="ada")
    assert shop.store.head(JOB).contexts[CTX].order == "number"


def test_doctor_finds_nothing_in_it(shop: Shop, table: str) -> None:
    enabled(shop, table)
    put(table, 4)
    enabled(shop, table)
    assert examine(shop.store) == []


def test_command_line_shows_where_it_stands(table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    uri = f"sqlite:///{tmp_path / 'cli.db'}?namespace=test"
    store = open_store(f"{uri}&create=true")
    store.init()
    shop = Shop(tmp_path, store)
    enabled(shop, table)
    put(table, 4)

    shown = {}
    for verb in ("show", "history", "pending", "lag"):
        assert main(["--store", uri, verb, JOB, "--output", "json"]) == 0
        shown[verb] = json.loads(capsys.readouterr().out)

    assert shown["pending"]["contexts"][0]["count"] == 1
    assert shown["history"][0]["watermark"] == {CTX: "3"}


def test_page_is_told_of_its_unit(shop: Shop, table: str) -> None:
    pytest.importorskip("airflow", reason="no Airflow, which the page is a part of")
    from airflow_bookmarks.plugin.presenters.bookmark import context_rows
    from airflow_bookmarks.plugin.schemas.pending import Pending
    from airflow_bookmarks.plugin.schemas.responses import LagRow, RunRow

    enabled(shop, table)
    put(table, 4)
    told = Pending(**pending(shop.store, JOB).as_dict())
    (state,) = context_rows(shop.store.head(JOB).contexts, {}, {})
    (behind,) = lag(shop.store, JOB)

    assert (told.contexts[0].unit, told.contexts[0].count, told.files) == ("keys", 1, None)
    assert (state.position, state.set_by, state.upstream) == ("up to 3, since run 1", "text", None)
    found = LagRow(**behind.as_dict())
    assert (found.files, found.unit, found.count) == (None, "keys", 1)
    row = RunRow(**history(shop.store, JOB)[0])
    assert (row.files, row.amounts) == (None, {"keys": 3})


@pytest.mark.parametrize(
    ("verb", "line"),
    [("history", r"FILES +AMOUNTS .*\n +1 .* keys=3 "), ("pending", r"FILES +COUNT +UNIT "), ("lag", r"COUNT +UNIT ")],
)
def test_command_line_counts_in_its_unit(
    tmp_path: Path, table: str, capsys: pytest.CaptureFixture[str], verb: str, line: str
) -> None:
    uri = f"sqlite:///{tmp_path}/bookmarks.db"
    store = open_store(f"{uri}?create=true")
    store.init()
    enabled(Shop(tmp_path, store), table)
    put(table, 4)
    assert main(["--store", uri, verb, JOB]) == 0
    assert re.search(line, capsys.readouterr().out)


def test_preview_of_a_rewind_says_in_its_unit_what_is_read_again(
    tmp_path: Path, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    uri = f"sqlite:///{tmp_path}/bookmarks.db"
    store = open_store(f"{uri}?create=true")
    store.init()
    enabled(Shop(tmp_path, store), table)
    assert main(["--store", uri, "reset", JOB, "--reason", "a test", "--dry-run"]) == 0
    assert "read again: 3 keys" in capsys.readouterr().out


def test_what_needs_files_is_refused_by_name(shop: Shop, table: str) -> None:
    disposing = shop.begin(JOB)
    disposing.dispose(CTX, Disposal("delete"))
    with pytest.raises(OptionError, match="on_published is for files, and what this context reads is keys"):
        read(disposing, table)
    disposing.abort("refused")
    run = shop.begin(JOB)
    read(run, table)
    with pytest.raises(OptionError, match="quarantine is for files, and what this context reads is keys"):
        run.quarantine(CTX, {"3": "not to be parsed"})
    run.abort("refused")

    assert ends(enabled(shop, table)[0]) == (0, 3)
