"""Promises DEP-7 and AIR-8: what a finished task tells others: an asset event, metrics, lineage."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG, Asset, AssetAlias
from airflow.sdk.execution_time.context import OutletEventAccessor

from airflow_bookmarks.airflow_compat import AirflowFailException, event_extra
from airflow_bookmarks.core.errors import OptionError, StateCorruptError
from airflow_bookmarks.core.health.verdict import HealthState
from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.files.local import LocalFileSystem
from airflow_bookmarks.lifecycle.health.listed import JobHealth
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.lifecycle.state.comparison import RunFigures
from airflow_bookmarks.operators.spark_submit import BookmarkSparkSubmitOperator
from airflow_bookmarks.operators.task import metrics, task_try
from airflow_bookmarks.operators.task.attempt import Attempt
from airflow_bookmarks.operators.task.openlineage import WINDOW_FACET, dataset_name
from airflow_bookmarks.sources.files.options import FileOptions
from airflow_bookmarks.sources.files.planner import FileSource
from tests.airflow.compat import AirflowException
from tests.airflow.conftest import Player, World
from tests.airflow.operators.test_operator import JOB, Submits, context, drive, operator, play, refuse


@pytest.fixture
def submits(world: World, monkeypatch: pytest.MonkeyPatch) -> Submits:
    return Submits(world, monkeypatch)


FLIGHTS = Asset(name="flights", uri="file:///lake/flights")


# ---- an asset event

HAS_PARTITIONS = hasattr(OutletEventAccessor, "add_partitions")


@pytest.mark.skipif(HAS_PARTITIONS, reason="it is about an Airflow without partitions of assets, and this one has them")
def test_partition_keys_are_refused_before_spark_starts_where_airflow_has_none(world: World) -> None:
    from airflow.sdk.execution_time.context import OutletEventAccessors

    task = operator(bookmark_asset=FLIGHTS, asset_partitions=lambda _: ["x"])
    with pytest.raises(AirflowFailException, match="needs Airflow"):
        play(task, {**context(), "outlet_events": OutletEventAccessors()}, refuse)


def events(asset: Asset, partitioned: bool = False) -> list[dict[str, Any]]:
    """Return the extras of the asset's events in Airflow's database, oldest first."""
    from airflow.models.asset import AssetEvent, AssetModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        rows = session.scalars(
            select(AssetEvent)
            .join(AssetModel, AssetModel.id == AssetEvent.asset_id)
            .where(AssetModel.name == asset.name)
        ).all()
        return [{**event.extra, "key": event.partition_key} if partitioned else dict(event.extra) for event in rows]


def dag_with(application: str, asset: Asset, dag_id: str, **arguments: Any) -> DAG:
    with DAG(dag_id, schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
        BookmarkSparkSubmitOperator(
            task_id="copy", bookmark_job=JOB, application=application, bookmark_asset=asset, **arguments
        )
    return dag


def test_asset_has_an_event_when_something_was_published_and_only_then(
    world: World, submits: Submits, player: Player
) -> None:
    asset = Asset(name=f"flights {world.folder.name}", uri=f"file://{world.folder}/flights")
    world.shop.put("a.txt", "a")
    script = submits.script()

    first = player.play(dag_with(script, asset, "shop"))
    second = player.play(dag_with(script, asset, "shop"))  # nothing is new

    assert (first.state, second.state) == ("success", "success")
    assert second.xcom("copy")["is_empty"] is True
    assert events(asset) == [event_extra(first.xcom("copy"))]


@pytest.mark.seldom
@pytest.mark.skipif(not HAS_PARTITIONS, reason="this Airflow has no partitions of assets; they came with 3.3")
def test_partition_keys_go_out_where_they_are_asked_for(world: World, submits: Submits, player: Player) -> None:
    asset = Asset(name=f"days {world.folder.name}", uri=f"file://{world.folder}/days")
    world.shop.put("a.txt", "a")
    script = submits.script()

    def days(summary: dict[str, Any]) -> list[str]:
        return [summary["contexts"]["raw"]["watermark_to"][:10], "all"]

    with DAG("reader", schedule=[asset], start_date=datetime(2026, 1, 1, tzinfo=UTC)) as reader:
        pass  # what makes the asset one that Airflow knows
    player.sync(reader)
    player.play(dag_with(script, asset, "shop_by_day", asset_partitions=days))
    player.play(dag_with(script, asset, "shop_by_day", asset_partitions=days))  # nothing is new

    found = events(asset, partitioned=True)
    assert sorted(event["key"] for event in found) == ["2023-11-14", "all"]
    assert {event["run_number"] for event in found} == {"1"}


@pytest.mark.seldom
@pytest.mark.skipif(not HAS_PARTITIONS, reason="this Airflow has no partitions of assets; they came with 3.3")
@pytest.mark.parametrize("given", ["2013-01-01", None, [1], [""]])
def test_partition_keys_that_are_none_fail_the_task_and_the_run_stays(
    world: World, submits: Submits, player: Player, given: Any
) -> None:
    asset = Asset(name=f"days {world.folder.name}", uri=f"file://{world.folder}/days")
    world.shop.put("a.txt", "a")

    dag = dag_with(submits.script(), asset, "shop_by_day", asset_partitions=lambda _: given)
    played = player.play(dag)

    assert played.state == "failed"
    assert world.store.head(JOB).published == 1


def test_failed_and_paused_tasks_make_no_event(world: World) -> None:
    told = Told()
    task = operator(bookmark_asset=FLIGHTS)

    def fail(_: Any) -> None:
        raise AirflowException("Spark failed")

    with pytest.raises(AirflowException):
        play(task, {**context(), "outlet_events": told}, fail)
    task.bookmark_option = "pause"
    play(task, {**context(), "outlet_events": told}, lambda _: None)
    assert told.events == []


def test_retry_that_finds_the_run_published_makes_the_event(world: World) -> None:
    world.shop.put("a.txt", "a")
    play(operator(retries=1), context(retries=1), drive(world))  # its worker died before it could say so
    told = Told()

    play(operator(retries=1, bookmark_asset=FLIGHTS), {**context(2, retries=1), "outlet_events": told}, refuse)

    assert [extra["run_number"] for _, extra in told.events] == ["1"]


def test_alias_stands_among_the_outlets_and_the_asset_does_not() -> None:
    assert operator(bookmark_asset=FLIGHTS).outlets == [AssetAlias("bookmark flights")]
    with pytest.raises(OptionError, match="without bookmark_asset"):
        operator(asset_partitions=lambda _: [])


class Told:
    """The outlet events of a context, as far as an alias is concerned."""

    def __init__(self) -> None:
        self.events: list[tuple[Asset, dict[str, Any]]] = []

    def __getitem__(self, alias: AssetAlias) -> Told:
        assert isinstance(alias, AssetAlias)
        return self

    def add(self, asset: Asset, extra: dict[str, Any]) -> None:
        self.events.append((asset, extra))


# ---- metrics


def drive_as(world: World, dag_run_id: str) -> Callable[[Any], None]:
    """Return a submit that makes one whole run of another DAG run."""

    def submit(_: Any) -> None:
        identity = RunIdentity(f"shop/{dag_run_id}/copy", 1)
        run = ActiveRun.begin(world.store, JOB, identity, world.shop.environment)
        world.shop.copy(run)
        run.commit()

    return submit


class Backend:
    """A backend of Airflow's stats that keeps what it is given."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.times: dict[str, timedelta] = {}
        self.gauges: dict[str, float] = {}
        self.tags: list[dict[str, Any]] = []

    def incr(self, stat: str, count: int = 1, rate: float = 1, *, tags: dict[str, Any] | None = None) -> None:
        outcome = (tags or {}).get("outcome")
        name = stat if outcome is None else f"{stat} {outcome}"
        self.counts[name] = self.counts.get(name, 0) + count
        self.tags.append(tags or {})

    def timing(self, stat: str, dt: timedelta, *, tags: dict[str, Any] | None = None) -> None:
        self.times[stat] = dt

    def gauge(self, stat: str, value: float, *, tags: dict[str, Any] | None = None) -> None:
        self.gauges[stat] = value
        self.tags.append(tags or {})


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Backend:
    backend = Backend()
    monkeypatch.setattr(metrics, "Stats", backend)
    return backend


def test_run_is_measured_by_airflows_own_stats(world: World, backend: Backend) -> None:
    world.shop.put("a.txt", "a", "b")
    play(operator(), context(), drive(world))

    assert backend.counts["bookmark.tasks committed"] == 1
    assert (backend.counts["bookmark.files_read"], backend.counts["bookmark.bytes_read"]) == (1, 4)
    assert backend.counts["bookmark.rows_written"] == 2
    assert "bookmark.rows_read" not in backend.counts  # nobody counted them
    assert {"begin", "plan", "commit", "publish"} <= {name.rpartition(".")[2] for name in backend.times}
    assert all(tags["job"] == JOB and tags["namespace"] == "test" for tags in backend.tags)


def test_what_is_missing_in_a_sequence_is_a_gauge_that_falls_when_it_comes(world: World, backend: Backend) -> None:
    options = FileOptions(sequence=r"part-(?P<seq>\d+)")

    def read_parts(dag_run_id: str) -> Callable[[Any], None]:
        def submit(_: Any) -> None:
            run = ActiveRun.begin(world.store, JOB, RunIdentity(f"shop/{dag_run_id}/copy", 1), world.shop.environment)
            run.plan("raw", FileSource(LocalFileSystem(), [str(world.shop.raw)], options))
            run.commit()

        return submit

    for dag_run_id, name, missing in (("1", "part-1", 0), ("2", "part-4", 2), ("3", "part-2", 1)):
        world.shop.put(name, "a")
        play(operator(), context(dag_run_id=dag_run_id), read_parts(dag_run_id))
        assert backend.gauges["bookmark.missing"] == missing
    assert {"job": JOB, "namespace": "test", "context": "raw"} in backend.tags


def test_documentation_names_what_is_measured_and_nothing_else(backend: Backend) -> None:
    figures = {"files": 1, "bytes": 1, "rows": 1, "gaps": {"missing": 0}}
    steps = dict.fromkeys(("begin", "plan", "read_write", "commit", "publish"), "0.1")
    measured = {"job": JOB, "namespace": "test", "contexts": {"raw": figures}, "outputs": {"out": figures}}
    metrics.count_task(JOB, "test", "committed")
    metrics.measure_run({**measured, "seconds": steps})
    keys = {"files": None, "bytes": None, "rows": None, "unit": "keys", "count": 2}
    metrics.measure_run({**measured, "contexts": {"rows": keys}, "seconds": {}})
    metrics.measure_last(JOB, "test", RunFigures(1, 1, 1.0))
    metrics.measure_partitions(JOB, "test", 0)
    metrics.measure_health([JobHealth(JOB, "OK", 9, False, "", lag_s=0)], "test")
    page = Path(__file__).parents[3] / "docs" / "operations" / "observability.md"
    rows = [line.split("|")[1] for line in page.read_text().splitlines() if line.startswith("| `bookmark.")]
    names = [re.findall(r"`([^`]+)`", row) for row in rows]
    written = {each if each[0] != "." else row[0].rpartition(".")[0] + each for row in names for each in row}
    (states,) = {each for each in written if each.endswith("<state>")}
    written |= {states.replace("<state>", name) for name in ("damaged", *(metrics._name_of(s) for s in HealthState))}
    written.remove(states)

    assert written == {name.split()[0] for name in (*backend.counts, *backend.times, *backend.gauges)}


def last(backend: Backend) -> dict[str, float]:
    """Return what was sent of the last run."""
    prefix = "bookmark.last."
    return {name.removeprefix(prefix): v for name, v in backend.gauges.items() if name.startswith(prefix)}


def test_last_run_is_compared_with_the_median_of_those_before_it(
    world: World, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "are_sent", lambda: True)
    for number in range(6):
        world.shop.put(f"{number}.txt", "a", "b")
        play(operator(), context(dag_run_id=str(number)), drive_as(world, str(number)))
    assert last(backend) | {"seconds": 0, "seconds_ratio": 0} == {
        "pending": 1, "rows": 2, "no_rows": 0, "seconds": 0, "read_ratio": 1, "seconds_ratio": 0,
    }  # fmt: skip
    world.shop.put("spike.txt", *map(str, range(20)))

    play(operator(), context(dag_run_id="spike"), drive_as(world, "spike"))

    assert (last(backend)["rows"], last(backend)["read_ratio"]) == (20, 10)


def test_past_is_not_read_where_metrics_go_nowhere(
    world: World, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def past(*_: object) -> list[RunFigures]:
        asked.append("past")
        return []

    monkeypatch.setattr(task_try, "past_figures", past)
    play(operator(), context(), drive(world))
    assert asked == []

    monkeypatch.setattr(metrics, "are_sent", lambda: True)
    play(operator(), context(dag_run_id="2"), drive_as(world, "2"))

    assert asked == ["past"]


def test_past_that_can_not_be_read_fails_no_task(
    world: World, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(*_: object) -> list[RunFigures]:
        raise StateCorruptError("run 3 can't be read")

    monkeypatch.setattr(metrics, "are_sent", lambda: True)
    monkeypatch.setattr(task_try, "past_figures", damaged)
    world.shop.put("a.txt", "a")

    assert play(operator(), context(), drive(world))["run_number"] == "1"
    assert last(backend)["read_ratio"] == 1


@pytest.mark.parametrize(
    ("pending", "read", "rows", "no_rows"),
    [
        (3, 0, 0, 1),  # the script reads another folder than the last time
        (None, 3, 0, 1),
        (3, 3, 9, 0),
        (0, 0, 0, 0),
        (3, 3, None, 0),  # nobody counted
    ],
)
def test_no_rows_is_told_only_where_something_was_pending_and_rows_are_counted(
    backend: Backend, pending: int | None, read: int, rows: int | None, no_rows: int
) -> None:
    metrics.measure_last(JOB, "test", RunFigures(read, rows, 1.0), pending)

    assert last(backend)["no_rows"] == no_rows
    assert last(backend)["pending"] == (read if pending is None else pending)


def test_partitions_that_a_task_has_left_are_a_gauge_until_one_succeeds(
    world: World, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Any) -> None:
        raise AirflowException("Spark failed")

    left = {"orders": {"region": ["asia", "us"]}}
    monkeypatch.setattr(Attempt, "partitions_left", lambda self: left)
    failing = context()
    failing["ti"].xcom_push = lambda **_: None
    with pytest.raises(AirflowException):
        play(operator(), failing, fail)
    assert backend.gauges["bookmark.partitions_failed"] == 2

    play(operator(), context(dag_run_id="2"), drive_as(world, "2"))

    assert backend.gauges["bookmark.partitions_failed"] == 0


def test_airflow_without_a_backend_sends_no_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not metrics.are_sent()

    monkeypatch.setenv("AIRFLOW__METRICS__OTEL_ON", "True")

    assert metrics.are_sent()


def test_airflows_own_stats_take_what_is_measured(world: World) -> None:
    world.shop.put("a.txt", "a")
    summary = play(operator(), context(), drive(world))

    metrics.count_task(JOB, "test", "committed")
    metrics.measure_run(summary)


def test_each_end_of_a_task_is_counted_as_what_it_was(world: World, backend: Backend) -> None:
    world.shop.put("a.txt", "a")

    def fail(_: Any) -> None:
        raise AirflowException("Spark failed")

    with pytest.raises(AirflowException):
        play(operator(), context(), fail)
    play(operator(), context(dag_run_id="2"), drive_as(world, "2"))
    play(operator(skip_when_empty=True), context(dag_run_id="3"), refuse)
    play(operator(bookmark_option="pause"), context(dag_run_id="4"), lambda _: None)

    assert {name: n for name, n in backend.counts.items() if name.startswith("bookmark.tasks")} == {
        "bookmark.tasks failed": 1,
        "bookmark.tasks committed": 1,
        "bookmark.tasks empty": 1,
        "bookmark.tasks side": 1,
    }


# ---- lineage


def test_lineage_names_datasets_and_the_window_that_was_read(world: World) -> None:
    world.shop.put("a.txt", "a", "b")
    task = operator()
    play(task, context(), drive(world))

    lineage = task.get_openlineage_facets_on_complete(None)

    (read,) = lineage.inputs
    assert (read.namespace, read.name) == ("file", str(world.shop.raw))
    window = read.inputFacets[WINDOW_FACET]
    assert (window.job, window.runNumber, window.context) == (JOB, "1", "raw")
    assert (window.watermarkFrom, window.watermarkTo) == (None, "2023-11-14T22:13:20.000000Z")
    assert read.inputFacets["inputStatistics"].fileCount == 1
    (written,) = lineage.outputs
    assert (written.name, written.outputFacets["outputStatistics"].rowCount) == (str(world.folder / JOB), 2)


def test_lineage_can_be_sent(world: World) -> None:
    from openlineage.client.serde import Serde

    world.shop.put("a.txt", "a")
    task = operator()
    play(task, context(), drive(world))
    (read,) = task.get_openlineage_facets_on_complete(None).inputs

    sent = json.loads(Serde.to_json(read))

    assert sent["inputFacets"][WINDOW_FACET]["watermarkTo"] == "2023-11-14T22:13:20.000000Z"


def test_task_that_made_no_run_has_no_lineage(world: World) -> None:
    assert operator().get_openlineage_facets_on_complete(None) is None


@pytest.mark.parametrize(
    ("location", "namespace", "name"),
    [
        ("/data/flights", "file", "/data/flights"),
        ("file:///data/flights", "file", "/data/flights"),
        ("s3a://lake/flights/raw/", "s3://lake", "flights/raw"),
        ("gs://lake/flights", "gs://lake", "flights"),
    ],
)
def test_datasets_are_named_as_openlineage_names_them(location: str, namespace: str, name: str) -> None:
    assert dataset_name(location) == (namespace, name)


@pytest.mark.seldom
def test_without_the_provider_nothing_of_it_is_imported(tmp_path: Path) -> None:
    ours = "airflow_bookmarks.operators.task.openlineage"
    check = f"import sys, airflow_bookmarks.operators.spark_submit; sys.exit({ours!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False, cwd=tmp_path).returncode == 0
