"""The operators of EMR, on EC2 and serverless, with a bookmark."""

from __future__ import annotations

import ast
import copy
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.amazon.aws.operators.emr import EmrAddStepsOperator, EmrServerlessStartJobOperator

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.settings import PREFIX
from airflow_bookmarks.links.bookmark import BookmarkLink
from airflow_bookmarks.operators.task.remote_submission import RemoteSubmission, joined, require_waiting
from airflow_bookmarks.operators.task.submit_arguments import SubmitArguments

if TYPE_CHECKING:
    from airflow.sdk import Context

_SPARK_DEFAULTS = "spark-defaults"


# ---- on EC2


# The provider's `execute` returns the ids of the steps, ours the summary.
class BookmarkEmrAddStepsOperator(RemoteSubmission, EmrAddStepsOperator):  # type: ignore[misc]
    """Add steps to an EMR cluster, one of which runs spark-submit on a script that opens a `BookmarkedJob`.

    Takes everything that EmrAddStepsOperator takes and, by name, what `BookmarkedSubmission` and `RemoteSubmission`
    list. The settings become `--conf` of that step, and the runtime one of its `--py-files`. Returns the summary of the
    run.

    Args:
        steps: as in EmrAddStepsOperator; exactly one has `spark-submit` as the first of its `Args`. (templated)
        wait_for_completion: True by default, and needed unless the task is deferred.

    Example:
        BookmarkEmrAddStepsOperator(
            task_id="clean",
            job_flow_id="j-1K48XXXXXXHCB",
            steps=[
                {
                    "Name": "clean",
                    "ActionOnFailure": "CONTINUE",
                    "HadoopJarStep": {
                        "Jar": "command-runner.jar",
                        "Args": ["spark-submit", "--deploy-mode", "cluster", "s3://code/clean_flights.py"],
                    },
                }
            ],
            runtime_uri="s3://code/airflow_bookmarks.zip",
        )
    """

    template_fields: Sequence[str] = (*EmrAddStepsOperator.template_fields, *RemoteSubmission.bookmark_template_fields)
    operator_extra_links = (*EmrAddStepsOperator.operator_extra_links, BookmarkLink())  # type: ignore[assignment]

    has_s3_of_its_own = True

    def __init__(self, *, wait_for_completion: bool = True, **kwargs: Any) -> None:
        super().__init__(wait_for_completion=wait_for_completion, **kwargs)

    def user_conf(self) -> Any:
        """Return the conf of the step that runs spark-submit."""
        steps = _read_steps(self.steps)
        return None if steps is None else SubmitArguments.of(_arguments(_spark_step(steps))[1:]).conf

    def script_arguments(self) -> Sequence[str] | None:
        """Return what follows the script in the step that runs spark-submit."""
        steps = _read_steps(self.steps)
        return None if steps is None else SubmitArguments.of(_arguments(_spark_step(steps))[1:]).application[1:]

    def check_request(self) -> None:
        """Make sure that the end of the steps is waited for, and that one of them is Spark's."""
        is_waiting = self.wait_for_completion or self.deferrable
        require_waiting("wait_for_completion", self.wait_for_completion, is_waiting=is_waiting)
        steps = _read_steps(self.steps)
        if steps is not None:
            _spark_step(steps)

    def submit_remotely(self, context: Context, conf: Mapping[str, str], runtime_uri: str | None) -> Any:
        """Add the steps by the provider's operator."""
        given = self.steps
        steps = copy.deepcopy(_read_steps(given) or [])
        step = _spark_step(steps)
        command, *arguments = _arguments(step)
        added = SubmitArguments.of(arguments).adding(conf, runtime_uri)
        step["HadoopJarStep"]["Args"] = [command, *added.as_list(), *self.added_arguments]
        self.steps = steps
        try:
            return EmrAddStepsOperator.execute(self, context)
        finally:
            self.steps = given

    def on_kill(self) -> None:
        """Cancel the step, which the provider's operator leaves running, and fence the try."""
        try:
            self._cancel_step()
        finally:
            super().on_kill()

    def _cancel_step(self) -> None:
        task = self._task
        if task is None:  # killed before it began
            return
        cluster = self.job_flow_id or self.hook.get_cluster_id_by_name(str(self.job_flow_name), self.cluster_states)
        identity = task.attempt.identity
        # Found by what it was given: the provider's operator has no ids while it waits.
        marks = {f"{PREFIX}run_id={identity.run_id}", f"{PREFIX}attempt={identity.attempt}"}
        emr: Any = self.hook.conn
        pages = emr.get_paginator("list_steps").paginate(ClusterId=cluster, StepStates=["PENDING", "RUNNING"])
        ids = [step["Id"] for page in pages for step in page["Steps"] if marks <= {*step["Config"].get("Args", ())}]
        if ids:
            emr.cancel_steps(ClusterId=cluster, StepIds=ids, StepCancellationOption="TERMINATE_PROCESS")


def _read_steps(steps: Any) -> list[dict[str, Any]] | None:
    """Return the steps; None for text that is not rendered or loaded yet."""
    if not isinstance(steps, str):
        return list(steps)
    if steps.lstrip().startswith("[") and "{{" not in steps:
        return list(ast.literal_eval(steps))  # as the provider's operator reads it
    return None


def _spark_step(steps: Sequence[dict[str, Any]]) -> dict[str, Any]:
    found = [step for step in steps if (_arguments(step) or [""])[0].rsplit("/", 1)[-1] == "spark-submit"]
    if len(found) != 1:
        raise OptionError(
            f"{len(found)} of {len(steps)} steps have 'spark-submit' as the first of their Args, and a job's settings "
            "go to exactly one. Nothing was read or changed; Spark was not started. Use one operator per Spark step."
        )
    return found[0]


def _arguments(step: Mapping[str, Any]) -> list[str]:
    return [str(argument) for argument in step.get("HadoopJarStep", {}).get("Args", ())]


# ---- serverless


# The provider's `execute` returns the id of the job run, ours the summary.
class BookmarkEmrServerlessStartJobOperator(RemoteSubmission, EmrServerlessStartJobOperator):  # type: ignore[misc]
    """Start a Spark job on EMR Serverless whose script opens a `BookmarkedJob`.

    Takes everything that EmrServerlessStartJobOperator takes and, by name, what `BookmarkedSubmission` and
    `RemoteSubmission` list. The settings become properties of `spark-defaults` in the configuration overrides, which
    need no quoting; the runtime one of the `--py-files`. Returns the summary of the run.

    Args:
        job_driver: as in EmrServerlessStartJobOperator, with `sparkSubmit`. (templated)

    Example:
        BookmarkEmrServerlessStartJobOperator(
            task_id="clean",
            application_id="00f5trm1h0n4r00l",
            execution_role_arn="arn:aws:iam::123456789012:role/job",
            job_driver={"sparkSubmit": {"entryPoint": "s3://code/clean_flights.py"}},
            runtime_uri="s3://code/airflow_bookmarks.zip",
        )
    """

    template_fields: Sequence[str] = (
        *EmrServerlessStartJobOperator.template_fields,
        *RemoteSubmission.bookmark_template_fields,
    )
    operator_extra_links = (*EmrServerlessStartJobOperator.operator_extra_links, BookmarkLink())  # type: ignore[assignment]

    has_s3_of_its_own = True

    # The provider's arguments that stand before the asterisk by name, so that default_args may give them.
    def __init__(
        self,
        *,
        application_id: str,
        execution_role_arn: str,
        job_driver: dict[str, Any],
        **kwargs: Any,
    ) -> None:
        super().__init__(
            application_id=application_id, execution_role_arn=execution_role_arn, job_driver=job_driver, **kwargs
        )

    def user_conf(self) -> Any:
        """Return the conf of the job: of the configuration overrides, and of the parameters, which come before it."""
        return {**_spark_defaults(self.configuration_overrides or {}), **self._parameters().conf}

    def script_arguments(self) -> Any:
        """Return the arguments of the entry point."""
        return self.job_driver.get("sparkSubmit", {}).get("entryPointArguments")

    def check_request(self) -> None:
        """Make sure that it is a Spark job, and that its end is waited for."""
        require_waiting("wait_for_completion", self.wait_for_completion, is_waiting=self.wait_for_completion)
        if "sparkSubmit" not in self.job_driver:
            raise OptionError(
                f"job_driver has {sorted(self.job_driver)} and no sparkSubmit: bookmarks are for Spark jobs. Nothing "
                "was read or changed; Spark was not started."
            )

    def submit_remotely(self, context: Context, conf: Mapping[str, str], runtime_uri: str | None) -> Any:
        """Start the job run by the provider's operator."""
        given = self.job_driver, self.configuration_overrides
        present = self._parameters().conf
        properties = {key: value for key, value in conf.items() if key not in present}
        self.configuration_overrides = _with_spark_defaults(self.configuration_overrides or {}, properties)
        if runtime_uri is not None:
            self.job_driver = self._driver_with(runtime_uri)
        if added := self.added_arguments:
            submit = self.job_driver["sparkSubmit"]
            arguments = [*(submit.get("entryPointArguments") or ()), *added]
            self.job_driver = {**self.job_driver, "sparkSubmit": {**submit, "entryPointArguments": arguments}}
        try:
            return EmrServerlessStartJobOperator.execute(self, context)
        finally:
            self.job_driver, self.configuration_overrides = given

    def resume_execution(
        self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context
    ) -> dict[str, Any]:
        """Go on after a deferral; where that was for the start of the application, the job is still to be submitted."""
        if next_method == "execute":
            return self.execute(context)
        return super().resume_execution(next_method, next_kwargs, context)

    def _driver_with(self, runtime_uri: str) -> dict[str, Any]:
        submit = self.job_driver["sparkSubmit"]
        py_files = self._parameters().py_files or _spark_defaults(self.configuration_overrides or {}).get(
            "spark.submit.pyFiles"
        )
        # At the end, where it counts, and without a change of the text that the user quoted.
        text = f"{submit.get('sparkSubmitParameters', '')} --py-files {joined(py_files, runtime_uri)}".lstrip()
        return {**self.job_driver, "sparkSubmit": {**submit, "sparkSubmitParameters": text}}

    def _parameters(self) -> SubmitArguments:
        text = self.job_driver.get("sparkSubmit", {}).get("sparkSubmitParameters", "")
        try:
            return SubmitArguments.of(shlex.split(text))
        except ValueError:  # an unfinished quote: a template that is not rendered yet, or an error that EMR will name
            return SubmitArguments((), ())


def _spark_defaults(overrides: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for configuration in overrides.get("applicationConfiguration", ()):
        if configuration.get("classification") == _SPARK_DEFAULTS:
            found |= configuration.get("properties", {})
    return found


def _with_spark_defaults(overrides: Mapping[str, Any], properties: Mapping[str, str]) -> dict[str, Any]:
    given = list(overrides.get("applicationConfiguration", ()))
    others = [one for one in given if one.get("classification") != _SPARK_DEFAULTS]
    nested = {key: value for one in given if one not in others for key, value in one.items()}
    defaults = {**nested, "classification": _SPARK_DEFAULTS, "properties": {**_spark_defaults(overrides), **properties}}
    return {**overrides, "applicationConfiguration": [*others, defaults]}
