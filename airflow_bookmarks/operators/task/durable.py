"""The argument `durable` of the providers' operators: whether a retry looks for the Spark job of an earlier try."""

from __future__ import annotations

from typing import Any

from airflow_bookmarks.airflow_compat import resumes_jobs


def durable_argument(provider: type[Any], durable: bool | None) -> dict[str, Any]:
    """Return `durable` for the constructor of a provider's operator: off, unless the user asks for it.

    Where Airflow remembers no Spark job, an early provider does not know the argument, and a later one warns that it
    has no effect: so it gets none, unless it is asked for, and then it is the provider that answers.
    """
    return {"durable": bool(durable)} if durable or resumes_jobs(provider) else {}
