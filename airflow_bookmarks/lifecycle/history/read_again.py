"""Count how much input the next runs read again, each file once however many runs have read it."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import BookmarkError, StateCorruptError
from airflow_bookmarks.lifecycle.protocol.cleanup import shows_nothing
from airflow_bookmarks.lifecycle.protocol.publish import stored_output
from airflow_bookmarks.sinks.registry import SINKS
from airflow_bookmarks.sources.registry import files_in

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from airflow_bookmarks.core.head import Head
    from airflow_bookmarks.core.run import OutputEntry, Run
    from airflow_bookmarks.sinks.sink import StoredOutput
    from airflow_bookmarks.store.bookmark_store import BookmarkStore

log = logging.getLogger(__name__)


def input_of(
    store: BookmarkStore, runs: Iterable[Run], names_in: Callable[[Run], Collection[str]] | None
) -> Sequence[Mapping[str, Any]]:
    """Return the total files, bytes and rows of what runs read, in the shape of what a run measured.

    `names_in` returns which contexts count, as a run calls them; None: all.

    A file that several of them read counts once, with its newest version and unknown rows. Where a stored plan can no
    longer be read, the counts that its run measured are used.
    """
    sizes: dict[tuple[str, str], int] = {}
    rows: list[Any] = []
    unlisted: list[Mapping[str, Any]] = []
    listed = 0
    for run in runs:
        names = None if names_in is None else names_in(run)
        for ctx, figures in dict(run.metrics.get("contexts", {})).items():
            if names is not None and ctx not in names:
                continue
            try:
                files = files_in(run.plans[ctx].kind, store.blobs.get(run.plans[ctx].body))
            except (KeyError, StateCorruptError):
                files = None
            if files is None:
                unlisted.append(figures)
                continue
            sizes |= {(ctx, file.path): file.size_bytes for file in files}
            listed += len(files)
            rows.append(figures.get("rows"))
    is_counted = listed == len(sizes) and all(isinstance(each, int) for each in rows)
    return [*unlisted, {"files": len(sizes), "bytes": sum(sizes.values()), "rows": sum(rows) if is_counted else None}]


def names_in(run: Run, head: Head, contexts: Iterable[str]) -> set[str]:
    """Return the run's names of the job's present contexts: the same, or a former one over the same source."""
    names: set[str] = set()
    for ctx in contexts:
        state = head.contexts.get(ctx)
        if ctx in run.plans or state is None:
            names.add(ctx)
            continue
        same = {name for name, e in run.plans.items() if (e.kind, e.fingerprint) == (state.kind, state.fingerprint)}
        names |= {name for name in (*same, state.planned_as(ctx)) if name in run.plans and name not in head.contexts}
    return names


@dataclass(frozen=True, slots=True)
class TargetsTwice:
    """The targets that would hold rows twice if those of some runs were written again, by name.

    Not those that hold such rows once (`Sink.holds_rows_once`), nor those to which a run never got with its publish.
    Of the `unknown` ones nobody here can tell whether a run got there: they are among `targets` as well.
    """

    targets: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def targets_twice(store: BookmarkStore, job: str, runs: Iterable[Run]) -> TargetsTwice:
    """Return the targets that would hold rows twice if those of some runs were written again."""
    surely, maybe = set[str](), set[str]()
    for run in runs:
        for name in run.outputs:
            output = stored_output(store, job, run, name)
            would_be = _would_be_twice(store, output)
            if would_be is not False:
                (maybe if would_be is None else surely).add(output.entry.target)
    return TargetsTwice(tuple(sorted(surely | maybe)), tuple(sorted(maybe - surely)))


def _would_be_twice(store: BookmarkStore, output: StoredOutput) -> bool | None:
    """Whether rows of an output would be twice; None: that is not known."""
    if not _has_written(output.run, output.entry) or SINKS.holds_rows_once(output.entry):
        return False
    try:
        return not shows_nothing(output, store.databases)
    except (BookmarkError, OSError) as error:
        log.warning(
            "bookmark: whether %s was published is not known, so the preview counts it as published: %s", output, error
        )
        return None


def _has_written(run: Run, output: OutputEntry) -> bool:
    if output.lies_in_files:
        return output.publish is not None and output.metadata.files != 0
    return output.makes_visible and not run.is_empty
