"""Promise FILE-18, the protocol: a run plans a context again from its beginning, before it has read anything of it."""

from __future__ import annotations

import json

import pytest

from airflow_bookmarks.core.errors import FencedError, MisuseError, SchemaChangedError
from airflow_bookmarks.lifecycle.changes.change import unlock
from airflow_bookmarks.lifecycle.protocol.recover import STARTS_FROM, STARTS_OVER
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from tests.lifecycle.shop import FILES, Shop


def source(shop: Shop, **options: object) -> FileSource:
    return FileSource(FILES, [str(shop.raw)], FileOptions(**options))  # type: ignore[arg-type]


def names(paths: object) -> list[str]:
    return sorted(str(path).rpartition("/")[2] for path in paths)  # type: ignore[attr-defined]


def read_one(shop: Shop, name: str) -> None:
    shop.put(name, "x")
    run = shop.begin()
    run.plan("raw", source(shop))
    run.set_schema("raw", '{"type": "struct", "fields": []}')
    run.commit()


def test_plan_from_the_beginning_is_what_is_stored_committed_and_known_after(shop: Shop) -> None:
    read_one(shop, "a")
    shop.put("b", "x")
    run = shop.begin()
    assert names(run.plan("raw", source(shop)).files.paths) == ["b"]
    assert run.schema_before("raw") is not None
    assert names(run.start_over("raw").files.paths) == ["a", "b"]
    assert run.schema_before("raw") is None
    run.set_schema("raw", "{}", {"changed": ["a: int -> string"]})
    summary = run.commit()
    (stored,) = [found for found in shop.store.runs("copy", after=1) if found.state.is_committed]
    figures = stored.plans["raw"].stats
    assert (figures["files"], figures[STARTS_OVER], figures[STARTS_FROM]) == (2, True, "1.1")
    assert summary.contexts["raw"]["schema_change"] == {"changed": ["a: int -> string"]}
    assert json.loads(json.dumps(summary.as_dict()))["contexts"]["raw"]["files"] == 2
    following = shop.begin()
    assert following.plan("raw", source(shop)).is_empty
    following.abort("enough")


def test_run_that_started_over_and_failed_leaves_the_position(shop: Shop) -> None:
    read_one(shop, "a")
    shop.put("b", "x")
    run = shop.begin()
    run.plan("raw", source(shop))
    run.start_over("raw")
    run.abort("the disk is full")
    again = shop.begin()
    assert names(again.plan("raw", source(shop)).files.paths) == ["b"]
    again.abort("enough")


def test_driver_that_lost_the_job_can_not_start_over(shop: Shop) -> None:
    read_one(shop, "a")
    run = shop.begin()
    run.plan("raw", source(shop))
    unlock(shop.store, "copy", reason="its machine is gone", who="test")
    with pytest.raises(FencedError):
        run.start_over("raw")


def test_context_that_could_not_be_read_keeps_the_run_from_committing(shop: Shop) -> None:
    shop.put("a", "x")
    run = shop.begin()
    run.plan("raw", source(shop))
    run.set_failed("raw", "SchemaChangedError: other columns")
    with pytest.raises(MisuseError, match=r"'raw' was planned and not read: SchemaChangedError.*Nothing was committed"):
        run.commit()
    run.abort("as it says")
    assert shop.store.head("copy").run_number == 0


@pytest.mark.parametrize("word", ["accept", "reset"])
def test_partition_types_follow_where_the_script_says_so(shop: Shop, word: str) -> None:
    read_one(shop, "k=1/a")
    shop.put("k=one/b", "x")
    run = shop.begin()
    with pytest.raises(SchemaChangedError, match="'one' is none"):
        run.plan("raw", source(shop))
    plan = run.plan("raw", source(shop, on_schema_change=word))
    assert (dict(plan.partition_types), names(plan.files.paths)) == ({"k": "string"}, ["b"])
    assert plan.stats()["options"]["on_schema_change"] == word
    run.abort("enough")


def test_other_partition_columns_follow_where_the_script_says_so(shop: Shop) -> None:
    read_one(shop, "k=1/a")
    (shop.raw / "k=1" / "a").unlink()
    shop.put("m=2/b", "x")
    run = shop.begin()
    with pytest.raises(SchemaChangedError, match=r"were \['k'\].*are \['m'\] now"):
        run.plan("raw", source(shop))
    assert dict(run.plan("raw", source(shop, on_schema_change="accept")).partition_types) == {"m": "int"}
    run.abort("enough")
