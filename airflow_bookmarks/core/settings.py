"""The settings of a run, passed from the operator to the driver as `spark.bookmarks.<name>` in the Spark conf."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from airflow_bookmarks.core.errors import OptionError, VersionMismatchError
from airflow_bookmarks.core.job import RunIdentity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PREFIX = "spark.bookmarks."
# Checked elsewhere: by files/s3/settings.py, files/hadoop/hdfs_settings.py, databases/access.py and glue/settings.py.
_ELSEWHERE = ("s3.", "hdfs.", "access.", "glue.")


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings in a conf; None for one that is absent (empty text counts as absent).

    `store` is a store URI; `from_run` and `to_run` are written `from` and `to`; `dag` is a JSON object with `dag_id`,
    `task_id`, `map_index`, `dag_run_id`, `logical_date`, `series`; `upstream` is a comma-separated list of job names,
    and `upstream_until` a JSON object with the last run to read of some of them; `replay` is the number of a run to
    make again; `start` is "beginning", "now" or an ISO time; `shard` says which virtual shards this task works on, as
    `core.shard.ShardShare` has it; `state_uri` is a folder for state that is too large for the table, as the store URI
    may say it too; `manifest_uri` a folder in which each plan is written down; `on_unused` is "warn", "error" or
    "ignore"; `version` is that of the package which wrote the settings.
    """

    job: str | None = None
    store: str | None = None
    option: str | None = None
    from_run: str | None = None
    to_run: str | None = None
    run_id: str | None = None
    attempt: str | None = None
    upstream: str | None = None
    upstream_until: str | None = None
    dag: str | None = None
    on_conflict: str | None = None
    replay: str | None = None
    start: str | None = None
    shard: str | None = None
    state_uri: str | None = None
    manifest_uri: str | None = None
    on_unused: str | None = None
    version: str | None = None

    @classmethod
    def from_conf(cls, conf: Mapping[str, str]) -> Settings:
        """Pick the settings out of a Spark conf.

        Raises:
            OptionError: a key under `spark.bookmarks.` that is none of ours.

        Example:
            >>> Settings.from_conf({"spark.bookmarks.job": "flights.clean", "spark.master": "local"}).job
            'flights.clean'
        """
        ours = {k.removeprefix(PREFIX): v for k, v in conf.items() if k.startswith(PREFIX)}
        given = {name: value for name, value in ours.items() if not is_checked_elsewhere(PREFIX + name)}
        check_setting_names(given)
        return cls(**{_attribute(name): value for name, value in given.items() if value != ""})

    def to_conf(self) -> dict[str, str]:
        """Return the conf with these settings, without those that are None."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {PREFIX + _key(name): value for name, value in values.items() if value is not None}

    def upstreams(self) -> tuple[str, ...]:
        """Return the upstream jobs that the operator declared."""
        return tuple(name.strip() for name in (self.upstream or "").split(",") if name.strip())

    def untils(self) -> dict[str, int]:
        """Return up to which run the operator wants upstream jobs to be read.

        Raises:
            OptionError: it is no JSON object of job names and run numbers.
        """
        document = _json_object("upstream_until", self.upstream_until)
        if not all(type(number) is int and number >= 0 for number in document.values()):
            raise OptionError(
                f"{PREFIX}upstream_until={self.upstream_until!r}: expected run numbers. Nothing was read or changed."
            )
        return document

    def identity(self, run_id: str) -> RunIdentity:
        """Return the caller of the run; `run_id` is used if the settings name none.

        Raises:
            OptionError: the attempt is no number, or `dag` no JSON object of the known names.
        """
        attempt = self.attempt or "1"
        if not (attempt.isascii() and attempt.isdigit() and len(attempt) <= 9) or int(attempt) < 1:
            raise OptionError(f"{PREFIX}attempt={attempt!r}: expected a number from 1. Nothing was read or changed.")
        dag = self._dag()
        return RunIdentity(
            run_id=self.run_id or run_id,
            attempt=int(attempt),
            dag_id=dag.get("dag_id"),
            task_id=dag.get("task_id"),
            map_index=dag.get("map_index", -1),
            dag_run_id=dag.get("dag_run_id"),
            logical_date=dag.get("logical_date"),
            series=dag.get("series"),
        )

    def _dag(self) -> dict[str, Any]:
        document = _json_object("dag", self.dag)
        known = {"dag_id", "task_id", "map_index", "dag_run_id", "logical_date", "series"}
        if not set(document) <= known:
            raise OptionError(f"{PREFIX}dag: expected a JSON object with {sorted(known)}. Nothing was read or changed.")
        return document


def _json_object(name: str, text: str | None) -> dict[str, Any]:
    """Return the JSON object that a setting holds, empty if it is absent."""
    if text is None:
        return {}
    try:
        document = json.loads(text)
    except ValueError as error:
        raise OptionError(f"{PREFIX}{name} is no JSON ({error}). Nothing was read or changed.") from error
    if not isinstance(document, dict):
        raise OptionError(f"{PREFIX}{name}={text!r}: expected a JSON object. Nothing was read or changed.")
    return document


def _attribute(name: str) -> str:
    return {"from": "from_run", "to": "to_run"}.get(name, name)


def _key(name: str) -> str:
    return {"from_run": "from", "to_run": "to"}.get(name, name)


def is_checked_elsewhere(key: str) -> bool:
    """Whether a key of a Spark conf is a setting of one part alone: how files are reached, databases, or of Glue.

    Example:
        >>> is_checked_elsewhere("spark.bookmarks.access.crm"), is_checked_elsewhere("spark.bookmarks.option")
        (True, False)
    """
    return key.removeprefix(PREFIX).startswith(_ELSEWHERE)


def known_settings() -> tuple[str, ...]:
    """Return the names that may stand after `spark.bookmarks.`."""
    return tuple(_key(f.name) for f in fields(Settings))


def check_setting_names(names: Iterable[str]) -> None:
    """Make sure that each name is a setting of ours.

    Raises:
        OptionError: otherwise; Glue ignores such keys, and a misspelt one then reads everything.
    """
    unknown = sorted(name for name in names if name not in known_settings())
    if unknown:
        raise OptionError(
            f"unknown setting {PREFIX}{unknown[0]}; known are {', '.join(known_settings())}. Nothing was read or "
            "changed."
        )


def check_versions(written_by: str | None, running: str) -> None:
    """Compare the version that wrote the settings (worker) with the one that reads them (driver).

    Raises:
        VersionMismatchError: another major version.
    """
    if written_by is not None and written_by.split(".")[0] != running.split(".")[0]:
        raise VersionMismatchError(
            f"the worker runs airflow-provider-bookmarks {written_by} and the driver {running}: another major version. "
            "Nothing was read or changed. Let the operator ship its own runtime (ship_runtime=True), or install the "
            "same version in the driver's image."
        )
