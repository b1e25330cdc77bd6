"""What scripts import: `from awsglue.transforms import *`, and packages that exist in Glue alone."""

from __future__ import annotations

import importlib

import pytest

from airflow_bookmarks.glue.__main__ import PATH
from airflow_bookmarks.glue.inventory.surface import ABSENT_PACKAGES
from airflow_bookmarks.glue.transforms import classes
from airflow_bookmarks.glue.transforms.transform import GlueTransform


@pytest.fixture(autouse=True)
def on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PATH))


def test_star_import_gives_each_class_and_no_other_name() -> None:
    names: dict[str, object] = {}
    exec("from awsglue.transforms import *", names)  # noqa: S102  # as scripts do
    own = {name for name, each in vars(classes).items() if isinstance(each, type) and issubclass(each, GlueTransform)}
    assert set(names) - {"__builtins__"} == own


@pytest.mark.parametrize("package", sorted(ABSENT_PACKAGES))
def test_package_that_is_in_glue_alone_says_so(package: str) -> None:
    with pytest.raises(ImportError, match=f"{package}: .* in Glue alone"):
        importlib.import_module(f"{package}.transforms")
