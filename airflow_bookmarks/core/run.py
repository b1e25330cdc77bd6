"""Runs, and the executions that make them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.job_state import STATE_KIND
from airflow_bookmarks.core.metadata.file_plan import FilePlanMetadata, ListedMetadata
from airflow_bookmarks.core.metadata.output import OutputMetadata
from airflow_bookmarks.core.metadata.plan import MeasuredRead, PlanMetadata

if TYPE_CHECKING:
    from collections.abc import Mapping


class RunState(StrEnum):
    """The state of a run. UNDONE is not stored: a run is undone when the living line leaves it out."""

    PLANNED = "PLANNED"
    FAILED = "FAILED"
    COMMITTED = "COMMITTED"
    PUBLISHED = "PUBLISHED"
    ABANDONED = "ABANDONED"

    @property
    def is_open(self) -> bool:
        """Whether the next begin has to settle it."""
        return self in (RunState.PLANNED, RunState.FAILED)

    @property
    def is_committed(self) -> bool:
        """Whether its plans are part of a bookmark."""
        return self in (RunState.COMMITTED, RunState.PUBLISHED)


@dataclass(frozen=True, slots=True, order=True)
class RunKey:
    """One run item: a run number, and the fence under which it was planned. Attempts that failed share the number."""

    number: int
    fence: int

    def __str__(self) -> str:
        return f"{self.number}.{self.fence}"

    @classmethod
    def parse(cls, text: str) -> RunKey:
        """Return the key that `str` wrote.

        Example:
            >>> RunKey.parse("3.7")
            RunKey(number=3, fence=7)
        """
        number, _, fence = text.partition(".")
        return cls(int(number), int(fence))


@dataclass(frozen=True, slots=True)
class Payload:
    """Bytes kept with an item: inline when small, else as a blob named by its content hash.

    `sha256` is the hex digest of the bytes in both cases; exactly one of `inline` and `chunks` is set.
    """

    sha256: str
    size_bytes: int
    inline: bytes | None = None
    chunks: int | None = None


@dataclass(frozen=True, slots=True)
class SourceRef:
    """One source: its kind, and its name within that kind, readable and without secrets.

    Its text is the fingerprint that contexts and plans store.
    """

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"

    @classmethod
    def of(cls, kind: str, fingerprint: str) -> SourceRef:
        """Return the source of a kind that has this fingerprint; that of a user's own kind may be any text."""
        return cls(kind, fingerprint.removeprefix(f"{kind}:"))

    @classmethod
    def parse(cls, text: str) -> SourceRef | None:
        """Return the source that `str` wrote; None for a text without a kind.

        Example:
            >>> SourceRef.parse("files:s3a://lake/raw"), SourceRef.parse("copy")
            (SourceRef(kind='files', name='s3a://lake/raw'), None)
        """
        kind, sign, name = text.partition(":")
        return cls(kind, name) if sign else None


@dataclass(frozen=True, slots=True)
class PlanEntry:
    """The stored plan of one context: the kind of source, what it will read (`body`), and what is told of it.

    `stats` are stored as the attribute `facts`, byte for byte. What code decides on among them is `metadata`, and of a
    plan of files `file_metadata`; the rest is for people, or what a kind of a user's own reads back itself.
    """

    kind: str
    body: Payload
    stats: Mapping[str, Any]
    fingerprint: str

    @property
    def metadata(self) -> PlanMetadata:
        """What code decides on among what is stored with it, whatever its kind."""
        return PlanMetadata.of_stats(self.stats)

    @property
    def file_metadata(self) -> FilePlanMetadata:
        """What code decides on besides if it is a plan of files."""
        return FilePlanMetadata.of_stats(self.stats)

    @property
    def listed_metadata(self) -> ListedMetadata:
        """What its listing saw, if it is a plan of files."""
        return ListedMetadata.of_stats(self.stats)

    @property
    def source(self) -> SourceRef:
        """The source that it was planned from."""
        return SourceRef.of(self.kind, self.fingerprint)


FILES_SINK = "files"  # the kind of sink whose outputs are lists of files; asked by properties of an entry alone


@dataclass(frozen=True, slots=True)
class OutputEntry:
    """One output of a run: where it is staged and what becomes of it.

    `stats` are stored as the attribute `facts`, byte for byte. What code decides on among them is `metadata`; the rest
    is for people. `place` names where it is staged, in the words of its sink; empty where nothing is.
    `commits_by_itself` means that there is nothing to publish.

    `publish`, `delete` and `schema` are known from the commit on, of an output that lies in files: encoded lists of
    (staged file, published file), and of files that the publish removes after that; the JSON of the Spark schema that
    was written. After a replay, which deletes the run's own former files, `replaced` is what the run itself had
    deleted. Of any other sink that stages, `is_left_out` says that the commit has decided against its publish.
    """

    sink: str
    target: str
    place: str
    stats: Mapping[str, Any] = field(default_factory=dict)
    publish: Payload | None = None
    delete: Payload | None = None
    schema: Payload | None = None
    replaced: Payload | None = None
    commits_by_itself: bool = False
    is_left_out: bool = False

    @property
    def metadata(self) -> OutputMetadata:
        """What code decides on among what is stored with it."""
        return OutputMetadata.of_stats(self.stats)

    @property
    def is_staged(self) -> bool:
        """Whether nothing of it is visible before its publish, which comes after the commit and can be repeated."""
        return not self.commits_by_itself

    @property
    def lies_in_files(self) -> bool:
        """Whether it is made visible as files that its publish list names. Of any other, its sink alone knows more."""
        return self.sink == FILES_SINK

    @property
    def makes_visible(self) -> bool:
        """Whether a committed run makes anything of it visible, or its sink has done so already."""
        return self.publish is not None if self.lies_in_files else not self.is_left_out


@dataclass(frozen=True, slots=True)
class StateEntry:
    """`job.state` as an open run left it, before a sink that commits by itself wrote: for a run that takes it over.

    `starts_from` names the position from which the run read it; None: there was none.
    """

    starts_from: str | None
    values: Payload


@dataclass(frozen=True, slots=True)
class ContextState:
    """Where one context stands after a run: what a person can compare, and which item holds its position.

    That is the item of `run`, the last one that moved it; or, after a set, the line that began with epoch `set_in`.
    The watermark is the greatest value of `watermark_column`; None: the one that its kind of source tells. `moves` are
    the roots that moved since `run` planned the context, each from where to where; `named` is the name under which it
    did, where the context has another one since (None: the same). `order` is the name of the order of the watermark, as
    `core.order.order_of` reads it; None: it was stored before contexts had one, or no watermark was known. `artifacts`
    are the URIs of the folders that belong to the position.

    For people alone: `set_aside` is how many files are in quarantine at the position, `missing` how many numbers or
    days the run that listed it last found missing between the first and the last. None: its kind has none, nobody looks
    for them, or the state is of a version that did not store them here.
    """

    kind: str
    fingerprint: str
    run: RunKey
    watermark: str | None = None
    set_in: int | None = None
    watermark_column: str | None = None
    moves: tuple[tuple[str, str], ...] = ()
    named: str | None = None
    order: str | None = None
    artifacts: tuple[str, ...] = ()
    set_aside: int | None = field(default=None, compare=False)
    missing: int | None = field(default=None, compare=False)

    @property
    def source(self) -> SourceRef:
        """The source that the context reads."""
        return SourceRef.of(self.kind, self.fingerprint)

    def planned_as(self, ctx: str) -> str:
        """Return under which name `run` has the plan and the schema of the context `ctx`."""
        return self.named or ctx


def watermarks(contexts: Mapping[str, ContextState]) -> dict[str, str | None]:
    """Return the watermark of each context that reads something; `job.state` has none."""
    return {ctx: state.watermark for ctx, state in contexts.items() if state.kind != STATE_KIND}


def orders(contexts: Mapping[str, ContextState]) -> dict[str, str | None]:
    """Return the name of the order of each watermark that `watermarks` returns; None: none is stored."""
    return {ctx: state.order for ctx, state in contexts.items() if state.kind != STATE_KIND}


def names_now(contexts: Mapping[str, ContextState]) -> dict[str, str]:
    """Return the present names of contexts by those under which runs have planned them, where these are others."""
    names = {state.named: ctx for ctx, state in contexts.items() if state.named is not None}
    return {named: ctx for named, ctx in names.items() if named not in contexts}


@dataclass(frozen=True, slots=True)
class Run:
    """One run item as stored."""

    key: RunKey
    state: RunState
    epoch: int
    run_id: str
    attempt: int
    planned_at: str
    base_version: int = 0
    revision: int = 0
    changes: int = 0
    fences: tuple[int, ...] = ()
    is_last: bool = True
    is_empty: bool = False
    option: str = "enable"
    plans: Mapping[str, PlanEntry] = field(default_factory=dict)
    outputs: Mapping[str, OutputEntry] = field(default_factory=dict)
    positions: Mapping[str, Payload] = field(default_factory=dict)
    schemas: Mapping[str, Payload] = field(default_factory=dict)
    contexts: Mapping[str, ContextState] = field(default_factory=dict)
    edges: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    version: int | None = None
    data_run_number: int = 0
    committed_at: str | None = None
    published_at: str | None = None
    replayed_by: str | None = None
    error: str | None = None
    runtime_version: str | None = None
    job_state: StateEntry | None = None

    def measured(self, ctx: str) -> MeasuredRead | None:
        """Return what it has read of a context; None where it did not commit, or has not read it."""
        stats = self.metrics.get("contexts", {}).get(ctx)
        return None if stats is None else MeasuredRead.of_stats(stats)

    def all_measured(self) -> Mapping[str, MeasuredRead]:
        """Return what it has read of each context; none where it did not commit."""
        return {ctx: MeasuredRead.of_stats(stats) for ctx, stats in self.metrics.get("contexts", {}).items()}


@dataclass(frozen=True, slots=True)
class Execution:
    """What makes runs: one Airflow task instance, or one script outside Airflow. Its attempts share it.

    `is_finished` stays true while an attempt replays what it made; `replaying` then names the run, until its mark.
    `series` is that of the attempt that took the job last, as `core.job.Caller` has it.
    """

    run_id: str
    attempt: int
    killed_attempt: int = 0
    first_run: int | None = None
    last_run: int | None = None
    base_run: int = 0
    is_finished: bool = False
    replaying: int | None = None
    dag_id: str | None = None
    task_id: str | None = None
    dag_run_id: str | None = None
    logical_date: str | None = None
    series: int | None = None
    taken_nonce: str | None = None
