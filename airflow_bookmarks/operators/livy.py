"""LivyOperator with a bookmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.livy.operators.livy import LivyOperator

from airflow_bookmarks.airflow_compat import durable_argument
from airflow_bookmarks.operators.task.remote_submission import RemoteSubmission, require_waiting

if TYPE_CHECKING:
    from airflow.sdk import Context


# The provider's `execute` returns the id of the batch, ours the summary.
class BookmarkLivyOperator(RemoteSubmission, LivyOperator):
    """Submit a batch to Livy whose script opens a `BookmarkedJob`: it reads what no earlier run has read.

    Takes everything that LivyOperator takes and, by name, what `BookmarkedSubmission` and `RemoteSubmission` list.
    Returns the summary of the run. Also works in deferrable mode: the bookmark is finished when the task resumes.

    Args:
        polling_interval: seconds between two checks of the batch; 10 by default. 0, which does not wait, is refused.
        durable: as in LivyOperator, but off by default: the bookmark knows whether an earlier try has committed.

    Example:
        BookmarkLivyOperator(
            task_id="clean", file="s3://code/clean_flights.py", runtime_uri="s3://code/airflow_bookmarks.zip"
        )
    """

    template_fields: Sequence[str] = (*LivyOperator.template_fields, *RemoteSubmission.bookmark_template_fields)

    def __init__(self, *, polling_interval: int = 10, durable: bool | None = None, **kwargs: Any) -> None:
        super().__init__(polling_interval=polling_interval, **durable_argument(LivyOperator, durable), **kwargs)

    def user_conf(self) -> Any:
        """Return the conf among the parameters of the batch."""
        return self.spark_params["conf"]

    def script_arguments(self) -> Any:
        """Return the arguments among the parameters of the batch."""
        return self.spark_params["args"]

    def check_request(self) -> None:
        """Make sure that the end of the batch is waited for."""
        interval = self._polling_interval
        require_waiting("polling_interval", interval, is_waiting=interval > 0)

    def submit_remotely(self, context: Context, conf: Mapping[str, str], runtime_uri: str | None) -> Any:
        """Post the batch by the provider's operator."""
        given = self.spark_params
        listed: Any = given["py_files"] or ()
        py_files = [*listed, *filter(None, [runtime_uri])]
        arguments: list[Any] = [*(given["args"] or ()), *self.added_arguments]  # type: ignore[misc]
        self.spark_params = {**given, "conf": dict(conf), "py_files": py_files or None, "args": arguments or None}
        try:
            return LivyOperator.execute(self, context)
        finally:
            self.spark_params = given
