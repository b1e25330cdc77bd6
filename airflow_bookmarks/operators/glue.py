"""GlueJobOperator with a bookmark of this package instead of Glue's own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.amazon.aws.operators.glue import GlueJobOperator

from airflow_bookmarks.airflow_compat import durable_argument
from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.links.bookmark import BookmarkLink
from airflow_bookmarks.operators.task.remote_submission import RemoteSubmission, joined, require_waiting
from airflow_bookmarks.operators.task.submit_arguments import SubmitArguments

if TYPE_CHECKING:
    from airflow.sdk import Context

_BOOKMARK, _DISABLED = "--job-bookmark-option", "job-bookmark-disable"
_CONF, _PY_FILES = "--conf", "--extra-py-files"


# The provider's `execute` returns the id of the job run, ours the summary.
class BookmarkGlueJobOperator(RemoteSubmission, GlueJobOperator):  # type: ignore[misc]
    """Run a Glue job whose script opens a `BookmarkedJob`, instead of Glue's own job bookmark.

    Takes everything that GlueJobOperator takes and, by name, what `BookmarkedSubmission` and `RemoteSubmission` list.
    The settings become the job run's `--conf`, the runtime one of its `--extra-py-files`. Returns the summary of the
    run. Glue's own bookmark is switched off for the job run: two bookmarks that diverge lose or duplicate rows.

    Args:
        script_args: as in GlueJobOperator; `--job-bookmark-option` may be absent or "job-bookmark-disable". (templated)
        stop_job_run_on_kill: True by default.
        durable: as in GlueJobOperator, but off by default: the bookmark knows whether an earlier try has committed.

    Example:
        BookmarkGlueJobOperator(
            task_id="clean", job_name="clean-flights", runtime_uri="s3://code/airflow_bookmarks.zip"
        )
    """

    template_fields: Sequence[str] = (*GlueJobOperator.template_fields, *RemoteSubmission.bookmark_template_fields)
    operator_extra_links = (*GlueJobOperator.operator_extra_links, BookmarkLink())  # type: ignore[assignment]

    def __init__(self, *, stop_job_run_on_kill: bool = True, durable: bool | None = None, **kwargs: Any) -> None:
        if kwargs.get("glue"):
            raise OptionError(
                "glue=True is for scripts that leave AWS Glue: a job run of Glue has the real awsglue. Nothing was "
                "read or changed. Leave it out, and open a BookmarkedJob in the script; or submit the script elsewhere."
            )
        super().__init__(
            stop_job_run_on_kill=stop_job_run_on_kill, **durable_argument(GlueJobOperator, durable), **kwargs
        )

    def user_conf(self) -> Any:
        """Return the conf among the script's arguments: Glue takes all of it as one text."""
        return _conf_of(self.script_args)

    def check_request(self) -> None:
        """Make sure that the end of the job run is waited for, and that Glue's own bookmark is off."""
        is_waiting = self.wait_for_completion or self.deferrable
        require_waiting("wait_for_completion", self.wait_for_completion, is_waiting=is_waiting)
        # The setting of the job itself does not count: that of a job run takes precedence, and ours is "disable".
        option = self.script_args.get(_BOOKMARK)
        if option is not None and "{" not in option and option != _DISABLED:
            raise OptionError(
                f"script_args has {_BOOKMARK}={option!r}: Glue's own bookmark would skip files that this job's "
                "bookmark still has to read. Nothing was read or changed; Spark was not started. Leave it out; "
                "bookmark_option says what this job does."
            )

    def submit_remotely(self, context: Context, conf: Mapping[str, str], runtime_uri: str | None) -> Any:
        """Start the job run by the provider's operator."""
        given = self.script_args
        present = _conf_of(given)
        added = [f"{key}={_in_one_word(key, value)}" for key, value in conf.items() if present.get(key) != value]
        text = " --conf ".join([*filter(None, [given.get(_CONF)]), *added])
        self.script_args = {**given, _CONF: text, _BOOKMARK: _DISABLED}
        if runtime_uri is not None:
            self.script_args[_PY_FILES] = joined(given.get(_PY_FILES), runtime_uri)
        # The provider of Airflow 3.2 would go on with the job run of an earlier try that had this object (`dag.test`).
        self._job_run_id = None
        try:
            return GlueJobOperator.execute(self, context)
        finally:
            self.script_args = given


def _conf_of(script_args: Mapping[str, Any]) -> dict[str, str]:
    text = script_args.get(_CONF)
    return SubmitArguments.of([_CONF, *_words(str(text))]).conf if text else {}


def _words(text: str) -> list[str]:
    """Split a text of conf: "a=1 --conf b=2 3"."""
    pairs = text.split(" --conf ")
    return [word for i, pair in enumerate(pairs) for word in ([_CONF] if i else []) + [pair]]


def _in_one_word(key: str, value: str) -> str:
    """Return a value without blanks, which would end it in Glue's text.

    Raises:
        OptionError: it has some, and is no JSON, in which they can be written otherwise.
    """
    if not any(character.isspace() for character in value):
        return value
    try:
        document = json.loads(value)
    except ValueError as error:
        raise OptionError(
            f"conf {key}={value!r} has a blank, which ends a value in Glue's --conf. Nothing was read or changed; "
            "Spark was not started. Set it in the script."
        ) from error
    return json.dumps(document, separators=(",", ":")).replace(" ", "\\u0020")
