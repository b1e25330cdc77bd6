"""The metadata of a plan of files: what only their kind decides on, and what reads, looks at or moves them later.

A kind of a user's own that reads no files has none of it: what it stores with its plans, it reads back itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from airflow_bookmarks.core.errors import StateCorruptError
from airflow_bookmarks.core.metadata.known import option_of, value_of
from airflow_bookmarks.core.rules.shard import VirtualShard

MOVES = "moves"  # never stored: roots that moved since the plan was made, each from where to where


@dataclass(frozen=True, slots=True)
class RecordedRead:
    """How the files of a plan were chosen: enough to open its source again without the script.

    `roots` is None where they are those of the plan; `globs` are the patterns beside them. `named` are the partition
    columns that the script named, with their types where a filter compares by them. `options` are all that are not the
    default, as `FileOptions.of_stats` reads them; some of these are fields besides.
    """

    options: Mapping[str, Any]
    roots: Sequence[str] | None = None
    globs: Sequence[str] = ()
    named: Sequence[str] | Mapping[str, str] = ()
    shard: VirtualShard | None = None
    format: str | None = None
    sequence: str | None = None
    partition_filter: str | None = None
    partition_time: str | None = None

    @classmethod
    def of_options(cls, options: Mapping[str, Any]) -> RecordedRead:
        """Return what is stored with a plan as its options.

        Raises:
            StateCorruptError: one of the values has another type.
        """
        number = option_of(options, "shard")
        return cls(
            options,
            roots=option_of(options, "roots"),
            globs=option_of(options, "globs", ()),
            named=option_of(options, "named_types", option_of(options, "named", ())),
            shard=None if number is None else VirtualShard(number, option_of(options, "shard_by", "path")),
            format=option_of(options, "format"),
            sequence=option_of(options, "sequence"),
            partition_filter=option_of(options, "partition_filter"),
            partition_time=option_of(options, "partition_time"),
        )


@dataclass(frozen=True, slots=True)
class GapsMetadata:
    """What is missing of a sequence of numbers, or of days; `recorded` is all that is stored of it."""

    unit: str
    of: str
    missing: int
    recorded: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FilePlanMetadata:
    """What a plan of files has settled and left for later plans.

    `partition_types` are the types of the partition columns. `newest_partition` is the start of the partition up to
    which all is read; `waiting_from_ms` the oldest file that a bound has left to the next run, which does not become
    late by that. `options` are as stored; None: its version recorded none. `moved` is what is found in the place of
    `moves`: a kind of a user's own may have stored anything there.
    """

    partition_types: Mapping[str, str] = field(default_factory=dict)
    newest_partition: str | None = None
    waiting_from_ms: int | None = None
    gaps: GapsMetadata | None = None
    moved: Any = ()
    options: Mapping[str, Any] | None = None

    @property
    def moves(self) -> tuple[tuple[str, str], ...]:
        """The roots that moved since; of a plan of files alone.

        Raises:
            StateCorruptError: there is something else in that place.
        """
        return _pairs(self.moved)

    @property
    def read(self) -> RecordedRead | None:
        """How its files were chosen; None: its version did not record it.

        Raises:
            StateCorruptError: one of the values has another type.
        """
        return None if self.options is None else RecordedRead.of_options(self.options)

    @property
    def sequence(self) -> str | None:
        """By what its files are ordered; None: by their time."""
        return None if self.options is None else option_of(self.options, "sequence")

    @property
    def format(self) -> str | None:
        """What its files were read as; None where that is not known."""
        return None if self.options is None else option_of(self.options, "format")

    @property
    def partition_time(self) -> str | None:
        """By which columns old partitions are left unlisted; None: they are not."""
        return None if self.options is None else option_of(self.options, "partition_time")

    @classmethod
    def of_stats(cls, stats: Mapping[str, Any]) -> FilePlanMetadata:
        """Return what code decides on among what is stored with a plan of files; the rest is for people.

        Example:
            >>> FilePlanMetadata.of_stats({"files": 3, "options": {"format": "csv"}}).format
            'csv'

        Raises:
            StateCorruptError: one of the values has another type.
        """
        return cls(
            partition_types=value_of(stats, "partition_types", {}),
            newest_partition=value_of(stats, "newest_partition"),
            waiting_from_ms=value_of(stats, "waiting_from_ms"),
            gaps=_gaps_of(stats),
            moved=stats.get(MOVES, ()),
            options=value_of(stats, "options"),
        )


@dataclass(frozen=True, slots=True)
class ListedMetadata:
    """What the listing of a plan of files saw: files, those of them that were read before, and folders of partitions.

    `folders_without_new` are those in which nothing is to be read. None: not recorded, as for files that are in no
    partitions, or that an earlier batch of the loop had listed.
    """

    files: int | None = None
    known: int | None = None
    folders: int | None = None
    folders_without_new: int | None = None

    @classmethod
    def of_stats(cls, stats: Mapping[str, Any]) -> ListedMetadata:
        """Return what is stored with a plan of files about its listing.

        Example:
            >>> ListedMetadata.of_stats({"listed": 5, "known": 3, "partitions": {"listed": 4, "skipped": 2}})
            ListedMetadata(files=5, known=3, folders=4, folders_without_new=2)

        Raises:
            StateCorruptError: one of the values has another type.
        """
        partitions = value_of(stats, "partitions", {})
        found = cls(
            value_of(stats, "listed"), value_of(stats, "known"), partitions.get("listed"), partitions.get("skipped")
        )
        return found if value_of(stats, "looked_at") is None else cls()


def with_moves(stats: Mapping[str, Any], moves: Sequence[tuple[str, str]]) -> Mapping[str, Any]:
    """Return the stats of a plan as if it had been made before some roots moved."""
    return {**stats, MOVES: [*_pairs(stats.get(MOVES, ())), *moves]}


def _gaps_of(stats: Mapping[str, Any]) -> GapsMetadata | None:
    recorded = value_of(stats, "gaps")
    return None if recorded is None else GapsMetadata(recorded["unit"], recorded["of"], recorded["missing"], recorded)


def _pairs(moved: Any) -> tuple[tuple[str, str], ...]:
    try:
        return tuple((str(old), str(new)) for old, new in moved)
    except (TypeError, ValueError) as error:
        raise StateCorruptError(
            f"{MOVES!r} of a plan are no pairs of roots ({error}). Nothing was read or changed."
        ) from error
