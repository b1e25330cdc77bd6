"""What a run costs in requests and money: the table of docs/operations/costs.md, counted and not reckoned.

Sources lie on a server that lists as S3 does, the target in moto, the state in DynamoDB Local, which tells the units of
each read as DynamoDB does; those of writes follow from the sizes of the items (`benchmarks.capacity`). A run is counted
from its begin to the end of its publish.

    $ python -m benchmarks.costs            # prints the table
"""

from __future__ import annotations

import argparse
import logging
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import boto3.session

from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.files.access import FileAccess, reached_by
from airflow_bookmarks.files.opener import open_filesystem
from airflow_bookmarks.files.s3.client import clients_of
from airflow_bookmarks.files.s3.settings import S3Access, S3Settings
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.sinks.staging import Mode, StagingRequest, collect_staged
from airflow_bookmarks.sources.files.planner import FileSource
from airflow_bookmarks.store.backends.dynamodb import DynamoTable
from airflow_bookmarks.store.bookmark_store import BookmarkStore
from benchmarks.capacity import WriteUnits
from tests.files.s3.s3_stand_in import StandIn, stand_in
from tools.servers import dynamodb_local, moto_server

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

    from airflow_bookmarks.store.backends.wire import Wire

_REGION, _CREDENTIAL = "us-east-1", "testing"
_SOURCES, _TARGETS = "lake", "targets"
_READS = ("BatchGetItem", "Query")
_HOURS_OF_A_MONTH = 730
_MILLION = 1_000_000
# A run is counted without the renewals of its lease, of which there are as many as it takes minutes.
_UNRENEWED = RunEnvironment(lease_time=timedelta(days=1))


@dataclass(frozen=True, slots=True)
class Prices:
    """Dollars for a million: list prices of us-east-1 (DynamoDB on demand, standard class; S3 Standard), early 2025."""

    read_units: float = 0.125
    write_units: float = 0.625
    s3_writes: float = 5.00  # PUT, COPY, POST, LIST
    s3_reads: float = 0.40  # GET, HEAD


@dataclass(frozen=True, slots=True)
class Case:
    """A steady run: contexts, in the folder of each so many files with so many new ones, and files that it writes."""

    name: str
    keys: int
    new: int
    written: int
    contexts: int = 1


CASES = (
    Case("nothing new among 1,000 files", 1_000, 0, 0),
    Case("nothing new among 100,000", 100_000, 0, 0),
    Case("1 new among 1,000, 1 written", 1_000, 1, 1),
    Case("100 new among 100,000, 10 written", 100_000, 100, 10),
    Case("10,000 new among 100,000, 200 written", 100_000, 10_000, 200),
    Case("10 contexts, each 1 new among 1,000, 1 written", 1_000, 1, 1, 10),
    Case("10 contexts, each 100 new among 1,000, 1 written", 1_000, 100, 1, 10),
)


@dataclass(frozen=True, slots=True)
class Cost:
    """What a run has asked for. Deletes are free of charge in S3."""

    dynamodb: int
    read_units: float
    write_units: float
    lists: int
    heads: int
    copies: int
    deletes: int

    def store_dollars(self, prices: Prices) -> float:
        """Return what the state costs a million such runs."""
        return self.read_units * prices.read_units + self.write_units * prices.write_units

    def file_dollars(self, prices: Prices) -> float:
        """Return what the files cost a million such runs."""
        return (self.lists + self.copies) * prices.s3_writes + self.heads * prices.s3_reads


HEADER = (
    "| a run | requests to DynamoDB | read units | write units | LIST | HEAD | COPY | DELETE | state, 1,000 runs "
    "| files, 1,000 runs | each hour, a month |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
)


def row(case: Case, cost: Cost, prices: Prices) -> str:
    """Return a line of the table."""
    store, files = (dollars / 1000 for dollars in (cost.store_dollars(prices), cost.file_dollars(prices)))
    month = (store + files) / 1000 * _HOURS_OF_A_MONTH
    counts = (cost.dynamodb, cost.read_units, cost.write_units, cost.lists, cost.heads, cost.copies, cost.deletes)
    cells = [case.name, *(f"{count:,.0f}" for count in counts), f"${store:,.2f}", f"${files:,.2f}", f"${month:,.2f}"]
    return f"| {' | '.join(cells)} |"


@dataclass
class Ground:
    """The three servers, and what was asked of those that are paid for."""

    sources: StandIn
    target: S3Client
    store: BookmarkStore
    reads: ReadUnits
    writes: WriteUnits
    sent: Counter[str]

    def count(self, case: Case) -> Cost:
        """Make a first run over all that is old, then count the second."""
        folder = uuid.uuid4().hex
        for context in range(case.contexts):
            self._hold(f"{folder}/raw{context}", 0, case.keys - case.new)
        self._run(folder, replace(case, new=case.keys - case.new))
        self._run(folder, replace(case, new=0, written=0))  # the second finds nothing to recover
        for context in range(case.contexts):
            self._hold(f"{folder}/raw{context}", case.keys - case.new, case.new)
        self._forget()
        self._run(folder, case)
        return Cost(
            dynamodb=self.reads.requests,
            read_units=self.reads.total,
            write_units=self.writes.total,
            lists=self.sources.methods.count("GET") + self.sent["ListObjectsV2"],
            heads=self.sources.methods.count("HEAD") + self.sent["HeadObject"],
            copies=self.sent["CopyObject"],
            deletes=self.sent["DeleteObject"] + self.sent["DeleteObjects"],
        )

    def _hold(self, folder: str, first: int, count: int) -> None:
        self.sources.hold(f"{folder}/part-{number:08d}.parquet" for number in range(first, first + count))

    def _forget(self) -> None:
        self.sources.seen.clear()
        self.sent.clear()
        self.reads.requests, self.reads.total = 0, 0.0
        self.writes.requests.clear()

    def _run(self, folder: str, case: Case) -> None:
        store = BookmarkStore(self.store.table, self.store.namespace)  # as in a process of its own
        run = ActiveRun.begin(store, f"costs.{folder}", RunIdentity(f"costs/{uuid.uuid4().hex}"), _UNRENEWED)
        for context in range(case.contexts):
            root = f"s3a://{_SOURCES}/{folder}/raw{context}"
            run.plan(f"raw{context}", FileSource(open_filesystem(root), [root]))
        self._stage(run, f"s3a://{_TARGETS}/{folder}", case.written)
        run.commit()

    def _stage(self, run: ActiveRun, target: str, count: int) -> None:
        if count == 0:  # a run that found nothing writes nothing
            return
        folder = run.place("out", StagingRequest("files", target, stats={"format": "parquet"}))
        for number in range(count):
            key = f"{folder.removeprefix(f's3a://{_TARGETS}/')}/part-{number:05d}.parquet"
            self.target.put_object(Bucket=_TARGETS, Key=key, Body=b"rows")
        files = open_filesystem(target)
        staged = collect_staged(files, folder, target, run.file_token, Mode.APPEND, rows=1, schema='{"fields":[]}')
        run.staged("out", staged)


@dataclass
class ReadUnits:
    """Requests to DynamoDB, and the units that it says it charges for those that read."""

    requests: int = 0
    total: float = 0.0

    def watch(self, session: boto3.session.Session) -> None:
        """Ask with each read of a session what it costs, and add that up."""
        session.events.register("before-parameter-build.dynamodb.*", self._ask)
        session.events.register("after-call.dynamodb.*", self._note)

    def _ask(self, params: dict[str, Any], model: Any, **_: Any) -> None:
        if model.name in _READS:
            params["ReturnConsumedCapacity"] = "TOTAL"

    def _note(self, parsed: dict[str, Any], model: Any, **_: Any) -> None:
        self.requests += 1
        if model.name in _READS:
            told = parsed["ConsumedCapacity"]
            self.total += sum(float(one["CapacityUnits"]) for one in (told if isinstance(told, list) else [told]))


def looking(table: str, url: str) -> Callable[[Wire], Mapping[str, Wire]]:
    """Return what looks at an item of a table in DynamoDB Local, uncounted."""
    client = boto3.session.Session(_CREDENTIAL, _CREDENTIAL).client("dynamodb", _REGION, endpoint_url=url)

    def look(key: Wire) -> Mapping[str, Wire]:
        found: Any = client.get_item(TableName=table, Key=key, ConsistentRead=True)
        item: Mapping[str, Wire] = found.get("Item", {})
        return item

    return look


@contextmanager
def ground(dynamodb_url: str, s3_url: str) -> Iterator[Ground]:
    """Open a store of its own on DynamoDB Local, and a bucket in moto; sources come with it."""
    sent, name = Counter[str](), f"costs-{uuid.uuid4().hex}"
    session = boto3.session.Session(_CREDENTIAL, _CREDENTIAL)
    reads, writes = ReadUnits(), WriteUnits(looking(name, dynamodb_url))
    reads.watch(session)
    writes.watch(session)
    table = DynamoTable(name=name, region=_REGION, endpoint=dynamodb_url, session=session)
    store = BookmarkStore(table, "prod")
    store.init()
    plain: S3Client = boto3.session.Session(_CREDENTIAL, _CREDENTIAL).client(
        "s3", endpoint_url=s3_url, region_name=_REGION
    )
    plain.create_bucket(Bucket=_TARGETS)
    with stand_in() as sources:
        access = S3Access(sources.url, _REGION, path_style=True, access_key=_CREDENTIAL, secret_key=_CREDENTIAL)
        settings = S3Settings(access, buckets=((_TARGETS, S3Access(s3_url)),))
        events = clients_of(settings).of(_TARGETS).meta.events
        events.register("before-send.s3", lambda event_name, **_: sent.update([event_name.rpartition(".")[2]]))
        try:
            with reached_by(FileAccess(settings)):
                yield Ground(sources, plain, store, reads, writes, sent)
        finally:
            table.close()


def main(arguments: Sequence[str] | None = None) -> None:
    """Count each case and print the table."""
    parser = argparse.ArgumentParser("python -m benchmarks.costs", description="What a run costs.")
    for name, price in Prices.__dataclass_fields__.items():
        told = f"dollars for a million (default {price.default})"
        parser.add_argument(f"--{name.replace('_', '-')}", type=float, default=price.default, help=told)
    prices = Prices(**vars(parser.parse_args(arguments)))
    logging.getLogger("airflow_bookmarks").setLevel(logging.ERROR)
    print(HEADER)
    with dynamodb_local() as dynamodb_url, moto_server() as s3_url, ground(dynamodb_url, s3_url) as here:
        for case in CASES:
            print(row(case, here.count(case), prices), flush=True)


if __name__ == "__main__":
    main()
