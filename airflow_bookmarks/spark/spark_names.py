"""The names of Spark's readers and writers: positional arguments, and errors for names that have no meaning here."""

from __future__ import annotations

import functools
import inspect
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar, cast

from airflow_bookmarks.core.errors import MisuseError, OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_F = TypeVar("_F", bound="Callable[..., Any]")

_READS = frozenset(
    [
        "changes",
        "csv",
        "format",
        "jdbc",
        "json",
        "load",
        "option",
        "options",
        "orc",
        "parquet",
        "schema",
        "table",
        "text",
        "xml",
    ]
)
_WRITES = frozenset(
    [
        "bucketBy",
        "clusterBy",
        "csv",
        "delta",
        "format",
        "insertInto",
        "jdbc",
        "json",
        "mode",
        "option",
        "options",
        "orc",
        "parquet",
        "partitionBy",
        "save",
        "saveAsTable",
        "sortBy",
        "text",
        "xml",
    ]
)
_OF_STREAMS = "it is an option of a stream and would have no effect here"
_BOUND = "bound a run with job.read(ctx).files({0}=...) or job.batches({0}=...)"
_OF_TABLES = (
    "it is an option of a table format and would have no effect on files; a Delta table is read by "
    "job.read(ctx).delta(...), an Iceberg table by job.read(ctx).iceberg(...)"
)

_OF_FILES = "job.read(ctx).files({0}=...)"
_OF_FILES_AND_UPSTREAMS = f"{_OF_FILES}, or job.read(ctx).upstream(job, {{0}}=...)"
_OF_ONE_KIND: Mapping[str, str] = {
    **{name: _OF_FILES_AND_UPSTREAMS.format(name) for name in ("max_files", "max_bytes", "window")},
    **{
        name: _OF_FILES.format(name)
        for name in (
            "archive_to", "exclude_storage_classes", "exclusions", "gaps", "infer_schema", "late_after",
            "listed_partitions", "max_band", "max_files_in_band", "moved_from", "on_corrupt", "on_missing",
            "on_overwrite", "on_published", "on_touch", "on_unmatched", "partition_filter", "partition_time",
            "per_partition", "read_by", "reread", "sequence", "settle", "shard_by", "text_partitions",
        )
    },
    **{
        name: f"job.read(ctx).delta(table, {name}=...), or job.read(ctx).iceberg(table, {name}=...)"
        for name in ("changes", "max_versions", "on_change", "per")
    },
    **{name: f"job.read(ctx).upstream(job, {name}=...)" for name in ("max_rows", "on_rewind", "output", "until")},
    "on_upstream_rewind": "job.read(ctx).upstream(job, on_rewind=...)",
}  # fmt: skip

# Options that Spark accepts for files silently, and that change nothing.
WITHOUT_EFFECT: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "checkpointlocation",
            "cleansource",
            "discardcachedinputratio",
            "filenameonly",
            "latestfirst",
            "maxcachedfiles",
            "maxfileage",
            "sourcearchivedir",
        ),
        _OF_STREAMS,
    ),
    "maxfilespertrigger": f"{_OF_STREAMS}; {_BOUND.format('max_files')}",
    "maxbytespertrigger": f"{_OF_STREAMS}; {_BOUND.format('max_bytes')}",
    **dict.fromkeys(
        (
            "endingversion",
            "overwriteschema",
            "readchangefeed",
            "replacewhere",
            "startingtimestamp",
            "startingversion",
            "timestampasof",
            "txnappid",
            "txnversion",
            "versionasof",
        ),
        _OF_TABLES,
    ),
}

# Those of them that mean something where a Delta table is written.
OF_DELTA_WRITES = frozenset({"overwriteschema", "replacewhere", "txnappid", "txnversion"})


def by_name(spark: type, method: str, values: Sequence[Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a method of Spark's reader or writer by name, but the path, which comes first.

    Raises:
        TypeError: one is given twice, or there are too many: as Spark itself would raise it.
    """
    from airflow_bookmarks.spark.features import parameters_of  # imports pyspark

    names = parameters_of(spark, method)
    if len(values) > len(names):
        raise TypeError(
            f"{method}() takes at most {len(names) + 1} positional arguments, and {len(values) + 1} are given"
        )
    given = dict(zip(names, values, strict=False))
    twice = sorted(given.keys() & options.keys())
    if twice:
        raise TypeError(f"{method}() got multiple values for argument {twice[0]!r}")
    return {**given, **options}


class _ArgumentSpec:
    """A method of a job that is called with a name first, and that a script may take for Spark's reader itself.

    `elsewhere` says of options of one kind of source where they are given.
    """

    def __init__(
        self, method: Callable[..., Any], instead: str, names: frozenset[str], elsewhere: Mapping[str, str]
    ) -> None:
        self._method, self._instead, self._names, self._elsewhere = method, instead, names, elsewhere

    def __get__(self, job: object, owner: type) -> Callable[..., Any]:
        if job is None:
            return self._method
        return _Call(self._method.__get__(job, owner), self._instead, self._names, self._elsewhere)


class _Call:
    def __init__(
        self, method: Callable[..., Any], instead: str, names: frozenset[str], elsewhere: Mapping[str, str]
    ) -> None:
        self.__wrapped__, self.__doc__ = method, method.__doc__  # for `help` and `inspect.signature`
        self._instead, self._names, self._elsewhere = instead, names, elsewhere

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        _check_options(self.__wrapped__, kwargs, self._elsewhere)
        return self.__wrapped__(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name not in self._names:
            raise AttributeError(name)
        raise MisuseError(f"{self._instead.format(name=name)} Nothing was read, written or changed.")


def _check_options(method: Callable[..., Any], given: Mapping[str, Any], elsewhere: Mapping[str, str]) -> None:
    """Raise an `OptionError` for an option that a method does not take: where it is given, or what it may mean."""
    known = inspect.signature(method).parameters
    for name in given:
        if name in known:
            continue
        if name in elsewhere:
            hint = f"it is an option of one kind of source, given where that is named: {elsewhere[name]}"
        elif close := get_close_matches(name, known, 1):
            hint = f"did you mean {close[0]}?"
        else:
            hint = f"it takes {', '.join(each for each in known if each != 'self')}"
        raise OptionError(f"{method.__name__}() has no option {name!r}: {hint}. Nothing was read or changed.")


def takes_options_of_one_kind(method: _F) -> _F:
    """Let `.files(...)` and `.upstream(...)` say of an option that they don't take where it belongs."""

    @functools.wraps(method)
    def checked(*args: Any, **kwargs: Any) -> Any:
        _check_options(method, kwargs, _OF_ONE_KIND)
        return method(*args, **kwargs)

    return cast("_F", checked)


def reads_a_context(method: _F) -> _F:
    """Let `job.read.csv` say what is missing: the name of a context."""
    instead = (
        "job.read is called with the name of a context first: job.read('flights').{name}(...). What needs no bookmark, "
        "such as a table or a query, is read with spark.read.{name}(...)."
    )
    return cast("_F", _ArgumentSpec(method, instead, _READS, _OF_ONE_KIND))


def writes_an_output(method: _F) -> _F:
    """Let `job.write.csv` say what is missing: a frame, and the name of an output."""
    instead = (
        "job.write is called with a frame and the name of an output first: job.write(frame, 'clean').{name}(...). What "
        "is to be no part of the commit is written with frame.write.{name}(...)."
    )
    return cast("_F", _ArgumentSpec(method, instead, _WRITES, {}))


def is_of_reader(name: str) -> bool:
    """Whether Spark's reader has a method of that name, in some version."""
    return name in _READS


def is_of_writer(name: str) -> bool:
    """Whether Spark's writer has a method of that name, in some version."""
    return name in _WRITES
