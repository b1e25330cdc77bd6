"""Verbs that keep the table: make it, carry jobs over, prove the state, collect history."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.cli.output.table_details import table_details
from airflow_bookmarks.cli.output.values import as_json, as_list
from airflow_bookmarks.cli.verb import (
    HIDE_STATE,
    Argument,
    Verb,
    VerbContext,
    hint,
    positive,
    print_fields,
    print_rows,
    say,
)
from airflow_bookmarks.core.errors import BookmarkError, DocumentError, OptionError
from airflow_bookmarks.core.text.count import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from airflow_bookmarks.lifecycle.maintenance.doctor import Finding, JobAdvice

_FINDING_COLUMNS = ("severity", "job", "code", "what", "repair")
_REPAIRED_COLUMNS = ("job", "code", "is_done", "what")
_STANDARD = "-"  # stdin, or stdout


def _init(context: VerbContext, args: argparse.Namespace) -> None:
    from airflow_bookmarks.store.table_settings import TableSettings, check_kms_key, tags_of

    key = None if args.kms_key is None else check_kms_key(args.kms_key)
    settings = TableSettings(key, args.deletion_protection, tags_of(args.tag or ()), args.stream)
    is_new = context.store.init(settings)
    print_fields({"created": is_new, "namespace": context.store.namespace, **table_details(context.store)}, args)


# ---- export, import


def _export(context: VerbContext, args: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.changes.naming import key_of
    from airflow_bookmarks.lifecycle.maintenance.transfer.exporting import export
    from airflow_bookmarks.lifecycle.maintenance.transfer.glue_entry import as_glue_entry

    jobs = [key_of(context.store, name) for name in args.jobs]
    document: Any
    if args.glue:
        document = [as_glue_entry(context.store, job) for job in jobs or _all_jobs(context)]
    else:
        document = export(context.store, jobs or None, hide_state=context.hides_state or args.hide_state)
    if args.file == _STANDARD:
        say(as_json(document))
        return
    try:
        Path(args.file).write_text(as_json(document) + "\n", encoding="utf-8")
    except OSError as error:
        raise BookmarkError(f"{args.file!r} can't be written ({error}). The bookmarks are as they were.") from error


def _all_jobs(context: VerbContext) -> list[str]:
    from airflow_bookmarks.store.transitions.naming import job_keys

    return list(context.store.heads(list(job_keys(context.store))))


def _import(context: VerbContext, args: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.maintenance.transfer.importing import import_

    try:
        text = sys.stdin.read() if args.file == _STANDARD else Path(args.file).read_text(encoding="utf-8")
        document = json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise DocumentError(f"{args.file!r} can't be read as JSON ({error}). Nothing was imported.") from error
    who = context.find_identity().signature
    done = import_(context.store, document, who=who, reason=args.reason, overwrite=args.overwrite, move=args.move)
    print_fields(done.as_dict(), args)


# ---- doctor, gc


def _doctor(context: VerbContext, args: argparse.Namespace) -> int:
    from airflow_bookmarks.lifecycle.changes.naming import key_of
    from airflow_bookmarks.lifecycle.maintenance.doctor import examine, repair

    context.store.check_layout()
    jobs = [key_of(context.store, name) for name in args.jobs] or None
    if args.advise:
        return _advise(context, args, jobs)
    if jobs and args.lost:
        raise OptionError("--lost looks for jobs without a name in the list; leave the names out. Nothing was read.")
    found = examine(context.store, jobs=jobs, with_files=not args.no_files, with_lost=args.lost)
    if not args.repair:
        return _show_findings(found, args)
    done = repair(context.store, found, who=context.find_identity().signature)
    left = examine(context.store, jobs=jobs, with_files=not args.no_files, with_lost=args.lost)
    rows = [{"job": one.finding.job, "code": one.finding.code, **one.as_dict()} for one in done]
    if args.output == "json":
        print_fields({"repaired": rows, "left": [finding.as_dict() for finding in left]}, args)
        return _code(left)
    if rows:
        print_rows(rows, _REPAIRED_COLUMNS, args)
    return _show_findings(left, args)


def _advise(context: VerbContext, args: argparse.Namespace, jobs: Sequence[str] | None) -> int:
    """Print what would make jobs cheaper; the exit code is 1 if a job can't be read, however much there is to say."""
    from airflow_bookmarks.lifecycle.maintenance.doctor import advise

    if args.repair or args.lost or args.no_files:
        raise OptionError(
            "--advise reads what runs have recorded: it lists no files, looks for no lost jobs and repairs nothing. "
            "Nothing was read. Leave --repair, --lost and --no-files out, or --advise."
        )
    told = advise(context.store, jobs=jobs)
    if args.output == "json":
        print_rows([each.as_dict() for each in told], (), args)
    else:
        shown = [line for each in told for line in _in_blocks(each)]
        say(hint("\n".join(shown), args) if shown else "no advice")
    return int(any(each.unreadable is not None for each in told))


def _in_blocks(told: JobAdvice) -> Iterator[str]:
    row = told.as_dict()
    for each in row["advice"]:
        yield f"{told.job} {each['ctx']}: {each['code']}"
        yield as_list({name: each[name] for name in ("what", "evidence", "cost", "action")}, "  ")
    if row["unreadable"] is not None:
        yield f"{told.job}: can't be read"
        yield as_list({"why": row["unreadable"]}, "  ")
    if row["damaged_runs"]:
        left = counted(len(row["damaged_runs"]), "run")
        yield f"{told.job}: {left} left out, as 'airflow-bookmarks doctor' may say"
        yield as_list(row["damaged_runs"], "  ")


def _show_findings(found: Sequence[Finding], args: argparse.Namespace) -> int:
    if found or args.output == "json":
        print_rows([finding.as_dict() for finding in found], _FINDING_COLUMNS, args)
    else:
        say("clean: nothing found")
    return _code(found)


def _code(found: Sequence[Finding]) -> int:
    """Return the exit code: what only waits for a run that is at work is no damage."""
    return int(any(finding.severity != "notice" for finding in found))


def _gc(context: VerbContext, args: argparse.Namespace) -> int:
    from datetime import timedelta

    from airflow_bookmarks.lifecycle.changes.naming import key_of
    from airflow_bookmarks.lifecycle.maintenance.retention import RETENTION, collect

    context.store.check_layout()
    retention = RETENTION if args.retention_days is None else timedelta(days=args.retention_days)
    jobs = [key_of(context.store, name) for name in args.jobs] or None
    collected = collect(context.store, retention=retention, jobs=jobs, dry_run=args.dry_run)
    print_fields(collected.as_dict(), args)
    return int(bool(collected.left_alone))


def _days(text: str) -> int:
    days = positive(text)
    if days > _MAX_DAYS:
        raise argparse.ArgumentTypeError(f"{text!r} is more than {_MAX_DAYS:,} days; leave gc alone to keep everything")
    return days


# ---- the verbs

_MAX_DAYS = 36_500
_JOBS = Argument(
    ("jobs",), {"nargs": "*", "metavar": "JOB", "help": "only these jobs; default: all jobs of the namespace"}
)
_FILE = Argument(("--file",), {"metavar": "PATH", "default": _STANDARD, "help": "the file to write; default: stdout"})
_GLUE = Argument(
    ("--glue",),
    {"action": "store_true", "help": "write the format of Glue's get-job-bookmark, which import can't read"},
)
_FROM_FILE = Argument(("file",), {"metavar": "PATH", "help": "an exported document; - for stdin"})
_OVERWRITE = Argument(("--overwrite",), {"action": "store_true", "help": "replace jobs that have a bookmark already"})
_MOVE = Argument(("--move",), {"action": "store_true", "help": "this store replaces the exported one, which is gone"})
_WHY = Argument(
    ("--reason",), {"required": True, "metavar": "TEXT", "help": "the reason, recorded with your name and the time"}
)
_REPAIR = Argument(
    ("--repair",), {"action": "store_true", "help": "make the repairs that need no decision by a person"}
)
_NO_FILES = Argument(("--no-files",), {"action": "store_true", "help": "do not check published and staged files"})
_ADVISE = Argument(
    ("--advise",),
    {
        "action": "store_true",
        "help": "instead of damage, show what would make jobs cheaper; exit code 1 only if a job can't be read",
    },
)
_LOST = Argument(
    ("--lost",),
    {
        "action": "store_true",
        "help": "also look for jobs missing from the list and unreferenced objects; scans the whole table",
    },
)
_DRY_RUN = Argument(("--dry-run",), {"action": "store_true", "help": "only show what would be removed"})
_RETENTION = Argument(
    ("--retention-days",),
    {"type": _days, "metavar": "N", "default": None, "help": "days for which history is kept; default: 90"},
)

_KMS_KEY = Argument(("--kms-key",), {"metavar": "ARN", "help": "AWS KMS key that encrypts the table"})
_DELETION = Argument(
    ("--deletion-protection",),
    {"action": "store_true", "help": "refuse to delete the table until the protection is turned off"},
)
_TAG = Argument(("--tag",), {"action": "append", "metavar": "NAME=VALUE", "help": "tag of the table (repeatable)"})
_STREAM = Argument(
    ("--stream",), {"action": "store_true", "help": "publish each change to DynamoDB Streams, e.g. for an audit copy"}
)

INIT = Verb(
    "init",
    "Create the table or SQLite file if it does not exist",
    _init,
    (_KMS_KEY, _DELETION, _TAG, _STREAM),
)
VERBS = (
    Verb("export", "Write the bookmarks of jobs as one JSON document", _export, (_JOBS, _FILE, _GLUE, HIDE_STATE)),
    Verb("import", "Read bookmarks from an exported document", _import, (_FROM_FILE, _OVERWRITE, _MOVE, _WHY)),
    Verb(
        "doctor",
        "Check the stored state and list any damage; exit code 1 if there is some",
        _doctor,
        (_JOBS, _REPAIR, _NO_FILES, _LOST, _ADVISE),
    ),
    Verb(
        "gc",
        "Remove unneeded history older than the retention; exit code 1 if a job can't be read",
        _gc,
        (_JOBS, _DRY_RUN, _RETENTION),
    ),
)
