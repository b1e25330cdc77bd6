"""Ids, names of tables, what snapshots tell, and the steps of a publish: all that needs no Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from airflow_bookmarks.core.errors import OptionError, OutOfBoundsError, SourceError, StateCorruptError
from airflow_bookmarks.core.rules.mode import Mode
from airflow_bookmarks.core.rules.territory import Territory
from airflow_bookmarks.core.run import OutputEntry, RunKey
from airflow_bookmarks.core.text.catalog_name import parts_of
from airflow_bookmarks.sinks.iceberg.publish import IcebergPublication
from airflow_bookmarks.sinks.iceberg.sink import IcebergSink
from airflow_bookmarks.sinks.iceberg.tables import IcebergSnapshot, PickRefusedError, Standing, TableHistory
from airflow_bookmarks.sinks.iceberg.target import IcebergOutput, IcebergTarget, figures
from airflow_bookmarks.sinks.iceberg.token import WapId
from airflow_bookmarks.sinks.registry import SINKS
from airflow_bookmarks.sinks.sink import PublishSteps, StoredOutput
from airflow_bookmarks.sinks.staging import StagingRequest
from airflow_bookmarks.testing.memory import memory_store
from airflow_bookmarks.testing.sink_ground import JOB, NAME, stored_output

NAMED = "lake.shop.orders"
OURS = "airflow_bookmarks/test/job/2.7/out"


def entry_of(output: IcebergOutput, name: str = NAMED) -> OutputEntry:
    return IcebergSink().stage(JOB, RunKey(2, 7), NAME, StagingRequest(IcebergSink.kind, name, stats=output.stats()))[0]


def stored(entry: OutputEntry) -> StoredOutput:
    with memory_store() as store:
        return stored_output(entry, RunKey(2, 7), store.blobs)


# ---- ids and names


def test_place_is_an_id_that_names_the_run() -> None:
    entry = entry_of(IcebergOutput(Mode.APPEND))
    assert entry.place == OURS
    assert WapId.parse(entry.place, JOB) == WapId(JOB, RunKey(2, 7), NAME)


@pytest.mark.parametrize(
    "text",
    ["", "mine", "airflow_bookmarks/test/job", f"{OURS}x/y/../z".replace("2.7", "2"), OURS.replace("job", "other"),
     OURS.replace("2.7", "02.7"), OURS.replace("test", "prod")],
)  # fmt: skip
def test_id_of_another_writer_or_job_is_none_of_ours(text: str) -> None:
    assert WapId.parse(text, JOB) is None


def test_job_whose_name_begins_alike_is_another_one() -> None:
    assert WapId.parse(str(WapId(Territory("test", "job.2"), RunKey(1, 1), "out")), JOB) is None


@pytest.mark.parametrize(
    ("name", "parts", "told"),
    [
        (NAMED, ("lake", "shop", "orders"), NAMED),
        ("orders", ("orders",), None),
        ("lake.`my.shop`.`a``b`", ("lake", "my.shop", "a`b"), "`lake`.`my.shop`.`a``b`"),
        ("see.läger.order_1", ("see", "läger", "order_1"), "see.läger.order_1"),
    ],
)
def test_name_of_a_table_is_taken_apart_and_put_together(name: str, parts: tuple[str, ...], told: str | None) -> None:
    assert parts_of(name) == parts
    if told is not None:
        target = IcebergTarget.parse(name)
        assert (str(target), IcebergTarget.parse(str(target))) == (told, target)


@pytest.mark.parametrize("name", ["", ".", "a..b", "a b", "s3://lake/t", "/lake/t", "a.b;DROP TABLE x", "a.`b", "a'b"])
def test_what_is_no_name_of_a_table_is_refused(name: str) -> None:
    with pytest.raises(OptionError, match="is no name of a table"):
        parts_of(name)


def test_name_without_a_catalog_is_none_that_is_stored() -> None:
    with pytest.raises(OptionError, match="names no catalog"):
        IcebergTarget.parse("orders")


# ---- what is stored


def test_what_is_stored_leads_back() -> None:
    output = IcebergOutput(Mode.OVERWRITE_PARTITIONS, ("day",), ("id",))
    stats = {**output.stats(), **figures(2**63 - 1, 7, 3)}
    assert IcebergOutput.of_stats(stats) == IcebergOutput(output.mode, ("day",), ("id",), 7, 2**63 - 1)
    assert (stats["snapshot_staged"], stats["files"]) == ("9223372036854775807", 3)
    with pytest.raises(StateCorruptError, match="snapshot_staged"):
        IcebergOutput.of_stats({**stats, "snapshot_staged": 5})


@pytest.mark.parametrize(
    ("output", "once"),
    [
        (IcebergOutput(Mode.APPEND), False),
        (IcebergOutput(Mode.APPEND, keys=("id",)), True),
        (IcebergOutput(Mode.OVERWRITE), True),
        (IcebergOutput(Mode.OVERWRITE_PARTITIONS), False),
    ],
)
def test_preview_knows_which_tables_would_hold_rows_twice(output: IcebergOutput, once: bool) -> None:
    assert SINKS.holds_rows_once(entry_of(output)) is once


def test_clean_and_replay_are_refused_with_the_reason() -> None:
    entry = entry_of(IcebergOutput(Mode.APPEND))
    assert "Iceberg table (lake.shop.orders)" in str(SINKS.why_not_clean(entry))
    assert "Iceberg table (lake.shop.orders)" in str(IcebergSink().why_not_replay(entry))


@pytest.mark.parametrize(
    "change",
    [{"place": OURS.replace("2.7", "2.8")}, {"place": OURS.replace("out", "other")}, {"target": "/lake/orders"}],
)
def test_state_that_names_what_is_not_the_runs_is_refused(change: Mapping[str, str]) -> None:
    entry = entry_of(IcebergOutput(Mode.APPEND))
    parts = {"place": entry.place, "target": entry.target, **change}
    with pytest.raises(OutOfBoundsError):
        IcebergSink().prepare(stored(OutputEntry(entry.sink, parts["target"], parts["place"], entry.stats)))


@pytest.mark.parametrize("root", ["", NAMED, f"{NAMED}/test/other", f"/lake/test/{JOB.job}", f"orders/test/{JOB.job}"])
def test_root_of_another_job_or_of_no_table_is_refused(root: str) -> None:
    with pytest.raises(OutOfBoundsError):
        IcebergSink().check_root(JOB, root)


def test_process_without_spark_can_not_publish_or_sweep() -> None:
    sink = IcebergSink()
    _, root = sink.stage(JOB, RunKey(1, 1), NAME, StagingRequest(sink.kind, NAMED))
    with pytest.raises(SourceError, match="no Spark session"):
        sink.prepare(stored(entry_of(IcebergOutput(Mode.APPEND))))
    with pytest.raises(SourceError, match="no Spark session"):
        sink.sweep(JOB, str(root), 1)


# ---- what snapshots tell


def history(current: int | None, *snapshots: IcebergSnapshot) -> TableHistory:
    return TableHistory({each.id: each for each in snapshots}, current)


BASE, STAGED = IcebergSnapshot(1, None), IcebergSnapshot(3, 1, wap_id=OURS)


@pytest.mark.parametrize(
    ("told", "before", "standing"),
    [
        (history(1, BASE, STAGED), 1, Standing.STAGED),
        (history(3, BASE, STAGED), 1, Standing.PUBLISHED),  # brought in as it was
        (history(4, BASE, STAGED, IcebergSnapshot(2, 1), IcebergSnapshot(4, 2, published=OURS)), 1, Standing.PUBLISHED),
        (
            history(5, BASE, IcebergSnapshot(2, 1), IcebergSnapshot(4, 2, published=OURS), IcebergSnapshot(5, 4)),
            1,
            Standing.PUBLISHED,
        ),
        (history(2, BASE, IcebergSnapshot(2, 1)), 1, Standing.GONE),
        (history(2, IcebergSnapshot(2, None)), 1, Standing.GONE),  # made anew
        (history(5, IcebergSnapshot(5, 4), STAGED), 1, Standing.UNKNOWN),  # 2 to 4 have expired
        (history(5, IcebergSnapshot(5, 4)), 1, Standing.UNKNOWN),
        (history(5, IcebergSnapshot(5, 4, published=OURS)), 1, Standing.PUBLISHED),
        (history(None, IcebergSnapshot(3, None, wap_id=OURS)), None, Standing.STAGED),  # an empty table
        (history(2, IcebergSnapshot(2, None), IcebergSnapshot(3, None, wap_id=OURS)), None, Standing.STAGED),
        (history(None), None, Standing.GONE),
        (history(1, BASE, IcebergSnapshot(2, 1), STAGED), 1, Standing.STAGED),  # rolled back by others
    ],
)
def test_standing_of_a_snapshot(told: TableHistory, before: int | None, standing: Standing) -> None:
    assert told.standing(OURS, before) is standing


# ---- the steps of a publish


@dataclass
class Catalog:
    """A table in memory whose answers can be lost, as those of a catalog on the way to the driver."""

    snapshots: list[IcebergSnapshot] = field(default_factory=lambda: [BASE, STAGED])
    current: int = 1
    tags: dict[str, int] = field(default_factory=lambda: {OURS: 3})
    lost: list[str] = field(default_factory=list)  # what fails once: before it is done, or after
    calls: list[str] = field(default_factory=list)

    def history(self, target: IcebergTarget) -> TableHistory:
        return TableHistory({each.id: each for each in self.snapshots}, self.current, dict(self.tags))

    def put(self, wap_id: str | None = None, published: str | None = None) -> None:
        self.snapshots.append(IcebergSnapshot(10 + len(self.snapshots), self.current, wap_id, published))
        self.current = self.snapshots[-1].id

    def pick(self, target: IcebergTarget, snapshot: int) -> None:
        def done() -> None:
            if self.current == 1:
                self.current = snapshot
            else:
                self.put(published=OURS)

        self._tried("pick", done)

    def forward(self, target: IcebergTarget, tag: str) -> None:
        if self.current != 1:
            raise PickRefusedError("main is not an ancestor")
        self._tried("forward", lambda: setattr(self, "current", self.tags[tag]))

    def tag(self, target: IcebergTarget, name: str, snapshot: int) -> None:
        self.tags[name] = snapshot

    def drop_tag(self, target: IcebergTarget, name: str) -> None:
        self.tags.pop(name, None)

    def expire(self, target: IcebergTarget, snapshots: Sequence[int]) -> None:
        self.snapshots = [each for each in self.snapshots if each.id not in snapshots]

    def _tried(self, name: str, do: Callable[[], None]) -> None:
        self.calls.append(name)
        how = self.lost.pop(0) if self.lost else "none"
        if how != "before":
            do()
        if how != "none":
            raise SourceError("no answer")

    def publish(self, output: IcebergOutput) -> int:
        publication = IcebergPublication("a test", self, IcebergTarget.parse(NAMED), output, OURS, 5)
        return publication.publish(lambda what: None, PublishSteps(lambda: None, lambda: 0.0))


APPEND = IcebergOutput(Mode.APPEND, before=1, staged=3)
UPSERT = IcebergOutput(Mode.APPEND, keys=("id",), before=1, staged=3)


@pytest.mark.parametrize("output", [APPEND, UPSERT])
@pytest.mark.parametrize("lost", [[], ["before"], ["after"], ["before", "after"], ["before"] * 4])
def test_lost_answers_bring_rows_in_once(output: IcebergOutput, lost: list[str]) -> None:
    table = Catalog(lost=list(lost))
    for _ in range(2):
        assert table.publish(output) == 5
    assert (table.current, table.tags) == (3, {})
    assert len(table.calls) == len([each for each in lost if each == "before"]) + 1


def test_catalog_that_answers_nothing_is_not_asked_for_ever() -> None:
    table = Catalog(lost=["before"] * 9)
    with pytest.raises(SourceError, match="no answer"):
        table.publish(APPEND)
    assert (table.current, table.tags, len(table.calls)) == (1, {OURS: 3}, 5)


def test_append_goes_beside_what_others_have_committed_and_an_upsert_does_not() -> None:
    appended, merged = Catalog(), Catalog()
    for table in (appended, merged):
        table.put()
    appended.publish(APPEND)
    assert [each.published for each in appended.snapshots][-1] == OURS
    with pytest.raises(SourceError, match="No row of the run is in the table"):
        merged.publish(UPSERT)
    assert merged.tags == {OURS: 3}


def test_tag_that_somebody_took_is_put_back() -> None:
    table = Catalog(tags={})
    table.publish(UPSERT)
    assert (table.current, table.tags) == (3, {})


@pytest.mark.parametrize(
    ("snapshots", "current", "said"),
    [([BASE], 1, "is gone"), ([IcebergSnapshot(9, 8), STAGED], 9, "is not known")],
)
def test_what_can_not_be_brought_in_any_more_is_said(snapshots: list[IcebergSnapshot], current: int, said: str) -> None:
    table = Catalog(snapshots, current)
    with pytest.raises(SourceError, match=said):
        table.publish(APPEND)
    assert table.calls == []


def test_sweep_expires_what_was_given_up_and_leaves_what_was_published() -> None:
    other = IcebergSnapshot(4, 1, wap_id=OURS.replace("job", "other"))
    newer = IcebergSnapshot(5, 1, wap_id=OURS.replace("2.7", "3.8"))
    published = IcebergSnapshot(6, 1, wap_id=OURS.replace("2.7", "1.2"))
    tags = {str(each.wap_id): each.id for each in (STAGED, other, newer, published)}
    table = Catalog([BASE, STAGED, other, newer, published, IcebergSnapshot(7, 1, published=published.wap_id)], 7, tags)
    sink = IcebergSink(table)
    _, root = sink.stage(JOB, RunKey(1, 1), NAME, StagingRequest(sink.kind, NAMED))
    sink.sweep(JOB, str(root), 7)
    assert sorted(each.id for each in table.snapshots) == [1, 4, 5, 6, 7]
    assert set(table.tags) == {other.wap_id, newer.wap_id}
