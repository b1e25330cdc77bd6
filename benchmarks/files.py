"""Reading files with a bookmark, beside what a user would pick instead: time, memory, requests, and the state it keeps.

B1  nothing new: planning and whole runs, against a bare look at all files and Structured Streaming (AvailableNow)
B2  100 new files among many: a whole run with Spark, against Structured Streaming, and a job that is told the paths
B3  first load: planning, against what Structured Streaming needs to find the same files
B4  draining a backlog by 1,000 files: what a batch costs besides reading, against Structured Streaming
B5  listing keys of a bucket, against boto3's paginator and Spark's s3a; a stand-in serves, whose answers take a while
B6  the state after many runs: what is stored, and what was written
B7  many files of one time, read in bounded runs: none lost, none read twice
B8  memory at most: listing and planning

Peers are measured in turns, each in a process of its own; rounds before the first counted one warm up. Spark's start is
not part of any time, and shown apart. "s CPU" is time of the processor: planning on a local disk waits for nobody, and
by the clock a shared machine adds what others do. What is there before is empty files, because what is measured is the
finding; what Structured Streaming has read of them is entered into its checkpoint, because reading a million of them
would take it longer than all else.

Example:
    $ python -m benchmarks.files
    $ python -m benchmarks.files --small                  # counts alone; exit code 1 where one is wrong
    $ python -m benchmarks.files --only B1 B8 --sizes 1000000
    $ python -m benchmarks.files --clean                  # removes the files that were made
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.chart import Chart
from benchmarks.draining import FLAT, measure_draining
from benchmarks.figure import header
from benchmarks.ground import DATA, Ground, clean, ground
from benchmarks.report import Line, Report
from benchmarks.side import Side, Told, side
from tests.files.s3.s3_stand_in import StandIn, stand_in

RESULT = Path("build/bench")
NEW_FILES = 100
MEMORY_MB = 500
LISTING_FASTER, DISCOVERY_FASTER = 5, 3
LEDGER_BYTES, STATE_BYTES = 16, 60

_MANY = 1_000_000  # from here on rounds are few, and peers have one
_FILES = "files already read"

_OURS_PLAN, _OURS_RUN = "ours, planning", "ours, a whole run without Spark"
_OURS_SPARK = "ours, a whole run with Spark"
_BARE, _STREAM, _TOLD = "bare look at each file", "Structured Streaming", "job that is told the paths"
_BOTO, _S3A = "boto3's paginator", "s3a through Spark"


def _charts() -> dict[str, Chart]:
    return {
        "b1-nothing-new": Chart("Nothing new: the time to find that out", _FILES, "seconds"),
        "b2-new-among-old": Chart(f"{NEW_FILES} new files among many: a whole run", _FILES, "seconds"),
        "b3-first-load": Chart("First load: the time to find what is there", "files, all new", "seconds"),
        "b4-draining": Chart("Draining by 1,000 files: a batch, besides reading", "batch", "seconds", scale="linear"),
        "b5-listing": Chart("Listing a bucket whose answers take 50 ms", "keys", "seconds"),
        "b6-state": Chart("State kept, all history", "runs of 1,000 files", "bytes a file", scale="linear"),
        "b8-memory": Chart("Memory at most, a million files", "", "MB"),
    }


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is measured; `warm_up` and `rounds` are of processes without Spark, `spark_...` of those with it."""

    sizes: Sequence[int]
    keys: Sequence[int]
    far_s: float  # how long an answer of the stand-in for S3 takes
    state_rounds: int
    state_runs: int  # in each round
    tie_lots: int
    tie_files: int  # in each lot
    warm_up: int = 1
    rounds: int = 5
    spark_warm_up: int = 2
    spark_rounds: int = 5
    stream_first_up_to: int = 100_000

    def rounds_at(self, files: int) -> int:
        """Return how many rounds a size gets: a million take long, and vary little."""
        return min(self.rounds, 3) if files >= _MANY else self.rounds


FULL = Scale((10_000, 100_000, 1_000_000), (100_000, 1_000_000), 0.05, 10, 100, 10, 10_000)
SMALL = Scale((2_000,), (4_000,), 0.0, 2, 25, 4, 1_000, 0, 1, 0, 1)


@dataclass(frozen=True, slots=True)
class Bench:
    """One run of the benchmarks: what is measured, where to, and a folder for what nobody needs afterwards."""

    scale: Scale
    report: Report
    work: Path

    def store_of(self, files: int) -> Path:
        """Return the store in which a first load of so many files has ended."""
        return self.work / f"known-{files}" / "bookmarks.db"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print a table, write `build/bench/report.json` and `report.md`; return the exit code."""
    given = _parser().parse_args(arguments)
    if given.clean:
        clean()
        return 0
    scale = SMALL if given.small else FULL
    if given.sizes:
        scale = replace(scale, sizes=given.sizes, keys=given.sizes)
    if given.rounds:
        scale = replace(scale, rounds=given.rounds, spark_rounds=given.rounds)
    report = Report(facts={"load_before": os.getloadavg()}, charts=_charts())
    print(header())
    DATA.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="work-", dir=DATA) as work:
        bench = Bench(scale, report, Path(work).absolute())
        for name, measure in _MEASURES.items():
            if name in given.only:
                measure(bench)
                report.facts["load_after"] = os.getloadavg()
                report.write(RESULT)  # what is measured stays, whatever befalls the rest
    for line in () if given.small else report.lines:
        print(line.in_words())
    for check in report.wrong:
        print(f"WRONG: {check.in_words()}")
    print(f"{len(report.checks) - len(report.wrong)} of {len(report.checks)} counts are right; written to {RESULT}")
    return 1 if report.wrong else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m benchmarks.files", description="Reading files with a bookmark.")
    parser.add_argument("--small", action="store_true", help="few files, and counts alone: for a machine that is busy")
    parser.add_argument("--only", nargs="+", choices=sorted(_MEASURES), default=list(_MEASURES))
    parser.add_argument("--sizes", type=int, nargs="+", help="numbers of files and keys, whole thousands")
    parser.add_argument("--rounds", type=int, help="rounds that count")
    parser.add_argument("--clean", action="store_true", help="remove the files that were made, and end")
    return parser


# ---- B1, B3, B8: without Spark


def measure_first(bench: Bench) -> None:
    """B3: plan a first load; then let Structured Streaming find the same files."""
    for files in bench.scale.sizes:
        measure = f"B3 first load of {files:,}"
        with ground(files) as there:
            _make_known(bench, there)
            with side(
                "planning", "first", root=str(there.root), store=_path(bench, f"first-{files}.db"), commits=False
            ) as ours:
                rounds = _played([ours], bench.scale.warm_up, bench.scale.rounds_at(files))[0]
            plan = bench.report.add(measure, _OURS_PLAN, "s", _of(rounds, "plan_s"))
            chart = bench.report.charts["b3-first-load"]
            chart.point(_OURS_PLAN, files, plan.median)
            bench.report.check(f"{measure}: files planned", files, rounds[-1]["files"])
            if files > bench.scale.stream_first_up_to:
                continue
            with side(
                "spark_reading", "stream_first", root=str(there.root), work=_path(bench, f"stream-{files}")
            ) as stream:
                rounds = _played([stream], 0, min(bench.scale.spark_rounds, 3))[0]  # a first load is cold
        finding = bench.report.add(measure, f"{_STREAM}, reading nothing", "s", _of(rounds, "seconds"))
        bench.report.check(f"{measure}: files that Structured Streaming entered", files, rounds[-1]["files"])
        chart.point(f"{_STREAM}, reading nothing", files, finding.median)
        ratio = finding.median / plan.median
        bench.report.promise(Line(f"{measure}, times faster", ratio, DISCOVERY_FASTER, "times", is_least=True))


def _make_known(bench: Bench, there: Ground) -> Path:
    """Return a store that knows what is there, made by a run of ours."""
    store = bench.store_of(there.files)
    if not store.exists():
        with side("planning", "first", root=str(there.root), store=str(store), commits=True) as ours:
            came = ours.play()
        measure = f"B3 first load of {there.files:,}"
        bench.report.add(measure, f"{_OURS_RUN}, cold", "s", [came["run_s"]])
        bench.report.add(measure, f"{_OURS_RUN}, memory", "MB", [came["peak_mb"]])
    return store


def measure_nothing_new(bench: Bench) -> None:
    """B1: find nothing new; ours and a bare look in turns, then whole runs with Spark."""
    for files in bench.scale.sizes:
        measure = f"B1 nothing new at {files:,}"
        with ground(files) as there, ExitStack() as stack:
            store, root = _make_known(bench, there), str(there.root)
            bare = stack.enter_context(side("planning", "bare", root=root))
            copy = _path(bench, f"copy-{files}.db")
            ours = stack.enter_context(side("planning", "known", root=root, store=str(store), copy=copy))
            looked, ran = _played([bare, ours], bench.scale.warm_up, bench.scale.rounds_at(files))
        seconds = bench.report.add(measure, _BARE, "s", _of(looked, "seconds"))
        chart = bench.report.charts["b1-nothing-new"]
        chart.point(_BARE, files, seconds.median)
        look = bench.report.add(measure, _BARE, "s CPU", _of(looked, "cpu_s"))
        seconds = bench.report.add(measure, _OURS_PLAN, "s", _of(ran, "plan_s"))
        chart.point(_OURS_PLAN, files, seconds.median)
        plan = bench.report.add(measure, _OURS_PLAN, "s CPU", _of(ran, "plan_cpu_s"))
        bench.report.add(measure, _OURS_RUN, "s", _of(ran, "run_s"))
        bench.report.check(f"{measure}: files listed", looked[-1]["files"], ran[-1]["listed"])
        bench.report.check(f"{measure}: files known", files, ran[-1]["known"])
        bench.report.check(f"{measure}: files planned", 0, sum(one["files"] for one in ran))
        bench.report.check(f"{measure}: blobs written", 0, sum(one["blobs_written"] for one in ran))
        allowed = 1.2 * look.median + 0.5
        bench.report.promise(Line(f"{measure}, planning (1.2 bare looks + 0.5 s)", plan.median, allowed, "s CPU"))


def measure_memory(bench: Bench) -> None:
    """B8: what one round of listing and of planning takes, each in a fresh process."""
    files = max(bench.scale.sizes)
    measure = f"B8 memory at {files:,}"
    with ground(files) as there:
        store, root = _make_known(bench, there), str(there.root)
        copy, first = _path(bench, "copy.db"), _path(bench, "memory.db")
        with side("planning", "listing", root=root) as one:
            before, listed = one.started["peak_mb"], one.play()
        with side("planning", "known", root=root, store=str(store), copy=copy) as one:
            known = one.play()
        with side("planning", "first", root=root, store=first, commits=False) as one:
            new = one.play()
    bench.report.add(measure, "before anything, with imports", "MB", [before])
    for case, came in (("listing", listed), ("planning, nothing new", known), ("planning, first load", new)):
        figure = bench.report.add(measure, case, "MB", [came["peak_mb"]])
        bench.report.charts["b8-memory"].point(f"ours, {case}", files, figure.median)
        bench.report.promise(Line(f"{measure}, {case}", figure.median, MEMORY_MB, "MB"))
    bench.report.check(f"{measure}: files listed", files, listed["files"])


# ---- B1, B2: with Spark


def measure_new_among_old(bench: Bench) -> None:
    """B2, and the rest of B1: whole runs with Spark over 100 new files, and over nothing new."""
    for files in bench.scale.sizes:
        with ground(files) as there, ExitStack() as stack:
            _measure_spark(bench, there, stack)


def _measure_spark(bench: Bench, there: Ground, stack: ExitStack) -> None:
    root, store = str(there.root), str(_make_known(bench, there))
    work = bench.work / f"spark-{there.files}"
    bare = stack.enter_context(side("planning", "bare", root=root))
    told = stack.enter_context(side("spark_reading", "told", root=root, work=str(work / "told")))
    ours = stack.enter_context(side("spark_reading", "bookmarked", root=root, store=store, work=str(work / "ours")))
    stream = stack.enter_context(side("spark_reading", "stream", root=root, work=str(work / "stream")))
    starts = [one.started["ready_s"] for one in (told, ours)]  # the stream has made a checkpoint besides
    bench.report.add(f"Spark's start, beside {there.files:,}", "not part of any time", "s", starts)
    rounds = min(bench.scale.spark_rounds, bench.scale.rounds_at(there.files))
    lots = bench.scale.spark_warm_up + rounds
    # At a million one round of the stream takes longer than all else together: it gets one, over all that has come.
    is_rare = there.files >= _MANY
    new: list[Sequence[Told]] = []
    streamed: list[Told] = []
    for lot in range(lots):
        paths = there.arrive(lot, NEW_FILES)
        new.append([bare.play(), told.play(paths=paths), ours.play()])
        if not is_rare or lot == lots - 1:
            streamed.append(stream.play())
    look, oracle, mine = zip(*new[bench.scale.spark_warm_up :], strict=True)
    streamed = streamed if is_rare else streamed[bench.scale.spark_warm_up :]
    came = lots * NEW_FILES if is_rare else NEW_FILES
    empty = (_played([ours], 1, rounds)[0], _played([stream], 0 if is_rare else 1, 1 if is_rare else rounds)[0])
    measure = f"B2 {NEW_FILES} new among {there.files:,}"
    listing = bench.report.add(measure, _BARE, "s", _of(look, "seconds")).median
    target = bench.report.add(measure, _TOLD, "s", _of(oracle, "seconds")).median
    run = bench.report.add(measure, _OURS_SPARK, "s", _of(mine, "seconds")).median
    bench.report.add(measure, _STREAM, "s", _of(streamed, "seconds"))
    for case, sides, each in (
        (_TOLD, oracle, NEW_FILES),
        (_OURS_SPARK, mine, NEW_FILES),
        (_STREAM, streamed, came),
    ):
        bench.report.check(f"{measure}: rows, {case}", each * len(sides), sum(one["rows"] for one in sides))
        bench.report.charts["b2-new-among-old"].point(case, there.files, _median(sides))
    allowed = 1.05 * (target + listing + there.files / 1e6) + 0.3
    bench.report.promise(Line(f"{measure} (1.05 x (told + bare look + 1 us a file) + 0.3 s)", run, allowed, "s"))
    measure = f"B1 nothing new at {there.files:,}"
    for case, played in zip((_OURS_SPARK, _STREAM), empty, strict=True):
        bench.report.add(measure, case, "s", _of(played, "seconds"))
        bench.report.charts["b1-nothing-new"].point(case, there.files, _median(played))
        bench.report.check(f"{measure}: rows, {case}", 0, sum(one["rows"] for one in played))


# ---- B5


def measure_keys(bench: Bench) -> None:
    """B5: list a bucket, by ours, by the paginator and by Spark's s3a, in turns."""
    for keys in bench.scale.keys:
        with stand_in() as bucket, ExitStack() as stack:
            bucket.far_s = bench.scale.far_s
            bucket.hold(f"raw/month={i * 12 // keys + 1:02d}/part-{i:08d}.snappy.parquet" for i in range(keys))
            ours = stack.enter_context(side("object_listing", "ours", url=bucket.url))
            boto = stack.enter_context(side("object_listing", "paginator", url=bucket.url))
            s3a = stack.enter_context(side("object_listing", "s3a", url=bucket.url, work=_path(bench, f"s3a-{keys}")))
            _measure_keys(bench, bucket, keys, {"ours": ours, _BOTO: boto, _S3A: s3a})


def _measure_keys(bench: Bench, bucket: StandIn, keys: int, sides: Mapping[str, Side]) -> None:
    measure = f"B5 listing {keys:,} keys, {bench.scale.far_s * 1000:.0f} ms away"
    rounds: dict[str, list[Told]] = {case: [] for case in sides}
    requests: dict[str, list[int]] = {case: [] for case in sides}
    total = bench.scale.warm_up + bench.scale.rounds_at(keys)
    for number in range(total):
        for case, one in sides.items():
            if case != "ours" and keys >= _MANY and number < total - 1:
                continue  # at a million the others have one round
            bucket.seen.clear()
            came = one.play()
            if number >= bench.scale.warm_up:
                rounds[case].append(came)
                requests[case].append(len(bucket.seen))
    seconds = {}
    for case in sides:
        seconds[case] = bench.report.add(measure, case, "s", _of(rounds[case], "seconds")).median
        bench.report.add(measure, f"{case}, requests", "requests", requests[case])
        if case != _S3A:  # whose memory is that of the Java process beside it
            bench.report.add(measure, f"{case}, memory", "MB", _of(rounds[case][-1:], "peak_mb"))
        bench.report.charts["b5-listing"].point(case, keys, seconds[case])
        bench.report.check(f"{measure}: keys, {case}", keys, rounds[case][-1]["files"])
    pages = -(-keys // 1000)
    # A cut in a wrong place costs a request; more than one for each of many pages would be no listing by 1,000 keys.
    excess = max(0, max(requests["ours"]) - (pages + pages // 2 + 64))
    bench.report.check(f"{measure}: requests beyond half as many again as pages", 0, excess)
    ratio = seconds[_BOTO] / seconds["ours"]
    bench.report.promise(Line(f"{measure}, times faster", ratio, LISTING_FASTER, "times", is_least=True))


# ---- B6, B7


def measure_state(bench: Bench) -> None:
    """B6: what the state has come to after many runs."""
    scale, files = bench.scale, 1000
    with side("state_growth", "state", store=_path(bench, "state/bookmarks.db"), files=files) as one:
        rounds = [one.play(runs=scale.state_runs) for _ in range(scale.state_rounds)]
    _draw_state(bench, rounds)
    for number in sorted({0, scale.state_rounds - 1}):
        came, runs = rounds[number], (number + 1) * scale.state_runs
        measure = f"B6 state after {runs:,} runs of {files:,} files"
        for case, found in (
            ("ledger, its entries", came["ledger"]),
            ("ledger, headers and root", came["around"]),
            ("stored, all history", sum(came["stored"].values())),
            ("written so far", sum(one["written"] for one in rounds[: number + 1])),
            ("the database on disk", came["on_disk"]),
        ):
            bench.report.add(measure, f"{case}, a file", "bytes", [found / came["files"]])
        bench.report.check(f"{measure}: runs", runs, came["runs"])
        bench.report.check(f"{measure}: files", runs * files, came["files"])
        for kind in ("RUN", "EXEC"):
            bench.report.check(f"{measure}: items {kind}", runs, came["items"][kind])
        bench.report.check(f"{measure}: items HEAD", 1, came["items"]["HEAD"])
    measure, last = f"B6 a run of {files:,} files, of {scale.state_rounds * scale.state_runs:,}", rounds[-1]
    bench.report.add(measure, "written", "bytes", [one["written"] / scale.state_runs for one in rounds])
    for case, of in (("in a process that has made others", ""), ("in a new process", "_alone")):
        bench.report.add(measure, f"time, {case}", "ms", [one[f"seconds{of}"] * 1000 for one in rounds])
        bench.report.add(measure, f"read, {case}", "bytes", [one[f"read{of}"] for one in rounds])
    bench.report.add(measure, "CPU, in a process that has made others", "ms CPU", [one["cpu"] * 1000 for one in rounds])
    for case, of in (("CPU", "cpu"), ("bytes read", "read")):
        ratio = rounds[-1][of] / rounds[0][of]
        bench.report.promise(Line(f"{measure}, {case}: the last by the first {scale.state_runs}", ratio, FLAT, "times"))
    bench.report.facts["state"] = {"items": last["items"], "stored_bytes": last["stored"]}
    for case, total, allowed in (
        ("ledger", last["ledger"] + last["around"], LEDGER_BYTES),
        ("all history", sum(last["stored"].values()), STATE_BYTES),
    ):
        bench.report.promise(Line(f"{measure}, {case}, a file", total / last["files"], allowed, "bytes"))


def _draw_state(bench: Bench, rounds: Sequence[Told]) -> None:
    chart = bench.report.charts["b6-state"]
    for number, came in enumerate(rounds, 1):
        runs = number * bench.scale.state_runs
        chart.point("ours, ledger", runs, (came["ledger"] + came["around"]) / came["files"])
        chart.point("ours, stored with all history", runs, sum(came["stored"].values()) / came["files"])
        chart.point("ours, written so far", runs, sum(one["written"] for one in rounds[:number]) / came["files"])


def measure_ties(bench: Bench) -> None:
    """B7: files of one time arrive in lots, each larger than what a run may read; then runs drain what is left."""
    scale = bench.scale
    files, bound = scale.tie_lots * scale.tie_files, scale.tie_files * 7 // 10
    runs = -(-files // bound)
    measure = f"B7 {files:,} files of one time, in runs of {bound:,} at most"
    with side("state_growth", "ties", root=_path(bench, "ties"), store=_path(bench, "ties.db"), max_files=bound) as one:
        arrivals = [scale.tie_files] * scale.tie_lots + [0] * (runs - scale.tie_lots)
        rounds = [one.play(arrive=count) for count in arrivals]
    bench.report.add(measure, f"{_OURS_RUN}, bounded", "s", _of(rounds, "seconds"))
    bench.report.check(f"{measure}: there", files, rounds[-1]["there"])
    bench.report.check(f"{measure}: read", files, sum(one["planned"] for one in rounds))
    bench.report.check(f"{measure}: more than the bound in a run", 0, sum(one["planned"] > bound for one in rounds))
    bench.report.check(f"{measure}: lost", 0, rounds[-1]["lost"])
    bench.report.check(f"{measure}: read twice", 0, rounds[-1]["twice"])


# ---- rounds


def _played(sides: Sequence[Side], warm_up: int, rounds: int) -> Sequence[Sequence[Told]]:
    """Play all sides in turns; return for each what its rounds after the warm-up came to."""
    played = [[one.play() for one in sides] for _ in range(warm_up + rounds)]
    return list(zip(*played[warm_up:], strict=True))


def _of(rounds: Sequence[Told], name: str) -> list[float]:
    return [one[name] for one in rounds]


def _median(rounds: Sequence[Told]) -> float:
    return median(_of(rounds, "seconds"))


def _path(bench: Bench, name: str) -> str:
    return str(bench.work / name)


_MEASURES: Mapping[str, Callable[[Bench], None]] = {  # those that take longest last
    "B1": measure_nothing_new,
    "B8": measure_memory,
    "B6": measure_state,
    "B7": measure_ties,
    "B5": measure_keys,
    "B3": measure_first,
    "B4": measure_draining,
    "B2": measure_new_among_old,
}

if __name__ == "__main__":
    sys.exit(main())
