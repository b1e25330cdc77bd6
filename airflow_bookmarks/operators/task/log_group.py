"""A group in the log of a task: Airflow's page folds the lines between its two marks into one."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

log = logging.getLogger(__name__)


@contextmanager
def log_group(title: str) -> Iterator[None]:
    """Fold what the block logs under `title`. An exception is logged after the group, and so stays visible."""
    log.info("::group::%s", title)
    try:
        yield
    finally:
        log.info("::endgroup::")
