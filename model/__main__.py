"""Search the model: `python -m model --help`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from model.rules import RULES
from model.searches import result_without, results, results_without_each

_WIDTH = max(map(len, RULES))


def main(arguments: Sequence[str] | None = None) -> int:
    """Search, and return 0 if all came out as it must."""
    parser = argparse.ArgumentParser(prog="python -m model", description="The commit protocol, searched exhaustively.")
    parser.add_argument("--big", action="store_true", help="search larger configurations too: minutes")
    parser.add_argument("--list", action="store_true", help="list the rules that can be switched off")
    parser.add_argument(
        "--without",
        metavar="RULE",
        choices=["all", *RULES],
        help="switch a rule off and show the shortest trace that goes wrong; all: one line for each rule",
    )
    chosen = parser.parse_args(arguments)
    if chosen.list:
        return _list()
    if chosen.without == "all":
        return _without_each()
    if chosen.without:
        return _without(chosen.without)
    return _search(chosen.big)


def _list() -> int:
    for rule, text in RULES.items():
        print(f"{rule:{_WIDTH}} {text}")
    return 0


def _without(rule: str) -> int:
    print(f'Without "{RULES[rule]}":')
    result = result_without(rule)
    print(result)
    return 0 if result.violation else 1


def _without_each() -> int:
    unseen = 0
    for rule, result in results_without_each():
        unseen += result.violation is None
        found = result.violation or "NOTHING GOES WRONG"
        print(f"{rule:{_WIDTH}} {found}  ({len(result.trace)} steps, {result.states} states)", flush=True)
    print(f"{len(RULES)} rules, {unseen} of them without a trace that goes wrong")
    return min(unseen, 1)


def _search(is_big: bool) -> int:
    began, states, violations, count = time.monotonic(), 0, 0, 0
    for result in results(is_big):
        print(result, flush=True)
        count, states, violations = count + 1, states + result.states, violations + bool(result.violation)
    print(f"{count} configurations, {states} states, {violations} violations, {time.monotonic() - began:.0f} s")
    return min(violations, 1)


if __name__ == "__main__":
    sys.exit(main())
