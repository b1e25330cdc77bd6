"""Parse the arguments of spark-submit where a service takes them as a list: steps of EMR, tasks of Databricks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from airflow_bookmarks.operators.task.remote_submission import joined

_SWITCHES = ("--help", "-h", "--supervise", "--usage-error", "--verbose", "-v", "--version")
_CONF = ("--conf", "-c")
_PY_FILES = "--py-files"
PY_FILES_CONF = "spark.submit.pyFiles"


@dataclass(frozen=True, slots=True)
class SubmitArguments:
    """Options with their values, then the application with its own arguments, which are left alone."""

    options: tuple[tuple[str, ...], ...]
    application: tuple[str, ...]

    @classmethod
    def of(cls, arguments: Sequence[object]) -> SubmitArguments:
        """Take the arguments that follow `spark-submit` apart.

        Example:
            >>> SubmitArguments.of(["--conf=a=1", "-v", "job.py", "--conf"])
            SubmitArguments(options=(('--conf', 'a=1'), ('-v',)), application=('job.py', '--conf'))
        """
        parts = [str(argument) for argument in arguments]
        options: list[tuple[str, ...]] = []
        while parts and parts[0].startswith("-"):
            flag, separator, value = parts.pop(0).partition("=")
            if separator:
                options.append((flag, value))
            elif flag in _SWITCHES or not parts:
                options.append((flag,))
            else:
                options.append((flag, parts.pop(0)))
        return cls(tuple(options), tuple(parts))

    @property
    def conf(self) -> dict[str, str]:
        """The Spark conf among the options."""
        pairs = (option[1].partition("=") for option in self.options if option[0] in _CONF and len(option) > 1)
        return {key.strip(): value for key, _, value in pairs}

    @property
    def py_files(self) -> str | None:
        """The Python files: those of the last `--py-files`, which hides those of the conf."""
        listed = [option[1] for option in self.options if option[0] == _PY_FILES and len(option) > 1]
        return listed[-1] if listed else self.conf.get(PY_FILES_CONF)

    def adding(self, conf: Mapping[str, str], runtime_uri: str | None) -> SubmitArguments:
        """Return the arguments with more conf and the runtime; what is there stays."""
        present, options = self.conf, self.options
        if runtime_uri is not None:
            others = tuple(option for option in options if option[0] != _PY_FILES)
            options = (*others, (_PY_FILES, joined(self.py_files, runtime_uri)))
        added = tuple(("--conf", f"{key}={value}") for key, value in conf.items() if present.get(key) != value)
        return replace(self, options=(*added, *options))

    def as_list(self) -> list[str]:
        """Return the arguments as spark-submit takes them."""
        return [*(part for option in self.options for part in option), *self.application]
