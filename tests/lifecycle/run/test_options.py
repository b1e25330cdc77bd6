"""Promises OPT-2 to OPT-7 and OPT-10: what enable, pause and disable do with the bookmark."""

from __future__ import annotations

import pytest

from airflow_bookmarks.core.errors import (
    JobUnknownError,
    MisuseError,
    OptionError,
    PublishError,
    RunUnknownError,
    SourceChangedError,
)
from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.files.local import LocalFileSystem
from airflow_bookmarks.lifecycle.protocol.finish import side_summary
from airflow_bookmarks.sinks.staging import Mode, StagingRequest
from airflow_bookmarks.store.table import Key
from tests.lifecycle.shop import Shop


def everything(shop: Shop, *, without: str = "SIDE#") -> dict[Key, object]:
    """Return all items of the job but its side records."""
    partition = shop.store.keys("copy").partition
    return {k: v for k, v in shop.store.table.query(partition) if not k.sk.startswith(without)}


def test_enable_reads_only_what_came_since(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.put("b.txt", "b")
    first, summary_1 = shop.run()
    shop.put("c.txt", "c")
    second, summary_2 = shop.run()
    assert sorted(first) == ["a", "b"]
    assert second == ["c"]
    assert (summary_1.version, summary_2.version) == (1, 2)


def test_disable_neither_reads_nor_writes_the_bookmark(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    before = everything(shop)
    assert shop.side_lines("disable") == ["a"]
    assert everything(shop) == before
    assert shop.run()[0] == []


def test_disable_makes_no_bookmark_where_there_is_none(shop: Shop) -> None:
    shop.put("a.txt", "a")
    assert shop.side_lines("disable") == ["a"]
    with pytest.raises(JobUnknownError):
        shop.store.head("copy")


def test_two_paused_runs_read_the_same_and_enable_reads_it_again(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    shop.put("b.txt", "b")
    before = everything(shop)
    assert shop.side_lines("pause") == ["b"]
    assert shop.side_lines("pause") == ["b"]
    assert everything(shop) == before
    assert shop.run()[0] == ["b"]


def four_runs(shop: Shop) -> None:
    for name in "abcd":
        shop.put(f"{name}.txt", name)
        shop.run(run_id=f"run-{name}")


def test_paused_window_reads_after_from_up_to_to(shop: Shop) -> None:
    four_runs(shop)
    assert sorted(shop.side_lines("pause", "run-a", "run-c")) == ["b", "c"]
    assert sorted(shop.side_lines("pause", "1", "3")) == ["b", "c"]
    assert sorted(shop.side_lines("pause", "0", "2")) == ["a", "b"]


def test_window_end_that_failed_means_the_newest_commit_before_it(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run(run_id="run-a")
    failing = shop.begin(run_id="run-fails")
    shop.copy(failing)
    failing.abort("a test")
    shop.put("b.txt", "b")
    shop.run(run_id="run-b")
    assert shop.side_lines("pause", "run-fails", "run-b") == ["b"]
    assert shop.side_lines("pause", "run-a", "run-fails") == []


def test_window_of_nothing_is_an_empty_read(shop: Shop) -> None:
    four_runs(shop)
    assert shop.side_lines("pause", "run-b", "run-b") == []


def test_window_that_names_no_run_is_an_error(shop: Shop) -> None:
    four_runs(shop)
    with pytest.raises(RunUnknownError, match="never"):
        shop.side("copy", "pause", "run-a", "never")
    with pytest.raises(RunUnknownError, match="'9'"):
        shop.side("copy", "pause", "1", "9")


def test_window_from_newer_than_to_is_an_error(shop: Shop) -> None:
    four_runs(shop)
    with pytest.raises(OptionError, match="newer"):
        shop.side("copy", "pause", "run-c", "run-a")


def test_window_needs_both_ends_and_pause(shop: Shop) -> None:
    with pytest.raises(OptionError, match="half a range"):
        shop.side("copy", "pause", "run-a", None)
    with pytest.raises(OptionError, match="half a range"):
        shop.side("copy", "pause", None, "run-a")
    with pytest.raises(OptionError, match="go with"):
        shop.side("copy", "disable", "run-a", "run-b")


@pytest.mark.parametrize("option", ["pause", "disable"])
def test_side_run_leaves_a_record_and_publishes_under_a_token_of_its_own(shop: Shop, option: str) -> None:
    shop.put("a.txt", "a")
    shop.run()
    shop.put("b.txt", "b")
    lines = shop.side_lines(option)
    (record,) = shop.store.sides("copy")
    assert record["option"] == option
    assert record["contexts"]["raw"]["files"] == len(lines)  # type: ignore[index,call-overload]
    names = {path.name.split("-")[0] for path in (shop.root / "copy").rglob("*.txt")}
    assert names == {"run", "side"}
    assert shop.staged_files() == []


def test_paused_run_goes_on_beside_an_enabled_one(shop: Shop) -> None:
    shop.put("a.txt", "a")
    enabled = shop.begin()
    shop.copy(enabled)
    assert shop.side_lines("pause") == ["a"]
    enabled.commit()
    assert shop.target_lines() == {"a": 2}
    assert shop.staged_files() == []


def test_window_over_a_version_that_is_no_longer_there_says_so_at_once(shop: Shop) -> None:
    shop.put("a.txt", "a")
    shop.run()
    shop.put("a.txt", "a", "b")
    shop.run()
    with pytest.raises(SourceChangedError, match=r"runs \[1\] read have another version now"):
        shop.side_lines("pause", "0", "1")
    assert shop.side_lines("pause", "0", "2") == ["a", "b"]
    assert shop.side_lines("pause", "1", "2") == ["a", "b"]


def test_summary_of_a_side_run_says_what_its_record_says(shop: Shop) -> None:
    shop.put("a.txt", "a", "b")
    run = shop.side("copy", "disable")
    shop.copy(run)
    run.commit()
    identity = RunIdentity(f"manual/{shop.runs_made}", 1)
    summary = side_summary(shop.store, "copy", identity, "disable")
    assert (summary.is_published, summary.run_number) == (True, None)
    assert (summary.contexts["raw"]["files"], summary.outputs["out"]["rows"]) == (1, 2)
    assert not side_summary(shop.store, "copy", RunIdentity("another", 1), "disable").is_published


# ---- side runs that fail


def deny(*_: object) -> None:
    raise PermissionError("denied")


@pytest.mark.parametrize("option", ["pause", "disable"])
def test_side_run_that_can_not_publish_leaves_nothing_staged_and_claims_no_commit(
    shop: Shop, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.put("a.txt", "a")
    run = shop.side(option=option)
    shop.copy(run)
    monkeypatch.setattr(LocalFileSystem, "move", deny)
    with pytest.raises(
        PublishError, match=rf"{option} run, output 'out': denied\. The bookmark is where it was.*{run.file_token}"
    ):
        run.commit()
    assert (shop.staged_files(), shop.target_lines(), shop.store.sides("copy")) == ([], {}, [])


def test_side_run_that_can_not_delete_what_it_replaces_says_so(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.mode = Mode.OVERWRITE
    shop.put("a.txt", "a")
    shop.run()
    run = shop.side(option="disable")
    shop.copy(run)
    monkeypatch.setattr(LocalFileSystem, "delete", deny)
    with pytest.raises(PublishError, match=r"denied\. The bookmark is where it was"):
        run.commit()
    assert shop.staged_files() == []


@pytest.mark.parametrize("ends_by", ["commit", "abort"])
def test_side_run_whose_staging_can_not_be_removed_ends_as_it_would_have(
    shop: Shop, ends_by: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    shop.put("a.txt", "a")
    run = shop.side()
    shop.copy(run)
    monkeypatch.setattr(LocalFileSystem, "remove", deny)
    if ends_by == "commit":
        assert run.commit().is_published
    else:
        run.abort("an error of the script")
    assert "what the pause run staged could not be removed: denied" in caplog.text


def test_side_run_of_which_a_read_failed_publishes_nothing(shop: Shop) -> None:
    shop.put("a.txt", "a")
    run = shop.side(option="disable")
    shop.copy(run)
    run.set_failed("raw", "OSError: no answer")
    with pytest.raises(MisuseError, match=r"not read: OSError: no answer\. Nothing was published"):
        run.commit()
    run.abort("misuse")
    assert (shop.staged_files(), shop.target_lines()) == ([], {})


def test_side_run_with_an_output_that_was_never_written_publishes_nothing(shop: Shop) -> None:
    shop.put("a.txt", "a")
    run = shop.side()
    shop.copy(run)
    run.place("more", StagingRequest("files", str(shop.root / "more")))
    with pytest.raises(MisuseError, match=r"\['more'\] were placed and not written\. Nothing was published"):
        run.commit()
    run.abort("misuse")
    assert shop.target_lines() == {}
