"""What the conf says of the Glue layer is checked, and a misspelt key is an error."""

from __future__ import annotations

import pytest

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.core.settings import Settings
from airflow_bookmarks.glue.settings import GlueSettings


def test_settings_of_the_layer_are_taken_from_the_conf() -> None:
    conf = {"spark.bookmarks.glue.catalog": "hive", "spark.bookmarks.glue.empty_columns": "TRUE", "spark.master": "x"}

    assert GlueSettings.from_conf(conf) == GlueSettings(catalog="hive", empty_columns=True)
    assert Settings.from_conf(conf) == Settings()


@pytest.mark.parametrize(
    ("name", "value"), [("cataloge", "hive"), ("catalog", "s3"), ("writes", "later"), ("empty_columns", "yes")]
)
def test_unknown_setting_or_value_is_an_error(name: str, value: str) -> None:
    with pytest.raises(OptionError, match=r"Nothing was read or changed"):
        GlueSettings.from_conf({f"spark.bookmarks.glue.{name}": value})
