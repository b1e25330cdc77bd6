"""The verb that takes jobs back with everything downstream of them: it shows the whole plan, and asks."""

from __future__ import annotations

import argparse
import math
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.cli.confirmation import confirm, say_aside
from airflow_bookmarks.cli.output.consequences import removed_in_words
from airflow_bookmarks.cli.output.values import WARNING, amount, as_json, as_table
from airflow_bookmarks.cli.output.values import in_words as value_in_words
from airflow_bookmarks.cli.verb import (
    FORCE,
    HIDE_STATE,
    REASON,
    YES,
    Argument,
    Verb,
    VerbContext,
    hint,
    print_fields,
    say,
)
from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.rules.audit import check_reason
from airflow_bookmarks.core.text.count import counted
from airflow_bookmarks.core.text.escaping import escaped
from airflow_bookmarks.core.text.instant import in_words

if TYPE_CHECKING:
    from collections.abc import Mapping

_COLUMNS = ("job", "goes back to", "undone", "read again", "removed", "expected", "because of")


def _backfill(context: VerbContext, args: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.backfill.carry_out import carry_out
    from airflow_bookmarks.lifecycle.backfill.plan import plan_backfill, roots_at

    check_reason("a backfill", args.reason)
    if (args.to is None) != args.from_start:
        raise OptionError("say either --to POINT or --from-start. Nothing was changed.")
    roots = roots_at(context.store, args.jobs, args.to, clean=args.clean)
    planned = plan_backfill(
        context.store, roots, downstream=not args.only, leave=args.leave, keep=args.keep, force=args.force
    )
    told = planned.as_dict(cost_per_hour=args.cost_per_hour, shown=lambda seen: context.shown(seen, args))
    lines = plan_in_lines(told)
    if args.dry_run:
        say(as_json(told) if args.output == "json" else hint("\n".join(lines), args))
        return
    say_aside(*hint("\n".join(lines), args).split("\n"))
    if not planned.refused:  # else it is refused at once, with the reasons
        confirm(args)
    who = context.find_identity().signature
    print_fields(carry_out(context.store, planned, reason=args.reason, who=who).as_dict(), args)


def plan_in_lines(told: Mapping[str, Any]) -> list[str]:
    """Return the plan of a backfill as lines for people: the jobs in order, then sums, doubts and refusals."""
    steps = told["steps"]
    lines = as_table([_row(step) for step in steps], _COLUMNS).split("\n")
    lines.append(f"in all: {counted(told['undone_run_count'], 'run')} undone, read again: {amount(told['read_again'])}")
    removed = removed_in_words(told)
    if removed:
        lines.append(f"removed by the next runs: {removed}; there is no undo after that")
    lines += [line for step in steps for line in _state(step)]
    lines += _time_and_cost(told)
    lines += [f"{WARNING}: {step['job']}: {doubt}" for step in steps for doubt in step["doubts"]]
    lines += [f"would hold rows twice: {target} (of {step['job']})" for step in steps for target in _twice(step)]
    if told["unaffected"]:
        lines.append(f"have read nothing of it, and stay: {', '.join(told['unaffected'])}")
    if told["left_out"]:
        lines.append(f"left out, and keep what they have read of it: {', '.join(told['left_out'])}")
    lines += [f"then trigger, in this order: {_dags(told)}"] if steps else []
    lines += [f"CAN'T GO BACK: {step['job']}: {step['refused']}" for step in steps if step["refused"] is not None]
    return [escaped(line) for line in lines]


def _row(step: Mapping[str, Any]) -> dict[str, Any]:
    seen = step["preview"]
    where = "before its first run" if step["to_run"] is None else f"run {step['to_run']}"
    because = ", ".join(f"{job} (run {number})" for job, number in step["because"].items())
    why = because or ("asked for" if step["is_root"] else "what undone runs left")
    row: dict[str, Any] = {"job": step["job"], "goes back to": where, "because of": why}
    if step["stands"]:
        return {**row, "goes back to": f"{where}: is there already"}
    if seen is None:
        return {**row, "goes back to": f"{where}: CAN'T"}
    return {
        **row,
        "undone": seen["undone_run_count"],
        "read again": amount(seen["read_again"]),
        "removed": removed_in_words(seen),
        "expected": _length(step["seconds"]),
    }


def _state(step: Mapping[str, Any]) -> list[str]:
    """Say which values of `job.state` change, before and after."""
    seen = {} if step["preview"] is None else step["preview"]["state"]
    return [
        f"job.state {name} of {step['job']}: {value_in_words(moved['before'])} -> {value_in_words(moved['after'])}"
        for name, moved in seen.items()
    ]


def _time_and_cost(told: Mapping[str, Any]) -> list[str]:
    if told["seconds"] is None:
        return ["expected time: not known; the runs before do not tell it of each job"]
    cost = "" if told["cost"] is None else f", at a cost of {told['cost']:,.2f}"
    return [f"expected time: {_length(told['seconds'])}, with jobs that don't wait for each other side by side{cost}"]


def _length(seconds: float | None) -> str | None:
    return None if seconds is None else in_words(timedelta(seconds=math.ceil(seconds)))


def _twice(step: Mapping[str, Any]) -> list[str]:
    return [] if step["preview"] is None else step["preview"]["written_twice"]


def _dags(told: Mapping[str, Any]) -> str:
    named = [
        ("by hand" if each["dag_id"] is None else f"DAG {each['dag_id']}", each["jobs"]) for each in told["dag_runs"]
    ]
    return "; ".join(f"{who} ({', '.join(jobs)})" for who, jobs in named)


def _price(text: str) -> float:
    """Return what an hour costs, for argparse."""
    try:
        price = float(text)
    except ValueError:
        price = math.nan
    if not (math.isfinite(price) and price >= 0):
        raise argparse.ArgumentTypeError(f"{text!r} is no price of an hour")
    return price


_JOBS = Argument(("jobs",), {"metavar": "JOB", "nargs": "+", "help": "name of a job that goes back"})
_TO_HELP = (
    "the last run to keep: a run number, a run id, a time (the last run committed by then) or watermark:VALUE; for "
    "several jobs a time"
)
_TO = Argument(("--to",), {"metavar": "POINT", "default": None, "help": _TO_HELP})
_START = Argument(("--from-start",), {"action": "store_true", "help": "back to before the first run"})
_ONLY = Argument(("--only",), {"action": "store_true", "help": "only these jobs, and not what reads them"})
_CLEAN_HELP = "also remove what the undone runs published, of all jobs; their next runs do it, and it can't be undone"
_CLEAN = Argument(("--clean",), {"action": "store_true", "help": _CLEAN_HELP})
_LEAVE_HELP = "a reader that stays as it is, and with it what reads only that (repeatable)"
_LEAVE = Argument(("--leave",), {"action": "append", "metavar": "JOB", "default": [], "help": _LEAVE_HELP})
_KEEP_HELP = "a job whose output stays in spite of --clean, as of tables from which nothing can be taken (repeatable)"
_KEEP = Argument(("--keep",), {"action": "append", "metavar": "JOB", "default": [], "help": _KEEP_HELP})
_COST_HELP = "what an hour of a run costs, in any currency: the plan says what the runs after it cost"
_COST = Argument(("--cost-per-hour",), {"type": _price, "metavar": "PRICE", "default": None, "help": _COST_HELP})
_DRY_RUN = Argument(("--dry-run",), {"action": "store_true", "help": "only show the plan"})

VERBS = (
    Verb(
        "backfill",
        "Take jobs back with everything downstream of them: one plan, then one job after the other",
        _backfill,
        (_JOBS, _TO, _START, _ONLY, _CLEAN, _LEAVE, _KEEP, _COST, REASON, FORCE, YES, _DRY_RUN, HIDE_STATE),
    ),
)
