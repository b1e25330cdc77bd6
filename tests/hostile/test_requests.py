"""Requests that somebody else has written into the table: their previews, their changes, their texts."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from airflow_bookmarks.cli import main
from airflow_bookmarks.core.errors import StateCorruptError
from airflow_bookmarks.core.text.identity import Identity
from airflow_bookmarks.lifecycle.changes.approval import Request, approve, protect, reject, request, requests
from airflow_bookmarks.lifecycle.changes.change import Change
from airflow_bookmarks.store.table import Update
from tests.lifecycle.shop import Shop

ANN, BOB = Identity("ann", True, "os"), Identity("bob", True, "os")
RESET, SET = Change("reset"), Change("set", ctx="raw", value="now")
FORGED = "\x1b[2J\nbookmark copy: all is well"

_LACKING = (
    "job", "change", "version", "to_run", "undone_runs", "read_again", "watermarks", "consumers", "written_twice",
    "files_to_clean", "read_again.files", "read_again.bytes", "read_again.rows", "watermarks.raw.before",
    "never_read.files", "never_read.bytes", "never_read.runs", "never_read.consumers",
)  # fmt: skip
_WRONG: tuple[tuple[str, Any], ...] = (
    ("job", 7),
    ("change", "delete"),
    ("version", 1),
    ("version", "9"),
    ("to_run", None),
    ("undone_runs", 3),
    ("undone_runs", ["3"]),
    ("undone_run_count", FORGED),
    ("unreadable_runs", [7]),
    ("read_again", []),
    ("read_again.files", "many"),
    ("read_again.bytes", -1),
    ("watermarks.raw.after", 7),
    ("consumers", ["report"]),
    ("consumers.report", FORGED),
    ("written_twice", "s3://lake"),
    ("written_twice_unknown", "s3://lake"),
    ("files_to_clean", None),
    ("files_left_by_undone_runs", FORGED),
    ("never_read", FORGED),
    ("never_read.files", FORGED),
    ("never_read.unknown", 7),
    ("never_read.rows", FORGED),
    ("never_read.amounts", ["versions"]),
    ("never_read.amounts", {"versions": FORGED}),
    ("moved", {"to": "s3://lake"}),
    ("state", {"cursor": FORGED}),
    ("holder", ["run"]),
)


@pytest.fixture
def guarded(shop: Shop) -> Shop:
    """Return a shop with two runs of a protected job."""
    for name in "ab":
        shop.put(f"{name}.txt", name)
        shop.run()
    protect(shop.store, "copy", reason="money", who=ANN)
    return shop


@pytest.fixture
def uri(shop: Shop) -> str:
    """Name the store of the shop."""
    return f"sqlite:///{shop.raw.parent}/bookmarks.db?namespace=test"


def ask(shop: Shop, change: Change = SET) -> Request:
    return request(shop.store, "copy", change, reason="wrong rows", who=ANN)


def rewrite(shop: Shop, asked: Request, **attributes: Any) -> None:
    """Write attributes of a stored request anew, past all that the package checks."""
    shop.store.table.transact([Update(shop.store.keys("copy").event(asked.id), set=attributes)])


def with_part(preview: Any, path: str, value: Any = ...) -> dict[str, Any]:
    """Return a preview with another value of one part, or without it."""
    after: dict[str, Any] = copy.deepcopy(dict(preview))
    *above, name = path.split(".")
    part = after
    for each in above:
        part = part[each]
    if value is ...:
        del part[name]
    else:
        part[name] = value
    return after


def refused(shop: Shop, asked: Request) -> None:
    """Make sure that a request is refused by its name, on one line, and that nothing came of it."""
    before = shop.store.head("copy")
    for decide in (
        lambda: approve(shop.store, "copy", asked.id, who=BOB),
        lambda: reject(shop.store, "copy", asked.id, reason="no", who=BOB),
        lambda: requests(shop.store, "copy"),
    ):
        with pytest.raises(StateCorruptError) as error:
            decide()
        said = str(error.value)
        assert said.isprintable()
        assert asked.id in said
        assert "request" in said
        assert "changed" in said
        assert "Ask for the change anew" in said
    assert shop.store.head("copy") == before


@pytest.mark.parametrize("path", _LACKING)
def test_request_whose_preview_lacks_what_an_approver_is_shown_is_refused(guarded: Shop, path: str) -> None:
    asked = ask(guarded)
    rewrite(guarded, asked, preview=with_part(asked.preview, path))
    refused(guarded, asked)


@pytest.mark.parametrize(("path", "value"), _WRONG, ids=[f"{path}-{value!r:.10}" for path, value in _WRONG])
def test_request_whose_preview_has_another_type_is_refused(guarded: Shop, path: str, value: Any) -> None:
    asked = ask(guarded)
    rewrite(guarded, asked, preview=with_part(asked.preview, path, value))
    refused(guarded, asked)


@pytest.mark.parametrize(
    "attributes",
    [
        {"change": {"kind": "set", "ctx": "raw", "value": "now", FORGED: "x"}},
        {"change": {"kind": "set", "ctx": ["raw"], "value": "now"}},
        {"change": {"kind": "set", "ctx": "raw", "value": "now", "clean": "yes"}},
        {"change": {"kind": 7}},
        {"change": FORGED},
        {"preview": FORGED},
        {"preview": {}},
        {"why": 7},
        {"who": ["ann"]},
        {"who_kind": None},
        {"at": FORGED},
        {"valid_until": 2013},
        {"version_before": FORGED},
        {"decision": "approved"},
    ],
    ids=range(14),
)
def test_request_that_is_not_as_it_was_written_is_refused(guarded: Shop, attributes: dict[str, Any]) -> None:
    asked = ask(guarded)
    rewrite(guarded, asked, **attributes)
    refused(guarded, asked)


@pytest.mark.parametrize("path", ["read_again.files", "watermarks", "holder", "undone_runs"])
def test_command_line_names_a_request_that_it_can_not_show(
    guarded: Shop, uri: str, capsys: pytest.CaptureFixture[str], path: str
) -> None:
    asked = ask(guarded, RESET)
    rewrite(guarded, asked, preview=with_part(asked.preview, path, {FORGED: FORGED}))
    for words in (("approve", "copy", asked.id, "--yes"), ("requests", "copy")):
        assert main(["--store", uri, *words]) == 1
        said = capsys.readouterr()
        assert said.out == ""
        assert asked.id in said.err
        assert "Ask for the change anew" in said.err
        assert said.err.removesuffix("\n").isprintable()


def test_texts_of_a_request_are_shown_escaped(guarded: Shop, uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ask(guarded, RESET)
    preview = with_part(asked.preview, "consumers", {FORGED: 1})
    preview = with_part(preview, "watermarks", {FORGED: {"before": FORGED, "after": None}})
    rewrite(guarded, asked, preview=preview | {FORGED: b"\xff"}, why=FORGED, who=FORGED)
    for words in (("approve", "copy", asked.id), ("requests", "copy"), ("requests", "copy", "--output", "json")):
        main(["--store", uri, *words])
        said = capsys.readouterr()
        assert all(line.isprintable() for line in (said.out + said.err).split("\n"))
        assert not any(line.startswith("bookmark copy: all") for line in (said.out + said.err).split("\n"))


def test_preview_that_does_not_know_how_many_bytes_is_shown(
    guarded: Shop, uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ask(guarded)
    preview = with_part(with_part(asked.preview, "read_again.bytes", None), "never_read.bytes", None)
    rewrite(guarded, asked, preview=with_part(preview, "never_read.files", 3))
    main(["--store", uri, "approve", "copy", asked.id])
    said = capsys.readouterr().err
    assert "3 files, how many bytes is not known" in said


def test_request_of_an_older_version_is_shown_and_approved(guarded: Shop) -> None:
    asked = ask(guarded, RESET)
    preview = asked.preview
    for name in ("state", "never_read", "moved", "unreadable_runs", "files_left_by_undone_runs", "undone_run_count"):
        preview = with_part(preview, name)
    rewrite(guarded, asked, preview=preview)
    assert requests(guarded.store, "copy")[0].preview == preview
    assert approve(guarded.store, "copy", asked.id, who=BOB)["change"] == "reset"


def test_command_line_shows_the_other_requests_beside_a_damaged_one(
    guarded: Shop, uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    bad, good = ask(guarded, RESET), ask(guarded)
    rewrite(guarded, bad, preview=FORGED)

    assert main(["--store", uri, "requests", "copy"]) == 1

    said = capsys.readouterr()
    assert good.id in said.out
    assert bad.id not in said.out
    assert bad.id in said.err
    assert "can delete the item" in said.err
    assert good.id not in said.err
