"""The rights in docs/guides/databases-rights.md are enough to read and write, and each of them is needed and named."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from airflow_bookmarks.core.database.publish_sql import TOKEN_TABLE, TokenRow
from airflow_bookmarks.core.database.sink_table import SinkTable
from airflow_bookmarks.core.database.stage_name import StageName
from airflow_bookmarks.core.database.upsert import Upsert
from airflow_bookmarks.core.errors import BookmarkError
from airflow_bookmarks.core.job import RunIdentity
from airflow_bookmarks.core.rules.territory import Territory
from airflow_bookmarks.core.run import RunKey
from airflow_bookmarks.databases.address import DatabaseAddress
from airflow_bookmarks.databases.database import open_database
from airflow_bookmarks.databases.login import DatabaseLogin
from airflow_bookmarks.lifecycle.maintenance.doctor import examine
from airflow_bookmarks.lifecycle.protocol.lease import RunEnvironment
from airflow_bookmarks.lifecycle.run.enabled import ActiveRun
from airflow_bookmarks.sinks.jdbc.place import TableTarget
from airflow_bookmarks.testing.memory import memory_store
from tests.databases.servers import login_to, new_database
from tests.sinks.jdbc.table_ground import OneLogin
from tests.sinks.jdbc.table_writer import write_table
from tests.sources.jdbc.shop import Shop
from tools.servers import DatabaseServer

_PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "databases-rights.md").read_text()
_BLOCKS = re.findall(r"```sql\n(.*?)```", _PAGE.partition("\n## Rights\n")[2].partition("\n## ")[0], re.DOTALL)
_GRANT = re.compile(r"GRANT (.+) ON (.+) TO .+;")
_PASSWORD = "long-enough-to-be-one"


def rights_in(block: str) -> list[tuple[str, str]]:
    """Return each single right of a block of grants, with what it is on."""
    grants = [_GRANT.fullmatch(line) for line in block.splitlines()]
    return [(right, grant[2]) for grant in grants if grant for right in grant[1].split(", ")]


RIGHTS: Mapping[str, list[tuple[str, str]]] = dict(zip(("postgresql", "mariadb"), map(rights_in, _BLOCKS), strict=True))
EACH = [(dialect, right) for dialect, rights in RIGHTS.items() for right in rights]
OF_TARGET = "dw.dim"


@dataclass(frozen=True)
class Place:
    """Three schemas, and a login that has the rights it was given there."""

    admin: DatabaseLogin
    login: DatabaseLogin
    schemas: Mapping[str, str]  # by their names in the guide

    @classmethod
    @contextmanager
    def made(cls, server: DatabaseServer) -> Iterator[Place]:
        """Make the schemas, with their tables, and a login without rights."""
        user = f"etl_{uuid.uuid4().hex[:12]}"
        with new_database(server) as admin, open_database(admin) as database:
            is_pg = server.dialect == "postgresql"
            kind = "SCHEMA" if is_pg else "DATABASE"
            schemas = {name: name if is_pg else f"{name}_{user}" for name in ("crm", "dw", "scratch")}
            default = admin.database if is_pg else schemas["dw"]
            place = cls(admin, replace(login_to(server, default), user=user, password=_PASSWORD), schemas)
            for name in schemas.values():
                database.execute(f"CREATE {kind} {name}")
            if is_pg:
                database.execute(f"CREATE ROLE {user} LOGIN PASSWORD '{_PASSWORD}'")
                database.execute(f"REVOKE ALL ON DATABASE {admin.database} FROM PUBLIC")
            else:
                database.execute(f"CREATE USER '{user}'@'%' IDENTIFIED BY '{_PASSWORD}'")
            database.execute(f"CREATE TABLE {schemas['crm']}.orders (id int PRIMARY KEY)")
            database.execute(f"INSERT INTO {schemas['crm']}.orders VALUES (1), (2), (3)")
            database.execute(f"CREATE TABLE {schemas['dw']}.dim (id int PRIMARY KEY, version int)")
            database.execute(f"INSERT INTO {schemas['dw']}.dim VALUES (1, 0), (9, 0)")
            try:
                yield place
            finally:
                if is_pg:
                    database.execute(f"DROP OWNED BY {user}")
                    database.execute(f"DROP ROLE {user}")
                else:
                    database.execute(f"DROP USER '{user}'@'%'")
                    for name in schemas.values():
                        database.execute(f"DROP DATABASE {name}")

    def grant(self, rights: Sequence[tuple[str, str]]) -> None:
        """Give the login these rights, as the guide names what they are on."""
        user = self.login.user if self.admin.dialect == "postgresql" else f"'{self.login.user}'@'%'"
        with open_database(self.admin) as database:
            for right, thing in rights:
                database.execute(f"GRANT {right} ON {self.named(thing)} TO {user}")

    def named(self, thing: str) -> str:
        """Return what is called so in the guide by its name here."""
        thing = thing.replace("DATABASE shop", f"DATABASE {self.admin.database}")
        for name, schema in self.schemas.items():
            thing = re.sub(rf"\b{name}\b", schema, thing)
        return thing

    def table(self, schema: str, name: str) -> SinkTable:
        return SinkTable(self.schemas[schema], name)

    def rows(self, query: str) -> list[tuple[object, ...]]:
        with open_database(self.admin) as database:
            return database.rows(query)


def read_and_write(place: Place, *, target: str = "dim", upsert: Upsert | None = None) -> list[str]:
    """Read the new orders and write them, with all that the login may; return what `doctor` finds then.

    Nothing is committed if this raises.
    """
    upserts = Upsert(("id",), has_deletes=True) if upsert is None else upsert
    with memory_store() as store:
        store.databases = OneLogin(place.login)
        try:
            for number in (1, 2):
                run = ActiveRun.begin(store, "job", RunIdentity(f"task/{number}", 1), RunEnvironment())
                shop = Shop(place.login)
                plan = run.plan("orders", shop.source(f"{place.schemas['crm']}.orders"))
                rows = [(int(key), number) for (key,) in shop.held(plan)]
                table = TableTarget(
                    DatabaseAddress.parse("conn:dw"),
                    place.table("dw", target),
                    upsert=upserts if upserts.keys else None,
                )
                gone = [(9, None)] if table.flag else []
                columns, schema = ["id", "version"], place.schemas["scratch"]
                write_table(run, "dim", table, place.login, columns, rows, gone=gone, schema=schema)
                run.commit()
        except BookmarkError:
            assert store.head("job").run_number == 0
            raise
        return [finding.code for finding in examine(store)]


@pytest.fixture
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    with Place.made(request.getfixturevalue(f"{request.param}_server")) as made:
        yield made


both = pytest.mark.parametrize("place", ["postgresql", "mariadb"], indirect=True)


@both
def test_rights_of_the_guide_are_enough(place: Place) -> None:
    place.grant(RIGHTS[place.admin.dialect])
    assert read_and_write(place) == []
    assert sorted(place.rows(f"SELECT id, version FROM {place.named(OF_TARGET)}")) == [(1, 1), (2, 1), (3, 1)]


@both
def test_append_needs_neither_update_nor_delete_on_the_target(place: Place) -> None:
    rights = [
        each for each in RIGHTS[place.admin.dialect] if each not in (("UPDATE", OF_TARGET), ("DELETE", OF_TARGET))
    ]
    place.grant(rights)
    with open_database(place.admin) as database:
        database.execute(f"DELETE FROM {place.named(OF_TARGET)}")
    assert read_and_write(place, upsert=Upsert(())) == []


@pytest.mark.parametrize(("place", "right"), EACH, indirect=["place"], ids=lambda value: str(value).replace(" ", "_"))
def test_right_that_is_missing_is_named_before_anything_is_committed(place: Place, right: tuple[str, str]) -> None:
    place.grant([each for each in RIGHTS[place.admin.dialect] if each != right])
    with pytest.raises(BookmarkError) as caught:
        read_and_write(place)
    said = re.sub(r"jdbc:\S+", "", str(caught.value))  # a URL has names as well
    thing = place.named(right[1]).split()[-1].removesuffix(".*").rpartition(".")[2]
    assert right[0] in said or (thing not in ("", "*") and thing in said)
    assert "denied" in said.lower() or "there is no table" in said or "may not see" in said
    assert sorted(place.rows(f"SELECT id FROM {place.named(OF_TARGET)}")) == [(1,), (9,)]


@pytest.mark.parametrize("missing", ["SELECT", "INSERT", "UPDATE", None])
@pytest.mark.parametrize("place", ["postgresql"], indirect=True)
def test_token_table_of_another_login_needs_rights_of_its_own(place: Place, missing: str | None) -> None:
    tokens, name = place.table("scratch", TOKEN_TABLE), StageName.of(Territory("test", "other"), RunKey(1, 1), "out")
    with open_database(place.admin) as database:
        database.execute(TokenRow("postgresql", tokens, name).create_table())
    place.grant(RIGHTS["postgresql"])
    place.grant([(right, f"scratch.{TOKEN_TABLE}") for right in ("SELECT", "INSERT", "UPDATE") if right != missing])
    if missing is None:
        assert read_and_write(place) == []
        return
    with pytest.raises(BookmarkError, match=f"permission denied for table {TOKEN_TABLE}"):
        read_and_write(place)


@pytest.mark.parametrize("place", ["postgresql", "mariadb"], indirect=True)
@pytest.mark.parametrize("may_create", [True, False])
def test_target_that_is_not_there_needs_the_right_to_make_it(place: Place, may_create: bool) -> None:
    dialect = place.admin.dialect
    on = "SCHEMA dw" if dialect == "postgresql" else OF_TARGET
    place.grant([*RIGHTS[dialect], *([("CREATE", on)] if may_create else [])])
    with open_database(place.admin) as database:
        database.execute(f"DROP TABLE {place.named(OF_TARGET)}")
    if may_create:
        assert read_and_write(place) == []
        return
    with pytest.raises(BookmarkError, match=r"permission denied for schema dw|CREATE command denied"):
        read_and_write(place)
