"""A source by kind and name, and the text under which it is stored."""

from __future__ import annotations

import pytest

from airflow_bookmarks.core.run import ContextState, RunKey, SourceRef
from airflow_bookmarks.sources.files.kind import FileKind
from airflow_bookmarks.sources.registry import upstream_in, upstream_of


@pytest.mark.parametrize(
    ("kind", "fingerprint", "name"),
    [("upstream", "upstream:copy", "copy"), ("files", "files:s3a://lake/raw", "s3a://lake/raw"), ("own", "any", "any")],
)
def test_source_of_a_context_has_the_kind_and_the_name_that_are_stored(kind: str, fingerprint: str, name: str) -> None:
    assert ContextState(kind, fingerprint, RunKey(1, 1)).source == SourceRef(kind, name)


@pytest.mark.parametrize("text", ["upstream:copy", "files:s3a://lake/raw", "files:/a,/b shard 07/64 by path"])
def test_stored_text_of_a_source_is_written_as_it_was_read(text: str) -> None:
    assert str(SourceRef.parse(text)) == text


def test_only_a_source_that_is_a_job_names_one() -> None:
    assert upstream_in("upstream:copy") == "copy"
    assert upstream_of(ContextState("upstream", "upstream:copy", RunKey(1, 1))) == "copy"
    assert [upstream_in(text) for text in ("copy", "files:/raw", "unknown:copy")] == [None, None, None]


def test_name_of_files_says_what_may_be_their_roots_unless_it_was_cut_off() -> None:
    kind = FileKind()
    assert kind.roots_of(SourceRef("files", "/a,/b/* shard 07/64 by path")) == ["/a", "/a,/b/*", "/b/*"]
    assert kind.roots_of(SourceRef("files", "/a,/b...#0123456789abcdef")) is None
