"""The commands of the Glue layer: `python -m airflow_bookmarks.glue COMMAND`.

path                   print the folder for PYTHONPATH
zip                    write this layer and its runtime as one zip, for --py-files
check                  tell whether scripts for AWS Glue would find this layer
inventory              tell what scripts need of Glue, without running them
get-job-bookmark       print a bookmark in Glue's shape
reset-job-bookmark     reset or rewind a bookmark
import-job-bookmark    take over a bookmark of Glue as the starting position
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.cli.output.values import FORMATS, as_table
from airflow_bookmarks.cli.verb import print_rows, say
from airflow_bookmarks.core.errors import BookmarkError, DocumentError, OptionError
from airflow_bookmarks.core.text.count import counted
from airflow_bookmarks.core.text.escaping import escaped

if TYPE_CHECKING:
    from airflow_bookmarks.glue.bookmarks.first_run import ContextPlace

PROGRAM = "python -m airflow_bookmarks.glue"
PATH = Path(__file__).parent / "path"
WATERMARKS = "scripts.helpers.watermarks"

_NOT_ON_THE_PATH = f'not on the path: PYTHONPATH="$({PROGRAM} path):$PYTHONPATH"'
_CHECK_COLUMNS = ("what", "is_right", "found")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, and return its exit code: 0 done, 1 refused or something is wrong, 2 wrong usage."""
    args = _parser().parse_args(arguments)
    run: Callable[[argparse.Namespace], int | None] = args.run
    try:
        return run(args) or 0
    except BookmarkError as error:
        print(f"{PROGRAM}: {escaped(str(error), keep=chr(10))}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader (`head`, a pager) has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(PROGRAM, description="Run scripts for AWS Glue on any Spark.", allow_abbrev=False)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _command(commands, "path", _path, "print the folder for PYTHONPATH")

    zipped = _command(commands, "zip", _zip, "write this layer and its runtime as one zip, and print its path")
    zipped.add_argument("--folder", metavar="FOLDER", help="where to write it; default: a folder for temporary files")

    check = _command(commands, "check", _check, "tell whether scripts would find this layer, and what it needs")
    _add_output(check)

    listed = _command(commands, "inventory", _inventory, "tell what scripts need of Glue, without running them")
    listed.add_argument("paths", nargs="+", metavar="PATH", help="a script, or a folder of scripts")
    _add_output(listed)

    shown = _command(commands, "get-job-bookmark", _get, "print a bookmark in Glue's shape, as JSON")
    _add_job(shown, "the bookmark as it was after this run")

    reset = _command(commands, "reset-job-bookmark", _reset, "reset a bookmark, or rewind it to its state after a run")
    _add_job(reset, "the run whose state the bookmark goes back to")
    reset.add_argument("--reason", metavar="TEXT", help="the reason, recorded with your name and the time")
    reset.add_argument("--force", action="store_true", help="even while a run holds the job, which can't commit then")

    taken = _command(commands, "import-job-bookmark", _import, "take over a bookmark of Glue as the starting position")
    taken.add_argument("file", metavar="FILE", help="what 'aws glue get-job-bookmark' printed; - for stdin")
    taken.add_argument("--job-name", metavar="NAME", help="the name of the job here; default: that in Glue")
    taken.add_argument(
        "--path",
        action="append",
        default=[],
        metavar="CTX=PATH",
        help="what a context reads, as the script says it; repeatable",
    )
    taken.add_argument(
        "--table",
        action="append",
        default=[],
        metavar="CTX=DATABASE.TABLE",
        help="the table of the Data Catalog that a context reads; repeatable",
    )
    taken.add_argument(
        "--in-band",
        choices=("read", "again"),
        help="what becomes of files that came just before Glue's last run, where its hashes do not tell",
    )
    taken.add_argument(
        "--without", action="append", default=[], metavar="CTX", help="a context that begins anew; repeatable"
    )
    _add_store(taken)
    _add_output(taken)
    return parser


def _command(commands: Any, name: str, run: Callable[[argparse.Namespace], int | None], help: str) -> Any:
    parser = commands.add_parser(name, help=help, description=help, allow_abbrev=False)
    parser.set_defaults(run=run)
    return parser


def _add_job(parser: argparse.ArgumentParser, run_id: str) -> None:
    parser.add_argument(
        "--job-name",
        required=True,
        metavar="NAME",
        help="the name of the job: bookmark_job of its task, or what the script gives to Job.init",
    )
    parser.add_argument("--run-id", metavar="RUN", help=run_id)
    _add_store(parser)


def _add_store(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--store", metavar="URI", help="default: the environment variable AIRFLOW_BOOKMARKS_STORE")


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", default=FORMATS[0], choices=FORMATS, help="table for people, json for programs")


# ---- where the layer is


def _path(args: argparse.Namespace) -> None:
    if not PATH.is_dir():  # within a zip there is no folder, and none is needed
        raise OptionError(f"{str(PATH)!r} is no folder: this package runs from a zip, on whose root awsglue lies.")
    say(str(PATH))


def _zip(args: argparse.Namespace) -> None:
    from airflow_bookmarks.operators.runtime_zip import glue_zip

    say(str(glue_zip(None if args.folder is None else Path(args.folder))))


def _check(args: argparse.Namespace) -> int:
    rows = [
        _row("airflow_bookmarks", True, str(Path(__file__).parents[1])),
        _found_awsglue(),
        _found_watermarks(),
        *_found_packages(),
        _found_store(),
    ]
    print_rows(rows, _CHECK_COLUMNS, args)
    return 0 if all(row["is_right"] for row in rows) else 1


def _found_awsglue() -> dict[str, Any]:
    spec = PathFinder.find_spec("awsglue")
    origin = None if spec is None else spec.origin
    ours = str(PATH / "awsglue" / "__init__.py")
    if origin is None:
        found = _NOT_ON_THE_PATH
    elif origin == ours or "airflow_bookmarks" in origin:
        return _row("awsglue", True, origin)
    else:
        found = f"another one comes first: {origin}. Put {PATH} before it, or remove it"
    return _row("awsglue", False, found)


def _found_watermarks() -> dict[str, Any]:
    """Say which module a script gets, without an import: that would run a project's own code."""
    origin, places = _found_module(WATERMARKS)
    beside = PathFinder.find_spec("awsglue")
    root = str(Path(beside.origin).parents[1]) if beside is not None and beside.origin is not None else str(PATH)
    if origin is not None:
        is_ours = origin.startswith((str(PATH), f"{root}{os.sep}scripts"))
        return _row(WATERMARKS, True, "found beside awsglue" if is_ours else f"one of your own, which stays: {origin}")
    if not places or beside is None:  # a package `scripts` may have come with any other
        return _row(WATERMARKS, False, _NOT_ON_THE_PATH)
    found = f"found once the script has imported awsglue: {places[0]}, a package of your own, comes first and has none"
    return _row(WATERMARKS, True, found)


def _found_module(name: str) -> tuple[str | None, list[str]]:
    """Return where a module in packages lies, None if it is not found; and where the last of its packages lies that is.

    A package that lies there too and is nearer hides the others, as in an import.
    """
    places: list[str] | None = None
    spec = None
    for part in name.split("."):
        # By its own name, as if at the top: a package without __init__.py asks for the parent, which is not imported.
        spec = PathFinder.find_spec(part, places)
        if spec is None:
            return None, places or []
        places = list(spec.submodule_search_locations or ())
    return None if spec is None else spec.origin, places or []


def _found_packages() -> list[dict[str, Any]]:
    rows = []
    for name, why in (("pyspark", "of the Spark that runs the scripts"), ("boto3", "for the store"), ("numpy", "")):
        spec = find_spec(name)
        found = f"not installed here{': it is that ' + why if why else ''}" if spec is None else str(spec.origin)
        rows.append(_row(name, spec is not None, found))
    return rows


def _found_store() -> dict[str, Any]:
    from airflow_bookmarks.glue.bookmarks.requests import STORE_VARIABLE

    uri = os.environ.get(STORE_VARIABLE)
    return _row("store", True, uri or f"from the operator; by hand {STORE_VARIABLE} or spark.bookmarks.store")


def _row(what: str, is_right: bool, found: str) -> dict[str, Any]:
    return {"what": what, "is_right": is_right, "found": found}


# ---- scripts


def _inventory(args: argparse.Namespace) -> None:
    from airflow_bookmarks.glue.inventory.report import (
        FINDING_COLUMNS,
        SCRIPT_COLUMNS,
        TARGET_COLUMNS,
        inventory,
    )

    reports = inventory(args.paths)
    if args.output == "json":
        say(json.dumps([report.as_dict() for report in reports], indent=2))
        return
    say(as_table([report.row() for report in reports], SCRIPT_COLUMNS))
    findings = [finding for report in reports for finding in report.findings()]
    targets = [target for report in reports for target in report.fixed_targets()]
    for rows, columns in ((findings, FINDING_COLUMNS), (targets, TARGET_COLUMNS)):
        if rows:
            say(f"\n{as_table(rows, columns)}")


# ---- bookmarks


def _get(args: argparse.Namespace) -> None:
    from airflow_bookmarks.glue.bookmarks.requests import get_job_bookmark

    say(json.dumps(get_job_bookmark(args.job_name, args.run_id, store=args.store), indent=4))


def _reset(args: argparse.Namespace) -> None:
    from airflow_bookmarks.glue.bookmarks.requests import RESET_REASON, reset_job_bookmark

    after = reset_job_bookmark(
        args.job_name, args.run_id, store=args.store, reason=args.reason or RESET_REASON, force=args.force
    )
    say(json.dumps(after, indent=4))


def _import(args: argparse.Namespace) -> None:
    from airflow_bookmarks.glue.bookmarks.entry import read_entry
    from airflow_bookmarks.glue.bookmarks.first_run import take_over
    from airflow_bookmarks.glue.bookmarks.requests import opened_store

    entry = read_entry(_document(args.file))
    told = take_over(
        opened_store(args.store),
        entry,
        _places(args),
        job=args.job_name,
        in_band=args.in_band,
        without=args.without,
    )
    print_rows([each.as_dict() for each in told], ("ctx", "read", "new", "watermark"), args)
    if args.output != "json":
        read = sum(each.read for each in told)
        say(f"\n{counted(read, 'file')} counted as read, by run 1 of the job; the next run reads what is new.")


def _document(file: str) -> Any:
    try:
        return json.loads(sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DocumentError(f"{file!r} can't be read as JSON ({error}). Nothing was written.") from error


def _places(args: argparse.Namespace) -> dict[str, ContextPlace]:
    from airflow_bookmarks.glue.bookmarks.first_run import ContextPlace
    from airflow_bookmarks.glue.catalogs.data_catalog import DataCatalog

    paths = _by_context("--path", args.path)
    tables = _by_context("--table", args.table)
    twice = sorted({*paths} & {*tables}) + [ctx for ctx, names in tables.items() if len(names) > 1]
    if twice:
        raise OptionError(f"context {twice[0]!r} has a table, and something else. Nothing was written. Give one.")
    found = {ctx: ContextPlace(each) for ctx, each in paths.items()}
    return found | {ctx: ContextPlace.of_table(DataCatalog(), name) for ctx, (name,) in tables.items()}


def _by_context(flag: str, given: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for text in given:
        ctx, sign, value = text.partition("=")
        if not (ctx and sign and value):
            raise OptionError(f"{flag} {text!r}: expected CTX=... Nothing was written.")
        found.setdefault(ctx, []).append(value)
    return found


if __name__ == "__main__":
    sys.exit(main())
