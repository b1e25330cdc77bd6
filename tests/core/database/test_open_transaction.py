"""Who is left of those that are waited for, where transactions go on under other ids."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow_bookmarks.core.database.open_transaction import OpenTransaction, earliest, still_open

NINE = datetime(2013, 1, 31, 9, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def entry(
    id: str, stage: int = 0, *, owner: str | None = "7", since: datetime | None = NINE, who: str = "etl"
) -> OpenTransaction:
    return OpenTransaction(id, owner, stage, since, who)


def ids(entries: tuple[OpenTransaction, ...]) -> set[str]:
    return {each.id for each in entries}


def test_one_that_is_listed_is_waited_for_and_one_that_is_not_has_ended() -> None:
    assert ids(still_open([entry("a"), entry("b")], [entry("b"), entry("c")])) == {"b"}


def test_statement_goes_on_as_the_transaction_of_its_session_only() -> None:
    found = [entry("transaction 1", 1), entry("transaction 2", 1, owner="8")]
    assert ids(still_open([entry("statement")], found)) == {"transaction 1"}


def test_anyone_may_go_on_as_a_prepared_transaction() -> None:
    assert ids(still_open([entry("a"), entry("b")], [entry("b"), entry("prepared", 1, owner=None)])) == {
        "b",
        "prepared",
    }


def test_prepared_transaction_is_not_waited_for_while_nobody_has_gone() -> None:
    assert ids(still_open([entry("a")], [entry("a"), entry("prepared", 1, owner=None)])) == {"a"}


def test_wait_has_an_end_though_a_session_goes_on_with_others() -> None:
    left: tuple[OpenTransaction, ...] = (entry("statement 1"),)
    left = still_open(left, [entry("transaction 1", 1), entry("statement 2")])
    left = still_open(left, [entry("transaction 2", 1), entry("statement 3")])
    assert left == ()


def test_continuation_is_as_old_as_the_oldest_that_it_may_be() -> None:
    left = [entry("a", since=NINE + MINUTE), entry("b", since=NINE)]
    (one,) = still_open(left, [entry("prepared", 1, owner=None, since=None)])
    assert one.since == NINE
    (other,) = still_open(left, [entry("transaction", 1, since=NINE + 2 * MINUTE)])
    assert other.since == NINE


def test_when_a_prepared_transaction_began_stays_not_known() -> None:
    prepared = entry("prepared", 1, owner=None, since=None)
    assert still_open([entry("a"), prepared], [prepared]) == (prepared,)
    assert still_open([entry("a", since=None), entry("b")], [prepared]) == (prepared,)


def test_earliest_is_not_known_if_it_is_not_of_one() -> None:
    assert earliest([entry("a"), entry("b", since=None)], MINUTE) is None


def test_transaction_may_have_its_time_before_it_begins_and_a_statement_not() -> None:
    assert earliest([entry("statement"), entry("transaction", 1, since=NINE + MINUTE / 2)], MINUTE) == NINE - MINUTE / 2
    assert earliest([entry("statement")], MINUTE) == NINE
