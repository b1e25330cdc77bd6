"""What the package costs Airflow: its start, its DAG files, its tasks; and what it saves where nothing is new.

All is measured in turns, ours and plain, in one run, in processes of their own:

version    `airflow version` in two environments that differ in the provider: see `benchmarks.installation`
parse      a DAG file of many operators; who turns to the network meanwhile is refused and counted
task       one task with a spark-submit that does nothing: what is left without its driver is the operator's
empty      a task with nothing new: committed by the worker (`skip_when_empty`) against a real spark-submit

"ms CPU" is time of the processor, where nothing is waited for: by the clock a shared machine adds what others do.

Requests are counted on the wire to DynamoDB Local, in a task of their own. A local server answers in a millisecond or
two; elsewhere each of them costs the way to the table. How many requests waiting takes, and how soon a sensor is woken,
is measured by `benchmarks.waiting`.

Example:
    $ python -m benchmarks.airflow
    $ python -m benchmarks.airflow --version-rounds 5 --spark-rounds 1 --backends sqlite
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.figure import Figure, beside, header, line
from benchmarks.installation import Installations, installations
from benchmarks.state_place import BACKENDS, DYNAMODB, state_place
from benchmarks.task import Measured, measure_empty, measure_task
from benchmarks.task_worker import BOOKMARKED, PLAIN, task_worker

PROMISE_VERSION_MS = 50
RESULT = Path("build/bench/airflow.json")
_PARSER = Path(__file__).with_name("dag_parse.py")
_VERSION, _PROCESSOR = "airflow version", "airflow version, processor time"

_LOADED = """
import json, sys
from airflow.__main__ import main
sys.argv = ["airflow", "version"]
main()
ours = sorted(name for name in sys.modules if name.partition(".")[0] == "airflow_bookmarks")
heavy = [name for name in ("boto3", "botocore", "numpy", "pyspark") if name in sys.modules]
print(json.dumps({"ours": ours, "heavy": heavy}))
"""

_DAG = """
from datetime import datetime, timezone

from {module} import {name}
from airflow.sdk import DAG

with DAG("{dag_id}", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=timezone.utc)):
    for number in range({operators}):
        {name}(task_id=f"task_{{number}}", application="job.py")
"""


@dataclass
class Results:
    """What was measured so far; each figure is printed when it is known."""

    figures: list[Figure] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)

    def add(self, figures: Sequence[Figure]) -> None:
        """Keep figures, and print them."""
        self.figures += figures
        for figure in figures:
            print(line(figure), flush=True)

    def find(self, measure: str, case: str) -> Figure:
        """Return a figure that was measured."""
        return next(one for one in self.figures if (one.measure, one.case) == (measure, case))


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print a table, write `build/bench/airflow.json`."""
    given = _arguments().parse_args(arguments)
    logging.getLogger("airflow_bookmarks").setLevel(logging.ERROR)  # the local server has no point-in-time recovery
    results = Results(facts={"promise_version_ms": PROMISE_VERSION_MS})
    print(header())
    with installations() as installed, TemporaryDirectory(prefix="bench-airflow-") as home:
        environment = _environment(home)
        measure_version(results, installed, environment, given.version_rounds)
        measure_parse(results, installed, environment, given.operators, given.parse_rounds)
        with task_worker(installed.with_provider, environment) as worker:
            for backend in given.backends:
                with state_place(backend) as place:
                    _take(results, measure_task(place, worker, given.rounds))
            for backend in given.spark_backends:
                with state_place(backend) as place:
                    _take(results, measure_empty(place, worker, given.spark_rounds))
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    facts = {**results.facts, "results": [one.as_dict() for one in results.figures]}
    RESULT.write_text(json.dumps(facts, indent=2) + "\n")
    for verdict in _verdicts(results):
        print(verdict)


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m benchmarks.airflow", description="What the package costs Airflow.")
    parser.add_argument("--version-rounds", type=int, default=11, help="pairs of `airflow version`")
    parser.add_argument("--rounds", type=int, default=7, help="pairs of tasks, in each store")
    parser.add_argument("--operators", type=int, default=500, help="operators in a DAG file")
    parser.add_argument("--parse-rounds", type=int, default=3, help="pairs of processes that parse DAG files")
    parser.add_argument("--spark-rounds", type=int, default=3, help="pairs of empty runs, one of each with Spark")
    parser.add_argument("--backends", nargs="+", choices=BACKENDS, default=list(BACKENDS))
    parser.add_argument("--spark-backends", nargs="*", choices=BACKENDS, default=[DYNAMODB])
    return parser


def _environment(home: str) -> dict[str, str]:
    """Return an environment for Airflow, without what whoever starts this has set for theirs."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "AWS_", "PYTHON"))}
    return {
        **kept,
        "AIRFLOW_HOME": home,
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR",
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def _take(results: Results, measured: Measured) -> None:
    results.add(measured.figures)
    results.facts.setdefault("requests", {}).update(measured.requests)


# ---- airflow version


def measure_version(results: Results, installed: Installations, environment: dict[str, str], rounds: int) -> None:
    """Measure `airflow version` with the provider and without it, in turns."""
    interpreters = (installed.without_provider, installed.with_provider)
    for interpreter in interpreters:  # the first command makes Airflow's home
        _version_times(interpreter, environment)
    pairs = [[_version_times(interpreter, environment) for interpreter in interpreters] for _ in range(rounds)]
    for index, (measure, unit) in enumerate(((_VERSION, "ms"), (_PROCESSOR, "ms CPU"))):
        plain, ours = ([times[index] for times in series] for series in zip(*pairs, strict=True))
        results.add(beside(measure, unit, ("with the provider", ours), ("without the provider", plain)))
    loaded = json.loads(_run([str(installed.with_provider), "-P", "-c", _LOADED], environment))
    absent = json.loads(_run([str(installed.without_provider), "-P", "-c", _LOADED], environment))
    if absent["ours"] or not loaded["ours"]:
        raise RuntimeError(f"the two environments are not what they should be: {absent} without, {loaded} with")
    results.facts["discovery"] = loaded


def _version_times(interpreter: Path, environment: dict[str, str]) -> tuple[float, float]:
    """Return wall-clock and processor time of the command, in ms."""
    begun = time.perf_counter()
    command = [str(interpreter), "-P", "-m", "airflow", "version"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    ended = time.perf_counter()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{command} ended with {process.returncode}")
    return (ended - begun) * 1000, (used.ru_utime + used.ru_stime) * 1000


def _run(command: Sequence[str], environment: dict[str, str]) -> str:
    """Run a command, and return the last line that it printed."""
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.splitlines()[-1]


# ---- DAG files


def measure_parse(
    results: Results, installed: Installations, environment: dict[str, str], operators: int, rounds: int
) -> None:
    """Measure DAG files of ours and of plain operators, each in a process of its own, in turns."""
    with TemporaryDirectory(prefix="bench-dags-") as folder:
        commands = [
            [str(installed.with_provider), "-P", str(_PARSER), *_dag_files(Path(folder), operator, operators)]
            for operator in (PLAIN, BOOKMARKED)
        ]
        pairs = [[json.loads(_run(command, environment)) for command in commands] for _ in range(rounds)]
    for parsed in (one for pair in pairs for one in pair):
        if any(file["errors"] or file["operators"] != operators for file in parsed["files"]):
            raise RuntimeError(f"a DAG file was not parsed: {parsed}")
    plain, ours = zip(*pairs, strict=True)
    for measure, index, name in (
        (f"parse {operators} operators, with imports", 0, "parse_ms"),
        (f"parse {operators} operators, imports paid", 1, "parse_ms"),
        (f"serialise {operators} operators", 1, "serialise_ms"),
    ):
        series = ([one["files"][index][name] for one in both] for both in (ours, plain))
        names = ("BookmarkSparkSubmitOperator", "SparkSubmitOperator")
        results.add(beside(measure, "ms CPU", *zip(names, series, strict=True)))
    for name, both in (("ours", ours), ("plain", plain)):
        touched = sorted({call for one in both for call in one["network"]})
        heavy = sorted({module for one in both for module in one["heavy"]})
        results.facts.setdefault("parse", {})[name] = {"network": touched, "heavy": heavy}


def _dag_files(folder: Path, operator: str, operators: int) -> Iterator[str]:
    """Write two files of one content, and yield their paths."""
    module, _, name = operator.rpartition(".")
    for number in (1, 2):
        dag_id = f"{name}_{number}"
        path = folder / f"{dag_id}.py"
        path.write_text(_DAG.format(module=module, name=name, dag_id=dag_id, operators=operators))
        yield str(path)


# ---- what is shown


def _verdicts(results: Results) -> Iterator[str]:
    # The command waits for nobody, so unhindered it takes as long as the processor works for it. The clock on the wall
    # also counts what others do on a shared machine: by seconds, where the promise is in milliseconds.
    over, loaded = results.find(_PROCESSOR, "difference"), results.facts["discovery"]
    kept = over.median <= PROMISE_VERSION_MS and not loaded["heavy"]
    yield (
        f"promise {_kept(kept)}: `{_VERSION}` takes {over.median:.0f} ms more of the processor with the provider, "
        f"in single pairs {over.least:.0f} to {over.most:.0f} "
        f"({results.find(_VERSION, 'difference').median:.0f} ms by the clock); {PROMISE_VERSION_MS} ms are allowed; it "
        f"imports {len(loaded['ours'])} modules of ours, and of what is heavy {_named(loaded['heavy'])}"
    )
    parse = results.facts["parse"]["ours"]
    yield (
        f"promise {_kept(not parse['network'])}: parsing turned to the network {len(parse['network'])} times; of what "
        f"is heavy it imported {_named(parse['heavy'])}"
    )
    for what, counts in results.facts.get("requests", {}).items():
        each = ", ".join(f"{count} {name}" for name, count in counts.items())
        yield f"requests, {what}: {sum(counts.values())} ({each})"
    yield f"written to {RESULT}"


def _kept(is_kept: bool) -> str:
    return "kept" if is_kept else "BROKEN"


def _named(modules: Sequence[str]) -> str:
    return ", ".join(modules) or "nothing"


if __name__ == "__main__":
    main()
