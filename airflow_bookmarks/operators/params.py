"""The option of a run as a param of Airflow's trigger form: the choice holds for that DAG run only.

A retry or a clear keeps the choice, because the DAG run keeps its parameters. Scheduled runs use the form's default.
"""

from __future__ import annotations

from typing import TypedDict

from airflow.sdk import Param

from airflow_bookmarks.core.option import Option

_WINDOW = (
    "With `pause` only, both or none: read again what the runs after FROM, up to and including TO, have read. A run "
    "number, or a run id."
)


class BookmarkArguments(TypedDict):
    """Arguments of an operator with a bookmark, as templates."""

    bookmark_option: str
    bookmark_from: str
    bookmark_to: str


def bookmark_params(option: Option | str = Option.ENABLE) -> dict[str, Param]:
    """Return DAG parameters for the trigger form: the option, and the window of a pause run.

    Args:
        option: the default choice, also for scheduled runs: "enable", "pause" or "disable".

    Raises:
        OptionError: unknown option.

    Example:
        with DAG("flights", params=bookmark_params()):
            BookmarkSparkSubmitOperator(task_id="clean", application="clean_flights.py", **bookmark_arguments())
    """
    picked = option if isinstance(option, Option) else Option.parse(option)
    return {
        "bookmark_option": Param(
            picked.value,
            type="string",
            enum=[one.value for one in Option],
            title="Bookmark",
            description_md=(
                "`enable` reads what is new and commits. `pause` reads what is new, or a window, and changes nothing. "
                "`disable` reads everything and changes nothing."
            ),
        ),
        "bookmark_from": Param(None, type=["null", "string"], title="Window: after run", description_md=_WINDOW),
        "bookmark_to": Param(
            None, type=["null", "string"], title="Window: up to and including run", description_md=_WINDOW
        ),
    }


def bookmark_arguments() -> BookmarkArguments:
    """Return operator arguments that take their values from the form; an empty value counts as unset.

    See `bookmark_params`.
    """
    return {
        "bookmark_option": "{{ params.bookmark_option }}",
        "bookmark_from": "{{ params.bookmark_from or '' }}",
        "bookmark_to": "{{ params.bookmark_to or '' }}",
    }
