"""Promise DEP-4: a consumer of one output of several meets runs that did not write it, and goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_bookmarks.core.errors import OptionError, SourceError, SourceSwitchedError
from airflow_bookmarks.lifecycle.changes.change import reset
from airflow_bookmarks.sinks.staging import Mode, StagingRequest, collect_staged
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.sources.source import PlanInput
from airflow_bookmarks.sources.upstream.source import UpstreamSource
from tests.aborting import aborted_on_error
from tests.lifecycle.shop import FILES, Shop


def published(shop: Shop, name: str, *outputs: str) -> None:
    """Make one run of the upstream, which reads one file and writes it to these outputs."""
    shop.put(f"{name}.txt", name)
    run = shop.begin("up")
    run.plan("raw", FileSource(FILES, [str(shop.raw)]))
    for output in outputs:
        target = str(shop.root / output)
        folder = Path(run.place(output, StagingRequest("files", target)))
        folder.mkdir(parents=True)
        (folder / "part-0.txt").write_text(name)
        run.staged(
            output,
            collect_staged(FILES, str(folder), target, run.file_token, Mode.APPEND, rows=1, schema='{"fields":[]}'),
        )
    run.commit()


def consumed(shop: Shop, output: str | None) -> list[str]:
    """Make one run of the consumer; return what it read."""
    run = shop.begin("down")
    with aborted_on_error(run):
        plan = run.plan("up", UpstreamSource(shop.store, "down", "up", output=output))
    run.commit()
    return sorted(Path(path).read_text() for path in plan.files.paths)


def test_output_that_this_window_did_not_write_is_an_empty_increment(shop: Shop) -> None:
    published(shop, "a", "clean", "errors")
    assert consumed(shop, "errors") == ["a"]
    published(shop, "b", "clean")
    assert consumed(shop, "errors") == []
    published(shop, "c", "clean", "errors")
    assert consumed(shop, "errors") == ["c"]
    edge = shop.store.edge("up", "down")
    assert edge is not None
    assert edge.run_number == 3


def test_consumer_that_begins_behind_the_only_run_with_its_output_goes_on(shop: Shop) -> None:
    published(shop, "a", "clean", "errors")
    reset(shop.store, "up", reason="a test", who="me")
    published(shop, "b", "clean")
    assert consumed(shop, "errors") == []


def test_output_that_no_run_ever_had_is_an_error(shop: Shop) -> None:
    published(shop, "a", "clean")
    published(shop, "b", "errors")
    with pytest.raises(
        OptionError, match=r"no run of upstream 'up' ever wrote an output 'error'; .*\['clean', 'errors'\]"
    ):
        consumed(shop, "error")
    assert shop.store.edge("up", "down") is None


def test_output_that_was_renamed_under_an_unnamed_consumer_is_still_an_error(shop: Shop) -> None:
    published(shop, "a", "clean")
    assert consumed(shop, None) == ["a"]
    published(shop, "b", "cleaned")
    with pytest.raises(SourceSwitchedError):
        consumed(shop, None)


def test_output_stored_without_a_format_is_refused_by_name_and_not_taken_for_another_format(shop: Shop) -> None:
    published(shop, "a", "clean")
    source = UpstreamSource(shop.store, "down", "up")
    entry = source.entry_of(source.plan(PlanInput()))
    assert entry is not None
    with pytest.raises(SourceError, match=r"'up' has stored no format with its output in .*clean.* Give \.format"):
        source.format_of(entry)
