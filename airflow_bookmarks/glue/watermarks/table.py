"""The class `Watermarks`: one item per job and run, in a table whose key is jobName (hash) and runId (range).

    {"jobName": ..., "runId": ..., "watermarks": {<name>: <value>}, "writtenAt": ..., "valueTypes": ...}

What a script gives stands under its own names. `writtenAt` and `valueTypes` are added to it, and left out again where a
script reads an item.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn

import boto3
from botocore.exceptions import ClientError

from airflow_bookmarks.core.errors import BookmarkError, OptionError, TableMissingError
from airflow_bookmarks.core.text.instant import utc_now
from airflow_bookmarks.glue.run import managed_run
from airflow_bookmarks.glue.watermarks.kept import AddedWatermark, Item, WatermarkTable
from airflow_bookmarks.glue.watermarks.values import AttributeValue, decoded, encoded

log = logging.getLogger(__name__)

DEFAULT_TABLE = "glue-watermarks"

_JOB, _RUN = "jobName", "runId"
_WRITTEN, _TYPES = "writtenAt", "valueTypes"
_TIMES = (_RUN, _WRITTEN)  # what tells the order of items
_TICK = timedelta(microseconds=1)


class WatermarkExistsError(BookmarkError):
    """Raised when a run that has a watermark is to get another one."""


class Watermarks:
    """Watermarks of jobs by run, where a script decides itself how far it has read.

    The latest is the one that was written last: run ids have no order. Each value comes back equal and of the type that
    it had. Reads are consistent.

    Where the rows of a run appear with its commit (enable, after `Job.init`), so does its watermark: until then the run
    alone sees it, and it is gone if the run fails. Elsewhere rows and watermark are written at once.

    Args:
        table: name of the table, with the key jobName (hash) and runId (range), both text. `table_name` is the same.
        client: a boto3 client of DynamoDB; default: one by the environment. `dynamodb_client` is the same.
        now: returns the present time, aware.

    Raises:
        OptionError: table or client is given by both of its names.

    Example:
        watermarks = Watermarks("glue-watermarks")
        last = watermarks.get_watermark_values("flights")         # None in the first run
        ...
        watermarks.add_watermark(Watermarks.create_watermark_item("flights", run_id, day=newest_day))
    """

    def __init__(
        self,
        table: str | None = None,
        client: Any = None,
        *,
        table_name: str | None = None,
        dynamodb_client: Any = None,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        for one, other, names in ((table, table_name, "table, table_name"), (client, dynamodb_client, "the client")):
            if one is not None and other is not None:
                raise OptionError(f"{names}: given twice, by both names. Nothing was read or changed. Give one.")
        self.table_name: str = table or table_name or DEFAULT_TABLE
        self.dynamodb_client: Any = client or dynamodb_client or boto3.client("dynamodb")
        self._now = now

    # ---- what a script calls

    def exists(self, table_name: str | None = None) -> bool:
        """Return whether a table is there: that of these watermarks, or another one by its name."""
        try:
            self.dynamodb_client.describe_table(TableName=table_name or self.table_name)
        except ClientError as error:
            if _code(error) == "ResourceNotFoundException":
                return False
            raise
        return True

    @staticmethod
    def create_watermark_item(
        job_id: str | None = None, run_id: str | None = None, key: str = "watermarks", **values: Any
    ) -> dict[str, Any]:
        """Return the watermark of a run as `add_watermark` takes it; the table is not touched.

        Args:
            job_id, run_id: the job and its run; `job` and `run` are the same.
            key: the name under which the values stand in the item.
            values: what is to be read back: text, int, float, Decimal, bool, datetime, date, or lists or dicts of such.

        Raises:
            OptionError: no job or no run; or the key is one of the item's own names.

        Example:
            >>> Watermarks.create_watermark_item("flights", "jr_1", day="2013-01-31")
            {'jobName': 'flights', 'runId': 'jr_1', 'watermarks': {'day': '2013-01-31'}}
        """
        job = values.pop("job", None) if job_id is None else job_id
        run = values.pop("run", None) if run_id is None else run_id
        item = {_JOB: job, _RUN: run, key: values}
        if len(item) < 3:
            raise OptionError(f"key={key!r} is the name of a part of the key. Nothing was written. Take another one.")
        _check_item(item)
        return item

    def add_watermark(self, watermark_item: Mapping[str, Any]) -> None:
        """Write the watermark of a run: once. The same again changes nothing, so that a call can be repeated.

        Where the rows of the run appear with `job.commit()`, the watermark does too: it is part of the commit, by
        `job.state`, and then written to the table. A run that ends in between leaves that to the next run of the job.

        Args:
            watermark_item: what `create_watermark_item` returned.

        Raises:
            WatermarkValueError: a value is None, or of a type that could not be read back. WatermarkExistsError: the
                run has a watermark with other values. TableMissingError: there is no such table. OptionError: what is
                kept until the commit has more than 16 KB. In each case the last watermark stays.
        """
        stored = _stored(watermark_item)
        job, run = watermark_item[_JOB], watermark_item[_RUN]
        item = {**stored, _WRITTEN: _time_value(self._stamp(job))}
        current = managed_run()
        if current is None:
            self._put(item)
            return
        before = self.get_watermark(job, run)
        if before is None:
            current.watermarks.add(AddedWatermark(self._place, item, self._put))
        elif before != _read(item):
            raise self._exists(item)

    def get_most_recent_run_id(self, job_id: str) -> str | None:
        """Return the run whose watermark was written last; None if the job has none.

        Items that another program wrote tell no time: they count as older than any that this class wrote, and among
        themselves in the order of their run ids.

        Raises:
            TableMissingError: there is no such table.
        """
        times = sorted(map(_time_and_run, self._items(job_id, _TIMES)))
        if len(times) > 1 and times[-1][0] == _NEVER:
            log.warning(
                "watermarks of %s in table %s: none of its %d items tells when it was written; the greatest run id "
                "counts as the latest, which may be wrong",
                job_id,
                self.table_name,
                len(times),
            )
        return times[-1][1] if times else None

    def get_watermark(self, job_id: str, run_id: str | None = None) -> dict[str, Any] | None:
        """Return the item of a run, as `create_watermark_item` made it; None if there is none.

        Args:
            run_id: default: the run whose watermark was written last.

        Raises:
            TableMissingError: there is no such table.
        """
        run = self.get_most_recent_run_id(job_id) if run_id is None else run_id
        if run is None:
            return None
        kept = [item for item in self._kept() if _is_of(item, job_id, run)]
        item = kept[-1] if kept else self._get(job_id, run)
        return None if item is None else _read(item)

    def get_watermark_values(
        self, job_id: str, run_id: str | None = None, key: str = "watermarks"
    ) -> dict[str, Any] | None:
        """Return the values of a run's watermark by name; None if there is none. See `get_watermark`.

        Raises:
            OptionError: the item has no such key: it was written under another one. TableMissingError.
        """
        item = self.get_watermark(job_id, run_id)
        if item is None:
            return None
        if key not in item:
            others = sorted(set(item) - {_JOB, _RUN})
            raise OptionError(
                f"the watermark of run {item[_RUN]!r} of job {job_id!r} has no {key!r}, but {others}. Nothing was read "
                "or changed. Name the key that it was written under."
            )
        values: dict[str, Any] = item[key]
        return values

    def history(self, job_id: str) -> list[dict[str, Any]]:
        """Return all watermarks of a job in the order in which they were written, each with its time as `writtenAt`.

        `writtenAt` is a datetime in UTC; None of an item that another program wrote.

        Raises:
            TableMissingError: there is no such table.
        """
        items = sorted(self._items(job_id), key=_time_and_run)
        return [{**_read(item), _WRITTEN: _written_at(item)} for item in items]

    # ---- what the present run keeps until its commit

    @property
    def _place(self) -> WatermarkTable:
        return WatermarkTable(self.table_name, str(self.dynamodb_client.meta.region_name))

    def _kept(self) -> list[Item]:
        """Return what the present run has added; what the run before it has left to be written is written first."""
        run = managed_run()
        if run is None:
            return []
        run.watermarks.settle(self._place, self._put_if_left)
        return run.watermarks.of(self._place)

    def _put_if_left(self, item: Item) -> None:
        job, run = item[_JOB]["S"], item[_RUN]["S"]
        if self._get(job, run) is None:
            log.warning(
                "watermarks of %s in table %s: run %s ended behind its commit and before it wrote its watermark, which "
                "is written now",
                job,
                self.table_name,
                run,
            )
            self._put(item)

    # ---- the table

    def _put(self, item: Item) -> None:
        """Write an item, as of now; one with the same values may be there."""
        now = {**item, _WRITTEN: _time_value(self._stamp(item[_JOB]["S"], with_kept=False))}
        try:
            self.dynamodb_client.put_item(
                TableName=self.table_name, Item=now, ConditionExpression="attribute_not_exists(runId)"
            )
        except ClientError as error:
            if _code(error) != "ConditionalCheckFailedException":
                self._raise(error)
            there = self._get(item[_JOB]["S"], item[_RUN]["S"])
            if there is None or _read(there) != _read(item):
                raise self._exists(item) from error

    def _get(self, job: str, run: str) -> Item | None:
        try:
            found = self.dynamodb_client.get_item(TableName=self.table_name, Key=_key(job, run), ConsistentRead=True)
        except ClientError as error:
            self._raise(error)
        item: Item | None = found.get("Item")
        return item

    def _exists(self, item: Item) -> WatermarkExistsError:
        return WatermarkExistsError(
            f"run {item[_RUN]['S']!r} of job {item[_JOB]['S']!r} has a watermark in table {self.table_name!r}, with "
            "other values than these. Nothing was written; it stays as it is. A run that was repeated is to have a run "
            "id of its own."
        )

    def _stamp(self, job: str, *, with_kept: bool = True) -> datetime:
        """Return the time of a watermark that is written now: after the last one, even if a clock was set back."""
        items = self._items(job, _TIMES) if with_kept else self._written(job, _TIMES)
        latest = max((time for time, _ in map(_time_and_run, items)), default=_NEVER)
        return max(self._now().astimezone(UTC), latest + _TICK)

    def _items(self, job: str, only: Sequence[str] = ()) -> Iterator[Item]:
        """Return the items of a job, and those that the present run has added."""
        kept = [item for item in self._kept() if item[_JOB]["S"] == job]
        yield from self._written(job, only)
        yield from kept

    def _written(self, job: str, only: Sequence[str] = ()) -> Iterator[Item]:
        how = {"ProjectionExpression": ", ".join(only)} if only else {}
        pages = self.dynamodb_client.get_paginator("query").paginate(
            TableName=self.table_name,
            KeyConditionExpression=f"{_JOB} = :job",
            ExpressionAttributeValues={":job": {"S": job}},
            ConsistentRead=True,
            **how,
        )
        try:
            for page in pages:
                yield from page["Items"]
        except ClientError as error:
            self._raise(error)

    def _raise(self, error: ClientError) -> NoReturn:
        if _code(error) == "ResourceNotFoundException":
            region = self.dynamodb_client.meta.region_name
            raise TableMissingError(
                f"there is no table {self.table_name!r} in region {region!r}. Nothing was read or changed. Make it "
                f"with the key {_JOB} (hash) and {_RUN} (range), both text, or name the right table or region."
            ) from error
        raise error


_NEVER = datetime.min.replace(tzinfo=UTC)


def _stored(given: Mapping[str, Any]) -> dict[str, AttributeValue]:
    """Return a watermark as DynamoDB stores it, without its time."""
    _check_item(given)
    pairs = {name: encoded(value, name) for name, value in given.items() if name not in (_JOB, _RUN)}
    types = {name: of for name, (_, of) in pairs.items() if of is not None}
    values: dict[str, AttributeValue] = {name: value for name, (value, _) in pairs.items()}
    return {**_key(given[_JOB], given[_RUN]), **values, **({_TYPES: _types_value(types)} if types else {})}


def _time_value(time: datetime) -> AttributeValue:
    return {"S": time.isoformat(timespec="microseconds")}


def _is_of(item: Item, job: str, run: str) -> bool:
    return (item[_JOB]["S"], item[_RUN]["S"]) == (job, run)


def _check_item(item: Mapping[str, Any]) -> None:
    for name in (_JOB, _RUN):
        if not isinstance(item.get(name), str) or not item[name]:
            raise OptionError(f"the watermark has {item.get(name)!r} as {name}: expected text. Nothing was written.")
    taken = sorted({_WRITTEN, _TYPES} & item.keys())
    if taken:
        raise OptionError(f"{taken[0]!r} is kept with a watermark and can't be given. Nothing was written.")


def _key(job: str, run: str) -> dict[str, AttributeValue]:
    return {_JOB: {"S": job}, _RUN: {"S": run}}


def _types_value(types: Any) -> AttributeValue:
    if isinstance(types, dict):
        return {"M": {name: _types_value(inner) for name, inner in types.items()}}
    if isinstance(types, list):
        return {"L": [_types_value(inner) for inner in types]}
    return {"NULL": True} if types is None else {"S": types}


def _read(item: Item) -> dict[str, Any]:
    types = decoded(item[_TYPES]) if _TYPES in item else {}
    return {name: decoded(value, types.get(name)) for name, value in item.items() if name not in (_WRITTEN, _TYPES)}


def _written_at(item: Item) -> datetime | None:
    return datetime.fromisoformat(item[_WRITTEN]["S"]) if _WRITTEN in item else None


def _time_and_run(item: Item) -> tuple[datetime, str]:
    return _written_at(item) or _NEVER, item[_RUN]["S"]


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code"))
