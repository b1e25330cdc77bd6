"""Plans that name their files, with the version of each: of folders, and of what another job has published."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from airflow_bookmarks.core.amount import FILES, Amount
from airflow_bookmarks.core.errors import StateCorruptError
from airflow_bookmarks.core.files.columns import columns_of, listing_of, listing_of_parts, page_of_parts, texts
from airflow_bookmarks.core.files.listed_partitions import ListedPartitions, union_of
from airflow_bookmarks.core.ledger.quarantine import Quarantine, QuarantinedFile
from airflow_bookmarks.core.plan import PlanPart, UpstreamWindow
from airflow_bookmarks.core.selection.listing import FileInfo, Listing
from airflow_bookmarks.core.selection.reason import BEFORE_START, MISSING, OVER_BOUND
from airflow_bookmarks.core.selection.sequence import SequenceStart
from airflow_bookmarks.core.text.count import READ_AGAIN
from airflow_bookmarks.core.text.deflated import deflated, inflated, packed_parts, parts_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_bookmarks.core.ledger.seen import SeenRanges

PART_FILES = 10_000  # a plan of more files is stored in parts of so many

_FORMAT = 1
_PARTED_FORMAT = 2


@dataclass(frozen=True, slots=True)
class PartitionCounts:
    """How many partitions a listing saw, how many were pruned before it, and the folders with nothing to read."""

    listed: int
    skipped: tuple[str, ...] = ()
    pruned: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class FilePlan:
    """The files that a run reads from one context, with the version of each.

    A plan of any kind that names its files is one. What needs the names asks for this type, and not for a kind: a
    manifest, a preview of what is never read, a plan of which a part is left to the next run.

    `roots` are the listed folders or files (`basePath` of partitioned data, unless `bases` names others: the folders
    that a pattern found); `listed` counts the files seen, `known` those read before;
    `skipped` counts by reason what is neither known nor planned (hidden, late, missing, ...).
    `partition_types` gives the settled Spark type of each partition column; `partitions` what was listed of them (for
    log and metrics; not stored with the plan). `unread` names, for some of the reasons of `skipped`, the files.
    `sequence` is by what the files are ordered, where that is not their time; `seen` what was ever listed of a sequence
    or of a column of days, where gaps are looked for (among the stats; not stored with the plan). `quarantined` are
    files that this run found it can't parse. `again` names the planned files that were read before, and `companions`
    those of them that are as they were: they are read because something else of their group is new or changed.
    `in_groups` says that files are read in groups, each of which replaces what was made of it before. `part` is the
    partition whose files they are, where each is read by itself. `listed_partitions` are those that a catalog has
    listed, where it has: their values are not in the names of folders.
    """

    files: Listing
    roots: tuple[str, ...]
    listed: int
    known: int
    skipped: Mapping[str, int] = field(default_factory=dict)
    partition_types: Mapping[str, str] = field(default_factory=dict)
    partitions: PartitionCounts | None = None
    unread: Mapping[str, Listing] = field(default_factory=dict)
    sequence: SequenceStart | None = None
    seen: SeenRanges | None = None
    quarantined: tuple[QuarantinedFile, ...] = ()
    bases: tuple[str, ...] = ()
    again: frozenset[str] = frozenset()
    companions: frozenset[str] = frozenset()
    in_groups: bool = False
    part: PlanPart | None = None
    listed_partitions: ListedPartitions | None = None

    def __len__(self) -> int:
        return len(self.files)

    @property
    def read_below(self) -> tuple[str, ...]:
        """The folders or files as which Spark reads the plan: partitions are what lies below them."""
        return self.bases or self.roots

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to read."""
        return len(self.files) == 0

    @property
    def read_again(self) -> int:
        """How many of the files were read before."""
        return sum(path in self.again for path in self.files.paths) if self.again else 0

    @property
    def replaced_unread(self) -> Listing:
        """The files of groups that were read before and in the end not by this run, so that their rows are gone."""
        if not self.in_groups:
            return Listing.of([])
        held = (FileInfo(each.path, each.size_bytes, each.modified_ms) for each in self.quarantined)
        left = chain(self.unread.get(MISSING, ()), held)
        return Listing.of(file for file in left if file.path in self.again)

    @property
    def missing(self) -> int | None:
        """How many numbers or days are missing between the first and the last; None: nobody looks for them."""
        return None if self.seen is None else self.seen.missing

    @property
    def sequence_watermark(self) -> str | None:
        """The watermark once this plan is read; None where the files have no sequence, or no value was seen yet."""
        if self.sequence is None:
            return None
        passed = [files for reason, files in self.unread.items() if reason == BEFORE_START]  # counts as read
        return self.sequence.after(self.roots, self.files, *passed)

    @property
    def edge(self) -> UpstreamWindow | None:
        """The runs of another job that the plan covers; None if it reads no job."""
        return None

    @property
    def has_more(self) -> bool:
        """Whether a bound left something to the next run."""
        return bool(self.skipped.get(OVER_BOUND))

    @property
    def amount(self) -> Amount:
        """How much there is to read."""
        return Amount(FILES, len(self.files), self.files.total_bytes)

    def summary(self) -> str:
        """Return what a run will read of how much, as one line for a log."""
        share = 100.0 * len(self.files) / self.listed if self.listed else 0.0
        up = self.edge
        window = "" if up is None else f" of {up.job} runs ({up.after}, {up.until}] in epoch {up.epoch}"
        again = f", {count} read again" if (count := self.read_again) else ""
        left = "".join(f", {count} {reason}" for reason, count in sorted(self.skipped.items()))
        return (
            f"processing {len(self.files)} of {self.listed} files ({share:.2f}%), {self.files.total_bytes} bytes"
            f"{window}; {self.known} known{again}{left}"
        )

    def with_partition_types(self, types: Mapping[str, str]) -> FilePlan:
        """Return the same plan with other partition types."""
        return replace(self, partition_types=dict(types))

    def stats(self) -> dict[str, Any]:
        """Return what a person wants to know of it: plain JSON values."""
        stats: dict[str, Any] = {
            "files": len(self.files),
            "bytes": self.files.total_bytes,
            "listed": self.listed,
            "known": self.known,
            "skipped": dict(self.skipped),
            READ_AGAIN: self.read_again,
        }
        if self.partition_types:
            stats["partition_types"] = dict(self.partition_types)
        if self.partitions is not None:
            counts = self.partitions
            stats["partitions"] = {
                "listed": counts.listed,
                "pruned": counts.pruned,
                "skipped": len(counts.skipped),
            }
        if self.seen is not None:
            stats["gaps"] = self.seen.stats()
        if self.part is not None:
            stats["part"] = str(self.part)
        if self.quarantined:
            stats["quarantined"] = len(self.quarantined)
        return stats

    def encode(self) -> bytes:
        """Return the plan as stored: a JSON document, deflated.

        Layout (format 1): `v`, `roots`, `listed`, `known`, `skipped`, `partition_types`, `upstream` or null, `base`
        (the longest common prefix of the paths), and the columns `path` (rest after base), `size`, `time` (ms), `etag`
        or null. `unread` holds, where there are any, per reason the same five (from `base`) of files that are not read;
        `sequence`, where there is one, its `rule` and the watermark `before`, or null; `quarantined`, where there are
        any, per file path, version, size, time (ms), error and run number; `bases`, where there are any;
        `listed_partitions`, where a catalog has listed them, by columns; `again` and
        `companions`, where there are any, as rows of the files; `part`, where there is one, its column and value;
        `in_groups`, where it is so, and then `again_left`, the names of files that were read before and that this plan
        leaves out in the end.

        Of more than `PART_FILES` files the columns are left out, and follow in parts (format 2), each deflated by
        itself, so that a page of them is read without the others. A small document before them has `v`, how many
        `files` each part has, and the `sizes` of the rest and of the parts in bytes.
        """
        document: dict[str, Any] = {
            "v": _FORMAT,
            "roots": list(self.roots),
            "listed": self.listed,
            "known": self.known,
            "skipped": dict(self.skipped),
            "partition_types": dict(self.partition_types),
            "upstream": _window_document(self.edge),
        }
        if len(self.files) <= PART_FILES:
            document |= columns_of(self.files)
        if self.unread:
            document["unread"] = {reason: columns_of(files) for reason, files in self.unread.items()}
        if self.bases:
            document["bases"] = list(self.bases)
        for name, paths in (("again", self.again), ("companions", self.companions)):
            rows = [row for row, path in enumerate(self.files.paths) if path in paths] if paths else []
            if rows:
                document[name] = rows
        if self.part is not None:
            document["part"] = [self.part.column, self.part.value]
        if self.in_groups:
            document["in_groups"] = True
            if len(left := self.replaced_unread):
                document["again_left"] = list(left.paths)
        if self.listed_partitions is not None:
            document["listed_partitions"] = self.listed_partitions.document()
        if self.quarantined:
            document["quarantined"] = Quarantine().add(self.quarantined).rows()
        if self.sequence is not None:
            document["sequence"] = {"rule": self.sequence.rule, "before": self.sequence.before}
        if len(self.files) <= PART_FILES:
            return deflated(document)
        starts = range(0, len(self.files), PART_FILES)
        parts = [self.files.take(np.arange(at, min(at + PART_FILES, len(self.files)))) for at in starts]
        index = {"v": _PARTED_FORMAT, "files": [len(part) for part in parts]}
        return packed_parts(index, [deflated(document), *(deflated(columns_of(part)) for part in parts)])

    @classmethod
    def decode(cls, body: bytes) -> FilePlan:
        """Return the plan that `encode` wrote.

        Raises:
            StateCorruptError: it is not such a plan, or of a newer format.
        """
        return _decoded(body)[0]

    @classmethod
    def page(cls, body: bytes, offset: int, limit: int) -> tuple[int, Listing]:
        """Return how many files a stored plan has, and some of them, with no more of it unpacked than they lie in.

        Raises:
            StateCorruptError: it is no plan, or of a newer format.
        """
        parted = parts_of(body, "plan")
        if parted is None:
            files = cls.decode(body).files
            return len(files), files.take(np.arange(min(offset, len(files)), min(offset + limit, len(files))))
        return page_of_parts(parted, offset, limit)


@dataclass(frozen=True, slots=True, eq=False)
class UpstreamPlan(FilePlan):
    """The files that a run reads of what another job has published, and which of its runs these are of."""

    window: UpstreamWindow = field(kw_only=True)

    @classmethod
    def of(cls, plan: FilePlan, window: UpstreamWindow) -> UpstreamPlan:
        """Return a plan of files as that of a window."""
        return cls(**{each.name: getattr(plan, each.name) for each in fields(FilePlan)}, window=window)

    @property
    def edge(self) -> UpstreamWindow:
        """Which runs of the other job the plan covers."""
        return self.window

    def stats(self) -> dict[str, Any]:
        """Return what a person wants to know of it: plain JSON values."""
        up = self.window
        window = {"job": up.job, "output": up.output, "after": up.after, "until": up.until, "epoch": up.epoch,
                  "changes": up.changes, "runs": [n for n, _ in up.runs], "replaced": up.replaced}  # fmt: skip
        return {**FilePlan.stats(self), "upstream": window}

    @classmethod
    def decode(cls, body: bytes) -> UpstreamPlan:
        """Return the plan that `encode` wrote.

        Raises:
            StateCorruptError: it is not such a plan, or of a newer format.
        """
        plan, window = _decoded(body)
        if window is None:
            raise StateCorruptError("a stored plan of an upstream does not say which job it reads; nothing was changed")
        return cls.of(plan, window)


def union(plans: Sequence[FilePlan]) -> FilePlan:
    """Return one plan that reads what `plans` read, each file in its newest planned version once."""
    newest: dict[str, tuple[int, int]] = {}
    for i, plan in enumerate(plans):
        for j, path in enumerate(plan.files.paths):
            newest[path] = (i, j)
    picked = [plans[i].files.file(j) for i, j in sorted(newest.values())]
    types: dict[str, str] = {}
    for plan in plans:
        types |= plan.partition_types
    roots = tuple(dict.fromkeys(root for plan in plans for root in plan.roots))
    bases = tuple(dict.fromkeys(base for plan in plans for base in plan.read_below))
    has_bases = any(plan.bases for plan in plans)
    return FilePlan(
        Listing.of(picked),
        roots,
        len(picked),
        0,
        {},
        types,
        bases=bases if has_bases else (),
        listed_partitions=union_of(plan.listed_partitions for plan in plans),
    )


def _decoded(body: bytes) -> tuple[FilePlan, UpstreamWindow | None]:
    """Return a stored plan of files, with its window of another job if it has one."""
    try:
        parted = parts_of(body, "plan")
        document = inflated(body if parted is None else parted[1][0], "plan")
        if document["v"] != _FORMAT:
            raise StateCorruptError(
                f"a stored plan has format {document['v']}, this version knows {_FORMAT} and {_PARTED_FORMAT}; upgrade"
            )
        window, sequence = document["upstream"], document.get("sequence")
        _check_counts(document["listed"], document["known"], *document["skipped"].values())
        texts(list(document["partition_types"].values()))
        files = listing_of(document) if parted is None else listing_of_parts(parted)
        plan = FilePlan(
            files,
            tuple(texts(document["roots"])),
            document["listed"],
            document["known"],
            document["skipped"],
            document["partition_types"],
            unread={reason: listing_of(files) for reason, files in document.get("unread", {}).items()},
            sequence=None if sequence is None else _sequence(sequence),
            quarantined=tuple(Quarantine.parse(document.get("quarantined", ()))),
            bases=tuple(texts(document.get("bases", []))),
            again=frozenset(
                [*(files.paths[row] for row in document.get("again", ())), *texts(document.get("again_left", []))]
            ),
            companions=frozenset(files.paths[row] for row in document.get("companions", ())),
            in_groups=bool(document.get("in_groups", False)),
            part=PlanPart(*document["part"]) if "part" in document else None,
            listed_partitions=(
                ListedPartitions.of_document(document["listed_partitions"]) if "listed_partitions" in document else None
            ),
        )
        return plan, None if window is None else _window(window)
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        raise StateCorruptError(f"a stored plan can't be read ({error}); nothing was changed") from error


def _check_counts(*values: object) -> None:
    if not all(isinstance(value, int) for value in values):
        raise TypeError("what should be a number is something else")


def _sequence(document: Mapping[str, Any]) -> SequenceStart:
    start = SequenceStart(**document)
    texts([start.rule])
    texts([start.before], or_none=True)
    return start


def _window_document(window: UpstreamWindow | None) -> dict[str, Any] | None:
    if window is None:
        return None
    return {"job": window.job, "output": window.output, "after": window.after, "until": window.until,
            "epoch": window.epoch, "changes": window.changes, "runs": [list(r) for r in window.runs],
            "replaced": window.replaced}  # fmt: skip


def _window(document: Mapping[str, Any]) -> UpstreamWindow:
    window = UpstreamWindow(**{**document, "runs": tuple((n, r) for n, r in document["runs"])})
    texts([window.job, window.output])
    _check_counts(
        window.after, window.until, window.epoch, window.changes, window.replaced, *chain.from_iterable(window.runs)
    )
    return window
