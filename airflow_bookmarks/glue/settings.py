"""The settings of the Glue layer, in the Spark conf: `spark.bookmarks.glue.<name>`."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Literal, cast

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.option import check_choice
from airflow_bookmarks.core.settings import PREFIX

if TYPE_CHECKING:
    from collections.abc import Mapping

GLUE_PREFIX = f"{PREFIX}glue."
RUN_KEY = f"{GLUE_PREFIX}run"  # not a setting: by it a session's run is found again, see run.py

CatalogKind = Literal["glue", "hive"]
WriteMode = Literal["managed", "direct"]
_BOOLEANS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class GlueSettings:
    """What the conf says of the Glue layer.

    Args:
        catalog: where tables are looked up: "glue" (default), the Data Catalog; "hive", Spark's own catalog.
        empty_columns: whether the frame of a context with nothing new has its columns in `toDF()`. False (default), as
            in Glue: scripts test `len(df.columns) == 0`.
        writes: "managed" (default): under enable, rows are visible after the commit; "direct": at once, at least once,
            for scripts that look at what they wrote before they commit.
        metrics: a namespace of CloudWatch to which the counts of each run are sent; None (default): nowhere. Rows are
            counted as they are read then, which may keep filters from being pushed down into the read.
        temp_dir: the folder for rows that a run fixes for its own use; default: the script's `--TempDir`.

    Example:
        >>> GlueSettings.from_conf({"spark.bookmarks.glue.catalog": "hive"}).catalog
        'hive'
    """

    catalog: CatalogKind = "glue"
    empty_columns: bool = False
    writes: WriteMode = "managed"
    metrics: str | None = None
    temp_dir: str | None = None

    @classmethod
    def from_conf(cls, conf: Mapping[str, str]) -> GlueSettings:
        """Pick the settings of this layer out of a Spark conf; an empty value counts as absent.

        Raises:
            OptionError: a key under `spark.bookmarks.glue.` is unknown, or has a value that is none of its own.
        """
        given = {
            key.removeprefix(GLUE_PREFIX): value
            for key, value in conf.items()
            if key.startswith(GLUE_PREFIX) and key != RUN_KEY and value != ""
        }
        known = [field.name for field in fields(cls)]
        if unknown := sorted(set(given) - set(known)):
            raise OptionError(
                f"unknown setting {GLUE_PREFIX}{unknown[0]}; known are {', '.join(known)}. Nothing was read or changed."
            )
        catalog, writes = given.get("catalog", "glue"), given.get("writes", "managed")
        check_choice(f"{GLUE_PREFIX}catalog", catalog, CatalogKind)
        check_choice(f"{GLUE_PREFIX}writes", writes, WriteMode)
        return cls(
            catalog=cast("CatalogKind", catalog),
            empty_columns=_boolean("empty_columns", given.get("empty_columns", "false")),
            writes=cast("WriteMode", writes),
            metrics=given.get("metrics"),
            temp_dir=given.get("temp_dir"),
        )


def _boolean(name: str, text: str) -> bool:
    if text.lower() not in _BOOLEANS:
        raise OptionError(f"{GLUE_PREFIX}{name}={text!r}: expected true or false. Nothing was read or changed.")
    return _BOOLEANS[text.lower()]
