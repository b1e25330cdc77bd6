"""Modes: what a publish does with the existing content of its target."""

from __future__ import annotations

from enum import StrEnum


class Mode(StrEnum):
    """What a publish does with the existing content of its target."""

    APPEND = "append"
    OVERWRITE = "overwrite"
    OVERWRITE_PARTITIONS = "overwrite_partitions"
