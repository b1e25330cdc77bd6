"""Run the matrix, or some of its cells: `python -m tools.matrix --help`.

All of it takes hours on a small machine. When it was stopped, the same command goes on with the cells that are left.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tools.matrix.cells import CELLS, Cell, UnknownCellError, named
from tools.matrix.environment import ROOT, EnvironmentFailedError, prepare, variables
from tools.matrix.outcome import Outcome, load, read_report, save
from tools.matrix.page import page_of

if TYPE_CHECKING:
    from collections.abc import Sequence

_FOLDER = ROOT / "build" / "matrix"
# Kept with the sources: a clone in which one cell is run still knows what the others came to.
_OUTCOMES = ROOT / "tools" / "matrix" / "outcomes"
_PAGE = ROOT / "docs" / "reference" / "compatibility.md"
_SHOWN = ("apache-airflow", "pyspark", "pyspark-client", "boto3", "numpy")
# What a cell takes at most, by looking at it: two workers of pytest, each with Spark or Airflow beside it.
_CELL_GIB = 8


def main(arguments: list[str] | None = None) -> int:
    """Run cells, print what each came to, and write the page from what each came to last."""
    options = _parser().parse_args(arguments)
    try:
        cells = named(options.only)
    except UnknownCellError as error:
        print(f"matrix: {error}", file=sys.stderr)
        return 2
    if options.list:
        print(*(f"{cell.name:18} Spark {cell.row}, {cell.column}: {' '.join(cell.tests)}" for cell in cells), sep="\n")
        return 0
    for folder in (_FOLDER, _OUTCOMES):
        folder.mkdir(parents=True, exist_ok=True)
    with _FOLDER.joinpath("lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("matrix: another one runs in this clone, with its environments. Nothing was run.", file=sys.stderr)
            return 2
        return _run_all(cells, options)


def _run_all(cells: Sequence[Cell], options: argparse.Namespace) -> int:
    """Run cells that nobody else runs here, and write the page after each."""
    if not options.only:
        cells = _left_over(cells, is_thorough=options.thorough)
    print(f"matrix: {len(cells)} of {len(CELLS)} cells, {options.jobs} at a time; logs in {_FOLDER.relative_to(ROOT)}")
    are_good = True
    if options.brief:  # what Spark's compiler makes of the same queries, other runs of these cells show
        cells = [replace(cell, tests=cell.in_brief or cell.tests, is_compiled=False) for cell in cells]
    with ThreadPoolExecutor(options.jobs) as pool:
        for outcome in pool.map(lambda cell: _run(cell, options), cells):
            are_good = are_good and outcome.is_good
            if not options.brief:
                _write_page()
    if not cells and not options.brief:
        _write_page()
    return 0 if are_good else 1


def _left_over(cells: Sequence[Cell], *, is_thorough: bool) -> tuple[Cell, ...]:
    """Return the cells whose tests have not passed on this very state yet, and name the others."""
    left = []
    for cell in cells:
        before = load(cell.name, _OUTCOMES)
        is_done = before is not None and before.is_good and _is_state_of(before.commit)
        if before is not None and is_done and before.is_thorough >= (is_thorough or cell.is_thorough):
            print(f"matrix: {cell.name}: {before.summary} on this state before; ONLY={cell.name} runs it again")
        else:
            left.append(cell)
    return tuple(left)


def _write_page() -> None:
    """Write the page from what each cell came to last; the page names those that were never run."""
    last = {cell.name: outcome for cell in CELLS if (outcome := load(cell.name, _OUTCOMES))}
    _PAGE.write_text(page_of(CELLS, last))
    print(f"matrix: wrote {_PAGE.relative_to(ROOT)}, from {len(last)} of {len(CELLS)} cells")


def _is_state_of(commit: str) -> bool:
    """Whether nothing differs here from a commit but what a run writes."""
    if not re.fullmatch("[0-9a-f]{7,40}", commit) or _git("status", "--porcelain", "--", *_not_written()):
        return False
    command = ["git", "diff", "--quiet", commit, "--", *_not_written()]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode == 0


def _not_written() -> list[str]:
    """Return how git names all but what a run writes."""
    return [".", *(f":!{path.relative_to(ROOT)}" for path in (_OUTCOMES, _PAGE))]


def _commit() -> str:
    """Return the commit that is tested, with a plus where the tree differs from it in more than what a run writes."""
    commit = _git("rev-parse", "--short=7", "HEAD")
    return f"{commit}{'+' if _git('status', '--porcelain', '--', *_not_written()) else ''}" if commit else "unknown"


def _git(*arguments: str) -> str:
    """Return what git says; nothing where there is no history, as in an sdist."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.matrix", description=__doc__)
    parser.add_argument("only", nargs="*", metavar="CELL", help="the cells to run (default: all that are left)")
    parser.add_argument("--list", action="store_true", help="say which cells there are, and run nothing")
    extent = parser.add_mutually_exclusive_group()
    extent.add_argument("--thorough", action="store_true", help="run tests marked thorough too")
    extent.add_argument(
        "--brief",
        action="store_true",
        help="what CI runs: the most telling tests, none that are slow or seldom; no outcome is kept",
    )
    parser.add_argument("--jobs", type=int, default=_cells_at_a_time(), help="cells at a time (default: by memory)")
    parser.add_argument("--workers", type=int, default=2, help="processes of pytest in each cell (default: 2)")
    return parser


def _cells_at_a_time() -> int:
    gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return max(1, min((os.cpu_count() or 1) // 2, int(gib // _CELL_GIB)))


def _run(cell: Cell, options: argparse.Namespace) -> Outcome:
    """Prepare a cell's environment, run its tests there, and keep and print what they came to."""
    is_thorough = options.thorough or cell.is_thorough
    before = load(cell.name, _OUTCOMES)
    expected = f", {before.seconds:,.0f} s the last time" if before else ""
    print(f"matrix: {cell.name} begins{expected}", flush=True)
    started = time.monotonic()
    try:
        folder = prepare(cell)
        if cell.driver:
            prepare(*named([cell.driver]))
    except EnvironmentFailedError as error:
        (_FOLDER / f"{cell.name}.log").write_text(f"{error}\n")
        seconds = time.monotonic() - started
        outcome = Outcome(cell.name, 0, {}, [], "its environment can't be made", {}, seconds, _commit())
    else:
        outcome = _test(cell, folder, [*_marks(options, is_thorough=is_thorough), "-n", str(options.workers)], started)
    today = datetime.now(UTC).date().isoformat()
    outcome = replace(outcome, is_thorough=is_thorough, python=cell.python, tests=cell.tests, date=today)
    if not options.brief:
        save(outcome, _OUTCOMES)
    print(f"matrix: {cell.name}: {outcome.summary} ({outcome.seconds:,.0f} s)", flush=True)
    for test in outcome.failed:
        print(f"matrix: {cell.name}: failed {test}", flush=True)
    return outcome


def _marks(options: argparse.Namespace, *, is_thorough: bool) -> list[str]:
    """Return the options by which pytest chooses tests."""
    left_out = [] if is_thorough else ["not thorough"]
    if options.brief:
        left_out += ["not own_spark", "not seldom", "not slow"]
    return ["-m", " and ".join(left_out)] if left_out else []


def _test(cell: Cell, folder: Path, options: list[str], started: float) -> Outcome:
    report, commit = _FOLDER / f"{cell.name}.xml", _commit()
    report.unlink(missing_ok=True)
    python = folder / "bin" / "python"
    command = [
        str(python),
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--dist",
        "loadgroup",
        *options,
        f"--junit-xml={report}",
        *cell.tests,
    ]
    environment = variables(cell, folder)
    with (_FOLDER / f"{cell.name}.log").open("w") as log:
        # Without it the tests take longer, and the log says why it could not be made.
        subprocess.run(
            [str(python), "-m", "demo.class_archive"], cwd=ROOT, env=environment, stdout=log, stderr=log, check=False
        )
        done = subprocess.run(command, cwd=ROOT, env=environment, stdout=log, stderr=log, check=False)
    outcome = read_report(cell.name, report, done.returncode, _versions(python), time.monotonic() - started)
    return replace(outcome, commit=commit)


def _versions(python: Path) -> dict[str, str]:
    code = (
        "import json, importlib.metadata as m\n"
        f"print(json.dumps({{d.name: d.version for d in m.distributions() if d.name in {_SHOWN!r}}}))"
    )
    found = json.loads(subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout)
    return {name: found[name] for name in _SHOWN if name in found}


if __name__ == "__main__":
    sys.exit(main())
