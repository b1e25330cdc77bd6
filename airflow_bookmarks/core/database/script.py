"""Statements of a script around the rows of an output: run within the transaction of its publish.

State keeps them, so that whoever finishes a publish can run them; and the database keeps their digest beside the stage
table, written by the driver that staged. A publish runs statements of that digest alone: so what somebody has written
into the state, without a login to the database, is never run there.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_bookmarks.core.database.dialects.quoting import is_mysql, text_literal
from airflow_bookmarks.core.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_bookmarks.core.database.dialect import DialectName
    from airflow_bookmarks.core.database.sink_table import SinkTable

STATEMENT_TABLE = "_bookmarks_statements"

_FRAME = re.compile(r"(BEGIN|START\s+TRANSACTION|COMMIT|END)(\s+(TRANSACTION|WORK))?", re.IGNORECASE)
_ENDS = re.compile(r"(ROLLBACK|ABORT|SAVEPOINT|RELEASE|VACUUM|PREPARE\s+TRANSACTION)\b", re.IGNORECASE)
_COMMITS_IN_MYSQL = re.compile(r"(CREATE|DROP|ALTER|TRUNCATE|RENAME|LOCK|UNLOCK|GRANT|REVOKE|SET)\b", re.IGNORECASE)
# Its documentation says that TRUNCATE commits. The others are refused within a transaction: after the commit of a run.
_COMMITS_IN_REDSHIFT = re.compile(
    r"(TRUNCATE|(CREATE|ALTER|DROP)\s+(EXTERNAL|DATABASE)|ALTER\s+TABLE\s+\S+\s+APPEND|CANCEL)\b", re.IGNORECASE
)
# Comments, quoted text and names, and text between dollars; then anything else up to the next sign that may begin one.
_PIECE = re.compile(
    r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`(?:[^`]|``)*`|\$(\w*)\$.*?\$\1\$|;|[^-/'\"`$;]+|.",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class PublishScript:
    """The statements before and after the rows of an output; none of either: there is no such script."""

    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, dialect: DialectName, before: str | Iterable[str] | None, after: str | Iterable[str] | None
    ) -> PublishScript:
        """Return what a script gives: texts with one statement each, or with several between semicolons.

        Statements that begin and end a transaction of their own are left out: all of it is one.

        Raises:
            OptionError: a statement would end the transaction.
        """
        return cls(_checked(dialect, before), _checked(dialect, after))

    def __bool__(self) -> bool:
        return bool(self.before or self.after)

    @property
    def digest(self) -> str:
        """What tells it from any other."""
        return hashlib.sha256(json.dumps([self.before, self.after]).encode()).hexdigest()


NO_SCRIPT = PublishScript()


def split_statements(text: str) -> list[str]:
    r"""Return the statements of a text, without comments that stand alone and without the semicolons between them.

    Example:
        >>> split_statements("DELETE FROM a WHERE b = ';'; -- all\nINSERT INTO a VALUES (1);")
        ["DELETE FROM a WHERE b = ';'", 'INSERT INTO a VALUES (1)']
    """
    found, present = list[str](), ""
    for piece in _PIECE.finditer(text):
        if piece[0] == ";":
            found.append(present)
            present = ""
        elif not piece[0].startswith(("--", "/*")):
            present += piece[0]
    return [each.strip() for each in (*found, present) if each.strip()]


def _commits(dialect: DialectName, statement: str) -> bool:
    if dialect == "redshift":
        return _COMMITS_IN_REDSHIFT.match(statement) is not None
    return is_mysql(dialect) and _COMMITS_IN_MYSQL.match(statement) is not None


def _checked(dialect: DialectName, given: str | Iterable[str] | None) -> tuple[str, ...]:
    texts = [given] if isinstance(given, str) else list(given or ())
    statements = [each for text in texts for each in split_statements(text)]
    for statement in statements:
        if _ENDS.match(statement) or _commits(dialect, statement):
            instead = " Write DELETE FROM for it," if statement[:8].upper() == "TRUNCATE" else " Leave it out,"
            raise OptionError(
                f"the statement {statement[:80]!r} would end the transaction in which rows are published, or commit a "
                f"part of it. Nothing was written or committed.{instead} or run it by itself, outside of the job."
            )
    return tuple(each for each in statements if _FRAME.fullmatch(each) is None)


@dataclass(frozen=True, slots=True)
class DigestRow:
    """The row that keeps the digest of a script, in a table beside the stage table it belongs to."""

    dialect: DialectName
    table: SinkTable
    stage: str

    @classmethod
    def of(cls, dialect: DialectName, stage: SinkTable) -> DigestRow:
        """Return the row of a stage table."""
        return cls(dialect, stage.beside(STATEMENT_TABLE), stage.name)

    def create_table(self) -> str:
        """Return the statement that makes the table unless it is there."""
        engine = " ENGINE=InnoDB DEFAULT CHARSET=utf8mb4" if is_mysql(self.dialect) else ""
        return (
            f"CREATE TABLE IF NOT EXISTS {self._table} "
            f"(stage_name varchar(64) NOT NULL PRIMARY KEY, digest varchar(64) NOT NULL){engine}"
        )

    def add(self, digest: str) -> str:
        """Return the statement that adds the row."""
        return f"INSERT INTO {self._table} (stage_name, digest) VALUES ({self._literal}, '{digest}')"

    def read(self) -> str:
        """Return the query for the digest."""
        return f"SELECT digest FROM {self._table} WHERE stage_name = {self._literal}"

    def remove(self) -> str:
        """Return the statement that removes the row."""
        return f"DELETE FROM {self._table} WHERE stage_name = {self._literal}"

    @property
    def _literal(self) -> str:
        return text_literal(self.dialect, self.stage)

    @property
    def _table(self) -> str:
        return self.table.sql(self.dialect)
