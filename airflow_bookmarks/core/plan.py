"""Plans: exactly what a run will read from one context, fixed and stored before the first byte is read."""

from __future__ import annotations

import os.path
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from airflow_bookmarks.core.amount import FILES, Amount
from airflow_bookmarks.core.errors import StateCorruptError
from airflow_bookmarks.core.ledger.quarantine import Quarantine, QuarantinedFile
from airflow_bookmarks.core.selection.listing import FileInfo, Listing
from airflow_bookmarks.core.selection.reason import BEFORE_START, OVER_BOUND
from airflow_bookmarks.core.selection.sequence import SequenceStart
from airflow_bookmarks.core.text.count import READ_AGAIN
from airflow_bookmarks.core.text.deflated import MOST_RAW_BYTES, deflated, inflated, packed_parts, parts_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from airflow_bookmarks.core.ledger.seen import SeenRanges

PART_FILES = 10_000  # a plan of more files is stored in parts of so many

_FORMAT = 1
_PARTED_FORMAT = 2
_MOST_PART_BYTES = 256 * 1024**2


class Plan(Protocol):
    """What a run reads from one context, of any kind of source: the interface that all callers use."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to read."""
        ...

    @property
    def has_more(self) -> bool:
        """Whether a bound left something to the next run."""
        ...

    @property
    def edge(self) -> UpstreamWindow | None:
        """The runs of another job that it covers; None if it reads no job."""
        ...

    @property
    def amount(self) -> Amount:
        """How much there is to read."""
        ...

    @property
    def skipped(self) -> Mapping[str, int]:
        """How much is neither known nor planned, by reason."""
        ...

    @property
    def read_again(self) -> int:
        """How much of it was read before."""
        ...

    def stats(self) -> dict[str, Any]:
        """Return what a person wants to know of it: plain JSON values, the amount as `Amount.stats` has it."""
        ...

    def summary(self) -> str:
        """Return it as one line for a log."""
        ...

    def encode(self) -> bytes:
        """Return it as stored; its kind reads it back."""
        ...


@dataclass(frozen=True, slots=True)
class UpstreamWindow:
    """Which runs of another job a plan covers: (`after`, `until`], as seen in `epoch` with `changes`.

    `runs` are (run number, revision) pairs, ascending. `replaced` counts files of these runs that a later published run
    has overwritten: they are not part of the plan.
    """

    job: str
    output: str
    after: int
    until: int
    epoch: int
    changes: int
    runs: tuple[tuple[int, int], ...] = ()
    replaced: int = 0


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
        if self.quarantined:
            stats["quarantined"] = len(self.quarantined)
        return stats

    def encode(self) -> bytes:
        """Return the plan as stored: a JSON document, deflated.

        Layout (format 1): `v`, `roots`, `listed`, `known`, `skipped`, `partition_types`, `upstream` or null, `base`
        (the longest common prefix of the paths), and the columns `path` (rest after base), `size`, `time` (ms), `etag`
        or null. `unread` holds, where there are any, per reason the same five (from `base`) of files that are not read;
        `sequence`, where there is one, its `rule` and the watermark `before`, or null; `quarantined`, where there are
        any, per file path, version, size, time (ms), error and run number; `bases`, where there are any; `again` and
        `companions`, where there are any, as rows of the files.

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
            document |= _columns(self.files)
        if self.unread:
            document["unread"] = {reason: _columns(files) for reason, files in self.unread.items()}
        if self.bases:
            document["bases"] = list(self.bases)
        for name, paths in (("again", self.again), ("companions", self.companions)):
            rows = [row for row, path in enumerate(self.files.paths) if path in paths] if paths else []
            if rows:
                document[name] = rows
        if self.quarantined:
            document["quarantined"] = Quarantine().add(self.quarantined).rows()
        if self.sequence is not None:
            document["sequence"] = {"rule": self.sequence.rule, "before": self.sequence.before}
        if len(self.files) <= PART_FILES:
            return deflated(document)
        starts = range(0, len(self.files), PART_FILES)
        parts = [self.files.take(np.arange(at, min(at + PART_FILES, len(self.files)))) for at in starts]
        index = {"v": _PARTED_FORMAT, "files": [len(part) for part in parts]}
        return packed_parts(index, [deflated(document), *(deflated(_columns(part)) for part in parts)])

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
        found, at = [], 0
        for part, count in _file_parts(parted):
            first, last = max(offset - at, 0), min(offset + limit - at, count)
            if first < last:
                found.append(_part(part, count).take(np.arange(first, last)))
            at += count
        return at, _joined(found)


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
    return FilePlan(Listing.of(picked), roots, len(picked), 0, {}, types, bases=bases if has_bases else ())


def encode_moves(moves: Sequence[tuple[str, str]], staged: Listing | None = None) -> bytes:
    """Return a publish list as stored: (staged file, published file), and the size, time (ms) and etag it was `staged`
    with, where that is known.
    """
    rows: list[list[Any]] = [list(move) for move in moves]
    for row, file in zip(rows, staged or (), strict=False):
        row += [file.size_bytes, file.modified_ms, file.etag]
    return deflated(rows)


def decode_moves(body: bytes) -> list[tuple[str, str]]:
    """Return the pairs of the publish list that `encode_moves` wrote."""
    return [(row[0], row[1]) for row in _move_rows(body)]


def decode_published(body: bytes) -> list[FileInfo | str]:
    """Return what a publish list makes visible: each file as it was staged, its path alone where that is not known."""
    return [row[1] if len(row) == 2 else FileInfo(row[1], *row[2:]) for row in _move_rows(body)]


def encode_paths(paths: Sequence[str]) -> bytes:
    """Return a delete list as stored."""
    return deflated(list(paths))


def decode_paths(body: bytes) -> list[str]:
    """Return the delete list that `encode_paths` wrote."""
    try:
        return _texts(_unzip(body))
    except TypeError as error:
        raise StateCorruptError(f"a stored file list can't be read ({error}); nothing was changed") from error


def _move_rows(body: bytes) -> list[list[Any]]:
    rows = _unzip(body)
    for row in rows:
        is_pair = isinstance(row, list) and len(row) in (2, 5) and all(isinstance(path, str) for path in row[:2])
        if not is_pair or (len(row) == 5 and not _is_version(*row[2:])):
            raise StateCorruptError("a stored publish list has a row that means nothing; nothing was changed")
    return rows


def _is_version(size: object, time_ms: object, etag: object) -> bool:
    return isinstance(size, int) and isinstance(time_ms, int) and isinstance(etag, str | None)


def _unzip(body: bytes) -> list[Any]:
    document = inflated(body, "file list")
    if not isinstance(document, list):
        raise StateCorruptError("a stored file list is not a list; nothing was changed")
    return document


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
        _texts(list(document["partition_types"].values()))
        files = _listing(document) if parted is None else _joined(list(_all_parts(parted)))
        plan = FilePlan(
            files,
            tuple(_texts(document["roots"])),
            document["listed"],
            document["known"],
            document["skipped"],
            document["partition_types"],
            unread={reason: _listing(files) for reason, files in document.get("unread", {}).items()},
            sequence=None if sequence is None else _sequence(sequence),
            quarantined=tuple(Quarantine.parse(document.get("quarantined", ()))),
            bases=tuple(_texts(document.get("bases", []))),
            again=frozenset(files.paths[row] for row in document.get("again", ())),
            companions=frozenset(files.paths[row] for row in document.get("companions", ())),
        )
        return plan, None if window is None else _window(window)
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        raise StateCorruptError(f"a stored plan can't be read ({error}); nothing was changed") from error


def _columns(files: Listing) -> dict[str, Any]:
    # Character by character on purpose: the longest common text, not the longest common folder.
    base = os.path.commonprefix(list(files.paths)) if len(files) else ""  # noqa: RUF071
    return {
        "base": base,
        "path": [p[len(base) :] for p in files.paths],
        "size": files.sizes.tolist(),
        "time": files.times_ms.tolist(),
        "etag": None if files.etags is None else list(files.etags),
    }


def _file_parts(parted: tuple[Mapping[str, Any], Sequence[bytes]]) -> list[tuple[bytes, int]]:
    index, parts = parted
    counts = index.get("files")
    if (
        not isinstance(counts, list)
        or len(counts) != len(parts) - 1
        or not all(isinstance(count, int) and count >= 0 for count in counts)
    ):
        raise StateCorruptError("a stored plan does not say how many files its parts have; nothing was changed")
    return list(zip(parts[1:], counts, strict=True))


def _part(body: bytes, count: int) -> Listing:
    try:
        files = _listing(inflated(body, "part of a plan"), _MOST_PART_BYTES)
    except (ValueError, LookupError, TypeError, OverflowError) as error:
        raise StateCorruptError(f"a part of a stored plan can't be read ({error}); nothing was changed") from error
    if len(files) != count:
        raise StateCorruptError(
            f"a part of a stored plan has {len(files)} files, and {count} are recorded; nothing was changed"
        )
    return files


def _joined(parts: Sequence[Listing]) -> Listing:
    if not parts:
        return Listing.of([])
    etags = [etag for part in parts for etag in (part.etags or [None] * len(part))]
    return Listing(
        [path for part in parts for path in part.paths],
        np.concatenate([part.sizes for part in parts]),
        np.concatenate([part.times_ms for part in parts]),
        etags if any(part.etags is not None for part in parts) else None,
    )


def _all_parts(parted: tuple[Mapping[str, Any], Sequence[bytes]]) -> Iterator[Listing]:
    length = 0
    for part, count in _file_parts(parted):
        files = _part(part, count)
        length += sum(map(len, files.paths))
        if length > MOST_RAW_BYTES:
            raise _too_long()
        yield files


def _too_long() -> StateCorruptError:
    return StateCorruptError("a stored plan has paths that are longer than any can be; nothing was changed")


def _listing(columns: Mapping[str, Any], most_bytes: int = MOST_RAW_BYTES) -> Listing:
    base, paths, etags = columns["base"], _texts(columns["path"]), columns["etag"]
    _texts([base])
    # What all paths begin with is written once, and each of them has it.
    if len(base) * len(paths) > most_bytes:
        raise _too_long()
    sizes, times = np.array(columns["size"], np.int64), np.array(columns["time"], np.int64)
    known = paths if etags is None else _texts(etags, or_none=True)
    if not sizes.shape == times.shape == (len(paths),) or len(known) != len(paths):
        raise ValueError("its columns are not of one length")
    return Listing([base + path for path in paths], sizes, times, etags)


def _texts(values: object, *, or_none: bool = False) -> list[Any]:
    kinds = {str, type(None)} if or_none else {str}
    if not isinstance(values, list) or not set(map(type, values)) <= kinds:
        raise TypeError("what should be a list of texts is something else")
    return values


def _check_counts(*values: object) -> None:
    if not all(isinstance(value, int) for value in values):
        raise TypeError("what should be a number is something else")


def _sequence(document: Mapping[str, Any]) -> SequenceStart:
    start = SequenceStart(**document)
    _texts([start.rule])
    _texts([start.before], or_none=True)
    return start


def _window_document(window: UpstreamWindow | None) -> dict[str, Any] | None:
    if window is None:
        return None
    return {"job": window.job, "output": window.output, "after": window.after, "until": window.until,
            "epoch": window.epoch, "changes": window.changes, "runs": [list(r) for r in window.runs],
            "replaced": window.replaced}  # fmt: skip


def _window(document: Mapping[str, Any]) -> UpstreamWindow:
    window = UpstreamWindow(**{**document, "runs": tuple((n, r) for n, r in document["runs"])})
    _texts([window.job, window.output])
    _check_counts(
        window.after, window.until, window.epoch, window.changes, window.replaced, *chain.from_iterable(window.runs)
    )
    return window
