"""Verbs that change where a job stands. Each says first what it would do, and asks."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from airflow_bookmarks.cli.verb import JOB, Argument, Verb, positive, print_facts
from airflow_bookmarks.core.errors import OptionError

if TYPE_CHECKING:
    from airflow_bookmarks.lifecycle.change import Change, Preview
    from airflow_bookmarks.store.bookmark_store import BookmarkStore


def _reset(store: BookmarkStore, given: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.change import Change

    _change(store, given, Change("reset", contexts=_contexts(given), clean=given.clean))


def _rewind(store: BookmarkStore, given: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.change import Change
    from airflow_bookmarks.lifecycle.moment import resolve_moment

    kept = resolve_moment(store, given.job, given.to)
    _change(store, given, Change("rewind", str(kept.key.number), _contexts(given), clean=given.clean))


def _set(store: BookmarkStore, given: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.change import Change

    _change(store, given, Change("set", ctx=given.ctx, value=given.value))


def _undo(store: BookmarkStore, given: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.change import Change

    _change(store, given, Change("undo"))


def _unlock(store: BookmarkStore, given: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.change import unlock
    from airflow_bookmarks.lifecycle.rewind import present_user

    print_facts(unlock(store, given.job, reason=given.reason, who=present_user()), given)


def _replay(store: BookmarkStore, given: argparse.Namespace) -> None:
    from airflow_bookmarks.lifecycle.replay import replay_settings

    print_facts(replay_settings(store, given.job, given.run), given)


def _contexts(given: argparse.Namespace) -> tuple[str, ...] | None:
    return tuple(given.ctx) if given.ctx else None


def _change(store: BookmarkStore, given: argparse.Namespace, change: Change) -> None:
    from airflow_bookmarks.lifecycle.change import apply, preview
    from airflow_bookmarks.lifecycle.rewind import present_user

    seen = preview(store, given.job, change)
    _confirm(store, seen, given)
    done = apply(store, given.job, change, given.reason, present_user(), given.force, seen.version)
    print_facts(done.as_dict(), given)


def _confirm(store: BookmarkStore, seen: Preview, given: argparse.Namespace) -> None:
    """Say what would be done, and ask. On stderr, so that stdout holds the result alone.

    Raises:
        OptionError: not confirmed, or nobody there to ask.
    """
    print(_in_words(store, seen), file=sys.stderr)
    if given.yes:
        return
    if not sys.stdin.isatty():
        raise OptionError("this needs a confirmation, and there is no terminal. Nothing was changed. Give --yes.")
    print("Go on? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise OptionError("not confirmed. Nothing was changed.")


def _in_words(store: BookmarkStore, seen: Preview) -> str:
    numbers = f" ({', '.join(map(str, seen.undone))})" if seen.undone else ""
    lines = [
        f"job {seen.job!r} in namespace {store.namespace!r} (version {seen.version}): {seen.kind}, goes back to "
        + (f"run {seen.kept}" if seen.kept else "before its first run")
        + f": {len(seen.undone)} runs are undone{numbers}."
    ]
    lines += [f"  {ctx}: watermark {marks['before']} -> {marks['after']}" for ctx, marks in seen.watermarks.items()]
    rows = "" if seen.rows is None else f", {seen.rows:,} rows"
    lines.append(f"  read again: {seen.files:,} files, {seen.bytes:,} bytes{rows}")
    if seen.to_clean:
        lines.append(f"  removed by the next run: {seen.to_clean:,} published files; there is no undo after that")
    lines += [f"  would hold rows twice: {target}" for target in seen.twice]
    lines += [f"  consumer {name} has read up to run {number}" for name, number in seen.consumers.items()]
    if seen.holder is not None:
        lines.append(f"  held by {seen.holder!r}")
    return "\n".join(lines)


_REASON = Argument(("--reason",), {"required": True, "metavar": "TEXT", "help": "why; kept with who and when"})
_CHANGING = (
    _REASON,
    Argument(("--force",), {"action": "store_true", "help": "also while a run holds the job: it is fenced"}),
    Argument(("--yes",), {"action": "store_true", "help": "do not ask"}),
)
_BACK = (
    Argument(("--ctx",), {"action": "append", "metavar": "CTX", "help": "only this context (may be repeated)"}),
    Argument(("--clean",), {"action": "store_true", "help": "also remove what the undone runs published; no undo"}),
    *_CHANGING,
)

CHANGING = (
    Verb("reset", "Take a job back to before its first run; the next run reads everything", _reset, (JOB, *_BACK)),
    Verb(
        "rewind",
        "Take a job back to its state after an earlier run",
        _rewind,
        (
            JOB,
            Argument(
                ("--to",),
                {
                    "required": True,
                    "metavar": "RUN",
                    "help": "what is kept: a run number, a run id, a time (the last run committed by then), or "
                    "watermark:<value> (the last run that had not passed it)",
                },
            ),
            *_BACK,
        ),
    ),
    Verb(
        "set",
        "Put one context to a position without a run",
        _set,
        (
            JOB,
            Argument(("ctx",), {"metavar": "CTX", "help": "name of the context"}),
            Argument(("value",), {"metavar": "VALUE", "help": "'now'; a time (files); a run number (upstream)"}),
            *_CHANGING,
        ),
    ),
    Verb("undo", "Take back the last reset, rewind, set or undo", _undo, (JOB, *_CHANGING)),
    Verb("unlock", "Free a lease whose holder is known to be dead; it is fenced", _unlock, (JOB, _REASON)),
    Verb(
        "replay",
        "Say how to make the output of a finished run again: it takes a Spark driver",
        _replay,
        (JOB, Argument(("--run",), {"required": True, "type": positive, "metavar": "N", "help": "run number"})),
    ),
)
