"""The command line: one implementation, called in two ways.

`airflow bookmarks <verb>`       knows Airflow's connections
`airflow-bookmarks <verb>`       works where Airflow is not installed

Airflow imports this module before every command of its own: what the verbs need is loaded when one of them runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.cli.cli_config import CLICommand


def airflow_commands() -> list[CLICommand]:
    """Return the commands that Airflow adds to its own."""
    from airflow_bookmarks.cli.command import airflow_group

    return [airflow_group()]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `airflow-bookmarks`, and return its exit code: 0 done, 1 refused or failed, 2 wrong usage.

    Args:
        arguments: without the program's name; default: those of the process.
    """
    from airflow_bookmarks.cli.command import run

    return run(arguments)
