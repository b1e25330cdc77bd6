"""Manifests as a DAG asks for them: by an argument that travels to the driver, and of runs that need no Spark."""

from __future__ import annotations

import json
from pathlib import Path

from airflow_bookmarks.operators.spark_submit import BookmarkSparkSubmitOperator
from tests.airflow.conftest import World
from tests.airflow.operators.test_operator import JOB, context, operator, play, refuse
from tests.airflow.operators.test_skip_when_empty import Seen


def test_argument_travels_to_the_driver(world: World) -> None:
    world.shop.put("a.txt", "a")
    task = operator(bookmark_manifest_uri="s3://temp/{{ ds }}")
    seen = Seen(world, task)

    play(task, context(), seen)

    assert seen.conf["spark.bookmarks.manifest_uri"] == "s3://temp/{{ ds }}"
    assert "bookmark_manifest_uri" in BookmarkSparkSubmitOperator.template_fields


def test_without_it_nothing_travels(world: World) -> None:
    world.shop.put("a.txt", "a")
    task = operator()
    seen = Seen(world, task)

    play(task, context(), seen)

    assert "spark.bookmarks.manifest_uri" not in seen.conf


def test_empty_run_without_spark_has_a_manifest(world: World, tmp_path: Path) -> None:
    world.shop.put("a.txt", "a")
    world.shop.run(JOB)

    play(operator(skip_when_empty=True, bookmark_manifest_uri=str(tmp_path / "temp")), context(), refuse)

    (found,) = (tmp_path / "temp" / "partitionlisting" / JOB).rglob("*.json")
    assert (found.name, json.loads(found.read_text())) == ("raw.input-files.json", [])
