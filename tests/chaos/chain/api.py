"""A person at Airflow: triggers DAG runs, clears tasks and marks them failed, through the API that the pages use."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from tools.patience import STUCK_S

_USER = "admin"


def set_password(passwords: Path) -> str:
    """Write the password of the one user where Airflow looks for it, before it starts; return it."""
    password = secrets.token_urlsafe(12)
    passwords.touch(mode=0o600)
    passwords.write_text(json.dumps({_USER: password}))
    return password


class Api:
    """The API of an Airflow, as its one user.

    Raises (each method):
        HTTPError: it refuses.
    """

    _token: str | None

    def __init__(self, url: str, password: str) -> None:
        self._url, self._token = url, None
        said = self._ask("POST", "/auth/token", {"username": _USER, "password": password})
        self._token = said["access_token"]

    def trigger(self, dag_id: str, dag_run: str, conf: Mapping[str, str]) -> None:
        """Begin a DAG run."""
        body = {"dag_run_id": dag_run, "logical_date": None, "conf": dict(conf)}
        self._ask("POST", f"/api/v2/dags/{dag_id}/dagRuns", body)

    def clear(self, dag_id: str, dag_run: str, task_id: str) -> None:
        """Clear a task, in whatever state it is, and all behind it in its DAG."""
        body = {
            "dry_run": False,
            "dag_run_id": dag_run,
            "task_ids": [task_id],
            "only_failed": False,
            "include_downstream": True,
        }
        self._ask("POST", f"/api/v2/dags/{dag_id}/clearTaskInstances", body)

    def mark_failed(self, dag_id: str, dag_run: str, task_id: str) -> None:
        """Mark a task failed."""
        self._ask("PATCH", f"/api/v2/dags/{dag_id}/dagRuns/{dag_run}/taskInstances/{task_id}", {"new_state": "failed"})

    def _ask(self, method: str, path: str, body: Mapping[str, Any]) -> Any:
        headers = {"Content-Type": "application/json"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        request = Request(f"{self._url}{path}", json.dumps(body).encode(), headers, method=method)  # noqa: S310 - a URL of our own
        with urlopen(request, timeout=STUCK_S) as answer:  # noqa: S310
            return json.load(answer)
