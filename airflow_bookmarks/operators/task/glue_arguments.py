"""The arguments that a script for AWS Glue gets from its task.

What is given by hand among the arguments of the script wins over what the operator would add, and counts as if it were
said by the operator's own argument. If both say it, both have to say the same.

    --JOB_NAME               bookmark_job, else the job's default name
    --job-bookmark-option    bookmark_option, else that of the connection, else enable
    --job-bookmark-from, -to bookmark_from, bookmark_to
    --TempDir                bookmark_manifest_uri; added where one of the two is given
    --JOB_RUN_ID             the run id of the task; by hand it is for the script alone
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.option import Option
from airflow_bookmarks.glue.names import name_of, text_of

if TYPE_CHECKING:
    from airflow_bookmarks.core.settings import Settings
    from airflow_bookmarks.operators.task.task_config import TaskConfig

S3_IMPLEMENTATION = {"spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem"}

_JOB_NAME, _RUN_ID, _TEMP_DIR = "--JOB_NAME", "--JOB_RUN_ID", "--TempDir"
_OPTION, _FROM, _TO = "--job-bookmark-option", "--job-bookmark-from", "--job-bookmark-to"
_LEGACY = "--continuation-option"
_LEGACY_VALUES = {"continuation-enabled": "enable", "continuation-readonly": "pause", "continuation-ignore": "disable"}
_OURS = {
    "job": (_JOB_NAME, "bookmark_job"),
    "option": (_OPTION, "bookmark_option"),
    "from_run": (_FROM, "bookmark_from"),
    "to_run": (_TO, "bookmark_to"),
}


@dataclass(frozen=True, slots=True)
class GlueArguments:
    """The arguments of a script that are about its job, as they are given by hand: values by flag."""

    given: Mapping[str, str]

    @classmethod
    def of(cls, arguments: Sequence[Any] | None) -> GlueArguments:
        """Take the arguments of a script; None where they are not known yet.

        Example:
            >>> GlueArguments.of(["--day", "1", "--JOB_NAME=nightly", "--TempDir", "s3://lake/tmp"]).given
            {'--JOB_NAME': 'nightly', '--TempDir': 's3://lake/tmp'}
        """
        known = {_JOB_NAME, _RUN_ID, _TEMP_DIR, _OPTION, _FROM, _TO, _LEGACY}
        words = [str(word) for word in arguments or ()]
        found: dict[str, str] = {}
        for at, word in enumerate(words):
            flag, sign, value = word.partition("=")
            if flag in known:
                found[flag] = value if sign else next(iter(words[at + 1 : at + 2]), "")
        return cls(found)

    def config(self, config: TaskConfig) -> TaskConfig:
        """Return the bookmark arguments of a task with what is given by hand.

        Raises:
            OptionError: both say something, and not the same. What still holds a template is not compared.
        """
        said: dict[str, str] = {}
        for name, (flag, argument) in _OURS.items():
            value, own = self._value(flag), getattr(config, name)
            if value is None:
                continue
            said[name] = value if name != "job" or _is_template(value) else name_of("job", value)
            if own not in (None, "") and not _is_same(name, said[name], str(own)):
                raise OptionError(
                    f"the script's arguments have {flag} {value!r}, and the operator {argument}={own!r}. Nothing was "
                    "read or changed; Spark was not started. Leave one of them out."
                )
        if config.manifest_uri is None and self.given.get(_TEMP_DIR):
            said["manifest_uri"] = self.given[_TEMP_DIR]
        return replace(config, **said)

    def added(self, settings: Settings) -> list[str]:
        """Return what the operator adds to the script's arguments: what is not given by hand."""
        option = Option.parse(settings.option or Option.ENABLE)
        wanted = {
            _JOB_NAME: text_of(settings.job or ""),
            _RUN_ID: settings.run_id,
            _TEMP_DIR: settings.manifest_uri,
            _OPTION: f"job-bookmark-{option.value}",
            _FROM: settings.from_run,
            _TO: settings.to_run,
        }
        is_given = {flag for flag in wanted if self._value(flag) is not None}
        return [word for flag, value in wanted.items() if value and flag not in is_given for word in (flag, str(value))]

    def _value(self, flag: str) -> str | None:
        if flag == _OPTION and flag not in self.given and _LEGACY in self.given:
            return _LEGACY_VALUES.get(self.given[_LEGACY], self.given[_LEGACY])
        return self.given.get(flag)


def _is_template(value: str) -> bool:
    return "{{" in value or "{%" in value


def _is_same(name: str, one: str, other: str) -> bool:
    if _is_template(one) or _is_template(other):
        return True
    return Option.parse(one) is Option.parse(other) if name == "option" else one == other
