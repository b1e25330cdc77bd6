"""Modes: what a publish does with what its target holds already."""

from __future__ import annotations

from enum import StrEnum


class Mode(StrEnum):
    """What a publish does with what the target holds already."""

    APPEND = "append"
    OVERWRITE = "overwrite"
    OVERWRITE_PARTITIONS = "overwrite_partitions"
