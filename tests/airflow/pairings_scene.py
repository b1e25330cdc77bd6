"""Where the pairings are played: a shop, its DAG, workers and drivers that are real processes, and what is left."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from airflow_bookmarks.core.run import Run
from tests.airflow.conftest import World
from tests.airflow.pairings_airflow import Flow
from tests.airflow.pairings_driver import ORDER_VARIABLE
from tests.airflow.pairings_worker import PROJECT, TryOrder, Worker, WorkerHost
from tests.airflow.stand_in import Livy
from tests.chaos.real.order import CommitPath, Gate, Held, Order
from tools.patience import STUCK_S

DRIVER = PROJECT / "tests" / "airflow" / "pairings_driver.py"

# Like spark-submit: the driver lives on when this is killed. What it is called with is noted. In cluster mode it says
# the id of the driver.
_SPARK_SUBMIT = """#!{python}
import json, os, subprocess, sys
arguments = sys.argv[1:]
conf = dict(arguments[i + 1].split("=", 1) for i, a in enumerate(arguments) if a == "--conf")
with open({calls!r}, "a") as file:
    print(json.dumps(conf), file=file)
environment = {{**os.environ, "SHOP_CONF": json.dumps(conf), "PYTHONPATH": {project!r}}}
script = next(a for a in arguments if a.endswith(".py"))
if "cluster" in arguments:
    print("driver-1")
# Its stdin is not the task's, by which that talks to its supervisor: who holds it keeps the supervisor waiting.
sys.exit(subprocess.run([{python!r}, script], env=environment, stdin=subprocess.DEVNULL).returncode and 1)
"""


@dataclass
class Scene:
    """A shop and a DAG that copies its raw folder."""

    world: World
    flow: Flow
    host: WorkerHost
    api_url: str
    gate: Gate
    livy: Livy = field(default_factory=Livy)
    orders: list[Order] = field(default_factory=list)

    def __post_init__(self) -> None:
        program = self.world.folder / "bin" / "spark-submit"
        program.parent.mkdir()
        program.write_text(_SPARK_SUBMIT.format(python=sys.executable, calls=str(self._calls), project=str(PROJECT)))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        self.livy.driver = self._drive_for_livy
        self.flow.sync()
        self.flow.trigger()

    # ---- tries

    def start(self, task_id: str = "copy", *, hold: str = "", spark: bool = False) -> Worker:
        """Let the scheduler send the next try to a worker; its driver is held at the point `hold`.

        The driver is one without Spark, started by what stands in for spark-submit or Livy; or one in Spark.
        """
        order = Order(
            str(self.world.folder),
            self.world.store_uri,
            CommitPath.APPEND,
            attempt=len(self.orders) + 1,
            run_id=task_id,
            holds=(hold,) if hold else (),
            gate=self.gate.port,
        )
        self.orders.append(order)
        environment = {**os.environ, ORDER_VARIABLE: order.to_text(), "PYTHONPATH": str(PROJECT)}
        if not spark:
            environment["PATH"] = f"{self.world.folder / 'bin'}{os.pathsep}{environment['PATH']}"
        ti = self.flow.queue(task_id)
        return self.host.start(TryOrder(ti, str(self.flow.file), self.api_url, str(self.log), environment))

    def hold(self, hold: str, *, spark: bool = False) -> tuple[Worker, Held]:
        """Start the next try, and wait until its driver stands at a point."""
        worker = self.start(hold=hold, spark=spark)
        return worker, self.gate.next()

    def play(self, task_id: str = "copy") -> str:
        """Let a worker play the next try; return the state of the task then."""
        self.start(task_id).wait()
        return self.flow.state(task_id)

    def kill(self, held: Held) -> None:
        """Kill a driver."""
        os.kill(held.pid, signal.SIGKILL)
        wait_for_end(held.pid)

    def let_go(self, held: Held) -> str:
        """Let a driver go on to its end; return what it said."""
        held.go_on()
        wait_for_end(held.pid)
        return self.orders[0].said.read_text()

    # ---- looking

    @property
    def job(self) -> str:
        return f"{self.flow.dag_id}.copy"

    @property
    def log(self) -> Path:
        """What the tasks said: Airflow's own log file, all tries in one."""
        return self.world.folder / "task.log"

    def said(self, words: str) -> str:
        """Return the lines of the log that have these words."""
        return "\n".join(line for line in self.log.read_text().splitlines() if words in line)

    @property
    def submits(self) -> list[dict[str, str]]:
        """The Spark conf of each submit so far."""
        noted = self._calls.read_text().splitlines() if self._calls.exists() else []
        return [*map(json.loads, noted), *map(self.livy.conf, self.livy.started)]

    @property
    def runs(self) -> list[Run]:
        return list(self.world.store.runs(self.job))

    def sources(self) -> Counter[str]:
        """Return the rows that lie in the raw folder."""
        return Counter(line for path in self.world.shop.raw.iterdir() for line in path.read_text().splitlines())

    def check_whole(self, job: str | None = None) -> None:
        """Make sure that each row is there once, and that nothing is staged, due, open or held."""
        name = job or self.job
        assert self.world.shop.target_lines(name) == self.sources()
        assert self.world.shop.staged_files(name) == []
        head = self.world.store.head(name)
        assert (head.publishing, head.lease, head.published) == (None, None, head.run_number)
        assert self.world.store.open_runs(name, head) == []

    def check_goes_on(self) -> None:
        """Make sure that the next run reads what is new, and that alone."""
        self.world.shop.put("later.txt", "later")
        lines, _ = self.world.shop.run(self.job)
        assert lines == ["later"]
        self.check_whole()

    # ---- parts

    @property
    def _calls(self) -> Path:
        return self.world.folder / "calls.jsonl"

    def _drive_for_livy(self, conf: dict[str, str]) -> int:
        given = {ORDER_VARIABLE: self.orders[-1].to_text(), "SHOP_CONF": json.dumps(conf), "PYTHONPATH": str(PROJECT)}
        return subprocess.run([sys.executable, str(DRIVER)], env={**os.environ, **given}, check=False).returncode


def wait_for_end(pid: int) -> None:
    """Wait for a process. The exit code of a child of this one is left to who started it: nobody else gets it then."""
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    except ChildProcessError:
        _wait_for_stranger(pid)


def _wait_for_stranger(pid: int) -> None:
    try:
        psutil.Process(pid).wait(STUCK_S)
    except psutil.NoSuchProcess:
        return
