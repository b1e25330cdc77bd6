"""The argument `durable` of the providers' operators: whether a retry looks for the Spark job of an earlier try."""

from __future__ import annotations

from typing import Any

from airflow import sdk


def durable_argument(provider: type[Any], durable: bool | None) -> dict[str, Any]:
    """Return `durable` for the constructor of a provider's operator: off, unless the user asks for it.

    Airflow before 3.3 remembers no Spark job. There a provider of that time does not know the argument, and a later one
    warns that it has no effect: so it gets none, unless it is asked for, and then it is the provider that answers.
    """
    resumable: type[Any] | None = getattr(sdk, "ResumableJobMixin", None)
    is_known = resumable is not None and issubclass(provider, resumable)
    return {"durable": bool(durable)} if durable or is_known else {}
