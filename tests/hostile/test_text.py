"""Text of others: secrets in errors and roots, escape codes in names and reasons (SEC-1, SEC-8)."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from airflow_bookmarks.cli import main
from airflow_bookmarks.cli.output.change_preview import in_lines
from airflow_bookmarks.cli.output.values import as_table
from airflow_bookmarks.core.errors import LookFailedError, NameInvalidError, OptionError, SourceError
from airflow_bookmarks.core.job import check_name, check_run_id
from airflow_bookmarks.core.ledger.quarantine import QuarantinedFile
from airflow_bookmarks.core.run import RunKey
from airflow_bookmarks.core.text.identity import Identity
from airflow_bookmarks.core.text.redaction import CUT, MAX_ERROR
from airflow_bookmarks.files.opener import open_filesystem
from airflow_bookmarks.lifecycle.changes.approval import protect
from airflow_bookmarks.lifecycle.changes.change import Change, reset
from airflow_bookmarks.lifecycle.changes.naming import adopt, rename
from airflow_bookmarks.lifecycle.changes.preview import preview
from airflow_bookmarks.lifecycle.inspect import never_read
from airflow_bookmarks.lifecycle.inspect.graph import graph
from airflow_bookmarks.lifecycle.inspect.runs import history
from airflow_bookmarks.lifecycle.inspect.status import bookmarks
from airflow_bookmarks.lifecycle.maintenance.retention import collect
from airflow_bookmarks.lifecycle.maintenance.transfer.exporting import export
from airflow_bookmarks.lifecycle.state.quarantine import quarantined_files
from airflow_bookmarks.plugin.auth import UserScope
from airflow_bookmarks.plugin.presenters.bookmark import damaged_row
from airflow_bookmarks.plugin.scan.child import LIMITS, _parsed
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.store.table import Update
from tests.lifecycle.shop import FILES, Shop

SECRET = "hunter2hunter2"
ERROR = f"Py4JJavaError: jdbc:postgresql://etl:{SECRET}@db:5432/lake?ssl=true refused the connection"
TOLD = "Py4JJavaError: jdbc:postgresql://***@db:5432/lake?ssl=true refused the connection"


def failed(shop: Shop, error: str = ERROR) -> None:
    """Let a run fail with an error after it has planned."""
    shop.put("a.txt", "a")
    run = shop.begin()
    shop.copy(run)
    run.abort(error)


def everything(shop: Shop) -> str:
    """Return all that the table holds of the job, as text."""
    return repr(list(shop.store.table.query(shop.store.keys("copy").partition)))


# ---- errors


def test_error_of_a_failed_run_is_stored_without_its_password(shop: Shop) -> None:
    failed(shop)
    assert SECRET not in everything(shop)
    (row,) = history(shop.store, "copy", with_open=True)
    assert row["error"] == TOLD


def test_whole_error_is_in_the_log_of_the_task(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    failed(shop, ERROR + "x" * 5000)
    (row,) = history(shop.store, "copy", with_open=True)
    assert len(row["error"]) == MAX_ERROR
    assert row["error"].endswith(CUT)
    assert ERROR in caplog.text
    assert "x" * 5000 in caplog.text


def test_error_that_an_earlier_version_stored_is_shown_and_exported_without_its_password(shop: Shop) -> None:
    failed(shop, "refused")
    key = shop.store.keys("copy").run(RunKey(1, 1))
    shop.store.table.transact([Update(key, set={"error": ERROR})])
    assert SECRET in everything(shop)
    (row,) = history(shop.store, "copy", with_open=True)
    assert row["error"] == TOLD
    document = json.dumps(export(shop.store))
    assert SECRET not in document
    assert "***@db:5432" in document


def test_cause_of_a_quarantined_file_is_stored_without_its_password(shop: Shop) -> None:
    shop.put("a.txt", "a")
    run = shop.begin()
    plan = run.plan("raw", FileSource(FILES, [str(shop.raw)]))
    run.quarantine("raw", dict.fromkeys(plan.files.paths, ERROR))
    run.commit()
    (row,) = quarantined_files(shop.store, "copy")
    assert row["error"] == TOLD
    assert SECRET not in everything(shop)


def test_cause_that_an_earlier_version_stored_is_shown_without_its_password() -> None:
    assert QuarantinedFile.parse(["/a", "v", 1, 2, ERROR, 3]).error == TOLD


def damaged(shop: Shop) -> None:
    """Let the head of a job hold a text with a password where a number belongs."""
    shop.put("a.txt", "a")
    shop.run()
    shop.store.table.transact([Update(shop.store.keys("copy").head, set={"fence": ERROR})])


def test_why_a_job_is_damaged_is_listed_without_its_password(shop: Shop) -> None:
    damaged(shop)
    (row,) = bookmarks(shop.store)
    assert TOLD.rpartition("@")[0] in row["damaged"]
    assert SECRET not in json.dumps(row)
    head = shop.store.heads_or_damage(["copy"])["copy"]
    assert isinstance(head, Exception)
    everywhere = UserScope(frozenset(), frozenset(), True, True, may_see_the_store=True)
    for why in (head, str(head)):
        assert SECRET not in repr(damaged_row(shop.store.namespace, "copy", {}, why, everywhere))


def test_why_gc_leaves_a_job_alone_is_told_without_its_password(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    damaged(shop)
    told = collect(shop.store).as_dict()["left_alone"]
    assert "***@db" in told["copy"]
    assert SECRET not in json.dumps(told) + caplog.text


def test_why_it_is_not_known_what_a_set_never_reads_is_told_without_its_password(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise SourceError(ERROR)

    shop.put("a.txt", "a")
    shop.run()
    monkeypatch.setattr(never_read, "recorded_source", refused)  # the source fails between two looks
    told = preview(shop.store, "copy", Change("set", ctx="raw", value="now")).never_read
    assert told is not None
    assert told.unknown == f"can't be counted: {TOLD}"


# ---- roots


@pytest.mark.parametrize(
    "root",
    [
        f"s3a://AKIA:{SECRET}@lake/raw",
        f"s3a://AKIA:a/{SECRET}@lake/raw",
        f"hdfs://etl:{SECRET}@nn/raw",
        f"webhdfs://etl:{SECRET}@nn/raw",
        f"gs://etl:{SECRET}@lake/raw",
        f"abfss://etl:{SECRET}@lake.dfs.core.windows.net/raw",
        f"ftp://etl:{SECRET}@host/raw",
    ],
)
def test_root_with_a_password_is_refused_without_repeating_it(root: str) -> None:
    with pytest.raises(OptionError, match="user and a password") as refused:
        open_filesystem(root)
    assert SECRET not in str(refused.value)


# ---- terminals

ESCAPE, OTHER_WAY, LINE = "\x1b[2J", "\u202e", "\u2028"
HIDDEN = [ESCAPE, OTHER_WAY, LINE, "\n", "\t", "\x7f", "\x9b31m", "\u200b", "\u2066", "\ufeff", "\U000e0041", "\udc80"]


@pytest.fixture
def uri(shop: Shop, tmp_path: Path) -> str:
    """Name the store of the shop as the command line does."""
    return f"sqlite:///{tmp_path}/bookmarks.db?namespace=test"


def is_plain(text: str) -> bool:
    return all(letter.isprintable() or letter == "\n" for letter in text)


def called(uri: str, capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    """Return what a command prints, on stdout and stderr."""
    assert main(["--store", uri, *words]) == code
    said = capsys.readouterr()
    return said.out + said.err


def test_file_name_of_others_is_shown_escaped_in_tables(
    shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.put(f"a{ESCAPE}{OTHER_WAY}\nb.txt", "a")
    shop.run()
    told = called(uri, capsys, "files", "copy", "--run", "1")
    assert is_plain(told)
    assert r"a\x1b[2J\u202e\nb.txt" in told


def test_json_is_valid_and_has_the_name_without_what_a_terminal_obeys(
    shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"a{ESCAPE}{OTHER_WAY}{LINE}\x7f\x9b\U000e0041b.txt"
    shop.put(name, "a")
    shop.run()
    told = called(uri, capsys, "files", "copy", "--run", "1", "--output", "json")
    assert is_plain(told)
    assert json.loads(told)[0]["path"].endswith(name)


def test_error_of_a_run_is_shown_escaped(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    failed(shop, f"ValueError: {ESCAPE}\nRUN 7 PUBLISHED")
    for words in (("history", "copy"), ("show", "copy"), ("doctor", "copy"), ("pending", "copy")):
        assert main(["--store", uri, *words]) in (0, 1)
        said = capsys.readouterr()
        assert is_plain(said.out + said.err)
        assert not any(line.startswith("RUN 7") for line in said.out.splitlines())


def test_refusal_on_stderr_is_escaped(shop: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = called(uri, capsys, "show", f"no{ESCAPE}{OTHER_WAY}job", code=1)
    assert is_plain(told)


def test_columns_are_as_wide_as_what_a_terminal_shows() -> None:
    told = as_table([{"a": "東京", "b": "x"}, {"a": "e\u0301", "b": "x"}, {"a": "abcd", "b": "x"}], ["a", "b"])
    assert told.splitlines() == ["A     B", "東京  x", "e\u0301     x", "abcd  x"]


def test_log_has_no_line_that_a_file_name_made(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    shop.put(f"a{ESCAPE}\nbookmark copy: run 7 committed.txt", "a")
    run = shop.begin()
    plan = run.plan("raw", FileSource(FILES, [str(shop.raw)]))
    run.quarantine("raw", dict.fromkeys(plan.files.paths, f"broken\nbookmark copy: {ESCAPE}"))
    run.abort(f"ValueError: {ESCAPE}\nbookmark copy: run 8 committed")
    messages = [record.getMessage() for record in caplog.records]
    assert any("run 7 committed" in message for message in messages)
    assert all(letter.isprintable() or letter == "\n" for message in messages for letter in message)
    assert not any(line.startswith("bookmark copy: run") for message in messages for line in message.split("\n")[1:])


def test_watermark_that_is_made_of_a_file_name_makes_no_line_of_the_log(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    shop.put(f"a{ESCAPE}{OTHER_WAY}\nbookmark copy: run 7 committed.txt", "a")
    for _ in range(2):
        shop.run(options=FileOptions(sequence="path"))
    messages = [record.getMessage() for record in caplog.records]
    assert any("run 7 committed" in message for message in messages)
    assert all(message.isprintable() for message in messages)


def test_source_of_a_graph_makes_no_line_of_it(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    contexts: Any = dict(shop.store.table.get([shop.store.keys("copy").head])[shop.store.keys("copy").head])["contexts"]
    contexts["raw"]["fingerprint"] += f"{ESCAPE}\nother"
    shop.store.table.transact([Update(shop.store.keys("copy").head, set={"contexts": contexts})])
    assert all(line.isprintable() and not line.startswith("other") for line in graph(shop.store).as_text().split("\n"))


def test_preview_that_an_operator_logs_is_escaped(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    seen = preview(shop.store, "copy", Change("reset")).as_dict()
    seen |= {"consumers": {f"report{ESCAPE}\nbookmark copy: reset": 1}, "written_twice": [f"/a{OTHER_WAY}"]}
    assert all(line.isprintable() for line in in_lines("test", seen, Change("reset")))


@pytest.mark.parametrize("said", [b"7", b"[]", b"{}", b'"answer"', b"[" * 100_000, b"", b'{"answer":'], ids=range(7))
def test_what_a_child_says_that_is_no_answer_is_a_look_that_failed(said: bytes) -> None:
    with pytest.raises(LookFailedError, match="before it had an answer"):
        _parsed(said, "copy", LIMITS)


@pytest.mark.parametrize("hidden", HIDDEN)
def test_reason_and_name_of_who_asks_are_refused_with_what_is_not_shown(shop: Shop, hidden: str) -> None:
    shop.put("a.txt", "a")
    shop.run()
    with pytest.raises(OptionError, match="not shown") as refused:
        reset(shop.store, "copy", reason=f"wrong{hidden}data", who="ada")
    assert is_plain(str(refused.value))
    with pytest.raises(OptionError, match="not shown"):
        reset(shop.store, "copy", reason="wrong data", who=f"ada{hidden}")
    with pytest.raises(OptionError, match="not shown"):
        protect(shop.store, "copy", reason="why", who=Identity(f"ada{hidden}", True, "os"))
    with pytest.raises(OptionError, match="not shown"):
        rename(shop.store, "copy", "other", reason=f"why{hidden}", who="ada")
    with pytest.raises(OptionError, match="not shown"):
        adopt(shop.store, "other", "copy", reason="why", who=f"ada{hidden}")
    assert shop.store.head("copy").epoch == 1


@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize("kind", ["job", "context", "output", "namespace"])
def test_name_with_what_is_not_shown_is_refused(kind: str, hidden: str) -> None:
    with pytest.raises(NameInvalidError) as refused:
        check_name(kind, f"a{hidden}b")
    assert is_plain(str(refused.value))


@pytest.mark.parametrize("hidden", HIDDEN)
def test_run_id_with_what_is_not_shown_is_refused(hidden: str) -> None:
    with pytest.raises(NameInvalidError) as refused:
        check_run_id(f"flights/manual{hidden}/clean")
    assert is_plain(str(refused.value))
