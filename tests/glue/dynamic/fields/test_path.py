"""Paths as scripts write them."""

from __future__ import annotations

import pytest

from airflow_bookmarks.core.errors import OptionError
from airflow_bookmarks.glue.dynamic.fields.path import path_of, steps_of


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("name", ("name",)),
        ("name.first", ("name", "first")),
        ("`this.old.name`", ("this.old.name",)),
        ("`a``b`.c d", ("a`b", "c d")),
        ("myList[].price", ("myList", None, "price")),
        ("grid[][]", ("grid", None, None)),
    ],
)
def test_path_is_read_and_written(path: str, steps: tuple[str | None, ...]) -> None:
    assert steps_of(path) == steps
    assert steps_of(path_of(steps)) == steps


@pytest.mark.parametrize("path", ["", ".a", "a.", "a..b", "`a", "[]a", "a[]b"])
def test_path_that_makes_no_sense_is_an_error_that_shows_it(path: str) -> None:
    with pytest.raises(OptionError, match="can't be read"):
        steps_of(path)
