"""The options of a source of files: one value, checked once, that goes from the script into the plan."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.option import check_choice
from airflow_bookmarks.core.rules.schema import OnSchemaChange
from airflow_bookmarks.core.selection.bound import UNBOUND, Bound
from airflow_bookmarks.core.selection.glob import Exclusions, NamePattern
from airflow_bookmarks.core.selection.group import BY_PARTITION, GroupRule
from airflow_bookmarks.core.selection.partition_time import PartitionTime
from airflow_bookmarks.core.selection.predicate.predicate import Predicate
from airflow_bookmarks.core.selection.sequence import SequenceRule

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_bookmarks.core.rules.shard import ShardBy

OnOverwrite = Literal["reprocess", "ignore", "error"]
OnTouch = Literal["ignore", "reprocess"]
OnUnmatched = Literal["error", "skip"]

_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOptions:
    """Which of the files below some folders a run reads.

    Args:
        recursive: whether folders that are no partition are descended into (Spark's `recursiveFileLookup`).
        on_overwrite: a known path with another version is read again whole ("reprocess", as Glue), left alone
            ("ignore", counted) or stops the run ("error").
        late_after: files older than the newest that was read before by more than this are not read but counted, and
            the ledger forgets what is older by more than twice this. What is newer than that is never late, nor is
            anything in a first run; a file dated in the future does not count as the newest.
        settle: files younger than this when the listing begins are left to a later run.
        on_touch: a file whose etag is the same and whose time is another (copied onto itself, restored) is left alone
            ("ignore", counted) or read again ("reprocess"). Default: "ignore"; where read files are put away
            (`empties`), "reprocess", unless `on_overwrite` is "ignore". A store without etags can't tell it from an
            overwrite: there `on_overwrite` decides, and "ignore" is refused when the source is planned.
        sequence: the order of reading, and the watermark: a regular expression with one named group, searched in the
            path below the root (`core.selection.sequence`), or "path". Default: by time.
        on_unmatched: a file that is to be read and does not match `sequence` stops the run ("error") or is left out
            ("skip", counted) until it does.
        gaps: whether what is missing between the first and the last is reported: numbers of a `sequence`, else the days
            of the one partition column that is a date. Default: of a `sequence` only.
        bound: how much of what is new one run reads; the rest is counted, and left to the next run.
        exclusions: patterns of files that are left out, of their paths below the folder that is loaded (Glue's):
            "*.bak", "**/tmp/**". Counted; they are read once the exclusion is lifted.
        name_pattern: which names of files are read (Spark's `pathGlobFilter`): "*.csv". The others are excluded.
        partition_filter: a predicate on partition columns in Spark's SQL: "year = 2013 and month >= 9". Folders in
            which it can't be true are not listed; `core.selection.predicate` says what it may hold.
        partition_time: the partition columns that tell a time, the longest unit first ("year,month,day", "dt"): folders
            that lie wholly before the newest partition that was read, minus `late_after`, are not listed.
        on_schema_change: a partition column whose values no longer fit its settled type, and other partition columns
            than before, stop the plan ("fail"), or the types follow what is there ("accept", "reset"). What it means
            for other columns, the reader says.
        reread: which files are read together: as soon as one of a group is new or changed, all of its files that are
            there are read, so that an output which replaces the group has what is there now. "partition", for the
            values of all partition columns, or a regular expression with one named group, searched in the path below
            the root (`core.selection.group`). Default: each file by itself.
        empties: whether read files are deleted or moved away. A folder of an object store is there only with a file
            below it: after the first run one that is gone counts as empty.
        text_partitions: whether partition columns are text, as their folders spell them, and no numbers or dates.
        max_band, max_files_in_band: of the files younger than `max_band` when the listing begins, at most so many are
            read, the oldest first; the others are left to a later run, as those that have not settled.
        exclude_storage_classes: objects of S3 in these classes ("GLACIER") are left out, and counted as excluded; they
            are read once they are in another class.

    Raises:
        OptionError: `sequence` is neither "path" nor such an expression, or `on_unmatched` is given without it;
            `late_after` or `settle` is not positive, or a file could be late before it has settled; a pattern or
            predicate that can't be read; `partition_time` without `late_after`; partitions where folders are no
            partitions (`recursive`); `reread` beside what would leave out a part of a group; a choice that is none.

    Example:
        >>> FileOptions(on_overwrite="ignore", settle=timedelta(minutes=5)).stats()
        {'on_overwrite': 'ignore', 'settle_ms': 300000}
    """

    recursive: bool = False
    on_overwrite: OnOverwrite = "reprocess"
    late_after: timedelta | None = None
    settle: timedelta | None = None
    on_touch: OnTouch | None = None
    sequence: str | None = None
    on_unmatched: OnUnmatched = "error"
    gaps: bool | None = None
    bound: Bound = UNBOUND
    on_schema_change: OnSchemaChange = "fail"
    exclusions: Sequence[str] = ()
    name_pattern: str | None = None
    partition_filter: str | None = None
    partition_time: str | None = None
    reread: str | None = None
    empties: bool = False
    text_partitions: bool = False
    max_band: timedelta | None = None
    max_files_in_band: int | None = None
    exclude_storage_classes: Sequence[str] = ()

    def __post_init__(self) -> None:
        check_choice("on_overwrite", self.on_overwrite, OnOverwrite)
        if self.on_touch is not None:
            check_choice("on_touch", self.on_touch, OnTouch)
        check_choice("on_schema_change", self.on_schema_change, OnSchemaChange)
        if self.gaps is not None and not isinstance(self.gaps, bool):
            raise OptionError(f"gaps={self.gaps!r}: expected True, False or None. Nothing was read or changed.")
        _check_sequence(self.sequence, self.on_unmatched)
        _check_bounds(self.late_after, self.settle)
        _check_band(self.max_band, self.max_files_in_band)
        object.__setattr__(self, "exclude_storage_classes", tuple(self.exclude_storage_classes))
        self._check_scope()
        self._check_reread()

    def _check_scope(self) -> None:
        if isinstance(self.exclusions, str) or not isinstance(self.exclusions, Iterable):
            raise OptionError(
                f"exclusions={self.exclusions!r}: expected a list of patterns; an empty one excludes nothing. Nothing "
                "was read or changed."
            )
        object.__setattr__(self, "exclusions", tuple(self.exclusions))  # a value that can be compared
        if self.exclusions:
            Exclusions.of(self.exclusions)
        if self.name_pattern is not None:
            NamePattern.of(self.name_pattern)
        if self.partition_filter is not None:
            Predicate.parse(self.partition_filter)
        if self.partition_time is not None:
            PartitionTime.parse(self.partition_time)
            if self.late_after is None:
                raise OptionError(
                    f"partition_time={self.partition_time!r} without late_after: nothing says how old a folder is too "
                    "old. Nothing was read or changed. Give late_after=timedelta(...): longer than files come late, "
                    "and than the time between two runs."
                )
        if self.recursive and (self.partition_filter or self.partition_time):
            raise OptionError(
                "partition_filter and partition_time with recursiveFileLookup, under which folders are no partitions. "
                "Nothing was read or changed. Leave one of them out."
            )

    def _check_reread(self) -> None:
        if self.reread is None:
            return
        rule = GroupRule.of(self.reread)
        if rule.is_by_partition and self.recursive:
            raise self._no_reread("recursiveFileLookup, under which folders are no partitions")
        if self.on_overwrite == "ignore":
            raise self._no_reread("on_overwrite='ignore', which leaves out what was changed")
        if self.empties:
            raise self._no_reread("on_published='delete' or 'archive', after which a group can't be read again")
        pruned = self.partition_filter or self.partition_time
        if pruned and not rule.is_by_partition:
            raise self._no_reread(f"{pruned!r} on partitions, which may leave out a part of a group")

    def _no_reread(self, beside: str) -> OptionError:
        return OptionError(
            f"reread={self.reread!r} with {beside}: a run has to read all files of a group. Nothing was read or "
            "changed. Leave one of them out."
        )

    def check_shard_by(self, by: ShardBy) -> None:
        """Make sure that the shards of a sharded job hold whole groups.

        Raises:
            OptionError: a group may lie in several shards.
        """
        if self.reread is not None and not (self.reread == BY_PARTITION and by == "partition"):
            raise OptionError(
                f"reread={self.reread!r} in a sharded job with shard_by={by!r}: the files of a group would be read by "
                "several shards, each of which replaces what the others wrote. Nothing was read or changed. Use "
                "reread='partition' with shard_by='partition', or don't shard the job."
            )

    @property
    def reads_touched(self) -> bool:
        """Whether a file whose time alone is another is read again.

        Where the job puts away what it has read, what lies there under a known name is a new delivery, even if it is
        equal: left alone, it would never be read, nor put away.
        """
        if self.on_touch is None:
            return self.empties and self.on_overwrite != "ignore"
        return self.on_touch == "reprocess"

    @property
    def late_after_ms(self) -> int | None:
        """`late_after` in milliseconds."""
        return _in_milliseconds(self.late_after)

    @property
    def settle_ms(self) -> int | None:
        """`settle` in milliseconds."""
        return _in_milliseconds(self.settle)

    def given(self) -> list[str]:
        """Return the names of the options that are not the default."""
        return [each.name for each in fields(self) if getattr(self, each.name) != each.default]

    def stats(self) -> dict[str, Any]:
        """Return as plain values what is not the default, for the record of a plan."""
        stats: dict[str, Any] = {
            "recursive": self.recursive or None,
            "on_overwrite": None if self.on_overwrite == "reprocess" else self.on_overwrite,
            "late_after_ms": self.late_after_ms,
            "settle_ms": self.settle_ms,
            "on_touch": self.on_touch,
            "sequence": self.sequence,
            "on_unmatched": None if self.on_unmatched == "error" else self.on_unmatched,
            "gaps": self.gaps,
            "on_schema_change": None if self.on_schema_change == "fail" else self.on_schema_change,
            "exclusions": list(self.exclusions) or None,
            "name_pattern": self.name_pattern,
            "partition_filter": self.partition_filter,
            "partition_time": self.partition_time,
            "reread": self.reread,
            "empties": self.empties or None,
            "text_partitions": self.text_partitions or None,
            "max_band_ms": _in_milliseconds(self.max_band),
            "max_files_in_band": self.max_files_in_band,
            "exclude_storage_classes": list(self.exclude_storage_classes) or None,
            **self.bound.stats(),
        }
        return {name: value for name, value in stats.items() if value is not None}

    @classmethod
    def of_stats(cls, stats: Mapping[str, Any]) -> FileOptions:
        """Return the options that `stats` recorded; those that it lacks are the defaults."""
        return cls(
            recursive=stats.get("recursive", False),
            on_overwrite=stats.get("on_overwrite", "reprocess"),
            late_after=_from_milliseconds(stats.get("late_after_ms")),
            settle=_from_milliseconds(stats.get("settle_ms")),
            on_touch=stats.get("on_touch"),
            sequence=stats.get("sequence"),
            on_unmatched=stats.get("on_unmatched", "error"),
            gaps=stats.get("gaps"),
            on_schema_change=stats.get("on_schema_change", "fail"),
            exclusions=tuple(stats.get("exclusions", ())),
            name_pattern=stats.get("name_pattern"),
            partition_filter=stats.get("partition_filter"),
            partition_time=stats.get("partition_time"),
            reread=stats.get("reread"),
            empties=stats.get("empties", False),
            text_partitions=stats.get("text_partitions", False),
            max_band=_from_milliseconds(stats.get("max_band_ms")),
            max_files_in_band=stats.get("max_files_in_band"),
            exclude_storage_classes=tuple(stats.get("exclude_storage_classes", ())),
            bound=Bound.of_stats(stats),
        )


def _check_sequence(sequence: str | None, on_unmatched: OnUnmatched) -> None:
    check_choice("on_unmatched", on_unmatched, OnUnmatched)
    if sequence is not None:
        SequenceRule.of(sequence)
    elif on_unmatched != "error":
        raise OptionError(f"on_unmatched={on_unmatched!r} without a sequence to match. Nothing was read or changed.")


def _check_bounds(late_after: timedelta | None, settle: timedelta | None) -> None:
    for name, bound in (("late_after", late_after), ("settle", settle)):
        if bound is not None and (not isinstance(bound, timedelta) or bound < _MILLISECOND):
            raise OptionError(f"{name}={bound!r}: expected a positive timedelta. Nothing was read or changed.")
    if late_after is not None and settle is not None and settle >= late_after:
        raise OptionError(
            f"settle={settle!r} is not shorter than late_after={late_after!r}: a file would be late before it has "
            "settled, and never be read. Nothing was read or changed."
        )


def _check_band(max_band: timedelta | None, max_files: int | None) -> None:
    if max_files is None and max_band is None:
        return
    if max_band is None or max_files is None or max_files < 1 or max_band < timedelta(0):
        raise OptionError(
            f"max_band={max_band!r} and max_files_in_band={max_files!r}: give both, a timedelta that is not negative "
            "and a positive number. Nothing was read or changed."
        )


def _in_milliseconds(bound: timedelta | None) -> int | None:
    return None if bound is None else bound // _MILLISECOND


def _from_milliseconds(bound: int | None) -> timedelta | None:
    return None if bound is None else bound * _MILLISECOND
