"""The parameters that name a table, in either of Glue's words."""

from __future__ import annotations

from airflow_bookmarks.glue.errors import GlueParameterError


def one_database(database: str | None, name_space: str | None) -> str:
    """Return the database of a call, which is given as `database` or as `name_space`.

    Raises:
        GlueParameterError: both are given, or none.
    """
    if database and name_space:
        raise GlueParameterError("Parameter name_space and database are both specified, choose one")
    return required("name_space or database", database or name_space)


def required(parameter: str, value: str | None) -> str:
    """Return a value that has to be given.

    Raises:
        GlueParameterError: it is missing.
    """
    if not value:
        raise GlueParameterError(f"Parameter {parameter} is missing")
    return value
