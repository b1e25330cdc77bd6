"""The common part of submitters whose driver runs on another machine: shipping the runtime, and waiting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import XComArg

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.operators.task.submission import BookmarkedSubmission

if TYPE_CHECKING:
    from pathlib import Path

    from airflow.sdk import Context


class RemoteSubmission(BookmarkedSubmission):
    """Add a bookmark to a submitter whose driver runs elsewhere: in a cluster, behind a REST API.

    The driver does not see this worker's files. So the store has to be reachable from both machines, and the cluster
    needs the runtime: `runtime_uri` names a place it can read, or its image has the package and `ship_runtime` is
    False. No credential is sent: the driver has its own identity.

    Args:
        runtime_uri: where the cluster finds the zip of the runtime (`s3://bucket/airflow_bookmarks.zip`).
            `python -m airflow_bookmarks.operators.runtime_zip` writes the zip of this version; with `glue=True` it is
            `python -m airflow_bookmarks.glue zip`. (templated)

    Raises:
        OptionError: neither `runtime_uri` nor `ship_runtime=False`, or both; in the constructor.
    """

    bookmark_template_fields: ClassVar[tuple[str, ...]] = (
        *BookmarkedSubmission.bookmark_template_fields,
        "runtime_uri",
    )
    runtime_suffixes: ClassVar[tuple[str, ...]] = (".zip",)

    def __init__(self, *, runtime_uri: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.runtime_uri = runtime_uri
        if not isinstance(runtime_uri, XComArg):
            self._check_runtime(is_rendered=False)
        if not self._waits_for_another_task():
            self.check_request()

    def check_literal_conf(self) -> None:
        """Check the conf, unless it is in what another task gives."""
        if not self._waits_for_another_task():
            super().check_literal_conf()

    def submit(self, context: Context, conf: Mapping[str, str], runtime: Path | None) -> Any:
        """Submit with the runtime that lies at `runtime_uri`; `runtime`, the file on this worker, stays here."""
        task = self._task
        if task is not None:
            task.check_place(is_cluster=True)
        self._check_runtime(is_rendered=True)
        self.check_request()
        texts = {str(key): str(value) for key, value in conf.items()}
        return self.submit_remotely(context, texts, self.runtime_uri if self.ship_runtime else None)

    # ---- for subclasses

    def submit_remotely(self, context: Context, conf: Mapping[str, str], runtime_uri: str | None) -> Any:
        """Submit with `conf` and, if it is to be shipped, the runtime at `runtime_uri`; wait for the end, or defer."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it submits")

    def check_request(self) -> None:
        """Make sure that conf and runtime can travel in what was asked for, and that its end is waited for.

        Called when the DAG file is read, and again when the templates are rendered.

        Raises:
            OptionError: they can't, or it is not.
        """

    # ---- checks

    def _waits_for_another_task(self) -> bool:
        """Whether an argument is the output of another task: it can be checked when the task runs, and no sooner."""
        return any(isinstance(getattr(self, name, None), XComArg) for name in self.template_fields)

    def _check_runtime(self, *, is_rendered: bool) -> None:
        uri = self.runtime_uri
        if not self.ship_runtime:
            if uri is not None:
                raise OptionError(
                    f"runtime_uri={uri!r} is given with ship_runtime=False. Nothing was read or changed. Leave one out."
                )
            return
        if not uri:
            raise OptionError(
                f"{self.task_type}: the driver runs on another machine, which can't read the runtime from this worker. "
                "Nothing was read or changed; Spark was not started. Put the runtime where the cluster can read it "
                f"(`python -m airflow_bookmarks.{'glue zip' if self.glue else 'operators.runtime_zip'}` writes the zip "
                "and prints its path) and name it "
                "with runtime_uri, or install the package in the driver's image and pass ship_runtime=False."
            )
        if (is_rendered or "{" not in uri) and not uri.endswith(self.runtime_suffixes):
            raise OptionError(
                f"runtime_uri={uri!r}: expected a URI that ends in {' or '.join(self.runtime_suffixes)}. Nothing was "
                "read or changed; Spark was not started."
            )


def require_waiting(argument: str, value: Any, *, is_waiting: bool) -> None:
    """Make sure that the task waits for the end of Spark.

    Raises:
        OptionError: it does not, so that the task would be over before the run is.
    """
    if not is_waiting:
        raise OptionError(
            f"{argument}={value!r}: the task would end before Spark does, and could not tell whether the run was "
            "committed. Nothing was read or changed; Spark was not started. Let it wait, or defer (deferrable=True)."
        )


def joined(listed: str | None, uri: str) -> str:
    """Return a comma-separated list with one more at its end.

    Example:
        >>> joined("a.zip", "b.zip"), joined(None, "b.zip")
        ('a.zip,b.zip', 'b.zip')
    """
    return ",".join([*filter(None, [listed]), uri])
