"""Stand-ins for services that run Spark: each speaks the REST of one, on the loopback, and really starts a driver.

What they are asked comes from the providers' own hooks (and for AWS through botocore's own models), so a request that
is malformed fails here as there.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import takewhile
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

PROJECT = Path(__file__).resolve().parents[2]

Driver = Callable[[dict[str, str]], int]


@dataclass(frozen=True)
class Asked:
    """One request."""

    method: str
    path: str
    query: Mapping[str, list[str]]
    target: str
    text: str

    @property
    def body(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.text or "{}")
        return found


def process(script: str) -> Driver:
    """Return a driver that is a process of its own; it finds its conf as a stand-in for Spark's session gives it."""

    def drive(conf: dict[str, str]) -> int:
        environment = {**os.environ, "SHOP_CONF": json.dumps(conf), "PYTHONPATH": str(PROJECT)}
        return subprocess.run([sys.executable, "-c", script], env=environment, check=False).returncode

    return drive


@dataclass
class Service:
    """A service with one job at a time. `driver` gets the Spark conf of what is submitted and returns an exit code.

    The end of the driver is told `patience` questions later: deferrable operators look once before they defer.
    """

    made_status: ClassVar[int] = 200

    driver: Driver = lambda _: 0
    patience: int = 0
    on_question: Callable[[], None] | None = None
    asked: list[Asked] = field(default_factory=list)
    started: list[Asked] = field(default_factory=list)
    was_stopped: bool = False
    port: int = 0
    _code: int | None = None
    _running: threading.Thread | None = None

    # ---- of each service

    def answer(self, asked: Asked) -> dict[str, Any] | None:
        """Return the answer to a request, None where there is no such thing."""
        raise NotImplementedError

    def conf(self, asked: Asked) -> dict[str, str]:
        """Return the Spark conf of a submit."""
        raise NotImplementedError

    def runtimes(self, asked: Asked) -> list[str]:
        """Return the Python files of a submit."""
        raise NotImplementedError

    def script_arguments(self, asked: Asked) -> list[str]:
        """Return what a submit gives to the script."""
        raise NotImplementedError

    # ---- the job

    def start(self, asked: Asked) -> None:
        self.started.append(asked)
        self._code, self.was_stopped, conf = None, False, self.conf(asked)
        self._running = threading.Thread(target=self._drive, args=(conf,), daemon=True)
        self._running.start()

    def _drive(self, conf: dict[str, str]) -> None:
        self._code = self.driver(conf)

    def stop(self) -> None:
        self.was_stopped = True

    @property
    def state(self) -> str:
        """Return running, done, failed or stopped; wait for one of the last three once the patience is at an end."""
        if self.on_question is not None:
            question, self.on_question = self.on_question, None
            question()
        if self.was_stopped:
            return "stopped"
        if self.patience > 0:
            self.patience -= 1
            return "running"
        if self._running is not None:
            self._running.join()
        return "done" if self._code == 0 else "failed"

    # ---- the server

    @contextmanager
    def serving(self) -> Iterator[Service]:
        server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _do(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                text = self.rfile.read(length).decode()
                parts = urlsplit(self.path)
                target = self.headers.get("X-Amz-Target", "").rpartition(".")[2]
                asked = Asked(self.command, parts.path, parse_qs(parts.query), target, text)
                service.asked.append(asked)
                answer = service.answer(asked)
                content = json.dumps({"message": "no such thing"} if answer is None else answer).encode()
                made = service.made_status if self.command == "POST" else 200
                self.send_response(404 if answer is None else made)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_DELETE = do_PATCH = do_PUT = _do

            def log_message(self, format: str, *args: Any) -> None:
                """Keep quiet."""

        return Handler


class Livy(Service):
    """Batches of Livy's REST API."""

    _STATES: ClassVar[dict[str, str]] = {"running": "running", "done": "success", "failed": "dead", "stopped": "killed"}

    def answer(self, asked: Asked) -> dict[str, Any] | None:
        match asked.method, asked.path.strip("/").split("/"):
            case "POST", ["batches"]:
                self.start(asked)
                return {"id": 0, "state": "starting", "appId": None}
            case "GET", ["batches", "0"]:
                return {"id": 0, "state": "success", "appId": "application_1"}
            case "GET", ["batches", "0", "state"]:
                return {"id": 0, "state": self._STATES[self.state]}
            case "GET", ["batches", "0", "log"]:
                return {"id": 0, "from": 0, "total": 1, "log": ["a line"]}
            case "DELETE", ["batches", "0"]:
                self.stop()
                return {"msg": "deleted"}
        return None

    def conf(self, asked: Asked) -> dict[str, str]:
        return dict(asked.body["conf"])

    def runtimes(self, asked: Asked) -> list[str]:
        return list(asked.body.get("pyFiles", ()))

    def script_arguments(self, asked: Asked) -> list[str]:
        return list(asked.body.get("args", ()))


def submit_flags(arguments: list[str], *names: str) -> list[str]:
    """Return the values of a flag of spark-submit."""
    return [arguments[i + 1] for i, part in enumerate(arguments) if part in names]


class Emr(Service):
    """Steps of EMR on EC2."""

    _STATES: ClassVar[dict[str, str]] = {
        "running": "RUNNING",
        "done": "COMPLETED",
        "failed": "FAILED",
        "stopped": "CANCELLED",
    }

    def answer(self, asked: Asked) -> dict[str, Any] | None:
        match asked.target:
            case "AddJobFlowSteps":
                self.start(asked)
                return {"StepIds": ["s-1"]}
            case "DescribeStep":
                return {"Step": {"Id": "s-1", "Status": {"State": self._STATES[self.state]}}}
            case "DescribeCluster":
                return {"Cluster": {"Id": "j-1", "LogUri": "s3://logs/"}}
            case "ListSteps":
                return {"Steps": [{"Id": "s-1", "Config": {"Args": self._arguments(self.started[-1])}}]}
            case "CancelSteps":
                self.stop()
                return {"CancelStepsInfoList": []}
        return None

    def _arguments(self, asked: Asked) -> list[str]:
        (step,) = (s for s in asked.body["Steps"] if s["HadoopJarStep"]["Args"][0] == "spark-submit")
        return list(takewhile(lambda part: not part.endswith(".py"), step["HadoopJarStep"]["Args"]))

    def conf(self, asked: Asked) -> dict[str, str]:
        return dict(pair.split("=", 1) for pair in submit_flags(self._arguments(asked), "--conf"))

    def runtimes(self, asked: Asked) -> list[str]:
        return [uri for text in submit_flags(self._arguments(asked), "--py-files") for uri in text.split(",")]

    def script_arguments(self, asked: Asked) -> list[str]:
        (step,) = (s for s in asked.body["Steps"] if s["HadoopJarStep"]["Args"][0] == "spark-submit")
        return list(step["HadoopJarStep"]["Args"][len(self._arguments(asked)) + 1 :])


class EmrServerless(Service):
    """Job runs of EMR Serverless."""

    _STATES: ClassVar[dict[str, str]] = {
        "running": "RUNNING",
        "done": "SUCCESS",
        "failed": "FAILED",
        "stopped": "CANCELLED",
    }

    def answer(self, asked: Asked) -> dict[str, Any] | None:
        match asked.method, asked.path.strip("/").split("/"):
            case "GET", ["applications", "app"]:
                return {"application": {"state": "STARTED"}}
            case "POST", ["applications", "app", "jobruns"]:
                self.start(asked)
                return {"applicationId": "app", "jobRunId": "run"}
            case "GET", ["applications", "app", "jobruns", "run"]:
                return {"jobRun": {"state": self._STATES[self.state], "stateDetails": ""}}
            case "DELETE", ["applications", "app", "jobruns", "run"]:
                self.stop()
                return {"applicationId": "app", "jobRunId": "run"}
        return None

    def conf(self, asked: Asked) -> dict[str, str]:
        (defaults,) = asked.body["configurationOverrides"]["applicationConfiguration"]
        assert defaults["classification"] == "spark-defaults"
        pairs = submit_flags(self._parameters(asked), "--conf")
        return {**defaults["properties"], **dict(pair.split("=", 1) for pair in pairs)}

    def runtimes(self, asked: Asked) -> list[str]:
        return [uri for text in submit_flags(self._parameters(asked), "--py-files")[-1:] for uri in text.split(",")]

    def script_arguments(self, asked: Asked) -> list[str]:
        return list(asked.body["jobDriver"]["sparkSubmit"].get("entryPointArguments", ()))

    def _parameters(self, asked: Asked) -> list[str]:
        return shlex.split(asked.body["jobDriver"]["sparkSubmit"].get("sparkSubmitParameters", ""))


class Glue(Service):
    """Job runs of Glue."""

    _STATES: ClassVar[dict[str, str]] = {
        "running": "RUNNING",
        "done": "SUCCEEDED",
        "failed": "FAILED",
        "stopped": "STOPPED",
    }

    def answer(self, asked: Asked) -> dict[str, Any] | None:
        match asked.target:
            case "GetJob":
                return {"Job": {"Name": "clean"}}
            case "StartJobRun":
                self.start(asked)
                return {"JobRunId": "jr_1"}
            case "GetJobRun":
                return {"JobRun": {"Id": "jr_1", "JobRunState": self._STATES[self.state]}}
            case "BatchStopJobRun":
                self.stop()
                return {"SuccessfulSubmissions": [{"JobName": "clean", "JobRunId": "jr_1"}]}
        return None

    def conf(self, asked: Asked) -> dict[str, str]:
        # Glue takes one argument, and divides it at blanks.
        words = ["--conf", *asked.body["Arguments"]["--conf"].split()]
        return dict(pair.split("=", 1) for pair in submit_flags(words, "--conf"))

    def runtimes(self, asked: Asked) -> list[str]:
        return list(filter(None, asked.body["Arguments"].get("--extra-py-files", "").split(",")))


class Databricks(Service):
    """One-time runs of Databricks."""

    _STATES: ClassVar[dict[str, dict[str, str]]] = {
        "running": {"life_cycle_state": "RUNNING"},
        "done": {"life_cycle_state": "TERMINATED", "result_state": "SUCCESS"},
        "failed": {"life_cycle_state": "TERMINATED", "result_state": "FAILED"},
        "stopped": {"life_cycle_state": "TERMINATED", "result_state": "CANCELED"},
    }

    def answer(self, asked: Asked) -> dict[str, Any] | None:
        match asked.path.rpartition("/runs/")[2]:
            case "submit":
                self.start(asked)
                return {"run_id": 7}
            case "get":
                is_state = len(self.asked) > 1 and self._is_poll()
                state = self._STATES[self.state if is_state else "running"]
                return {
                    "run_id": 7,
                    "job_id": 3,
                    "run_page_url": f"{self.url}/run/7",
                    "state": {"state_message": "", **state},
                    "tasks": [],
                }
            case "cancel":
                self.stop()
                return {}
        return None

    def _is_poll(self) -> bool:
        # The hook asks for the page of the run first, by the same request.
        return sum(asked.path.endswith("/runs/get") for asked in self.asked) > 1

    def conf(self, asked: Asked) -> dict[str, str]:
        return dict(self._part(asked)["new_cluster"]["spark_conf"])

    def runtimes(self, asked: Asked) -> list[str]:
        return [library["whl"] for library in self._part(asked).get("libraries", ())]

    def script_arguments(self, asked: Asked) -> list[str]:
        return list(self._part(asked)["spark_python_task"].get("parameters", ()))

    def _part(self, asked: Asked) -> dict[str, Any]:
        tasks = asked.body.get("tasks")
        return dict(tasks[0]) if tasks else asked.body


class Kubernetes(Service):
    """SparkApplications of the Spark operator, and the pods of their drivers."""

    made_status: ClassVar[int] = 201

    _PHASES: ClassVar[dict[str, str]] = {
        "running": "Running",
        "done": "Succeeded",
        "failed": "Failed",
        "stopped": "Failed",
    }

    def answer(self, asked: Asked) -> dict[str, Any] | None:
        path = asked.path.strip("/").split("/")
        match asked.method, path:
            case "POST", [*_, "sparkapplications"]:
                self.start(asked)
                return asked.body
            case "GET", [*_, "sparkapplications", _, "status"]:
                return {"status": {"applicationState": {"state": "RUNNING"}}}
            case "DELETE", [*_, "sparkapplications", _]:
                self.stop()
                return {}
            case "GET", [*_, "pods"]:
                return {"kind": "PodList", "items": [self._pod("running")] if self.started else []}
            case "GET", [*_, "pods", _]:
                return self._pod(self.state)
            case "PATCH", [*_, "pods", _]:
                return self._pod("running")
            case "GET", [*_, "events"]:
                return {"kind": "EventList", "items": []}
        return None

    def _pod(self, state: str) -> dict[str, Any]:
        name = self.started[-1].body["metadata"]["name"] + "-driver"
        container: dict[str, Any] = {"name": "spark-kubernetes-driver", "ready": True, "image": "i", "imageID": "i"}
        ended = {"terminated": {"exitCode": 0 if state == "done" else 1}}
        container |= {"restartCount": 0, "state": {"running": {}} if state == "running" else ended}
        return {
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "labels": {}, "uid": "1"},
            "spec": {"containers": [{"name": "spark-kubernetes-driver", "image": "i"}]},
            "status": {"phase": self._PHASES[state], "containerStatuses": [container]},
        }

    def conf(self, asked: Asked) -> dict[str, str]:
        return dict(asked.body["spec"]["sparkConf"])

    def runtimes(self, asked: Asked) -> list[str]:
        return list(asked.body["spec"].get("deps", {}).get("pyFiles", ()))

    def script_arguments(self, asked: Asked) -> list[str]:
        return list(asked.body["spec"].get("arguments", ()))
