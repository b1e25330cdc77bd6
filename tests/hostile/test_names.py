"""Names that look alike (SEC-8): refused to what is new; what has one from before goes on, with a warning."""

from __future__ import annotations

import logging

import pytest

from airflow_bookmarks.core.errors import NameInvalidError
from airflow_bookmarks.core.text import script
from airflow_bookmarks.core.text.script import check_new_name, why_not_new
from airflow_bookmarks.lifecycle.changes.change import rename_context, reset
from airflow_bookmarks.lifecycle.changes.naming import adopt, rename
from airflow_bookmarks.plugin.connection import PageHook
from airflow_bookmarks.sinks.staging import StagingRequest
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.store.bookmark_store import open_store
from tests.lifecycle.shop import FILES, Shop

LOOK_ALIKE = "c\u043epy"  # with a Cyrillic o
BAD = [LOOK_ALIKE, "\u0441opy", "fl\u03bfw", "\uff43opy", "\ufb01les", "\u212bngstrom", "x\u00b2", "\u30b3copy\u0430"]
GOOD = [
    "copy", "flights.clean.3", "a-b_c~01", "2013", "вылеты_2013", "vylet_č", "ÅÄÖ", "東京", "売上データ",
    "すし.カタカナー", "売上_daily", "서울_東京", "ㄅ注音", "πτήσεις", "טיסות", "رحلات", "रहलत",
]  # fmt: skip


@pytest.mark.parametrize("letter", ["\u115f", "\u1160", "\u1173", "\u02cd", "\u02c8", "\ua71a"])
@pytest.mark.parametrize("name", ["co{}py", "서울{}", "2013{}01"])
def test_name_with_a_letter_that_is_blank_or_like_a_sign_is_no_new_name(name: str, letter: str) -> None:
    with pytest.raises(NameInvalidError, match=r"is not shown, or looks like a sign|NFKC"):
        check_new_name("job", name.format(letter), ascii_only=False)


@pytest.mark.parametrize("name", [*GOOD, "Hawai\u02bbi"])
def test_name_of_one_script_is_taken(name: str) -> None:
    assert why_not_new(name) is None


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("kind", ["job", "context", "output", "namespace"])
def test_name_that_may_look_like_another_is_no_new_name(kind: str, name: str) -> None:
    with pytest.raises(NameInvalidError, match="may be taken for another name") as refused:
        check_new_name(kind, name, ascii_only=False)
    assert ascii(name) in str(refused.value)


def test_refusal_shows_the_normal_form() -> None:
    with pytest.raises(NameInvalidError, match="in which it is 'files'"):
        check_new_name("job", "\ufb01les", ascii_only=False)


def test_run_of_a_new_job_with_a_look_alike_name_leaves_no_trace(shop: Shop) -> None:
    shop.put("a.txt", "a")
    with pytest.raises(NameInvalidError, match="Cyrillic and Latin"):
        shop.run(LOOK_ALIKE)
    assert list(shop.store.jobs()) == []


def test_new_context_and_output_with_a_look_alike_name_are_refused(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    run = shop.begin()
    with pytest.raises(NameInvalidError, match="new context"):
        run.plan("r\u0430w", FileSource(FILES, [str(shop.raw)]))
    run.abort("refused")


def test_renames_to_a_look_alike_name_are_refused(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    with pytest.raises(NameInvalidError, match="new job"):
        rename(shop.store, "copy", LOOK_ALIKE, reason="why", who="ada")
    with pytest.raises(NameInvalidError, match="new job"):
        adopt(shop.store, LOOK_ALIKE, "copy", reason="why", who="ada")
    with pytest.raises(NameInvalidError, match="new context"):
        rename_context(shop.store, "copy", "raw", "r\u0430w", reason="why", who="ada")


def test_job_that_has_a_look_alike_name_from_before_goes_on_with_a_warning(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def begin(job: str) -> list[str]:
        run = shop.begin(job)
        plan = run.plan("r\u0430w", FileSource(FILES, [str(shop.raw)]))
        run.commit()
        return list(plan.files.paths)

    shop.put("a.txt", "a")
    with monkeypatch.context() as before:  # as a version wrote it that knew of no scripts
        before.setattr(script, "scripts_of", lambda name: frozenset())
        assert len(begin(LOOK_ALIKE)) == 1
    caplog.set_level(logging.WARNING)
    shop.put("b.txt", "b")
    assert len(begin(LOOK_ALIKE)) == 1
    assert "may be taken for another name" in caplog.text
    reset(shop.store, LOOK_ALIKE, reason="again", who="ada")
    assert len(begin(LOOK_ALIKE)) == 2


@pytest.fixture
def ascii_shop(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Shop:
    monkeypatch.setattr(shop.store, "ascii_names", True)
    return shop


@pytest.mark.parametrize("name", [name for name in GOOD if not name.isascii()])
def test_with_names_of_ascii_a_new_job_of_any_other_script_is_refused(ascii_shop: Shop, name: str) -> None:
    ascii_shop.put("a.txt", "a")
    with pytest.raises(
        NameInvalidError, match=r"U\+[0-9A-F]{4,5}\).*names=ascii .*Nothing was read or changed"
    ) as refused:
        ascii_shop.run(name)
    assert ascii(name) in str(refused.value)
    assert list(ascii_shop.store.jobs()) == []


def test_with_names_of_ascii_new_contexts_outputs_and_renames_are_refused(ascii_shop: Shop) -> None:
    ascii_shop.put("a.txt", "a")
    ascii_shop.run()
    run = ascii_shop.begin()
    with pytest.raises(NameInvalidError, match="new context"):
        run.plan("données", FileSource(FILES, [str(ascii_shop.raw)]))
    with pytest.raises(NameInvalidError, match="new output"):
        run.place("propre_é", StagingRequest("files", str(ascii_shop.root / "clean")))
    run.abort("refused")
    with pytest.raises(NameInvalidError, match="new job"):
        rename(ascii_shop.store, "copy", "copié", reason="why", who="ada")
    with pytest.raises(NameInvalidError, match="new job"):
        adopt(ascii_shop.store, "copié", "copy", reason="why", who="ada")
    with pytest.raises(NameInvalidError, match="new context"):
        rename_context(ascii_shop.store, "copy", "raw", "données", reason="why", who="ada")


def test_job_that_has_a_name_outside_of_ascii_from_before_goes_on_under_names_of_ascii(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    shop.put("a.txt", "a")
    shop.run("vylet_č")
    monkeypatch.setattr(shop.store, "ascii_names", True)
    caplog.set_level(logging.WARNING)
    shop.put("b.txt", "b")
    shop.run("vylet_č")
    assert shop.store.head("vylet_č").run_number == 2
    assert "names=ascii" in caplog.text


def test_names_of_ascii_are_what_the_address_says_and_off_without_a_word() -> None:
    assert open_store("sqlite:///:memory:?create=true&names=ascii").ascii_names
    assert not open_store("sqlite:///:memory:?create=true").ascii_names


def test_names_of_ascii_are_kept_by_the_page_too(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = '{"conn_type": "bookmarks", "extra": {"store": "dynamodb://bookmarks?region=eu-west-1", "names": "ascii"}}'
    monkeypatch.setenv("AIRFLOW_CONN_BOOKMARKS_DEFAULT", fields)
    store = PageHook("bookmarks_default").open_store()
    store.table.close()
    assert store.ascii_names
