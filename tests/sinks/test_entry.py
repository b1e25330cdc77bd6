"""Output entries of a commit, built from what was staged: no store, no file system."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_bookmarks.core.files.file_list import decode_moves, decode_paths
from airflow_bookmarks.core.run import OutputEntry, Payload
from airflow_bookmarks.sinks.entry import discarded_entry, landed_entry, published_entry
from airflow_bookmarks.sinks.staging import Staged

ENTRY = OutputEntry("files", "/clean", "/clean/_staging/out", {"mode": "append"})
STAGED = Staged([("/clean/_staging/out/a", "/clean/run-1.1-a")], ["/clean/run-0.1-a"], rows=2, bytes=7, schema="{}")


def inline(bodies: Mapping[str, bytes]) -> Mapping[str, Payload]:
    return {name: Payload("0" * 64, len(body), inline=body) for name, body in bodies.items()}


def body_of(payload: Payload | None) -> bytes:
    assert payload is not None
    assert payload.inline is not None
    return payload.inline


def test_published_output_refers_to_its_lists_and_counts_what_is_visible() -> None:
    entry = published_entry(ENTRY, STAGED, STAGED.deletes, inline, {"replaced_files": 1})

    assert list(decode_moves(body_of(entry.publish))) == list(STAGED.moves)
    assert list(decode_paths(body_of(entry.delete))) == list(STAGED.deletes)
    assert body_of(entry.schema) == b"{}"
    assert entry.stats == {"mode": "append", "rows": 2, "files": 1, "bytes": 7, "deleted_files": 1, "replaced_files": 1}


def test_output_that_deletes_nothing_has_no_such_list_and_that_of_a_replay_an_empty_one() -> None:
    without, empty = published_entry(ENTRY, STAGED, None, inline), published_entry(ENTRY, STAGED, [], inline)

    assert without.delete is None
    assert list(decode_paths(body_of(empty.delete))) == []
    assert without.stats == empty.stats


def test_discarded_output_has_no_lists_and_counts_what_is_not_visible() -> None:
    entry = discarded_entry(ENTRY, STAGED)

    assert (entry.publish, entry.delete, entry.schema) == (None, None, None)
    assert (entry.stats["rows"], entry.stats["discarded_rows"], entry.stats["discarded_files"]) == (0, 2, 1)


def test_output_of_a_sink_that_commits_by_itself_has_its_rows_alone() -> None:
    entry = landed_entry(OutputEntry("rows", "/db", "", commits_by_itself=True), Staged((), rows=3))

    assert entry.stats == {"rows": 3}
    assert entry.publish is None
