"""Verbs that look and change nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_bookmarks.cli.output.table_details import table_details
from airflow_bookmarks.cli.output.values import with_units
from airflow_bookmarks.cli.verb import HIDE_STATE, JOB, Argument, Verb, VerbContext, positive, print_fields, print_rows
from airflow_bookmarks.core.errors import OptionError, StateCorruptError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

_HEALTH_COLUMNS = ("job", "health", "since", "reason")
_LIST_COLUMNS = (
    "job",
    "health",
    "since",
    "run_number",
    "published",
    "epoch",
    "watermark",
    "last_commit_at",
    "other_names",
)
_SHARD_COLUMNS = ("shards", "held_shards", "due_shards")
_HISTORY_COLUMNS = (
    "number",
    "epoch",
    "state",
    "revision",
    "files",
    "read_again",
    "rows",
    "rows_written",
    "watermark",
    "committed_at",
    "run_id",
    "attempt",
)
_PARTITION_COLUMNS = (
    "ctx",
    "partition",
    "failed_since",
    "error",
    "position",
    "last_run",
    "committed_at",
    "runs",
    "files",
    "rows",
)
_FILE_COLUMNS = ("ctx", "path", "bytes", "modified_at")
_READ = ("COMMITTED", "PUBLISHED")
_QUARANTINE_COLUMNS = ("ctx", "path", "bytes", "modified_at", "run_number", "error")
_REQUEST_COLUMNS = ("id", "state", "change", "who", "why", "valid_until")
_DIFFERENCES = 20  # paths of a kind that the table shows; JSON has all


def _check(context: VerbContext, args: argparse.Namespace) -> int | None:
    context.store.check_layout()
    if args.health:
        return _check_health(context, args)
    details: dict[str, Any] = {"usable": True, "namespace": context.store.namespace}
    details |= table_details(context.store, with_lost=True)
    if context.store.blobs.state_uri is not None:
        details |= {"state_uri": context.store.blobs.state_uri, "objects": len(context.store.blobs.objects())}
    print_fields(details, args)
    return None


def _check_health(context: VerbContext, args: argparse.Namespace) -> int:
    """Print the jobs that somebody has to look at, worst first; return 1 if there is one."""
    from airflow_bookmarks.lifecycle.health.listed import health_of_all

    troubled = [job.as_dict() for job in health_of_all(context.store) if job.is_trouble]
    print_rows([{name: job[name] for name in _HEALTH_COLUMNS} for job in troubled], _HEALTH_COLUMNS, args)
    return 1 if troubled else 0


def _list(context: VerbContext, args: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.health.job import as_row
    from airflow_bookmarks.lifecycle.health.listed import healths
    from airflow_bookmarks.lifecycle.inspect.sharded_list import grouped
    from airflow_bookmarks.lifecycle.inspect.status import ListedJobs, bookmarks

    context.store.check_layout()
    listed = ListedJobs.of(context.store)
    jobs, found = bookmarks(context.store, listed), healths(context.store, listed)
    shown = jobs if args.shards else grouped(jobs)
    # A sharded job has no health, either, while one of its shards can't be read.
    verdicts = {row["job"]: found.get(row["job"]) if row["damaged"] is None else None for row in shown}
    others = listed.other_names
    rows = [{**row, **as_row(verdicts[row["job"]]), "other_names": others.get(row["job"], [])} for row in shown]
    rows.sort(key=lambda row: (-1 if (verdict := verdicts[row["job"]]) is None else verdict.state.rank, row["job"]))
    has_shards = any(row.get("shards") for row in rows)
    columns = (*_LIST_COLUMNS, *(_SHARD_COLUMNS if has_shards else ()), *(("damaged",) if listed.damaged else ()))
    print_rows(rows, columns, args)


def _show(context: VerbContext, args: argparse.Namespace) -> None:
    job = context.job(args)
    if args.by is not None:
        from airflow_bookmarks.lifecycle.inspect.partitions import by_partition

        rows = by_partition(context.store, job)
        if not rows:
            raise OptionError(
                f"no run of job {args.job!r} has read one part of a source by itself, as those of job.partitions(...) "
                "do. Nothing was changed."
            )
        print_rows(rows, _PARTITION_COLUMNS, args)
        return
    from airflow_bookmarks.lifecycle.changes.naming import names_of
    from airflow_bookmarks.lifecycle.health.job import as_row, health
    from airflow_bookmarks.lifecycle.inspect.status import bookmark

    shown, verdict = bookmark(context.store, job), health(context.store, job)
    more = [f"{each.state.value}: {each.reason}" for each in verdict.more if each.state.is_trouble]
    told = {**as_row(verdict), "also": more} if more else as_row(verdict)
    print_fields(context.shown({**shown, **told, "names": names_of(context.store, args.job)}, args), args)


def _history(context: VerbContext, args: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.inspect.runs import history

    rows = history(context.store, context.job(args), limit=args.limit, with_open=args.all)
    print_rows(rows, with_units(rows, _HISTORY_COLUMNS), args)


def _files(context: VerbContext, args: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.inspect.runs import files_of

    if args.quarantined == (args.run is not None):
        raise OptionError("files takes either --run RUN or --quarantined. Nothing was read.")
    if args.quarantined:
        _quarantined(context, args)
        return
    rows = files_of(context.store, context.job(args), args.run)
    kept = [row for row in rows if args.ctx in (None, row["ctx"])]
    if rows and not kept:
        raise OptionError(f"run {args.run} read no context {args.ctx!r}; it read {sorted({r['ctx'] for r in rows})}.")
    is_history = all(row["state"] in _READ for row in kept)
    print_rows(kept, _FILE_COLUMNS if is_history else (*_FILE_COLUMNS, "state"), args)


def _quarantined(context: VerbContext, args: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.state.quarantine import quarantined_files

    rows = quarantined_files(context.store, context.job(args))
    print_rows([row for row in rows if args.ctx in (None, row["ctx"])], _QUARANTINE_COLUMNS, args)


def _diff(context: VerbContext, args: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.inspect.difference import diff, diff_stores

    if (len(args.runs) == 2) == (args.with_store is not None) or len(args.runs) not in (0, 2):
        raise OptionError(
            "diff takes two runs of the job, or --with-store and no run. Nothing was read. For example: "
            f"diff {args.job} 41 42"
        )
    job = context.job(args)
    if args.with_store is None:
        found = diff(context.store, job, *args.runs)
    else:
        from airflow_bookmarks.store.bookmark_store import open_store

        found = diff_stores(context.store, open_store(args.with_store), job)
    found = context.shown(found, args)
    print_fields(found if args.output == "json" else _shortened(found), args)


def _shortened(found: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out of long lists of paths what nobody reads on a screen."""
    short: dict[str, Any] = {}
    for name, value in found.items():
        if isinstance(value, dict):
            short[name] = _shortened(value)
        elif isinstance(value, list) and len(value) > _DIFFERENCES:
            short[name] = [*value[:_DIFFERENCES], f"... and {len(value) - _DIFFERENCES} more"]
        else:
            short[name] = value
    return short


def _requests(context: VerbContext, args: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.changes.approval import requests_or_damage

    found, damaged = requests_or_damage(context.store, args.job, with_closed=args.all)
    if found or not damaged:
        print_rows([context.shown(one.as_dict(), args) for one in found], _REQUEST_COLUMNS, args)
    if damaged:
        raise StateCorruptError(" ".join(str(error) for error in damaged.values()))


_SHARDS = Argument(
    ("--shards",), {"action": "store_true", "help": "list each virtual shard of a sharded job separately"}
)
_ALL_RUNS = Argument(("--all",), {"action": "store_true", "help": "include runs that did not commit"})
_ALL_REQUESTS = Argument(
    ("--all",), {"action": "store_true", "help": "include requests that are done, rejected, expired or void"}
)
_LIMIT = Argument(
    ("--limit",), {"type": positive, "metavar": "N", "default": None, "help": "only the newest N runs; default: all"}
)
_RUN = Argument(
    ("--run",),
    {
        "metavar": "RUN",
        "default": None,
        "help": "number or id of the run, which may have failed, or run with pause or disable",
    },
)
_QUARANTINED = Argument(
    ("--quarantined",),
    {"action": "store_true", "help": "instead of --run: list the files left out because they can't be parsed"},
)
_ONE_CTX = Argument(
    ("--ctx",), {"metavar": "CTX", "default": None, "help": "only files of this context, a named source of the job"}
)
_RUNS = Argument(
    ("runs",), {"nargs": "*", "metavar": "RUN", "help": "two run numbers or run ids; none with --with-store"}
)
_WITH_STORE = Argument(
    ("--with-store",),
    {"metavar": "URI", "default": None, "help": "compare with the same job in this other store or namespace"},
)

_BY = Argument(
    ("--by",),
    {
        "choices": ("partition",),
        "default": None,
        "help": "instead: a row for each part that runs of job.partitions(...) have read, those that fail first",
    },
)

_HEALTH_HELP = "list the jobs that somebody has to look at, worst first; exit code 1 if there are any"
_HEALTH = Argument(("--health",), {"action": "store_true", "help": _HEALTH_HELP})

VERBS = (
    Verb(
        "check",
        "Check whether the store answers and can be used, or with --health whether jobs are well",
        _check,
        (_HEALTH,),
    ),
    Verb("list", "List the jobs of the namespace, worst first; a sharded job is one row", _list, (_SHARDS,)),
    Verb("show", "Show the state of a job", _show, (JOB, HIDE_STATE, _BY)),
    Verb("history", "List the runs of a job, oldest first", _history, (JOB, _LIMIT, _ALL_RUNS)),
    Verb("files", "List the files that a run has read or planned to read", _files, (JOB, _RUN, _QUARANTINED, _ONE_CTX)),
    Verb("diff", "Compare two runs of a job, or a job in two stores", _diff, (JOB, _RUNS, _WITH_STORE, HIDE_STATE)),
    Verb(
        "requests",
        "List the changes of a protected job that wait for approval",
        _requests,
        (JOB, _ALL_REQUESTS, HIDE_STATE),
    ),
)
