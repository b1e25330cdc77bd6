"""The stage table of a database: Spark loads it, and one transaction under a token row publishes it.

    create table - load 0 - load 1 - count - (commit of the bookmark) - transact - (mark, sweep) - drop tables

The transaction is `UPDATE token SET fence = mine WHERE fence < mine`, then, if that found its row, an insert or upsert
from the stage table. `mine` is the fence under which the run staged, whoever publishes it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from model.state import DONE, Database, Load, Place, Row, Run, StageTable, State, stored_run

if TYPE_CHECKING:
    from model.turn import Turn


# ---- stage


def create(turn: Turn) -> None:
    """Create the own stage table and, if it is the first one, the token row."""
    driver, database = turn.driver, turn.state.database
    name = _name(turn, turn.place)
    if _table(database, name) is None:
        database = _with_table(database, StageTable(name, driver.fence, ()))
    if database.token is None and turn.keeps("st_token_row"):
        database = database._replace(token=0)
    turn.go(f"creates stage table {name}", driver._replace(step="load 0"), _with_database(turn, database))


def load(turn: Turn, part: int) -> None:
    """Load one of two partitions, in a transaction of its own. Spark repeats a task whose reply was lost."""
    driver = turn.driver
    name = _name(turn, turn.place)
    table = _table(turn.state.database, name)
    if table is None:
        turn.go(f"load: stage table {name} is gone", driver._replace(step="fail"))
        return
    rows = driver.rows_of(part)
    label = f"loads part {part} into {name}"
    going_on = driver._replace(step="load 1" if part == 0 else "count")
    if rows:
        loads = tuple(sorted([*table.loads, Load(driver.fence, part, rows)], key=_by_fence_and_part))
        loaded = _with_database(turn, _with_table(turn.state.database, table._replace(loads=loads)))
        turn.go(label, going_on, loaded)
        if turn.may_lose_reply:
            turn.lose_reply(label, driver, loaded)
    else:
        turn.go(label, going_on)
    if part == 1 and turn.may_raise:
        turn.go("EXCEPTION while loading", driver._replace(step="fail"))


def count(turn: Turn) -> None:
    """See, before the commit, that the stage table has each row that was written once."""
    driver = turn.driver
    table = _table(turn.state.database, _name(turn, turn.place))
    is_whole = table is not None and sorted(_rows(table)) == sorted(driver.rows)
    if is_whole or not turn.keeps("st_count"):
        turn.go("counts the stage table", driver._replace(step=turn.step_after_staging))
    else:
        turn.go("counts the stage table: it has not what was written", driver._replace(step="fail"))


# ---- publish


def transact(turn: Turn) -> None:
    """Publish the stage table in one transaction, unless its token is taken already."""
    database, driver = turn.state.database, turn.driver
    run = stored_run(turn.state, turn.publication.key)
    table = _table(database, _name(turn, turn.publication.place))
    if not _takes_token(turn, database):
        turn.go(f"transaction of run {run.key}: the token is taken", driver._replace(step="mark"))
    elif table is None:
        turn.end(f"transaction of run {run.key}: no stage table, nothing done", outcome="failed")
    elif turn.keeps("st_one"):
        inserted = _inserted(turn, database._replace(token=_token(turn)), run, table)
        _publish(turn, f"transaction of run {run.key}: takes the token, inserts", inserted)
    else:
        taken = _with_database(turn, database._replace(token=_token(turn)))
        turn.go(f"takes the token for run {run.key}, by itself", driver._replace(step="insert"), taken)


def insert(turn: Turn) -> None:
    """Insert in a transaction of its own (`st_one` switched off)."""
    run = stored_run(turn.state, turn.publication.key)
    table = _table(turn.state.database, _name(turn, turn.publication.place))
    if table is None:
        turn.end(f"inserts for run {run.key}: no stage table, nothing done", outcome="failed")
    else:
        _publish(turn, f"inserts for run {run.key}, by itself", _inserted(turn, turn.state.database, run, table))


def _publish(turn: Turn, label: str, database: Database) -> None:
    driver, published = turn.driver, _with_database(turn, database)
    turn.go(label, driver._replace(step="mark"), published)
    if not turn.may_lose_reply:
        return
    if turn.keeps("st_again"):
        turn.lose_reply(label, driver, published)
    else:
        turn.lose_reply(label, driver._replace(step=DONE, outcome="false failure"), published)


def _token(turn: Turn) -> int:
    """Return the fence under which the publish takes the token."""
    _, staged_under = turn.publication.place
    return staged_under if turn.keeps("st_own_token") else turn.driver.fence


def _takes_token(turn: Turn, database: Database) -> bool:
    """Say whether the UPDATE finds its row."""
    if database.token is None:
        return False
    return database.token < _token(turn) or not turn.keeps("st_fence")


def _inserted(turn: Turn, database: Database, run: Run, table: StageTable) -> Database:
    target = list(database.target)
    for row in _rows(table):
        if turn.configuration.upserts:
            target = [each for each in target if each[1][0] != row[0]]
        target.append((run.epoch, row))
    return database._replace(target=tuple(sorted(target)))


# ---- sweep and clean


def drop_swept(turn: Turn) -> None:
    """Drop the stage tables of the own and of older fences, one after the other."""
    _drop_next(turn, then=DONE)


def drop_early(turn: Turn) -> None:
    """Drop the stage tables of older fences before recovering (`st_later` switched off)."""
    _drop_next(turn, then="recover")


def _drop_next(turn: Turn, then: str) -> None:
    driver, database = turn.driver, turn.state.database
    table = next((each for each in database.tables if _is_swept(turn, each)), None)
    if table is None:
        turn.go("no stage table to drop", driver._replace(step=then))
    else:
        turn.go(f"drops stage table {table.name}", driver, _with_database(turn, _dropped(database, {table.name})))


def _is_swept(turn: Turn, table: StageTable) -> bool:
    return table.fence <= turn.driver.fence or not turn.keeps("st_older")


def without_tables(turn: Turn, places: set[Place]) -> Database:
    """Return the database without the stage tables of some places."""
    return _dropped(turn.state.database, {_name(turn, place) for place in places})


# ---- the database


def _name(turn: Turn, place: Place) -> Place:
    """Return the name of the stage table of a place."""
    return place if turn.keeps("st_named") else (place[0], 0)


def _table(database: Database, name: Place) -> StageTable | None:
    return next((table for table in database.tables if table.name == name), None)


def _with_table(database: Database, table: StageTable) -> Database:
    others = _dropped(database, {table.name}).tables
    return database._replace(tables=tuple(sorted([*others, table], key=_by_name)))


def _dropped(database: Database, names: set[Place]) -> Database:
    return database._replace(tables=tuple(table for table in database.tables if table.name not in names))


def _with_database(turn: Turn, database: Database) -> State:
    return turn.state._replace(database=database)


def _rows(table: StageTable) -> list[Row]:
    """Return the rows of a stage table, each as often as it was loaded."""
    return [row for load in table.loads for row in load.rows]


def _by_name(table: StageTable) -> Place:
    return table.name


def _by_fence_and_part(load: Load) -> tuple[int, int]:
    return load.fence, load.part


STEPS: dict[str, Callable[[Turn], None]] = {
    "create table": create,
    "load 0": partial(load, part=0),
    "load 1": partial(load, part=1),
    "count": count,
    "transact": transact,
    "insert": insert,
    "drop tables": drop_swept,
    "drop early": drop_early,
}
