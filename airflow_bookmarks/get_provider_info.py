"""What Airflow learns about this package at discovery.

Discovery runs while Airflow reads its configuration, before every command: this module imports nothing of Airflow and
nothing heavy. The keys of Airflow's schema are kebab-case; it ignores another spelling without a word.
"""

from __future__ import annotations

from typing import Any

from airflow_bookmarks.version import __version__

_INTEGRATION = "Bookmarks"
_TEXT_OR_NONE = ["string", "null"]


def get_provider_info() -> dict[str, Any]:
    """Return the provider's entry for Airflow's registry (`provider_info.schema.json`)."""
    return {
        "package-name": "airflow-provider-bookmarks",
        "name": _INTEGRATION,
        "description": "Bookmarks for Spark jobs: each input read once, state in DynamoDB.",
        "versions": [__version__],
        "integrations": [{"integration-name": _INTEGRATION, "tags": ["software"]}],
        "hooks": [_modules("airflow_bookmarks.hooks.bookmark")],
        "operators": [
            _modules(
                "airflow_bookmarks.operators.backfill",
                "airflow_bookmarks.operators.change",
                "airflow_bookmarks.operators.databricks",
                "airflow_bookmarks.operators.emr",
                "airflow_bookmarks.operators.glue",
                "airflow_bookmarks.operators.health_watch",
                "airflow_bookmarks.operators.kubernetes",
                "airflow_bookmarks.operators.livy",
                "airflow_bookmarks.operators.task.remote_submission",
                "airflow_bookmarks.operators.spark_submit",
                "airflow_bookmarks.operators.task.submission",
            )
        ],
        "sensors": [_modules("airflow_bookmarks.sensors.bookmark")],
        "triggers": [
            _modules(
                "airflow_bookmarks.triggers.bookmark",
                "airflow_bookmarks.triggers.submission",
                "airflow_bookmarks.triggers.watcher",
            )
        ],
        "task-decorators": [
            {"name": "bookmark", "class-name": "airflow_bookmarks.decorators.bookmark.bookmark_task"},
        ],
        "notifications": ["airflow_bookmarks.notifications.bookmark.BookmarkNotifier"],
        "extra-links": ["airflow_bookmarks.links.bookmark.BookmarkLink"],
        "connection-types": [_connection_type()],
        "cli": ["airflow_bookmarks.cli.airflow_commands"],
        "config": {"bookmarks": _configuration()},
    }


def _configuration() -> dict[str, Any]:
    return {
        "description": "Settings of the provider for bookmarks.",
        "options": {
            "conn_id": {
                "description": "The connection whose bookmarks the routes under /bookmarks of the API server show.",
                "version_added": __version__,
                "type": "string",
                "example": None,
                "default": "bookmarks_default",
            },
            "jobs_of_unknown_dags": {
                "description": (
                    "Who sees and changes, in the page, jobs of a DAG that this Airflow does not have (deleted, or of "
                    "another Airflow): all_dags (those with the right over all DAGs) or assets (those with it on "
                    "assets)."
                ),
                "version_added": __version__,
                "type": "string",
                "example": "assets",
                "default": "all_dags",
            },
            "look_below": {
                "description": (
                    "Prefixes, separated by commas, below which the API server may look at the files of jobs: folders, "
                    "buckets or hosts. Empty: it looks at none, and shows what runs have recorded."
                ),
                "version_added": __version__,
                "type": "string",
                "example": "s3://lake/raw/,hdfs://names/landing",
                "default": "",
            },
        },
    }


def _modules(*names: str) -> dict[str, Any]:
    return {"integration-name": _INTEGRATION, "python-modules": list(names)}


def _connection_type() -> dict[str, Any]:
    return {
        "connection-type": "bookmarks",
        "hook-name": _INTEGRATION,
        "hook-class-name": "airflow_bookmarks.hooks.bookmark.BookmarkHook",
        "conn-fields": _connection_fields(),
        # AWS credentials belong to the AWS connection that aws_conn_id names, so this one has no secret.
        "ui-field-behaviour": {
            "hidden-fields": ["host", "port", "schema", "login", "password"],
            "relabeling": {},
        },
    }


def _connection_fields() -> dict[str, Any]:
    return {
        "store": _text(
            "Store",
            "Where the state lies: dynamodb://TABLE?region=REGION, or sqlite:////PATH for one machine.",
        ),
        "namespace": _text(
            "Namespace",
            "Separates environments that share a table, for example prod and test.",
        ),
        "aws_conn_id": _text(
            "AWS connection",
            "Airflow connection whose credentials reach the table. Empty: boto3 finds them.",
        ),
        "region": _text("Region", "AWS region of the table. Empty: as in the store's URI, else boto3's."),
        "endpoint": _text(
            "Endpoint",
            "URL of another DynamoDB API, for example DynamoDB Local. Empty: that of AWS. One without TLS on another "
            "machine needs insecure=true in the store's URI.",
        ),
        "state_uri": _text(
            "State URI",
            "Folder for state that is too large for the table, as s3://BUCKET/PREFIX. Empty: the table has all.",
        ),
        "names": _text(
            "Names",
            "ascii: new jobs, contexts and outputs are refused names outside of ASCII. Empty: as in the store's URI, "
            "else unicode.",
        ),
        "default_option": {
            "label": "Default option",
            "description": "What a task does that names no option. pause and disable change no state.",
            "schema": {"type": "string", "enum": ["enable", "pause", "disable"], "default": "enable"},
        },
        "hide_state": {
            "label": "Hide job.state",
            "description": "Whether the page, the command line and the hook leave out the values of job.state.",
            "schema": {"type": "string", "enum": ["true", "false"], "default": "false"},
        },
    }


def _text(label: str, description: str) -> dict[str, Any]:
    return {"label": label, "description": description, "schema": {"type": _TEXT_OR_NONE, "default": None}}
