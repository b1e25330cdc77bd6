"""Promises of touched files and of sequences under any history, against plain sets that are kept apart from the ledger.

A history is a sequence of listings of a store with etags: files that come, go, are written anew, or get another time
alone. Each is planned from where the one before left the context.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_bookmarks.core.selection.listing import FileInfo, Listing
from airflow_bookmarks.core.selection.sequence import rank_of
from airflow_bookmarks.files.filesystem import Listed
from airflow_bookmarks.files.local import LocalFileSystem
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.sources.source import PlanInput

ROOT = "/raw"
Version: TypeAlias = tuple[str, int]  # etag, second

_VERSIONS = st.tuples(st.sampled_from("xyz"), st.integers(1, 3))
HISTORIES = st.lists(st.dictionaries(st.integers(0, 12), _VERSIONS), min_size=1, max_size=6)


class Store(LocalFileSystem):
    """Lists what it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.there: Mapping[int, Version] = {}

    def list(self, root: str, **_: Any) -> Listed:
        files = (FileInfo(f"{ROOT}/part-{n}", 1, 1000 * at, etag) for n, (etag, at) in self.there.items())
        return Listed(Listing.of(files), {})


@dataclass
class Reader:
    """A context that plans again and again, and commits each plan."""

    options: FileOptions
    store: Store = field(default_factory=Store)
    found: PlanInput = field(default_factory=PlanInput)
    skipped: Mapping[str, int] = field(default_factory=dict)
    known: int = 0
    blobs: dict[str, bytes] = field(default_factory=dict)

    def read(self, there: Mapping[int, Version]) -> Sequence[int]:
        """Return the numbers of the files that are read of what is there now, in order."""
        self.store.there = there
        source = FileSource(self.store, [ROOT], self.options)
        plan = source.plan(self.found)
        self.skipped, self.known = plan.skipped, plan.known
        position = source.advance(plan)
        if position is not None:
            self.blobs |= position.blobs
            self.found = PlanInput(
                position.body,
                lambda names: {name: self.blobs[name] for name in names},
                watermark=position.watermark,
                stats=plan.stats(),
            )
        return [int(path.rpartition("-")[2]) for path in plan.files.paths]


@settings(deadline=None)  # no timed assertions
@given(HISTORIES)
def test_file_is_read_again_by_its_etag_alone_and_what_was_touched_is_counted(
    history: list[dict[int, Version]],
) -> None:
    reader = Reader(FileOptions())
    last: dict[int, Version] = {}
    for there in history:
        expected = {n for n, (etag, _) in there.items() if n not in last or last[n][0] != etag}
        touched = {n for n, version in there.items() if n not in expected and last[n] != version}
        assert set(reader.read(there)) == expected
        assert reader.skipped.get("touched", 0) == len(touched)
        assert reader.known == len(there) - len(expected) - len(touched)
        last |= {n: there[n] for n in expected}


@settings(deadline=None)  # no timed assertions
@given(HISTORIES)
def test_file_is_read_again_by_its_etag_or_time_where_asked(history: list[dict[int, Version]]) -> None:
    reader = Reader(FileOptions(on_touch="reprocess"))
    last: dict[int, Version] = {}
    for there in history:
        expected = {n for n, version in there.items() if last.get(n) != version}
        assert set(reader.read(there)) == expected
        assert reader.known == len(there) - len(expected)
        last |= there


@settings(deadline=None)  # no timed assertions
@given(HISTORIES, st.sampled_from([None, "ignore", "reprocess"]))
def test_sequence_orders_each_run_and_its_watermark_and_gaps_are_those_of_all_that_was_seen(
    history: list[dict[int, Version]], on_touch: Any
) -> None:
    reader = Reader(FileOptions(sequence=r"part-(?P<n>\d+)", on_touch=on_touch))
    plain = Reader(FileOptions(on_touch=on_touch))
    seen: set[int] = set()
    for there in history:
        read = reader.read(there)
        assert read == sorted(plain.read(there))
        seen |= there.keys()
        if seen:
            assert reader.found.watermark == str(max(seen, key=lambda n: rank_of(str(n))))
            gaps = reader.found.stats["gaps"]
            assert gaps["missing"] == max(seen) - min(seen) + 1 - len(seen)
