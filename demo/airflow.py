"""Airflow as the demo sees it: something that plays one run of a DAG at a time and says what became of it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from demo import session


@dataclass(frozen=True, slots=True)
class Played:
    """What became of a DAG run: per task its state, its tries, what it pushed; where its log is, how long it took."""

    dag_id: str
    run_id: str
    state: str
    states: Mapping[str, str]
    tries: Mapping[str, int]
    xcom: Mapping[str, Any]
    log: Path
    seconds: float


class PlayerError(Exception):
    """Raised when the process that plays the DAGs ended; its newest log says why."""


class Airflow:
    """Plays DAG runs, one after the other, in a process that ends with the block.

    Args:
        environment: the whole environment of that process.
        logs: folder for one log a DAG run.
    """

    def __init__(self, environment: Mapping[str, str], logs: Path) -> None:
        self._environment, self._logs = environment, logs
        self._player: subprocess.Popen[bytes] | None = None
        self._played = 0

    def __enter__(self) -> Airflow:
        with (self._logs / "00-player.log").open("wb") as log:
            command = [sys.executable, "-m", "demo.player"]
            pipe = subprocess.PIPE
            self._player = session.start(command, self._environment, stdin=pipe, stdout=pipe, stderr=log)
        try:
            self._answer()
        except BaseException:  # `__exit__` is not called for a block that is not entered
            session.end(self._player)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._player is not None:
            session.end(self._player)

    def play(
        self,
        dag_id: str,
        logical_date: datetime,
        *,
        conf: Mapping[str, str] | None = None,
        fault: str | None = None,
    ) -> Played:
        """Play one run, with its retries. DAG runs of one logical date have one run id.

        Args:
            fault: `<point>@<attempt>`: kill the driver of that attempt at that point of the protocol.

        Raises:
            PlayerError: the player ended.
        """
        self._played += 1
        log = self._logs / f"{self._played:02d}-{dag_id}.log"
        request = {
            "dag_id": dag_id,
            "logical_date": logical_date.isoformat(),
            "conf": dict(conf or {}),
            "fault": fault,
            "log": str(log),
        }
        begun = time.monotonic()
        self._ask(request)
        answer = self._answer()
        return Played(dag_id=dag_id, log=log, seconds=time.monotonic() - begun, **answer)

    def _ask(self, request: Mapping[str, Any]) -> None:
        if self._player is None or self._player.stdin is None:
            raise RuntimeError("play() outside of the block: enter `with Airflow(...) as airflow:` first")
        self._player.stdin.write(json.dumps(request).encode() + b"\n")
        self._player.stdin.flush()

    def _answer(self) -> dict[str, Any]:
        if self._player is None or self._player.stdout is None:
            raise RuntimeError("the player was not started: enter `with Airflow(...) as airflow:` first")
        line = self._player.stdout.readline()
        if not line:
            raise PlayerError(f"the process that plays the DAGs ended with exit code {self._player.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer
