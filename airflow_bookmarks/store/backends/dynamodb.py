"""Implement `Table` on DynamoDB.

This module only translates. `BookmarkStore`, above it, decides which conditions keep a bookmark right.
"""

from __future__ import annotations

import logging
import random as _random
import threading
import time
import uuid
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import boto3.session
from botocore import exceptions as aws
from botocore.config import Config
from botocore.parsers import ResponseParserError

from airflow_bookmarks.core.errors import (
    ConditionFailedError,
    OptionError,
    StoreAccessError,
    StoreError,
    StoreThrottledError,
    StoreUnavailableError,
    TableLayoutError,
    TableMissingError,
)
from airflow_bookmarks.core.text.endpoint import is_readable
from airflow_bookmarks.store.backends.backoff import OUTAGE_LIMIT_S, Backoff
from airflow_bookmarks.store.backends.limits import check_keys, check_operations, check_range
from airflow_bookmarks.store.backends.wire import Wire, item_of, query_request, wire_key, wire_operation
from airflow_bookmarks.store.table import (
    Attributes,
    Condition,
    Delete,
    Equals,
    Exists,
    Key,
    Lacks,
    Missing,
    Operation,
    Put,
    Update,
    Value,
    evaluate,
)
from airflow_bookmarks.store.table_settings import DEFAULT, FoundSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from mypy_boto3_dynamodb.client import DynamoDBClient

    from airflow_bookmarks.store.table_settings import TableSettings

log = logging.getLogger(__name__)

EXPIRES_AT = (
    "expires_at"  # seconds since 1970, the attribute of DynamoDB's time to live: side records of earlier versions
)

_CONNECT_TIMEOUT_S = 5
_READ_TIMEOUT_S = 10
_CREATION_POLL_S = 1
_CREATION_LIMIT_S = 120

# What a table, a key of it or the account has used up comes back.
_THROTTLED = frozenset(
    {
        "ProvisionedThroughputExceeded",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "Throttling",
        "ThrottlingError",
        "ThrottlingException",
    }
)
# Each of these passes, or leaves it open whether the write took effect: the same request is sent again.
_PASSING = _THROTTLED | frozenset(
    {
        "ContinuousBackupsUnavailableException",
        "InternalFailure",
        "InternalServerError",
        "ReplicatedWriteConflictException",
        "RequestTimeout",
        "RequestTimeoutException",
        "ServiceUnavailable",
        "ServiceUnavailableException",
        "TransactionConflict",
        "TransactionConflictException",
        "TransactionInProgressException",
    }
)
_NO_ANSWER = (aws.ConnectionError, aws.HTTPClientError, aws.IncompleteReadError, ResponseParserError)

# Each names a setting of the user's.
_ACCESS_ADVICE = {
    "AccessDeniedException": "Allow the action named above on the table for this role or user (IAM policy)",
    "ExpiredTokenException": "Renew the session token of these credentials",
    "IncompleteSignatureException": "Check access key and secret key, and the clock of this machine",
    "InvalidSignatureException": "Check the secret key, and the clock of this machine: a signature holds 15 minutes",
    "MissingAuthenticationTokenException": "Give credentials: environment, role or Airflow connection",
    "OptInRequired": "Subscribe this account to DynamoDB, or take other credentials",
    "UnrecognizedClientException": "Check access key, session token and the region they belong to",
}
_NO_CREDENTIALS = (
    aws.CredentialRetrievalError,
    aws.NoCredentialsError,
    aws.PartialCredentialsError,
    aws.SSOError,
    aws.TokenRetrievalError,
)
_T = TypeVar("_T")


class DynamoTable:
    """Items in a DynamoDB table. Safe between threads: they share one client.

    Args:
        name: name of the table.
        region: AWS region; None takes the session's.
        endpoint: URL of another server than AWS's, e.g. `http://127.0.0.1:8000` of DynamoDB Local.
        insecure: whether that may be `http://` on another machine than this.
        session: whose credentials are used, e.g. those of an Airflow connection; None takes boto3's own chain.
        outage_limit_s: how long one request is tried while the store throttles or does not answer, in seconds.
        sleep, monotonic, random: replaced in tests.

    Raises:
        StoreAccessError: no region, or a profile that does not exist.
        OptionError: what is sent could be read on its way, and `insecure` does not allow that.

    Example:
        >>> table = DynamoTable(name="bookmarks", region="eu-west-1")  # doctest: +SKIP
        >>> table.get([Key("default#JOBS", "flights.clean")])  # doctest: +SKIP
    """

    def __init__(
        self,
        *,
        name: str,
        region: str | None = None,
        endpoint: str | None = None,
        insecure: bool = False,
        session: boto3.session.Session | None = None,
        outage_limit_s: float = OUTAGE_LIMIT_S,
        sleep: Callable[[float], None] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = _random.random,
    ) -> None:
        self._name = name
        self._client = _client(name, region, endpoint, session)
        if not insecure:
            _check_readable(name, self._client)
        self._backoff = Backoff(outage_limit_s, sleep=sleep, monotonic=monotonic, random=random)
        self._monotonic = monotonic
        self._has_answered = threading.Event()
        self._is_closed = False

    # ---- the protocol

    def get(self, keys: Sequence[Key]) -> dict[Key, Attributes]:
        """See `Table.get`."""
        check_keys(keys)
        found: dict[Key, Attributes] = {}
        wanted: list[Wire] = [wire_key(key) for key in keys]

        def request() -> bool:
            # Throttled keys come back unread, without an error: they are requested again, under the same limit.
            nonlocal wanted
            answer = self._client.batch_get_item(RequestItems={self._name: {"Keys": wanted, "ConsistentRead": True}})
            found.update(item_of(wire) for wire in self._part(answer, "Responses").get(self._name, []))
            left = self._part(answer, "UnprocessedKeys").get(self._name, {"Keys": []})
            wanted = [dict(key) for key in left["Keys"]]
            return not wanted

        self._patiently("BatchGetItem", request, until=bool)
        return found

    def query(
        self,
        pk: str,
        *,
        prefix: str = "",
        after: str | None = None,
        until: str | None = None,
        reverse: bool = False,
        limit: int | None = None,
    ) -> Iterator[tuple[Key, Attributes]]:
        """See `Table.query`."""
        check_range(pk, prefix, after, until, limit)
        after = after or None  # no sort key is empty, so all lie after the empty text
        if until is not None and until <= (after or ""):
            return iter(())  # an error to DynamoDB
        request = query_request(pk, prefix, after, until) | {
            "TableName": self._name,
            "ConsistentRead": True,
            "ScanIndexForward": not reverse,
        }
        return self._pages(request, after, limit)

    def scan(self, prefix: str, *, names: Sequence[str] = ()) -> Iterator[tuple[Key, Attributes]]:
        """See `Table.scan`."""
        if not prefix:
            raise StoreError("a scan needs the beginning of a pk, and it is empty. Nothing was read.")
        marks = {f"#n{i}": name for i, name in enumerate(dict.fromkeys(names))}
        request: Wire = {
            "TableName": self._name,
            "ConsistentRead": True,
            "FilterExpression": "begins_with(pk, :prefix)",
            "ExpressionAttributeValues": {":prefix": {"S": prefix}},
            "ProjectionExpression": ", ".join(["pk", "sk", *marks]),
        }
        return self._scanned(request | ({"ExpressionAttributeNames": marks} if marks else {}))

    def transact(self, operations: Sequence[Operation], *, token: str | None = None) -> None:
        """See `Table.transact`."""
        check_operations(operations, token)
        match operations:
            case [(Put() | Update() | Delete()) as single] if token is None and _may_repeat(single):
                self._write(single)
            case _:
                self._transact(operations, token or str(uuid.uuid4()))

    def create(self, settings: TableSettings = DEFAULT) -> bool:
        """See `Table.create`. Time to live is part of the layout; a new table gets point-in-time recovery too."""
        created = self._create(settings)
        self._wait_until_active()
        found = self._check_layout()
        if not created and not settings.is_default:
            self._check_settings(settings, found)
        self._ask_for_time_to_live()
        if created:
            self._ask_for_recovery()
        return created

    def settings(self) -> FoundSettings:
        """See `Table.settings`."""
        found = self._describe_table()
        tags: dict[str, str] | None = None
        try:
            tags = self._tags(found["TableArn"])
        except StoreUnavailableError:
            raise
        except StoreError as error:
            # DynamoDB Local knows none, and a policy may not allow it.
            log.info("the tags of the table can't be read: %s", error)
        return FoundSettings.of(found, tags)

    def describe(self) -> dict[str, str]:
        """See `Table.describe`."""
        meta = self._client.meta
        host = urlsplit(meta.endpoint_url).netloc.lower().rpartition("@")[2]
        return {"kind": "dynamodb", "table": self._name, "region": meta.region_name, "host": host}

    def close(self) -> None:
        """See `Table.close`."""
        self._is_closed = True
        self._client.close()

    # ---- reading and writing

    def _part(self, answer: Any, name: str) -> Any:
        """Return a part that every answer of DynamoDB has: a proxy may answer in its place."""
        if name not in answer:
            raise StoreAccessError(
                f"{self.describe()['host']} answered without {name!r}, as no DynamoDB does. Nothing was read. Check "
                "the endpoint, and what stands in between."
            )
        return answer[name]

    def _pages(self, request: Wire, after: str | None, limit: int | None) -> Iterator[tuple[Key, Attributes]]:
        left = limit
        start: Wire = {}
        while left is None or left > 0:
            # The bound of `after` may be included, and is dropped.
            size = {} if left is None else {"Limit": left + (after is not None)}
            page = self._page(request | size | start)
            rows = [row for row in map(item_of, self._part(page, "Items")) if row[0].sk != after][:left]
            yield from rows
            left = None if left is None else left - len(rows)
            if "LastEvaluatedKey" not in page:
                return
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    def _scanned(self, request: Wire) -> Iterator[tuple[Key, Attributes]]:
        start: Wire = {}
        while True:
            page = self._scan_page(request | start)
            yield from map(item_of, self._part(page, "Items"))
            if "LastEvaluatedKey" not in page:
                return
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    def _scan_page(self, request: Wire) -> Any:
        return self._patiently("Scan", lambda: self._client.scan(**request))

    def _page(self, request: Wire) -> Any:
        return self._patiently("Query", lambda: self._client.query(**request))

    def _write(self, operation: Put | Update | Delete) -> None:
        # Half the price of a transaction.
        (request,) = wire_operation(self._name, operation).values()
        match operation:
            case Put():
                self._patiently("PutItem", lambda: self._client.put_item(**request))
            case Update():
                self._patiently("UpdateItem", lambda: self._client.update_item(**request))
            case Delete():
                self._patiently("DeleteItem", lambda: self._client.delete_item(**request))

    def _transact(self, operations: Sequence[Operation], token: str) -> None:
        items: Any = [wire_operation(self._name, operation) for operation in operations]
        self._patiently(
            "TransactWriteItems",
            lambda: self._client.transact_write_items(TransactItems=items, ClientRequestToken=token),
        )

    def _patiently(self, operation: str, request: Callable[[], _T], until: Callable[[_T], bool] = lambda _: True) -> _T:
        """Send `request` until it is answered as expected, for as long as the obstacle may pass."""
        if self._is_closed:
            raise StoreError(f"the state table {self._name!r} was closed; {operation} was not sent. Open it anew.")
        started = self._monotonic()
        obstacle: Exception | None = None
        for attempt in self._backoff.attempts():
            try:
                answer = request()
            except aws.ClientError as error:
                self._has_answered.set()
                if not _passes(error):
                    raise self._refused(operation, error) from error
                obstacle = error
            except _NO_ANSWER as error:
                obstacle = error
            except aws.BotoCoreError as error:
                raise self._unusable(operation, error) from error
            else:
                self._has_answered.set()
                if until(answer):
                    return answer
            log.debug("%s on %s, attempt %d: %s", operation, self._name, attempt, obstacle or "not all of it was done")
        raise self._gave_up(operation, self._monotonic() - started, obstacle) from obstacle

    # ---- creation

    def _create(self, settings: TableSettings) -> bool:
        try:
            self._describe_table()
        except TableMissingError:
            return self._create_table(settings)
        return False

    def _describe_table(self) -> Any:
        return self._patiently("DescribeTable", lambda: self._client.describe_table(TableName=self._name)["Table"])

    def _create_table(self, settings: TableSettings) -> bool:
        def request() -> bool:
            try:
                self._client.create_table(
                    TableName=self._name,
                    KeySchema=[
                        {"AttributeName": "pk", "KeyType": "HASH"},
                        {"AttributeName": "sk", "KeyType": "RANGE"},
                    ],
                    AttributeDefinitions=[
                        {"AttributeName": "pk", "AttributeType": "S"},
                        {"AttributeName": "sk", "AttributeType": "S"},
                    ],
                    BillingMode="PAY_PER_REQUEST",
                    **settings.request(),
                )
            except self._client.exceptions.ResourceInUseException:
                return False  # another init was faster
            return True

        return self._patiently("CreateTable", request)

    def _wait_until_active(self) -> None:
        waiter = self._client.get_waiter("table_exists")
        tries = _CREATION_LIMIT_S // _CREATION_POLL_S
        try:
            waiter.wait(TableName=self._name, WaiterConfig={"Delay": _CREATION_POLL_S, "MaxAttempts": tries})
        except aws.WaiterError as error:
            raise StoreUnavailableError(
                f"the table {self._place()} was not active after {_CREATION_LIMIT_S} s ({error}). Run "
                "'airflow-bookmarks init' again: it goes on where it stopped."
            ) from error

    def _check_layout(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._describe_table()
        types = {a["AttributeName"]: a["AttributeType"] for a in found["AttributeDefinitions"]}
        keys = [(k["KeyType"], k["AttributeName"], types[k["AttributeName"]]) for k in found["KeySchema"]]
        if sorted(keys) != [("HASH", "pk", "S"), ("RANGE", "sk", "S")]:
            raise TableLayoutError(
                f"the table {self._place()} exists and has the keys {keys}; a state table has the string keys pk "
                "(hash) and sk (range). It was left as it is. Choose another name for the state table."
            )
        return found

    def _check_settings(self, settings: TableSettings, found: Mapping[str, Any]) -> None:
        lacking = settings.lacking(FoundSettings.of(found, self._tags(found["TableArn"]) if settings.tags else {}))
        if lacking:
            raise OptionError(
                f"the table {self._place()} exists, without {', '.join(lacking)}. It was left as it is. Change it in "
                "AWS (aws dynamodb update-table, or tag-resource), or leave that out."
            )

    def _tags(self, arn: str) -> dict[str, str]:
        answer = self._patiently("ListTagsOfResource", lambda: self._client.list_tags_of_resource(ResourceArn=arn))
        return {tag["Key"]: tag["Value"] for tag in answer.get("Tags", [])}

    def _ask_for_time_to_live(self) -> None:
        if self._has_time_to_live():
            return
        try:
            self._patiently(
                "UpdateTimeToLive",
                lambda: self._client.update_time_to_live(
                    TableName=self._name, TimeToLiveSpecification={"Enabled": True, "AttributeName": EXPIRES_AT}
                ),
            )
        except StoreError:
            # Another init may have enabled it in between; enabling it twice is an error to DynamoDB.
            if not self._has_time_to_live():
                raise

    def _has_time_to_live(self) -> bool:
        found = self._patiently(
            "DescribeTimeToLive",
            lambda: self._client.describe_time_to_live(TableName=self._name)["TimeToLiveDescription"],
        )
        if found.get("TimeToLiveStatus") not in ("ENABLED", "ENABLING"):
            return False
        if found["AttributeName"] != EXPIRES_AT:
            raise TableLayoutError(
                f"the table {self._place()} expires items by the attribute {found['AttributeName']!r}; a state table "
                f"expires them by {EXPIRES_AT!r}. It was left as it is. Choose another name for the state table."
            )
        return True

    def _ask_for_recovery(self) -> None:
        try:
            self._patiently(
                "UpdateContinuousBackups",
                lambda: self._client.update_continuous_backups(
                    TableName=self._name, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
                ),
            )
        except StoreError as error:
            # Emulators do not know it, narrow policies do not allow it, and the table works without it.
            log.warning("the table was made, and has no point-in-time recovery; turn it on for backups: %s", error)

    # ---- what went wrong

    def _refused(self, operation: str, error: aws.ClientError) -> StoreError:
        code, said = _code_of(error), error.response["Error"].get("Message", "")
        if failed := _failed_conditions(error):
            return ConditionFailedError(failed)
        if code == "ResourceNotFoundException":
            return TableMissingError(
                f"there is no table {self._place()}. Nothing was read or changed: an absent table is never taken for "
                "an empty bookmark. Check table, region and endpoint of the store's address; if it is a new one, run "
                "'airflow-bookmarks init'."
            )
        if code in _ACCESS_CODES:
            return StoreAccessError(
                f"{operation} on the table {self._place()} was refused ({code}: {said}). Nothing was written. "
                f"{_ACCESS_ADVICE[_ACCESS_CODES[code]]}."
            )
        reasons = "".join(f"; operation {i}: {r}" for i, r in _other_reasons(error))
        return StoreError(
            f"{operation} on the table {self._place()} failed ({code}: {said}{reasons}). Nothing was written by it."
        )

    def _unusable(self, operation: str, error: aws.BotoCoreError) -> StoreError:
        if isinstance(error, _NO_CREDENTIALS):
            return StoreAccessError(
                f"there are no usable AWS credentials for {operation} on the table {self._place()} ({error}). Nothing "
                "was sent. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile or a role, or name an Airflow "
                "connection."
            )
        return StoreError(f"{operation} on the table {self._place()} can't be sent ({error}). Nothing was written.")

    def _gave_up(self, operation: str, spent_s: float, obstacle: Exception | None) -> StoreError:
        why = obstacle or "parts of the request were throttled each time"
        if isinstance(obstacle, aws.ConnectionError) and not self._has_answered.is_set():
            return StoreAccessError(
                f"{operation}: nothing at the endpoint of the table {self._place()} could be reached for {spent_s:.0f} "
                f"s ({why}). Nothing was read or written. Check 'region' and 'endpoint' of the store's address, and "
                "that this machine may connect there."
            )
        tried = f"{operation} on the table {self._place()} was tried for {spent_s:.0f} s without success ({why})."
        unlost = (
            "Nothing is known to be lost: a write whose reply got lost is recognised when its run is looked at again."
        )
        if obstacle is None or _throttles(obstacle):
            return StoreThrottledError(
                f"{tried} {unlost} DynamoDB throttles the requests: raise the capacity of the table or its limits, or "
                "run the task again later."
            )
        return StoreUnavailableError(f"{tried} {unlost} Run the task again when DynamoDB answers.")

    def _place(self) -> str:
        details = self.describe()
        return f"{self._name!r} in region {details['region']} at {details['host']}"


def _may_repeat(operation: Put | Update | Delete) -> bool:
    """Whether a write that took effect, and is sent again because its reply was lost, finds its conditions as before.

    If not, only the token of a transaction tells an own success from that of another writer.
    """
    match operation:
        case Put(_, attributes, conditions):
            return evaluate(conditions, attributes)
        case Update(_, new, gone, conditions):
            return not any(_is_changed(condition, new, gone) for condition in conditions)
        case Delete(_, conditions):
            return not conditions


def _is_changed(condition: Condition, new: Mapping[str, Value], gone: Sequence[str]) -> bool:
    match condition:
        case Exists():
            return False
        case Missing():
            return True
        case Equals(name, _) | Lacks(name):
            return name in new or name in gone


def _client(
    name: str, region: str | None, endpoint: str | None, session: boto3.session.Session | None
) -> DynamoDBClient:
    config = Config(
        connect_timeout=_CONNECT_TIMEOUT_S,
        read_timeout=_READ_TIMEOUT_S,
        # Only one layer retries, with one limit and one token: this one.
        retries={"mode": "standard", "total_max_attempts": 1},
        tcp_keepalive=True,
    )
    try:
        # A session of its own: boto3's default one is shared with other threads, and sessions are not thread-safe.
        session = session or boto3.session.Session()
        return session.client("dynamodb", region_name=region, endpoint_url=endpoint, config=config)
    except aws.NoRegionError as error:
        raise StoreAccessError(
            f"no AWS region is set for the table {name!r}. Nothing was sent. Put it into the store's address "
            f"(dynamodb://{name}?region=eu-west-1) or into AWS_DEFAULT_REGION."
        ) from error
    except (aws.ProfileNotFound, aws.InvalidRegionError, *_NO_CREDENTIALS) as error:
        raise StoreAccessError(
            f"the AWS settings for the table {name!r} can't be used ({error}). Nothing was sent. Check AWS_PROFILE and "
            "the region of the store's address."
        ) from error
    except ValueError as error:
        raise StoreAccessError(
            f"the endpoint of the table {name!r} can't be used ({error}). Nothing was sent. Check 'endpoint' of the "
            "store's address and AWS_ENDPOINT_URL."
        ) from error


def _check_readable(name: str, client: DynamoDBClient) -> None:
    # The client's own: AWS_ENDPOINT_URL and profiles name endpoints too.
    url = client.meta.endpoint_url
    if is_readable(url):
        client.close()
        raise OptionError(
            f"the table {name!r} is to be reached at http://{urlsplit(url).netloc.rpartition('@')[2]}, without TLS and "
            "on another machine: who sits in between reads and changes state, and signed requests. Nothing was sent. "
            "Take an https:// endpoint; or, in a network that you trust, add insecure=true to the store's address "
            f"(dynamodb://{name}?insecure=true)."
        )


# ---- errors of DynamoDB


# Older and XML-speaking services, and emulators, spell some codes another way.
_ACCESS_CODES = {code: code for code in _ACCESS_ADVICE} | {
    "AccessDenied": "AccessDeniedException",
    "AuthFailure": "UnrecognizedClientException",
    "ExpiredToken": "ExpiredTokenException",
    "IncompleteSignature": "IncompleteSignatureException",
    "InvalidAccessKeyId": "UnrecognizedClientException",
    "InvalidClientTokenId": "UnrecognizedClientException",
    "MissingAuthenticationToken": "MissingAuthenticationTokenException",
    "RequestExpired": "InvalidSignatureException",
    "SignatureDoesNotMatch": "InvalidSignatureException",
}


def _code_of(error: BaseException | None) -> str:
    return error.response["Error"].get("Code", "") if isinstance(error, aws.ClientError) else ""


def _reasons(error: aws.ClientError) -> list[Wire]:
    """Return why a transaction was cancelled, one reason for each operation ('None' where it is not the cause)."""
    response: Mapping[str, Any] = error.response
    return list(response.get("CancellationReasons", []))


def _throttles(obstacle: Exception) -> bool:
    if not isinstance(obstacle, aws.ClientError):
        return False
    codes = {_code_of(obstacle), *(reason.get("Code") for reason in _reasons(obstacle))}
    return not codes.isdisjoint(_THROTTLED)


def _passes(error: aws.ClientError) -> bool:
    codes = {reason.get("Code") for reason in _reasons(error)} - {"None", None}
    if codes:
        # A condition that failed beside a conflict has failed: report it at once.
        return codes <= _PASSING
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return _code_of(error) in _PASSING or status >= 500


def _failed_conditions(error: aws.ClientError) -> dict[int, Attributes | None]:
    if _code_of(error) == "ConditionalCheckFailedException":
        response: Mapping[str, Any] = error.response
        return {0: item_of(response["Item"])[1] if response.get("Item") else None}
    return {
        index: item_of(reason["Item"])[1] if reason.get("Item") else None
        for index, reason in enumerate(_reasons(error))
        if reason.get("Code") == "ConditionalCheckFailed"
    }


def _other_reasons(error: aws.ClientError) -> list[tuple[int, str]]:
    return [
        (index, f"{reason['Code']} {reason.get('Message', '')}".strip())
        for index, reason in enumerate(_reasons(error))
        if reason.get("Code") not in ("None", None)
    ]
