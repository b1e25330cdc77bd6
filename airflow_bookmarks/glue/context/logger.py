"""What `GlueContext.get_logger` returns: a logger with the methods of log4j, which scripts call."""

from __future__ import annotations

import logging

from airflow_bookmarks.spark.opening import show_log

_LOG = logging.getLogger("airflow_bookmarks.glue.script")


class ScriptLogger:
    """The log of a script. Messages are taken as they are: percent signs in them mean nothing."""

    def __init__(self) -> None:
        show_log()

    def trace(self, message: object) -> None:
        """Log details."""
        _LOG.debug("%s", message)

    def debug(self, message: object) -> None:
        """Log what helps to find a fault."""
        _LOG.debug("%s", message)

    def info(self, message: object) -> None:
        """Log what happens."""
        _LOG.info("%s", message)

    def warn(self, message: object) -> None:
        """Log what may be wrong."""
        _LOG.warning("%s", message)

    warning = warn

    def error(self, message: object) -> None:
        """Log what is wrong."""
        _LOG.error("%s", message)

    def fatal(self, message: object) -> None:
        """Log what ends the script."""
        _LOG.critical("%s", message)
