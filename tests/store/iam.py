"""IAM, as far as the shipped policies use it: what it sees of a request, and whether a policy allows that.

AWS does not say whether `dynamodb:Attributes` holds the names of what a request compares, or only of what it writes;
who asks says which reading is meant.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError


@dataclass(frozen=True)
class Call:
    """What IAM sees of one operation: action, partition keys, the attributes that it writes and those it compares."""

    action: str
    keys: frozenset[str]
    written: frozenset[str] = frozenset()
    compared: frozenset[str] = frozenset()

    @property
    def changes_a_job(self) -> bool:
        """Whether it writes more than a blob, which means nothing until an item refers to it."""
        return bool(self.written) and not any("#BLOB#" in key for key in self.keys)


def calls_of(operation: str, request: Mapping[str, Any]) -> list[Call]:
    """Return what one request of the API is to IAM: a transaction is its operations, each under its own action."""
    match operation:
        case "BatchGetItem":
            ((_, wanted),) = request["RequestItems"].items()
            return [Call(operation, frozenset(key["pk"]["S"] for key in wanted["Keys"]))]
        case "Query":
            return [Call(operation, frozenset({request["ExpressionAttributeValues"][":pk"]["S"]}))]
        case "PutItem" | "UpdateItem" | "DeleteItem":
            return [_call(operation, request)]
        case "TransactWriteItems":
            actions = {"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem"}
            actions["ConditionCheck"] = "ConditionCheckItem"
            return [_call(actions[kind], one) for item in request["TransactItems"] for kind, one in item.items()]
        case _:
            return [Call(operation, frozenset())]


def _call(action: str, request: Mapping[str, Any]) -> Call:
    names: Mapping[str, str] = request.get("ExpressionAttributeNames", {})
    item: Mapping[str, Any] = request.get("Item") or request["Key"]
    put = set(request.get("Item", {}))
    update = {names[mark] for mark in re.findall(r"#n\d+", request.get("UpdateExpression", ""))}
    compared = {names[mark] for mark in re.findall(r"#n\d+", request.get("ConditionExpression", ""))}
    return Call(action, frozenset({item["pk"]["S"]}), frozenset(put | update), frozenset(compared | {"pk", "sk"}))


def allows(given: Mapping[str, Any], call: Call, *, with_compared: bool) -> bool:
    """Say whether a policy allows a call: some statement does, and none denies it."""
    effects = [s["Effect"] for s in given["Statement"] if _applies(s, call, with_compared)]
    return "Allow" in effects and "Deny" not in effects


def _applies(statement: Mapping[str, Any], call: Call, with_compared: bool) -> bool:
    values = {
        "dynamodb:LeadingKeys": call.keys,
        "dynamodb:Attributes": call.written | call.compared if with_compared else call.written,
    }
    return f"dynamodb:{call.action}" in statement["Action"] and all(
        _holds(operator, values[name], patterns)
        for operator, tests in statement.get("Condition", {}).items()
        for name, patterns in tests.items()
    )


def _holds(operator: str, values: frozenset[str], patterns: Sequence[str]) -> bool:
    match operator:
        case "ForAllValues:StringLike":
            return all(any(_is_like(value, pattern) for pattern in patterns) for value in values)
        case "ForAnyValue:StringLike":
            return any(any(_is_like(value, pattern) for pattern in patterns) for value in values)
        case "ForAnyValue:StringEquals":
            return bool(values & set(patterns))
    raise NotImplementedError(f"the evaluator does not know {operator}")


def _is_like(value: str, pattern: str) -> bool:
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), value, re.DOTALL) is not None


@dataclass
class Gate:
    """What every request goes through: it is kept in `passed`, and refused where `policy` does not allow it."""

    policy: Mapping[str, Any] | None = None
    passed: list[list[Call]] = field(default_factory=list)

    def __call__(self, params: Mapping[str, Any], model: Any, **_: Any) -> None:
        calls = calls_of(model.name, params)
        refused = self.policy and not all(allows(self.policy, call, with_compared=True) for call in calls)
        if refused:
            raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "not authorized"}}, model.name)
        self.passed.append(calls)
