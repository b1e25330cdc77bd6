"""Modes: what a publish does with the existing content of its target."""

from __future__ import annotations

from enum import StrEnum


class Mode(StrEnum):
    """What a publish does with the existing content of its target.

    A purge deletes the files that were listed when its script asked for it, and makes none visible.
    """

    APPEND = "append"
    OVERWRITE = "overwrite"
    OVERWRITE_PARTITIONS = "overwrite_partitions"
    PURGE = "purge"
