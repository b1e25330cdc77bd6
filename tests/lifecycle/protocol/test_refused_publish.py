"""A publish that a constraint of a table refuses stays due, and a user has ways out of it (SINK-4, RESET-1)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from airflow_bookmarks.cli import main
from airflow_bookmarks.cli.output.change_preview import in_lines
from airflow_bookmarks.core.database import catalog
from airflow_bookmarks.core.database.sink_table import SinkTable
from airflow_bookmarks.core.database.upsert import Upsert
from airflow_bookmarks.core.errors import CleanRefusedError, PublishError
from airflow_bookmarks.core.run import RunKey
from airflow_bookmarks.databases.access import EnvironmentAccess
from airflow_bookmarks.databases.address import DatabaseAddress
from airflow_bookmarks.databases.database import open_database
from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.files.permission import Prefix, looking_below
from airflow_bookmarks.lifecycle.changes.change import Change, reset, rewind, undo
from airflow_bookmarks.lifecycle.changes.preview import preview
from airflow_bookmarks.lifecycle.protocol.failpoint import Failpoint
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.protocol.publish import stored_output
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.sinks.files.sink import FilesSink
from airflow_bookmarks.sinks.jdbc.loading import resolved
from airflow_bookmarks.sinks.jdbc.place import StagePlace, TableTarget
from airflow_bookmarks.sinks.jdbc.sink import JdbcSink
from airflow_bookmarks.sinks.sink import PublishSteps
from tests.aborting import aborted_on_error
from tests.databases.servers import new_database
from tests.lifecycle.shop import Shop
from tests.sinks.jdbc.table_ground import OneLogin
from tests.sinks.jdbc.table_writer import write_table
from tools.servers import DatabaseServer

WHY: dict[str, Any] = {"reason": "a constraint refuses it", "who": "me"}
CHECK = "ALTER TABLE dim ADD CONSTRAINT sound CHECK (line <> 'bad')"
NO_CHECK = "ALTER TABLE dim DROP CONSTRAINT sound"


class Warehouse:
    """A job `copy` that copies lines to files, and to tables that may refuse some of them."""

    def __init__(self, shop: Shop, login: DatabaseLogin) -> None:
        self.shop, self.store, self.login = shop, shop.store, login
        shop.store.databases = OneLogin(login)
        with open_database(login) as database:
            self.table = resolved(database, SinkTable(None, "dim"))
        self.target = TableTarget(DatabaseAddress.parse("conn:dw"), self.table)
        self.execute("CREATE TABLE dim (line varchar(20))")

    def execute(self, *statements: str) -> None:
        with open_database(self.login) as database:
            for statement in statements:
                database.execute(statement)

    def run(self, *tables: str, fault: Failpoint | None = None, **kwargs: Any) -> list[str]:
        """Make a run that writes to these tables as well (none given: `dim`); return the lines that it has read.

        A table is reached by the connection `dw`, or by another one that leads to the same place: `other:also`.
        """
        run = self.shop.begin(**kwargs)
        with aborted_on_error(run):
            lines = self.stage(run, tables or ("dim",))
            run._leased.environment = RunEnvironment(at=lambda point: _die_at(fault, point))
            run.commit()
        return lines

    def stage(self, run: ActiveRun, tables: Sequence[str]) -> list[str]:
        lines = self.shop.copy(run)
        for table in tables:
            conn, _, name = table.rpartition(":")
            address = DatabaseAddress.parse(f"conn:{conn}") if conn else self.target.address
            target = TableTarget(address, self.table.beside(name))
            write_table(run, name, target, self.login, ["line"], [[line] for line in lines])
        return lines

    def refused(self, *tables: str, **kwargs: Any) -> str:
        """Make a run whose publish is refused; return what it says."""
        with pytest.raises(PublishError) as caught:
            self.run(*tables, **kwargs)
        return str(caught.value)

    def rows(self, table: str = "dim") -> Counter[str]:
        with open_database(self.login) as database:
            return Counter(line for (line,) in database.rows(f"SELECT line FROM {table}"))

    def files(self) -> Counter[str]:
        return self.shop.target_lines()

    def staged(self) -> list[str]:
        """Return the names of stage tables, and of staged files."""
        with open_database(self.login) as database:
            tables = [name for (name,) in database.rows(catalog.tables_query(self.login.dialect, None, "_bm_"))]
        return [*tables, *(path.name for path in self.shop.staged_files())]

    def stage_table(self, number: int, output: str = "dim") -> str:
        run = self.store.committed_run("copy", number)
        assert run is not None
        place = StagePlace.parse(run.outputs[output].place)
        assert place is not None
        return place.table.sql(self.login.dialect)

    def twice(self, to_run: int | None, **kwargs: Any) -> list[str]:
        """Return the targets that a preview names as those that would hold rows twice."""
        change = Change("reset" if to_run is None else "rewind", None if to_run is None else str(to_run), **kwargs)
        return list(preview(self.store, "copy", change).as_dict()["written_twice"])

    def check_whole(self, *lines: str) -> None:
        """Make sure that each line is in both targets once, and that nothing is staged, due, open or held."""
        assert (self.rows(), self.files(), self.staged()) == (Counter(lines), Counter(lines), [])
        head = self.store.head("copy")
        assert (head.publishing, head.cleaning, head.lease) == (None, None, None)
        assert self.store.open_runs("copy", head) == []


class DeathError(BaseException):
    """The end of a driver."""


def _die_at(fault: Failpoint | None, point: Failpoint) -> None:
    if point is fault:
        raise DeathError


@pytest.fixture(params=["postgresql", "mariadb"])
def dw(request: pytest.FixtureRequest, shop: Shop) -> Iterator[Warehouse]:
    with new_database(request.getfixturevalue(f"{request.param}_server")) as login:
        yield Warehouse(shop, login)


@pytest.fixture
def due(dw: Warehouse) -> Warehouse:
    """Let run 1 publish `a`, and the table refuse what run 2 has committed: `b` and `bad`."""
    dw.execute(CHECK)
    dw.shop.put("a.txt", "a")
    dw.run()
    dw.shop.put("b.txt", "b", "bad")
    dw.refused()
    return dw


# ---- what is refused


_TRIGGER = {
    "postgresql": (
        "CREATE FUNCTION sound() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN IF NEW.line = 'bad' THEN RAISE EXCEPTION 'not sound'; END IF; RETURN NEW; END $$",
        "CREATE TRIGGER sound BEFORE INSERT ON dim FOR EACH ROW EXECUTE FUNCTION sound()",
    ),
    "mariadb": (
        "CREATE TRIGGER sound BEFORE INSERT ON dim FOR EACH ROW "
        "IF NEW.line = 'bad' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not sound'; END IF",
    ),
}
_NO_TRIGGER = {"postgresql": "DROP TRIGGER sound ON dim", "mariadb": "DROP TRIGGER sound"}
_NOT_NULL = {
    "postgresql": ("ALTER TABLE dim ADD COLUMN kind int", "ALTER TABLE dim ALTER COLUMN kind SET NOT NULL"),
    "mariadb": ("ALTER TABLE dim ADD COLUMN kind int", "ALTER TABLE dim MODIFY kind int NOT NULL"),
}
_NULL = {"postgresql": "ALTER TABLE dim ALTER COLUMN kind DROP NOT NULL", "mariadb": "ALTER TABLE dim MODIFY kind int"}


def constraint_of(dw: Warehouse, kind: str) -> tuple[Sequence[str], Sequence[str]]:
    """Return the statements that make a constraint once a run has staged, and those that let it go."""
    dialect = dw.login.dialect
    if kind == "check":
        return [CHECK], [NO_CHECK]
    if kind == "unique":
        gone = "DROP CONSTRAINT sound" if dialect == "postgresql" else "DROP INDEX sound"
        made = ["INSERT INTO dim VALUES ('bad')", "ALTER TABLE dim ADD CONSTRAINT sound UNIQUE (line)"]
        return made, [f"ALTER TABLE dim {gone}", "DELETE FROM dim WHERE line = 'bad'"]
    if kind == "foreign key":
        gone = "CONSTRAINT" if dialect == "postgresql" else "FOREIGN KEY"
        parent = ["CREATE TABLE good (line varchar(20) PRIMARY KEY)", "INSERT INTO good VALUES ('a'), ('b')"]
        added = "ALTER TABLE dim ADD CONSTRAINT sound FOREIGN KEY (line) REFERENCES good (line)"
        return [*parent, added], [f"ALTER TABLE dim DROP {gone} sound"]
    if kind == "not null":
        return _NOT_NULL[dialect], [_NULL[dialect]]
    return _TRIGGER[dialect], [_NO_TRIGGER[dialect]]


KINDS = ["check", "unique", "foreign key", "not null", "trigger"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", ["let go", "rewind"])
def test_each_row_is_there_once_after_a_constraint_has_refused_a_publish(dw: Warehouse, kind: str, way: str) -> None:
    dw.shop.put("b.txt", "b", "bad")
    run = dw.shop.begin()
    dw.stage(run, ["dim"])
    made, gone = constraint_of(dw, kind)
    before = dw.rows()
    dw.execute(*made)
    with pytest.raises(PublishError, match=r"Nothing of it was published.*stays due"):
        run.commit()
    run.abort("its publish is due")
    assert (dw.rows() - Counter(["bad"]), dw.files()) == (before, Counter())
    dw.refused()  # each further run, until it is settled
    if way == "rewind":
        reset(dw.store, "copy", **WHY)
    dw.execute(*gone)
    assert dw.run() == (["b", "bad"] if way == "rewind" else [])
    dw.check_whole("b", "bad")


# ---- the ways out


def test_refusal_names_the_rows_and_the_ways_out(due: Warehouse) -> None:
    said = due.refused()
    place = due.stage_table(2).replace('"', "").replace("`", "")
    assert said.endswith(
        f"Nothing of it was published to {due.target}, and its rows stay in the table {place}, where they can be "
        "corrected. The run stays committed, and its publish stays due: each further run of the job tries it first, "
        "and ends here. Mend the cause, and run the job again. Or give the run up by 'airflow-bookmarks rewind copy "
        '--to 1 --reason "..."\': the next run then reads its input again.'
    )
    assert said.startswith("job 'copy', run 2.2, output 'dim': jdbc:")
    assert ".." not in said.replace("...", "")


def test_first_run_is_given_up_by_a_reset_and_a_later_one_by_a_rewind_to_the_last_that_counts(dw: Warehouse) -> None:
    dw.execute(CHECK)
    dw.shop.put("b.txt", "bad")
    assert "by 'airflow-bookmarks reset copy --reason" in dw.refused()
    reset(dw.store, "copy", **WHY)
    dw.shop.put("b.txt", "b")
    dw.run()
    dw.run()
    rewind(dw.store, "copy", 2, **WHY)
    dw.shop.put("c.txt", "bad")
    assert "run 4." in (said := dw.refused())
    assert "by 'airflow-bookmarks rewind copy --to 2 --reason" in said


def test_constraint_that_is_let_go_lets_the_next_run_publish(due: Warehouse) -> None:
    due.execute(NO_CHECK)
    assert due.run() == []
    due.check_whole("a", "b", "bad")


def test_rows_that_are_corrected_in_the_stage_table_are_published(due: Warehouse) -> None:
    due.execute(f"UPDATE {due.stage_table(2)} SET line = 'good' WHERE line = 'bad'")
    assert due.run() == []
    assert (due.rows(), due.staged()) == (Counter(["a", "b", "good"]), [])


@pytest.mark.parametrize("door", ["python", "command line", "retry"])
def test_rewind_gives_the_run_up_and_no_row_comes_twice(
    due: Warehouse, door: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert due.twice(1) == []
    if door == "command line":
        login = due.login
        uri = f"{login.dialect}://{login.user}:{login.password}@{login.host}:{login.port}/{login.database}"
        monkeypatch.setenv("AIRFLOW_CONN_DW", uri)
        store = f"sqlite:///{due.shop.root}/bookmarks.db?namespace=test"
        command = ["--store", store, "rewind", "copy", "--to", "1", "--reason", "it is refused"]
        assert main([*command, "--dry-run"]) == 0
        assert "twice" not in capsys.readouterr().out
        assert main([*command, "--yes"]) == 0
    else:
        rewind(due.store, "copy", 1, **WHY)
    due.shop.put("b.txt", "b", "good")
    again: dict[str, Any] = {"run_id": "manual/2", "attempt": 2} if door == "retry" else {}
    assert due.run(**again) == ["b", "good"]
    due.check_whole("a", "b", "good")
    due.shop.put("c.txt", "c")
    assert due.run() == ["c"]
    due.check_whole("a", "b", "good", "c")


def test_reset_reads_all_again_and_warns_of_what_was_published_alone(due: Warehouse) -> None:
    assert due.twice(None) == sorted([str(due.shop.root / "copy"), str(due.target)])
    reset(due.store, "copy", **WHY)
    due.execute("DELETE FROM dim", NO_CHECK)
    assert due.run() == ["a", "b", "bad"]
    assert (due.rows(), due.files()) == (Counter(["a", "b", "bad"]), Counter(["a", "a", "b", "bad"]))
    assert due.staged() == []


def test_rewind_that_is_taken_back_leaves_the_publish_due(due: Warehouse) -> None:
    rewind(due.store, "copy", 1, **WHY)
    undo(due.store, "copy", **WHY)
    assert due.store.head("copy").publishing == RunKey(2, 2)
    due.execute(NO_CHECK)
    assert due.run() == []
    due.check_whole("a", "b", "bad")


def test_publisher_that_comes_after_the_rewind_and_the_next_run_brings_nothing(due: Warehouse) -> None:
    run = due.store.committed_run("copy", 2)
    assert run is not None
    late = JdbcSink(OneLogin(due.login)).prepare(stored_output(due.store, "copy", run, "dim"))
    assert late is not None
    rewind(due.store, "copy", 1, **WHY)
    due.execute(NO_CHECK)
    due.run()
    assert late.publish(lambda what: None, PublishSteps(lambda: None, lambda: 0.0)) == 0
    due.check_whole("a", "b", "bad")


# ---- what others have published by then


def publish_files(dw: Warehouse, number: int) -> None:
    """Publish the files of a run, as versions did that published outputs in the order of their names or writes."""
    run = dw.store.committed_run("copy", number)
    assert run is not None
    publication = FilesSink().prepare(stored_output(dw.store, "copy", run, "out"))
    assert publication is not None
    publication.publish(lambda what: None, PublishSteps(lambda: None, lambda: 0.0))


def test_clean_of_a_publish_that_is_due_is_refused_since_its_driver_may_still_be_about_to(due: Warehouse) -> None:
    publish_files(due, 2)
    assert due.twice(1) == [str(due.shop.root / "copy")]
    with pytest.raises(CleanRefusedError, match=r"whose rows don.t tell.*without clean, which drops a publish"):
        rewind(due.store, "copy", 1, clean=True, **WHY)
    assert due.store.head("copy").publishing is not None


def test_run_that_was_given_up_stands_in_no_way_of_a_clean(due: Warehouse) -> None:
    rewind(due.store, "copy", 1, **WHY)
    due.shop.put("b.txt", "b", "bad", "more")
    due.refused()
    rewind(due.store, "copy", 1, **WHY)
    due.shop.put("b.txt", "b", "good")
    with pytest.raises(DeathError):
        due.run(fault=Failpoint.BEFORE_COMMIT)
    rewind(due.store, "copy", 1, clean=True, **WHY)
    assert due.run() == ["b", "good"]
    due.check_whole("a", "b", "good")


def test_clean_is_refused_where_the_table_has_the_rows(due: Warehouse) -> None:
    due.execute(NO_CHECK)
    due.run()
    due.shop.put("c.txt", "c")
    with pytest.raises(DeathError):
        due.run(fault=Failpoint.PUBLISHED)  # published, and not marked
    assert due.store.head("copy").publishing is not None
    assert due.twice(3) == sorted([str(due.shop.root / "copy"), str(due.target)])
    with pytest.raises(CleanRefusedError, match="whose rows don't tell"):
        rewind(due.store, "copy", 3, clean=True, **WHY)


def test_publish_that_is_under_way_counts_as_seen(due: Warehouse) -> None:
    tokens = due.table.beside("_bookmarks_tokens").sql(due.login.dialect)
    with open_database(due.login) as publisher, publisher.transaction():
        publisher.execute(f"UPDATE {tokens} SET published_rows = 1")
        assert str(due.target) in due.twice(1)
    assert due.twice(1) == []


def test_process_that_may_ask_no_database_does_not_guess(due: Warehouse) -> None:
    """As the API server, which looks at files below some prefixes alone."""
    back = Change("rewind", "1")
    with looking_below(Prefix.of(str(due.shop.root))):
        seen = preview(due.store, "copy", back)
        assert (seen.twice, seen.twice_unknown) == ((str(due.target),), (str(due.target),))
    seen = preview(due.store, "copy", back)
    assert (seen.twice, seen.twice_unknown) == ((), ())


def test_command_line_without_the_login_says_that_it_does_not_know(due: Warehouse) -> None:
    """A target that may hold nothing of a run is not named like one that surely does."""
    due.store.databases = EnvironmentAccess()
    lines = in_lines("test", preview(due.store, "copy", Change("rewind", "1")).as_dict(), Change("rewind", "1"))
    unless = "if anything of the undone runs was published there, which is not known here"
    assert f"  would hold rows twice, {unless}: {due.target}" in lines
    due.store.databases = OneLogin(due.login)
    lines = in_lines("test", preview(due.store, "copy", Change("reset")).as_dict(), Change("reset"))
    assert f"  would hold rows twice: {due.target}" in lines  # run 1 has published


def test_clean_gives_an_open_run_up_whatever_it_has_staged(dw: Warehouse) -> None:
    dw.shop.put("a.txt", "a")
    dw.run()
    dw.shop.put("b.txt", "b")
    with pytest.raises(DeathError):
        dw.run(fault=Failpoint.BEFORE_COMMIT)
    assert dw.staged() != []
    rewind(dw.store, "copy", 1, clean=True, **WHY)
    assert dw.run() == ["b"]
    dw.check_whole("a", "b")


@pytest.fixture
def pair(due: Warehouse) -> Warehouse:
    """Let nothing be due, and have a second table, which takes any line."""
    due.execute("DELETE FROM dim", NO_CHECK, "CREATE TABLE also (line varchar(20))")
    due.run()
    due.execute("DELETE FROM dim", CHECK)
    due.shop.put("c.txt", "bad")
    return due


def test_tables_of_one_database_get_their_rows_together_or_none_does(pair: Warehouse) -> None:
    said = pair.refused("also", "dim")
    assert "output 'also', and 'dim': " in said
    assert f"Nothing of it was published to {str(pair.target).replace('dim', 'also')} and {pair.target}" in said
    assert re.search(r"rows stay in the tables \S+ \(for \S*also\) and \S+ \(for \S*dim\), where they can", said)
    assert "published by now" not in said
    assert (pair.rows("also"), pair.rows()) == (Counter(), Counter())
    assert pair.twice(3) == []
    pair.execute(NO_CHECK)
    pair.run("also", "dim")
    assert (pair.rows("also"), pair.rows()) == (Counter(["bad"]), Counter(["bad"]))


def test_table_that_was_published_by_itself_is_not_published_again_with_another(pair: Warehouse) -> None:
    """As versions did that published one table after the other."""
    pair.refused("also", "dim")
    run = pair.store.committed_run("copy", 4)
    assert run is not None
    sink = JdbcSink(pair.store.databases)
    alone = sink.prepare(stored_output(pair.store, "copy", run, "also"))
    assert alone is not None
    assert alone.publish(lambda what: None, PublishSteps(lambda: None, lambda: 0.0)) == 1
    assert pair.twice(3) == [str(pair.target).replace("dim", "also")]
    pair.execute(NO_CHECK)
    pair.run("also", "dim")
    assert (pair.rows("also"), pair.rows()) == (Counter(["bad"]), Counter(["bad"]))


def test_table_of_another_database_that_was_published_before_one_refused_is_named(pair: Warehouse) -> None:
    said = pair.refused("other:also", "dim")
    assert "What it has published by now stays ('also'): --dry-run tells whether its rows would come twice." in said
    assert pair.twice(3) == [str(pair.target).replace("dim", "also").replace("conn:dw", "conn:other")]


# ---- which targets hold the same rows once


@pytest.mark.parametrize("upsert", [None, Upsert(("line",))])
def test_preview_warns_of_rows_twice_unless_an_upsert_replaces_them(
    postgresql_server: DatabaseServer, shop: Shop, upsert: Upsert | None
) -> None:
    with new_database(postgresql_server) as login:
        dw = Warehouse(shop, login)
        dw.execute("ALTER TABLE dim ADD PRIMARY KEY (line)")
        shop.put("a.txt", "a")
        for _ in range(2):
            run = shop.begin()
            lines = shop.copy(run)
            target = TableTarget(dw.target.address, dw.table, upsert=upsert)
            write_table(run, "dim", target, login, ["line"], [[line] for line in lines])
            run.commit()
            told = [str(target)] if upsert is None else []
            assert dw.twice(None) == sorted([str(shop.root / "copy"), *told])
            if upsert is None:
                return
            reset(dw.store, "copy", **WHY)
        assert dw.rows() == Counter(["a"])
