"""What scripts import: `from awsglue.dynamicframe import ...`, `from awsglue.gluetypes import *`."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_bookmarks.glue.__main__ import PATH
from airflow_bookmarks.glue.dynamic import types
from airflow_bookmarks.glue.dynamic.frame import DynamicFrame


def test_names_of_frames_and_types_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PATH))
    names: dict[str, Any] = {}

    exec("from awsglue import DynamicFrame", names)  # noqa: S102  # as scripts do
    assert names["DynamicFrame"] is DynamicFrame
    exec("from awsglue.dynamicframe import *", names)  # noqa: S102
    assert names["DynamicFrame"] is DynamicFrame
    assert {"DynamicFrameCollection", "ResolveOption"} <= set(names)
    exec("from awsglue.gluetypes import *\nfrom awsglue.functions import *", names)  # noqa: S102
    assert names["StructType"]([names["Field"]("id", names["LongType"]())]) == types.StructType(
        [types.Field("id", types.LongType())]
    )
    assert set(names) >= {name for name, kind in vars(types).items() if _is_own(kind)}


def _is_own(kind: object) -> bool:
    return isinstance(kind, type) and kind.__module__ == types.__name__
