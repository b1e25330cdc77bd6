"""SparkKubernetesOperator with a bookmark."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.cncf.kubernetes.operators.spark_kubernetes import SparkKubernetesOperator

from airflow_bookmarks.airflow_compat import deletes_after_deferral
from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.operators.task.remote_submission import RemoteSubmission
from airflow_bookmarks.operators.task.submit_arguments import PY_FILES_CONF

if TYPE_CHECKING:
    from airflow.sdk import Context

log = logging.getLogger(__name__)


# The provider's `execute` returns nothing, ours the summary.
class BookmarkSparkKubernetesOperator(RemoteSubmission, SparkKubernetesOperator):
    """Create a SparkApplication of the Kubernetes Spark operator whose script opens a `BookmarkedJob`.

    Takes everything that SparkKubernetesOperator takes and, by name, what `BookmarkedSubmission` and `RemoteSubmission`
    list. The settings become entries of `spec.sparkConf`, the runtime one of `spec.deps.pyFiles`. Returns the summary
    of the run.

    Args:
        template_spec, application_file: as in SparkKubernetesOperator. (templated)
        do_xcom_push: push the summary, as any task does; True by default. The driver's XCom file is not read.
        reattach_on_restart: as in SparkKubernetesOperator, but off by default: a retry gets its own settings, and
            fences the driver of the previous try.

    Example:
        BookmarkSparkKubernetesOperator(
            task_id="clean", application_file="clean_flights.yaml", runtime_uri="s3a://code/airflow_bookmarks.zip"
        )
    """

    template_fields: list[str] = [  # noqa: RUF012 - a list, as the provider has it
        *SparkKubernetesOperator.template_fields,
        *RemoteSubmission.bookmark_template_fields,
    ]

    def __init__(self, *, reattach_on_restart: bool = False, do_xcom_push: bool = True, **kwargs: Any) -> None:
        super().__init__(reattach_on_restart=reattach_on_restart, do_xcom_push=False, **kwargs)
        self.do_xcom_push = do_xcom_push

    def user_conf(self) -> Any:
        """Return `spec.sparkConf`; None where the application's file is not read yet."""
        return None if self._body is None else _spec(self._body).get("sparkConf")

    def script_arguments(self) -> Any:
        """Return `spec.arguments`; None where the application's file is not read yet."""
        return None if self._body is None else _spec(self._body).get("arguments")

    def check_request(self) -> None:
        """Make sure that there is an application to add to."""
        if not self.application_file and not self.template_spec:
            raise OptionError(
                "neither application_file nor template_spec is given. Nothing was read or changed; Spark was not "
                "started."
            )

    def submit_remotely(self, context: Context, conf: Mapping[str, str], runtime_uri: str | None) -> Any:
        """Create the application by the provider's operator."""
        given = self.application_file, self.template_spec, self.name
        body = copy.deepcopy(self._read_body())
        spec = body["spark"].setdefault("spec", {})
        spec["sparkConf"] = {**(spec.get("sparkConf") or {}), **conf}
        if added := self.added_arguments:
            spec["arguments"] = [*(spec.get("arguments") or ()), *added]
        if runtime_uri is not None:
            deps = {**(spec.get("deps") or {})}
            # The deps become --py-files, which hides those of the conf.
            of_conf = str(spec["sparkConf"].pop(PY_FILES_CONF, "")).split(",")
            listed = deps.get("pyFiles") or [each.strip() for each in of_conf if each.strip()]
            spec["deps"] = {**deps, "pyFiles": [*listed, runtime_uri]}
        self.application_file, self.template_spec = None, body
        try:
            with self._without_xcom_of_the_pod(), self._deferred_if_it_can_be():
                return SparkKubernetesOperator.execute(self, context)
        finally:
            self.application_file, self.template_spec, self.name = given

    def resume_execution(
        self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context
    ) -> dict[str, Any]:
        """Go on after a deferral, as every submitter does."""
        with self._without_xcom_of_the_pod():
            return super().resume_execution(next_method, next_kwargs, context)

    @contextmanager
    def _deferred_if_it_can_be(self) -> Iterator[None]:
        given = self.deferrable
        if given and self.delete_on_termination and not deletes_after_deferral(SparkKubernetesOperator):
            self.deferrable = False
            log.warning(
                "bookmark: the task is not deferred, because the operator of the installed Kubernetes provider fails "
                "when it deletes the application after a deferral. It waits in the worker. Install "
                "apache-airflow-providers-cncf-kubernetes 10.11 or later, or set delete_on_termination=False."
            )
        try:
            yield
        finally:
            self.deferrable = given

    @contextmanager
    def _without_xcom_of_the_pod(self) -> Iterator[None]:
        # For the provider's operator, the flag says whether a file in the pod is the XCom; for Airflow, whether ours
        # is.
        given, self.do_xcom_push = self.do_xcom_push, False
        try:
            yield
        finally:
            self.do_xcom_push = given

    def _read_body(self) -> dict[str, Any]:
        body: dict[str, Any] = self.manage_template_specs()  # type: ignore[no-untyped-call]
        return body

    @property
    def _body(self) -> Mapping[str, Any] | None:
        text = self.application_file
        if text:
            # The name of a file, until Airflow or the provider puts its content in place; or a template still.
            is_ready = "{{" not in text and ("\n" in text or Path(text).is_file())
            return self._read_body() if is_ready else None
        return self.template_spec if isinstance(self.template_spec, Mapping) else None


def _spec(body: Mapping[str, Any]) -> Mapping[str, Any]:
    application = body.get("spark", body)
    spec = application.get("spec") or {}
    return spec if isinstance(spec, Mapping) else {}
